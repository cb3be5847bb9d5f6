"""Start offsets and lag of share groups, as their coordinators report them.

A share group has no committed offset: all records before its *start offset* are acknowledged or given up
(KIP-932), in short done. The stored one moves late, so the record there may be done too. The lag shows how
many beyond it are done; which ones, no broker reports.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import Commits, ItemError, OffsetRow, TopicDescription
from kgroup.admin.read.offsets import Held, committed
from kgroup.admin.refusals import code_name, refused
from kgroup.admin.statuses import READ, Unseen, unknown
from kgroup.domain import SHARE_STATE_TOPIC, OffsetAndMetadata, TopicPartition, place_of
from kgroup.errors import ErrorCode, KgroupError
from kgroup.security.rights import DESCRIBE, on_group, on_topic

NOT_SET = (
    "no start offset is reported: none is stored before the first acknowledgement, or it cannot be read now"
)
NOT_READ = "not read yet: share.auto.offset.reset decides where reading begins"
NOT_COUNTED = "the broker does not report how many records from the start offset on are done"


@dataclass(frozen=True, slots=True)
class ShareOffsets:
    """A coordinator's report of a share group.

    `starts` are the start offsets, `lags` the number of records from there on that are not done, where
    reported. `not_set` are partitions without a reported start offset: none is stored, or it could not be
    read; `failed` are those with an error of their own.
    """

    starts: dict[TopicPartition, OffsetAndMetadata] = field(default_factory=dict)
    lags: dict[TopicPartition, int] = field(default_factory=dict)
    not_set: set[TopicPartition] = field(default_factory=set)
    failed: dict[TopicPartition, KgroupError] = field(default_factory=dict)

    @property
    def without_start(self) -> set[TopicPartition]:
        """The group's partitions without a reported start offset."""
        return self.not_set | self.failed.keys()


def share_offsets(cluster: ClusterView, group_ids: Iterable[str]) -> Answers[ShareOffsets]:
    """Return start offsets and lags of share groups, or why unreadable; deleted topics have none."""

    def ask(node: int, groups: Sequence[str], left_s: float) -> Answers[ShareOffsets]:
        from kgroup.protocol.messages.describe_share_group_offsets import (
            DescribeShareGroupOffsetsRequest,
            DescribeShareGroupOffsetsRequestGroup,
            DescribeShareGroupOffsetsResponse,
        )

        requested = tuple(DescribeShareGroupOffsetsRequestGroup(group_id=name) for name in groups)
        request = DescribeShareGroupOffsetsRequest(groups=requested)
        answers: Answers[ShareOffsets] = {}
        for group in cluster.ask(node, request, DescribeShareGroupOffsetsResponse, timeout_s=left_s).groups:
            if group.error_code:
                what, needs = f"offsets of share group {group.group_id}", [on_group(DESCRIBE, group.group_id)]
                answers[group.group_id] = refused(group.error_code, what, group.error_message, needs)
                continue
            offsets = answers[group.group_id] = ShareOffsets()
            for topic in group.topics:
                for p in topic.partitions:
                    partition = place_of(topic.topic_name, p.partition_index)
                    if p.error_code:
                        needs = [on_topic(DESCRIBE, topic.topic_name)]
                        what = f"the start offset of {partition}"
                        offsets.failed[partition] = refused(p.error_code, what, p.error_message, needs)
                    elif p.start_offset < 0:
                        offsets.not_set.add(partition)
                    else:
                        offsets.starts[partition] = OffsetAndMetadata(p.start_offset, p.leader_epoch)
                        if p.lag >= 0:
                            offsets.lags[partition] = p.lag
        return answers

    return cluster.ask_coordinators(group_ids, ask, idempotent=True)


def stored_offsets(
    cluster: ClusterView, group_ids: Iterable[str], share: Collection[str], held: Held | None = None
) -> tuple[Answers[Commits], Answers[ShareOffsets]]:
    """Return the groups' committed offsets (start offsets for those in `share`), and `share`'s reports.

    `held` as in `committed`.
    """
    others = [name for name in group_ids if name not in share]
    shared = share_offsets(cluster, share)
    stored = committed(cluster, others, held)
    for name, report in shared.items():
        stored[name] = report if isinstance(report, KgroupError) else Commits.of(report.starts)
    return stored, shared


def topics_stored(
    cluster: ClusterView, group_ids: Iterable[str], share: Collection[str]
) -> Answers[frozenset[str]]:
    """Return the topics with offsets of the groups; for share groups also those without any yet."""
    stored, shared = stored_offsets(cluster, group_ids, share)
    topics: Answers[frozenset[str]] = {}
    for name, offsets in stored.items():
        whole = shared.get(name)
        unset = whole.without_start if isinstance(whole, ShareOffsets) else ()
        places = () if isinstance(offsets, KgroupError) else (*offsets.places, *unset)
        topics[name] = offsets if isinstance(offsets, KgroupError) else frozenset(p.topic for p in places)
    return topics


def share_rows(rows: Iterable[OffsetRow], offsets: ShareOffsets) -> tuple[OffsetRow, ...]:
    """Return the rows of a share group with the lag its coordinator reports; its partitions have no owner."""
    return tuple(_row(row, offsets) for row in rows)


def _row(row: OffsetRow, offsets: ShareOffsets) -> OffsetRow:
    partition = row.place
    if partition in offsets.lags:
        lag = offsets.lags[partition]
        nothing = row.lag is not None and row.unreadable == row.lag
        status = row.status if lag else READ
        return replace(row, lag=lag, reason=None, status=status, unreadable=lag if nothing else 0)
    if partition in offsets.failed:
        return _without_lag(row, offsets.failed[partition].message, commit_known=False)
    if row.lag == 0 or row.gone:
        return row  # the log holds nothing from there on
    if row.committed_offset is not None:
        most = "" if row.lag is None else f": at most {row.lag} wait"
        return _without_lag(row, row.reason or NOT_COUNTED + most)
    unset = partition in offsets.not_set
    return _without_lag(row, NOT_SET if unset else NOT_READ, commit_known=not unset)


def _without_lag(row: OffsetRow, reason: str, *, commit_known: bool = True) -> OffsetRow:
    status = unknown(Unseen("offsets", "NOT_READ", reason))
    return replace(row, lag=None, reason=reason, status=status, unreadable=None, commit_known=commit_known)


def unread_starts(
    group_id: str, offsets: ShareOffsets, state: TopicDescription | KgroupError | None
) -> Iterable[ItemError]:
    """Yield why start offsets of a share group could not be read; `state` is the topic that stores them.

    A coordinator that cannot read one reports none, as if none were stored: where partitions of that topic
    have no leader, both are possible.
    """
    for _, error in sorted(offsets.failed.items()):
        yield ItemError("offsets", code_name(error), f"{group_id}: {error.message}", error.hint)
    if offsets.not_set and isinstance(state, TopicDescription):
        dark = [p.partition for p in state.partitions if p.leader < 0]
        if dark:
            message = (
                f"{group_id}: start offsets may be stored and not readable: {SHARE_STATE_TOPIC} {dark[0]} "
            )
            message += "has no leader"
            yield ItemError("offsets", ErrorCode.LEADER_NOT_AVAILABLE.name, message)
