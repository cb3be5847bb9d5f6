"""A described group as text and tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from kgroup.admin.models import (
    CONSUMER,
    STREAMS,
    Described,
    Finding,
    GroupDescription,
    Member,
    OffsetRow,
    StreamsTopology,
    TopicAssignment,
    TopologyNode,
)
from kgroup.admin.read.lag import readers_known, total
from kgroup.admin.read.lag_report import PartitionLag
from kgroup.admin.read.members import partitions_of
from kgroup.admin.statuses import WEIGHTS
from kgroup.cli.output.tables import Block, Column, Table, with_fields
from kgroup.cli.output.wording import (
    MARKS,
    STATE_STYLES,
    STATUS_STYLES,
    UNKNOWN,
    assignment_text,
    finding_line,
    lag_text,
    more_findings,
    owned_text,
    short_member_id,
    short_process_id,
    tasks_text,
)
from kgroup.cli.views.expected import lines
from kgroup.domain import Document, MemberStatus, count_of, ranges
from kgroup.durations import iso

_GROUP = Column("group_id", "GROUP", wide=True)
MEMBER_COLUMNS = (
    _GROUP,
    Column("instance_id", "INSTANCE"),
    Column("member_id", "MEMBER"),
    Column("host"),
    Column("client_id", wide=True),
    Column("rack_id", "RACK", wide=True),
    Column("protocol", wide=True),
    Column("member_epoch", "EPOCH", right=True),
    Column("state", style=STATE_STYLES),
    Column("partitions", "PARTS", right=True),
    Column("assignment", "CURRENT"),
    Column("target_assignment", "TARGET"),
    Column("lag", right=True),
    Column("subscribed", wide=True),
)
PINGED_COLUMNS = (
    Column("session_timeout_ms", "SESSION-MS", right=True),
    Column("failed_pings", "MISSED", right=True),
)
STREAMS_COLUMNS = (
    *MEMBER_COLUMNS,
    Column("process"),
    Column("endpoint", wide=True),
    Column("tasks"),
    Column("target_tasks"),
)
TOPOLOGY_COLUMNS = (
    Column("subtopology_id", "SUBTOPOLOGY"),
    Column("source_topics", "SOURCES"),
    Column("repartition_topics", "REPARTITION"),
    Column("changelog_topics", "CHANGELOGS"),
)
NODE_COLUMNS = (
    Column("subtopology_id", "SUBTOPOLOGY"),
    Column("name", "NODE"),
    Column("type"),
    Column("topics"),
    Column("stores"),
    Column("successors", "NEXT"),
)
DESCRIBED = {
    Described.AVAILABLE: "as below",
    Described.STORED: "stored by the broker's plugin; records do not hold it",
    Described.NOT_STORED: "not stored",
    Described.REFUSED: "refused by the broker's plugin",
    Described.ERROR: "not read: the broker failed",
    Described.UNKNOWN: "unknown",
}
STATUS = Column("status", style=STATUS_STYLES)
OFFSET_COLUMNS = (
    _GROUP,
    Column("topic"),
    Column("partition", right=True),
    Column("committed_offset", "COMMITTED", right=True),
    Column("log_end_offset", "LOG-END", right=True),
    Column("last_stable_offset", "STABLE", wide=True, right=True),
    Column("lag", right=True),
    STATUS,
    Column("instance_id", "INSTANCE"),
    Column("member_id", "MEMBER"),
    Column("leader_epoch", wide=True, right=True),
    Column("metadata", wide=True),
    Column("assigned_epoch", "ASSIGNED-EPOCH", wide=True, right=True),
    Column("owner_thread", "THREAD", wide=True),
    Column("error", wide=True),
)
HELD_OPEN = 5
"""Partitions with open transactions that are described in text; -o json has them all."""
_NO_PARTITIONS: Document = {"partitions": None, "assignment": None, "lag": None, "subscribed": None}
"""These columns for members that read no topics."""

LARGE = 20
"""A group with more members is shown as one line per member where that is possible."""


@dataclass(frozen=True, slots=True)
class Pick:
    """The rows, and the findings, that --sort and --top select."""

    sort: str | None = None
    top: int | None = None

    def __call__(self, rows: list[Document]) -> list[Document]:
        """Return the first `top` rows; with `sort` "lag" first unknown lags, then the largest.

        Without `sort`, members that are not stable come first among the `top`.
        """
        if self.sort == "lag" or self.top is not None:
            rows = sorted(
                rows,
                key=lambda row: (
                    (1, -lag) if isinstance(lag := row["lag"], int) else (0 if lag == UNKNOWN else 2, 0)
                ),
            )
        if self.sort is None and self.top is not None:
            rows = sorted(rows, key=lambda row: row.get("state", MemberStatus.STABLE) == MemberStatus.STABLE)
        return rows[: self.top]

    def worst(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the `top` findings, the worst first; all in their order without it."""
        if self.top is None:
            return list(findings)
        return sorted(findings, key=lambda finding: list(MARKS).index(finding.severity))[: self.top]


EVERY = Pick()


def _part(rows: list[Document], pick: Pick, what: str) -> tuple[list[Document], list[str]]:
    chosen = pick(rows)
    left = [] if len(chosen) == len(rows) else [f"{len(chosen)} of {len(rows)} {what} shown"]
    return chosen, left


def blocks(
    group: GroupDescription, sections: Sequence[str], by: str, short: bool, pick: Pick = EVERY
) -> Iterator[Block]:
    """Yield the chosen sections of one group, in reading order; `short` cuts member ids."""
    if "summary" in sections:
        yield _headline(group)
        if group.application is not None:
            from kgroup.cli.views.applications import summary

            yield summary(group)
        yield _totals(group)
        yield from held_open(group.notable)
        if group.registration is not None:
            yield from lines(group.registration)
    if "members" in sections and group.members:
        yield ""
        rows, left = _part(member_rows(group, by, short), pick, "members")
        cut = frozenset({"assignment", "target_assignment"}) if len(group.members) > LARGE else frozenset()
        yield Table(_columns_of(group), rows, cut=cut)
        yield from left
    if "members" in sections and group.topology is not None:
        yield ""
        yield from _topology(group.topology)
    if "offsets" in sections and group.offsets:
        yield ""
        rows, left = _part(offset_rows(group, short), pick, "partitions")
        yield Table(offset_columns(group.offsets), rows)
        yield from left
    yield from _empty(group, sections)
    if "findings" in sections and group.findings:
        yield ""
        for finding in pick.worst(group.findings):
            yield finding_line(finding)
            if finding.hint:
                yield f"  {finding.hint}"
        yield from more_findings(group.findings, pick.top)


def _empty(group: GroupDescription, sections: Sequence[str]) -> Iterator[Block]:
    """Yield which of the chosen sections have nothing, where no summary says it."""
    if "summary" not in sections:
        by_name = {"members": group.members, "offsets": group.offsets, "findings": group.findings}
        yield from (f"{group.group_id}: no {name}" for name in sections if by_name.get(name) == ())


def _topology(topology: StreamsTopology) -> Iterator[Block]:
    yield f"topology of epoch {topology.epoch}"
    yield Table(TOPOLOGY_COLUMNS, [asdict(part) for part in topology.subtopologies])
    yield f"the application's own description of it: {DESCRIBED[topology.described]}"
    if topology.description is not None:
        rows: list[Document] = [
            {"subtopology_id": part.subtopology_id, **_node_row(node)}
            for part in topology.description.subtopologies
            for node in part.nodes
        ]
        # Nodes that fill a global store have no subtopology.
        rows += [
            {"subtopology_id": "global", **_node_row(node)}
            for store in topology.description.global_stores
            for node in (store.source, store.processor)
        ]
        yield Table(NODE_COLUMNS, rows)


def _node_row(node: TopologyNode) -> Document:
    sink = () if node.sink_topic is None else (node.sink_topic,)
    return {
        "name": node.name,
        "type": node.type,
        "topics": (*node.source_topics, *sink),
        "stores": node.stores,
        "successors": node.successors,
    }


def member_columns(groups: Iterable[GroupDescription]) -> tuple[Column, ...]:
    """Return the columns of members: with those that only some of the groups have."""
    described = tuple(groups)
    columns = STREAMS_COLUMNS if any(group.type == STREAMS for group in described) else MEMBER_COLUMNS
    if any(member.session_timeout_ms is not None for group in described for member in group.known_members):
        columns = (*columns, *PINGED_COLUMNS)
    if any(group.application is not None for group in described):
        from kgroup.cli.views.applications import further_columns

        return (*columns, *further_columns(described, columns))
    return columns


def _columns_of(group: GroupDescription) -> tuple[Column, ...]:
    """Return the columns for the members of one group."""
    if group.application is None:
        return member_columns((group,))
    from kgroup.cli.views.applications import columns_of

    return columns_of(group.application)


def _headline(group: GroupDescription) -> str:
    kind = f"{group.type} (KIP-848)" if group.type == CONSUMER else group.type
    if group.protocol_type and group.protocol_type != CONSUMER and group.protocol_type != group.type:
        kind += f" ({group.protocol_type})"
    parts = [group.group_id, kind, group.state]
    if group.assignor or group.type == STREAMS:
        parts.append(f"assignor {group.assignor or 'unknown'}")
    if group.generation is not None:
        parts.append(f"generation {group.generation}")
    if group.group_epoch is not None:
        parts.append(f"epoch {group.group_epoch} (assignment {group.assignment_epoch})")
    coordinator = []
    if group.coordinator is not None:
        coordinator.append(f"coordinator {group.coordinator.id}")
    if group.coordinator_epoch is not None:
        coordinator.append(f"elected, epoch {group.coordinator_epoch}")
    if group.offsets_partition is not None:
        coordinator.append(f"__consumer_offsets-{group.offsets_partition}")
    if coordinator:
        parts.append(" · ".join(coordinator))
    return "   ".join(parts)


def _totals(group: GroupDescription) -> str:
    static = sum(member.instance_id is not None for member in group.known_members)
    members = "unknown" if group.members is None else str(len(group.members))
    if not group.instance_ids_known:
        members += " (this broker does not report which are static)"
    elif static:
        members += f" ({static} static)"
    parts = [f"members {members}"]
    if group.no_offsets is not None:
        return f"{parts[0]} · no committed offsets: {group.no_offsets}"
    rows = group.row_count
    unread = not rows and any(error.item == "offsets" for error in group.errors)
    parts.append("partitions not known" if unread else f"partitions {rows}")
    lag = lag_text(group.total_lag, group.lag_at_least, group.unknown_partitions, rows)
    return " · ".join([*parts, lag])


def member_rows(group: GroupDescription, by: str, short: bool) -> list[Document]:
    """Return a row per member, by instance id (dynamic ones last) or member id; for Streams by process.

    Unless they are by member id, those that are not stable come first. A member's lag is unknown when that of
    one of its partitions is, or what it owns.
    """
    rows = {row.place: row for row in group.offsets}
    members = sorted(group.known_members, key=_by_process_and_instance)
    if by == "member":
        members.sort(key=lambda m: m.member_id)
    else:
        members.sort(key=lambda m: m.state == MemberStatus.STABLE)
    documents = []
    for member in members:
        owned = partitions_of(member.assignment)
        lag: int | str | None = UNKNOWN
        if member.assignment is not None and owned <= rows.keys():
            behind = total(rows[partition] for partition in owned)
            lag = UNKNOWN if behind.unknown else behind.lag
        documents.append(_member_row(group.group_id, member, lag, short))
    with_fields(documents, members, (*STREAMS_COLUMNS, *PINGED_COLUMNS))
    if group.application is None:
        return documents
    from kgroup.cli.views.applications import row_of

    reads = group.no_offsets is None
    return [
        {**row, **({} if reads else _NO_PARTITIONS), **row_of(member, group.application, short)}
        for row, member in zip(documents, members, strict=True)
    ]


def _by_process_and_instance(member: Member) -> tuple[str, bool, str, str]:
    process_id = "" if member.process is None else member.process.process_id
    return process_id, member.instance_id is None, member.name, member.member_id


def _member_row(group_id: str, member: Member, lag: int | str | None, short: bool) -> Document:
    subscribed = list(member.subscribed_topics or ())
    if member.subscribed_regex:
        subscribed.append(f"/{member.subscribed_regex}/")
    target = member.target_assignment
    state: str = member.state
    if member.state == MemberStatus.REVOKING and target is not None:
        kept = {(entry.topic, p) for entry in target for p in entry.partitions}
        going = [
            TopicAssignment(entry.topic, tuple(p for p in entry.partitions if (entry.topic, p) not in kept))
            for entry in member.assignment or ()
        ]
        state = "revoking " + " ".join(f"{e.topic}:{ranges(e.partitions)}" for e in going if e.partitions)
    aim = None if target is None else "=" if target == member.assignment else assignment_text(target)
    process_id = None if member.process is None else member.process.process_id
    return {
        "group_id": group_id,
        "instance_id": member.instance_id if member.instance_id_known else UNKNOWN,
        "member_id": short_member_id(member.member_id, member.instance_id) if short else member.member_id,
        "host": UNKNOWN if member.host is None else member.host,
        "client_id": UNKNOWN if member.client_id is None else member.client_id,
        "state": state,
        "partitions": UNKNOWN if member.partition_count is None else member.partition_count,
        "assignment": owned_text(member),
        "target_assignment": aim,
        "lag": lag,
        "subscribed": UNKNOWN if member.subscribed_topics is None else subscribed,
        "process": process_id if process_id is None or not short else short_process_id(process_id),
        "endpoint": None if member.process is None else member.process.endpoint,
        "tasks": tasks_text(member.tasks),
        "target_tasks": "=" if member.target_tasks == member.tasks else tasks_text(member.target_tasks),
    }


def offset_cells(row: OffsetRow | PartitionLag) -> Document:
    """Return committed offset, log end and lag; a partition that is gone has only the first."""
    unread = None if row.commit_known else UNKNOWN
    rest = None if row.gone else UNKNOWN
    return {
        "committed_offset": unread if row.committed_offset is None else row.committed_offset,
        "log_end_offset": rest if row.log_end_offset is None else row.log_end_offset,
        "lag": rest if row.lag is None else row.lag,
    }


def offset_columns(rows: Iterable[OffsetRow]) -> tuple[Column, ...]:
    """Return the columns of partitions; the last stable offset where it differs from the end of a log."""
    differs = any(map(unstable, rows))
    return tuple(replace(c, wide=not differs) if c.key == "last_stable_offset" else c for c in OFFSET_COLUMNS)


def stable_cells(row: OffsetRow | PartitionLag) -> Document:
    """Return where readers of committed records stop; None where nothing is unread."""
    rest = None if row.lag == 0 or row.gone else UNKNOWN
    return {"last_stable_offset": rest if row.last_stable_offset is None else row.last_stable_offset}


def unstable(row: OffsetRow | PartitionLag) -> bool:
    """Return whether an open transaction stops readers of committed records before the log's end."""
    return row.last_stable_offset is not None and row.last_stable_offset != row.log_end_offset


def held_open(rows: Iterable[OffsetRow | PartitionLag]) -> Iterator[str]:
    """Yield a line for each of the first partitions with an open transaction: its begin and owner."""
    open_rows = [row for row in rows if unstable(row)]
    for row in open_rows[:HELD_OPEN]:
        by = "its producer could not be read, which requires READ on the topic and Kafka 2.8"
        if row.held_open_by is not None:
            producers = (
                f"producer {p.producer_id}, epoch {p.producer_epoch}"
                + (f", last record {iso(p.last_timestamp_ms)}" if p.last_timestamp_ms >= 0 else "")
                for p in row.held_open_by
            )
            by = ", ".join(producers) or "it ended meanwhile"
        yield (
            f"{row.place}: readers of committed records stop at {row.last_stable_offset} of "
            f"{row.log_end_offset}, at an open transaction: {by}"
        )
    if len(open_rows) > HELD_OPEN:
        yield f"and {count_of(len(open_rows) - HELD_OPEN, 'partition')} more with open transactions"


def offset_rows(group: GroupDescription, short: bool) -> list[Document]:
    """Return a row for each partition that has a committed offset or an owner, bad statuses first."""
    owners_known = readers_known(group)
    rows: list[Document] = []
    offsets = sorted(group.offsets, key=_by_weight)
    for row in offsets:
        # Without a known owner there may be one.
        instance_id = member_id = None if owners_known or row.gone else UNKNOWN
        if row.member_id is not None:
            instance_id = row.instance_id
            member_id = short_member_id(row.member_id, row.instance_id) if short else row.member_id
        rows.append(
            {
                "group_id": group.group_id,
                **offset_cells(row),
                **stable_cells(row),
                "status": None if row.status is None else row.status.name,
                "instance_id": instance_id,
                "member_id": member_id,
                "error": row.error or row.reason,
            }
        )
    return with_fields(rows, offsets, OFFSET_COLUMNS)


def _by_weight(row: OffsetRow) -> int:
    return 0 if row.status is None else -WEIGHTS.index(row.status.weight)
