"""Which offsets of a commit are accepted, and the answer for each partition; plain and transactional alike.

OffsetCommit and TxnOffsetCommit differ in how they name topics, which members they accept, and what the
record says: a `Commit` has that. The order of the checks, and what a refusal leaves, is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from kgroup.coordinator.classic.checks import refuse_if_generation_differs, refuse_if_unknown
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.commit_epochs import EpochRefused, PartitionCheck
from kgroup.coordinator.committed import CommittedOffsets, OfTopic
from kgroup.coordinator.offset_store import StoredOffset
from kgroup.coordinator.state import Step
from kgroup.domain import NO_EXPIRY, NO_LEADER_EPOCH, ZERO_UUID, Topic
from kgroup.errors import ErrorCode, Refused


class Wanted(Protocol):
    """A partition of either request."""

    @property
    def partition_index(self) -> int: ...
    @property
    def committed_offset(self) -> int: ...
    @property
    def committed_leader_epoch(self) -> int: ...
    @property
    def committed_metadata(self) -> str | None: ...


class Answered(Protocol):
    """A partition of either response."""

    @property
    def error_code(self) -> int: ...


P = TypeVar("P", bound=Wanted)
R = TypeVar("R", bound=Answered)


@dataclass(slots=True)
class Commit(Generic[P, R]):
    """A request to commit: its partitions by topic, and what differs by its kind.

    A topic is None if there is none of that name or id; then every partition is answered `unknown`.
    `validate` raises for a committer the group does not accept; it returns the check of single partitions.
    """

    group_id: str
    topics: Sequence[tuple[Topic | None, Sequence[P]]]
    validate: Callable[[], PartitionCheck | None]
    accepted: Callable[[int], R]
    refused: Callable[[int, ErrorCode], R]
    unknown: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    expire_ms: int = NO_EXPIRY
    topic_ids: bool = True
    """Whether records have the topic's id; those with a time of expiry never do, nor a leader epoch."""
    plain: bool = True
    """Whether every topic has partitions and all are accepted: set by `carry_out`."""
    taken: list[OfTopic] = field(default_factory=list)
    """The accepted offsets: added by `carry_out`."""


def carry_out(step: Step, commit: Commit[P, R]) -> list[tuple[R, ...]]:
    """Write what may be committed; return each topic's answers by partition, in the request's order.

    Nothing is returned if the commit is plain: `arranged` makes its answers. A committer that is refused has
    every partition that exists refused, and nothing is written; one bad partition refuses all others too
    (OC-21), except one whose metadata is too long.
    """
    try:
        # Kafka's API layer answers for what does not exist, and does not ask the coordinator about an empty
        # rest: the group must neither refuse such a commit nor renew a session for it.
        check = commit.validate() if some_exist(commit.topics) else None
        refused = [_take(step, commit, topic, partitions, check) for topic, partitions in commit.topics]
    except Refused as refusal:
        step.drop()
        results = refuse_all(commit, refusal.code)
        if isinstance(refusal, EpochRefused):
            refusal.count(step.state.counters, (p.error_code for answers in results for p in answers))
        return results
    step.committed = committed = CommittedOffsets(commit.group_id, commit.taken)
    step.state.counters.offset_commit += len(committed)
    if check is not None:
        step.state.counters.commits_only_relaxed_check_accepted += len(committed)
    if commit.plain:
        return []
    return [
        tuple([no[at] if at in no else commit.accepted(p.partition_index) for at, p in enumerate(partitions)])
        for (_, partitions), no in zip(commit.topics, refused, strict=True)
    ]


def some_exist(topics: Sequence[tuple[Topic | None, Sequence[Wanted]]]) -> bool:
    """Return whether there is anything to ask the group about."""
    for topic, partitions in topics:
        if topic is not None:
            for partition in partitions:
                if 0 <= partition.partition_index < topic.partitions:
                    return True
    return False


def _take(
    step: Step,
    commit: Commit[P, R],
    topic: Topic | None,
    partitions: Sequence[P],
    check: PartitionCheck | None,
) -> dict[int, R]:
    """Add the accepted offsets of one topic; return the answers to the other partitions by their place."""
    refused: dict[int, R] = {}
    if topic is None or not partitions:
        commit.plain = False
        for at, asked in enumerate(partitions):
            refused[at] = commit.refused(asked.partition_index, commit.unknown)
        return refused
    indexes: list[int] = []
    offsets: list[StoredOffset] = []
    count, now_ms, expire_ms = topic.partitions, step.now_ms, commit.expire_ms
    lasting = expire_ms == NO_EXPIRY
    limit = step.config.offset_metadata_max_bytes
    topic_id = topic.topic_id if lasting and commit.topic_ids else ZERO_UUID
    for partition in partitions:
        index = partition.partition_index
        if not 0 <= index < count:
            at = len(indexes) + len(refused)
            refused[at] = commit.refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        # Checked before the epoch, so that it costs its own partition alone (Kafka's order).
        said = partition.committed_metadata
        metadata = said or ""
        # Absent metadata is never too long; an empty text is if the limit is negative.
        if 2 * len(metadata) > limit and said is not None and _too_large(step, metadata):
            at = len(indexes) + len(refused)
            refused[at] = commit.refused(index, ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        if check is not None:
            check(topic.topic_id, index)
        epoch = partition.committed_leader_epoch if lasting else NO_LEADER_EPOCH
        indexes.append(index)
        offsets.append(StoredOffset(partition.committed_offset, epoch, metadata, now_ms, expire_ms, topic_id))
    if indexes:
        commit.taken.append(OfTopic(topic.name, tuple(indexes), offsets))
    if refused:
        commit.plain = False
    return refused


def refuse_all(commit: Commit[P, R], code: ErrorCode) -> list[tuple[R, ...]]:
    """Refuse what exists; what does not exist stays unknown for any committer."""
    commit.plain = False
    absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return [
        tuple(commit.refused(p.partition_index, commit.unknown) for p in partitions)
        if topic is None
        else tuple(
            commit.refused(p.partition_index, code if _exists(topic, p) else absent) for p in partitions
        )
        for topic, partitions in commit.topics
    ]


def _exists(topic: Topic | None, partition: P) -> bool:
    return topic is not None and 0 <= partition.partition_index < topic.partitions


def arranged(
    commit: Commit[P, R], keys: Sequence[Hashable], results: Sequence[tuple[R, ...]]
) -> Iterable[tuple[int, tuple[R, ...]]]:
    """Return results in Kafka's order: the position of a topic in the request, and its partitions' answers.

    What does not exist comes first, as Kafka answers it before it asks its coordinator about the rest; known
    topics without partitions are not answered. Topics with equal `keys` are then merged.
    """
    if commit.plain:
        return enumerate([tuple([commit.accepted(p) for p in one.partitions]) for one in commit.taken])
    merged: list[tuple[int, list[R]]] = []
    by_key: dict[Hashable, list[R]] = {}

    def add(index: int, part: list[R]) -> None:
        known = by_key.get(keys[index])
        if known is None:
            by_key[keys[index]] = part
            merged.append((index, part))
        else:
            known.extend(part)

    rest: list[tuple[int, list[R]]] = []
    for index, ((topic, partitions), answers) in enumerate(zip(commit.topics, results, strict=True)):
        pairs = list(zip(partitions, answers, strict=True))
        absent = [answer for partition, answer in pairs if not _exists(topic, partition)]
        if absent or topic is None:
            add(index, absent)
        if len(absent) < len(answers):
            rest.append((index, [answer for partition, answer in pairs if _exists(topic, partition)]))
    if not merged:  # then the coordinator's answer is taken as it is
        return [(index, tuple(part)) for index, part in rest]
    for index, part in rest:
        add(index, part)
    return [(index, tuple(part)) for index, part in merged]


def _too_large(step: Step, metadata: str) -> bool:
    """Return whether commit metadata exceeds offset.metadata.max.bytes, in UTF-16 units as in Kafka."""
    units = len(metadata) if metadata.isascii() else sum(1 + (char > "\uffff") for char in metadata)
    return units > step.config.offset_metadata_max_bytes


def refuse_if_not_committer(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, *, transactional: bool
) -> None:
    """Refuse a committer a classic group does not know; transactional commits ignore the group's state.

    A producer commits what it has read before a rebalance as part of its transaction, and would have to
    abort it all for a state that says nothing about its membership (KIP-447).
    """
    # No member: an admin resets offsets, or a tool imports them (AE-29), whatever ids it gives.
    if generation < 0 and group.is_empty:
        return
    if generation >= 0 or member_id or instance_id is not None:
        # The member before its generation, as in Kafka: a removed member must rejoin, not look for a newer
        # one.
        refuse_if_unknown(group, member_id, instance_id)
        refuse_if_generation_differs(group, generation)
    # No ids: an admin, or a consumer without a group. A plain one must not overwrite what members commit; a
    # producer before KIP-447 gives none, and is fenced by its transactional id.
    elif not transactional:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    # The member has joined the generation that is forming, and commits what it read in the one before: its
    # partitions may have another owner by the time the assignment is out.
    if not transactional and group.awaits_syncs:
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)
