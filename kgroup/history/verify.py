"""Compares a replayed state with what a cluster reports."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias

from kgroup.domain import EPOCH_TYPES, NO_OFFSET, TopicPartition, partitions_text
from kgroup.history.fold.state import GroupState
from kgroup.history.fold.tasks import Task, TaskSets
from kgroup.history.fold.view import CLASSIC, KINDS, SHARE, RecordedMember
from kgroup.protocol.streams_records import StreamsGroupTopologyValue

Said: TypeAlias = Mapping[str, Any]
"""One object of JSON as `kgroup describe` writes it."""
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance"})
"""States of a classic group that have no record: then its members and state are not compared."""


class About(Enum):
    """The part of a group in which the two differ."""

    OFFSETS = auto()
    PARTITIONS = auto()
    REST = auto()


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference, in words."""

    text: str
    about: About = About.REST


def differences(
    state: GroupState | None,
    said: Said,
    topics: Mapping[bytes, str] | None = None,
    starts: Mapping[TopicPartition, int] | None = None,
) -> Iterator[Difference]:
    """Yield how the replayed group differs from `said`, one group of `kgroup describe -o json`.

    Not compared are what DescribeGroups does not carry (a classic generation, member epochs) and what
    `uncompared` names. `state` is None for a group without a record: the broker may list it as Empty until it
    next checks for expired offsets. `topics` are all existing ones by id: a broker describes nothing of
    others. `starts` are the stored start offsets of a share group; None if they were not read.
    """
    if state is None:
        # Tombstones of its last offsets end a group in the log; the broker removes it at its next clean-up.
        if said["state"] not in ("Empty", "Dead") or _committed(said):
            yield Difference(f"the log has no record of it, the cluster reports {said['state']}")
        return
    view = state.view()
    kind = CLASSIC if view.kind not in KINDS else view.kind
    if said["type"] and said["type"] != kind:
        yield Difference(f"type: replayed {kind}, the cluster reports {said['type']}")
        return
    if said["state"] not in REBALANCING:
        shown = view.state if view.kind in KINDS else "Empty"
        pairs: list[tuple[str, object, object]] = [("state", shown, said["state"])]
        # If its members ask for none, it has the broker's default (CP-47), which is in no record.
        if view.members and view.assignor is not None:
            pairs.append(("assignor", view.assignor, said["assignor"]))
        yield from _unlike("", pairs)
        yield from _members(state, said, topics)
    if view.streams is not None and said["topology"] is not None:
        pair = (_recorded(view.streams.topology), _topology(said["topology"]))
        yield from _unlike("", [("topology", *pair)])
    if kind in EPOCH_TYPES:
        epochs = (("group_epoch", view.epoch), ("assignment_epoch", view.assignment_epoch))
        yield from _unlike("", [(name, mine, said[name]) for name, mine in epochs if said[name] is not None])
    if kind != SHARE:
        yield from _offsets(state, said)
    elif starts is not None:
        yield from _starts(starts, said)


def uncompared(state: GroupState | None, said: Said, *, starts_read: bool = True) -> list[str]:
    """Return what of a group cannot be compared because of the records or the broker, and why."""
    kind, hidden = state.kind if state is not None else "", hidden_positions(said)
    reasons = [] if hidden is None else [f"offsets: {hidden}"]
    if kind == SHARE and not starts_read:
        reasons.append("start offsets: they are in __share_group_state, which was not read")
    if state is None:
        return reasons
    if said["state"] in REBALANCING:
        return [f"members and state: the group is in {said['state']}", *reasons]
    if said["members"] is None:
        return ["members: the broker does not report them", *reasons]
    # For streams groups, tasks are reported, whatever partitions these read.
    members = [m for m in said["members"] if m.get("tasks") is None]
    unreported = {
        "instance ids": any(not m.get("instance_id_known", True) for m in members),
        "subscriptions": any(m["subscribed_topics"] is None and not m.get("raw_metadata") for m in members),
        "assignments": any(m["assignment"] is None and not m.get("raw_assignment") for m in members),
    }
    return [*(f"{what}: the broker does not report them" for what, so in unreported.items() if so), *reasons]


def hidden_positions(said: Said) -> str | None:
    """Return why the cluster may have committed offsets of this group that it does not report, else None."""
    error = hiding_error(said)
    return None if error is None else str(error["message"])


def hiding_error(said: Said) -> Said | None:
    """Return the error that hides committed offsets of this group; None if all are reported."""
    committed = _committed(said)
    for error in said["errors"]:
        # An error about the ends of logs has the same name, but then committed offsets were read.
        if error["item"] == said["group_id"] or error["item"] == "offsets" and not committed:
            hiding: Said = error
            return hiding
    return None


def _unlike(
    whose: str, pairs: Iterable[tuple[str, object, object]], about: About = About.REST
) -> Iterator[Difference]:
    for what, mine, other in pairs:
        if mine != other:
            yield Difference(f"{whose}{what}: replayed {mine}, the cluster reports {other}", about)


def _members(state: GroupState, said: Said, topics: Mapping[bytes, str] | None) -> Iterator[Difference]:
    if said["members"] is None:
        return
    there = state.members if topics is None else state.members_by(topics)
    theirs_by_id = {m["member_id"]: m for m in said["members"]}
    for member_id in sorted(state.members.keys() ^ theirs_by_id.keys()):
        where = "in the log only" if member_id in state.members else "in the cluster only"
        yield Difference(f"member {member_id}: {where}")
    for member_id in sorted(state.members.keys() & theirs_by_id.keys()):
        ours, theirs = state.members[member_id], theirs_by_id[member_id]
        pairs: list[tuple[str, object, object]] = [
            ("client id", ours.client_id, theirs["client_id"]),
            ("host", ours.host.removeprefix("/"), theirs["host"]),
            ("rack", ours.rack_id, theirs["rack_id"]),
            ("protocol", ours.protocol, theirs["protocol"]),
            ("regex", ours.regex, theirs["subscribed_regex"]),
        ]
        if theirs.get("member_epoch") is not None and state.kind in EPOCH_TYPES:
            pairs.append(("epoch", ours.epoch, theirs["member_epoch"]))
        if theirs.get("instance_id_known", True):
            pairs.append(("instance id", ours.instance_id, theirs["instance_id"]))
        if ours.streams is not None:
            # By task, as both sides report it.
            client = ours.streams
            if theirs["tasks"] is not None:
                pairs.append(("tasks", client.has.text, _tasks(theirs["tasks"]).text))
            if theirs["target_tasks"] is not None:
                pairs.append(("target tasks", client.target.text, _tasks(theirs["target_tasks"]).text))
            if (process := theirs["process"]) is not None:
                tags = tuple((tag["key"], tag["value"]) for tag in process["client_tags"])
                pairs += [
                    ("process", client.process_id, process["process_id"]),
                    ("topology epoch", client.topology_epoch, process["topology_epoch"]),
                    ("endpoint", client.endpoint, process["endpoint"]),
                    ("client tags", tuple(sorted(client.tags)), tags),
                ]
        else:
            pairs += _consumers(ours, theirs)
            yield from _unlike(f"member {ours.label}, ", _owned(there[member_id], theirs), About.PARTITIONS)
        yield from _unlike(f"member {ours.label}, ", pairs)


def _consumers(ours: RecordedMember, theirs: Said) -> Iterator[tuple[str, object, object]]:
    """Yield the state of the members of groups without tasks, but for their partitions."""
    if theirs["subscribed_topics"] is not None:
        yield "topics", sorted(ours.topics), sorted(theirs["subscribed_topics"])
    # For protocols other than the consumers' the broker has the same bytes.
    if theirs.get("raw_metadata"):
        yield "metadata", _text(ours.metadata), theirs["raw_metadata"]
    if theirs.get("raw_assignment"):
        yield "assignment", _text(ours.given or b""), theirs["raw_assignment"]


def _owned(there: RecordedMember, theirs: Said) -> Iterator[tuple[str, object, object]]:
    """Yield the partitions of a member; `there` is the recorded one without deleted topics."""
    if theirs["assignment"] is not None:
        yield "owns", partitions_text(there.holds), partitions_text(_flat(theirs["assignment"]))
    # Classic members have no target, and DescribeGroups does not carry their epochs.
    if theirs.get("target_assignment") is not None and there.target is not None:
        target = partitions_text(_flat(theirs["target_assignment"]))
        yield "target", partitions_text(there.target or ()), target


def _tasks(said: Said) -> TaskSets:
    def of(entries: Sequence[Said]) -> frozenset[Task]:
        return frozenset(Task(e["subtopology_id"], n) for e in entries for n in e["partitions"])

    return TaskSets(of(said["active"]), of(said["standby"]), of(said["warmup"]))


def _recorded(topology: StreamsGroupTopologyValue | None) -> str:
    """Return a topology by its epoch and the names of its topics, in order."""
    if topology is None:
        return "none"
    parts = [
        _part(
            part.subtopology_id,
            part.source_topics,
            (topic.name for topic in part.repartition_source_topics),
            (topic.name for topic in part.state_changelog_topics),
        )
        for part in sorted(topology.subtopologies, key=lambda part: part.subtopology_id)
    ]
    return f"epoch {topology.epoch}: {'; '.join(parts)}"


def _topology(said: Said) -> str:
    parts = [
        _part(p["subtopology_id"], p["source_topics"], p["repartition_topics"], p["changelog_topics"])
        for p in said["subtopologies"]
    ]
    return f"epoch {said['epoch']}: {'; '.join(parts)}"


def _part(name: str, sources: Iterable[str], repartition: Iterable[str], changelogs: Iterable[str]) -> str:
    lists = (("reads", sources), ("repartitions", repartition), ("keeps", changelogs))
    return f"{name} " + ", ".join(f"{what} {' '.join(sorted(names))}" for what, names in lists)


def _offsets(state: GroupState, said: Said) -> Iterator[Difference]:
    committed = _committed(said)
    ours = {
        p: (c.offset, None if c.leader_epoch < 0 else c.leader_epoch, c.metadata)
        for p, c in state.offsets.items()
    }
    hidden = hidden_positions(said) is not None
    for partition in sorted(committed.keys() if hidden else ours.keys() | committed.keys()):
        mine, other = ours.get(partition), committed.get(partition)
        pairs: list[tuple[str, object, object]] = [("", mine and mine[0], other and other[0])]
        if mine is not None and other is not None:
            pairs += [(", leader epoch", mine[1], other[1]), (", metadata", mine[2], other[2])]
        yield from _unlike(f"offset of {partition}", pairs, About.OFFSETS)


def _starts(starts: Mapping[TopicPartition, int], said: Said) -> Iterator[Difference]:
    """Yield start offsets that differ; a broker omits those that are not set."""
    committed = {partition: offset for partition, (offset, *_) in _committed(said).items()}
    ours = {partition: start for partition, start in starts.items() if start != NO_OFFSET}
    for partition in sorted(
        committed.keys() if hidden_positions(said) is not None else ours.keys() | committed.keys()
    ):
        yield from _unlike(
            f"offset of {partition}", [("", ours.get(partition), committed.get(partition))], About.OFFSETS
        )


def _committed(said: Said) -> dict[TopicPartition, tuple[int, int | None, str]]:
    """Return offset, leader epoch and metadata of each partition that has a commit."""
    return {
        TopicPartition(o["topic"], o["partition"]): (
            o["committed_offset"],
            o["leader_epoch"],
            o["metadata"] or "",
        )
        for o in said["offsets"]
        if o["committed_offset"] is not None
    }


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _flat(assignment: Sequence[Said] | None) -> list[TopicPartition]:
    return [TopicPartition(entry["topic"], p) for entry in assignment or () for p in entry["partitions"]]
