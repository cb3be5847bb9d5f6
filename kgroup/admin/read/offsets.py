"""Committed offsets of groups, and where the logs begin and end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import Commits, TopicDescription
from kgroup.admin.refusals import refused
from kgroup.client.retry import may_repeat
from kgroup.domain import NO_OFFSET, TopicPartition, count_of, grouped, place_of
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, Unreachable
from kgroup.protocol.messages.list_offsets_0 import (
    ListOffsets0Partition,
    ListOffsets0Request,
    ListOffsets0Response,
    ListOffsets0Topic,
)
from kgroup.security.rights import DESCRIBE, on_group, on_topic

if TYPE_CHECKING:
    from kgroup.protocol.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchResponseTopic,
        OffsetFetchResponseTopics,
    )


T = TypeVar("T")
FetchedTopics: TypeAlias = "Sequence[OffsetFetchResponseTopic | OffsetFetchResponseTopics]"
Held: TypeAlias = dict[str, frozenset[TopicPartition]]
"""By group, the partitions whose offset a transaction holds open."""
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LIST_OFFSETS, OFFSET_FETCH = 2, 9
STABLE_SINCE, BATCH_VERSION, NAMES_UNTIL = 7, 8, 9
ISOLATION_SINCE = 2
_SINCE_VERSION = {MAX_TIMESTAMP: 7}
_SETTLED = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})

CONSUMER_REPLICA = -1


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset of a log; -1 when no record matches. `timestamp_ms` is -1 for the ends of the log."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


def committed(cluster: ClusterView, group_ids: Iterable[str], held: Held | None = None) -> Answers[Commits]:
    """Return all committed offsets of each group, deleted topics included, or why they are unreadable.

    `held` gets of each group those that a transaction holds open, unless its broker does not report them.
    """

    def ask(node: int, groups: Sequence[str], left_s: float) -> Answers[Commits]:
        stable = held is not None and reports_stable(cluster, node)
        answer = fetched(cluster, node, dict.fromkeys(groups), left_s, stable=stable)
        if stable and held is not None:
            seen = {
                g: unstable_of(topics) for g, topics in answer.items() if not isinstance(topics, KgroupError)
            }
            held.update((g, places) for g, places in seen.items() if not isinstance(places, KgroupError))
            # What was committed before is reported to those who do not ask for stable offsets.
            if again := [group for group, places in seen.items() if places]:
                answer |= fetched(cluster, node, dict.fromkeys(again), left_s)
        return {
            g: topics if isinstance(topics, KgroupError) else _committed(topics)
            for g, topics in answer.items()
        }

    return cluster.ask_coordinators(group_ids, ask, idempotent=True)


def reports_stable(cluster: ClusterView, node: int) -> bool:
    """Return whether a broker reports which offsets a transaction holds open: from Kafka 2.5 on."""
    served = cluster.transport.versions(node, OFFSET_FETCH)
    return served is None or served[-1] >= STABLE_SINCE


def unstable_of(topics: FetchedTopics) -> frozenset[TopicPartition] | KgroupError:
    """Return the partitions held open, or the refusal of one that the broker does not report."""
    failed = [(topic.name, p) for topic in topics for p in topic.partitions if p.error_code]
    for name, p in failed:
        if p.error_code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
            what = f"whether the offset of {name}-{p.partition_index} is stable"
            return refused(p.error_code, what, needs=[on_topic(DESCRIBE, name)])
    return frozenset(TopicPartition(name, p.partition_index) for name, p in failed)


def fetched(
    cluster: ClusterView,
    node: int,
    requested: Mapping[str, Collection[TopicPartition] | None],
    left_s: float,
    *,
    stable: bool = False,
) -> Answers[FetchedTopics]:
    """Return a broker's report of each group's partitions (None: of all committed), topic by topic.

    With `stable` as readers see it, with UNSTABLE_OFFSET_COMMIT where a transaction holds an offset open.
    """
    from kgroup.protocol.messages.offset_fetch import OffsetFetchResponse

    served = cluster.transport.versions(node, OFFSET_FETCH)
    batches = served is None or served[-1] >= BATCH_VERSION
    lowest = STABLE_SINCE if stable else 2
    answers: Answers[FetchedTopics] = {}
    for batch in (tuple(requested),) if batches else tuple((group,) for group in requested):
        request = _request({group: requested[group] for group in batch}, batches, stable)
        # Version 10 names topics by id, which identifies no deleted topic.
        versions = (lowest, NAMES_UNTIL)
        answer = cluster.ask(node, request, OffsetFetchResponse, versions=versions, timeout_s=left_s)
        for result in answer.groups if batches else (answer,):
            group = result.group_id if batches else batch[0]  # type: ignore[union-attr]
            if result.error_code:
                answers[group] = refused(
                    result.error_code, f"offsets of group {group}", needs=[on_group(DESCRIBE, group)]
                )
            else:
                answers[group] = result.topics
    return answers


def _request(
    requested: Mapping[str, Collection[TopicPartition] | None], batches: bool, stable: bool
) -> OffsetFetchRequest:
    """Return an OffsetFetch of groups and partitions; before version 8 (no `batches`) of one group."""
    from kgroup.protocol.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopic,
        OffsetFetchRequestTopics,
    )

    numbers = {
        group: None if of is None else {t: tuple(p.partition for p in ps) for t, ps in by_topic(of)}
        for group, of in requested.items()
    }
    if not batches:
        ((group, named),) = numbers.items()
        one = [OffsetFetchRequestTopic(name=t, partition_indexes=n) for t, n in (named or {}).items()]
        topics = None if named is None else tuple(one)
        return OffsetFetchRequest(require_stable=stable, group_id=group, topics=topics)
    groups = []
    for group, named in numbers.items():
        entries = [OffsetFetchRequestTopics(name=t, partition_indexes=n) for t, n in (named or {}).items()]
        topics_of = None if named is None else tuple(entries)
        groups.append(OffsetFetchRequestGroup(group_id=group, topics=topics_of))
    return OffsetFetchRequest(require_stable=stable, groups=tuple(groups))


def _committed(topics: FetchedTopics) -> Commits | KgroupError:
    for topic in topics:
        for p in topic.partitions:
            if p.error_code:
                what = f"the committed offset of {topic.name}-{p.partition_index}"
                return refused(p.error_code, what, needs=[on_topic(DESCRIBE, topic.name)])
    named, offsets, epochs, metadata = [], list[int](), list[int](), list[str]()
    for topic in sorted(topics, key=attrgetter("name")):
        those = [p for p in topic.partitions if p.committed_offset != NO_OFFSET]
        those.sort(key=attrgetter("partition_index"))
        named.append((topic.name, tuple([p.partition_index for p in those])))
        offsets += [p.committed_offset for p in those]
        epochs += [p.committed_leader_epoch for p in those]
        metadata += [p.metadata or "" for p in those]
    return Commits(_places(tuple(named)), offsets, epochs, metadata)


@lru_cache(maxsize=1 << 7)
def _places(named: tuple[tuple[str, tuple[int, ...]], ...]) -> tuple[TopicPartition, ...]:
    """Return one object for the groups that commit the same partitions."""
    return tuple([place_of(topic, number) for topic, numbers in named for number in numbers])


def list_offsets(
    cluster: ClusterView,
    requested: Mapping[TopicPartition, int],
    topics: Answers[TopicDescription] | None = None,
    *,
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, ListedOffset | KgroupError]:
    """Return the offset for a time in ms, LATEST, EARLIEST or MAX_TIMESTAMP, of each partition.

    The leaders' answers include uncommitted transactions, as Kafka's own tools count; with READ_COMMITTED
    LATEST is the last stable offset. A partition whose offset is unavailable has its error. `topics` avoids
    requesting metadata that is known already.
    """
    retry = cluster.retry
    deadline = retry.part_ends()
    listed: dict[TopicPartition, ListedOffset | KgroupError] = {}
    pending = dict(requested)
    for delay in retry.backoff.delays(retry.chance):
        known = topics if topics is not None else cluster.topics({p.topic for p in pending})
        left = max(deadline - retry.clock(), 0.001)
        listed.update(_list_once(cluster, pending, known, left, isolation))
        # A leader may have moved; a missing topic or leader is final.
        pending = {
            p: when
            for p, when in pending.items()
            if isinstance(answer := listed[p], (Unreachable, BrokerRefused))
            and not (isinstance(answer, BrokerRefused) and answer.code in _SETTLED)
            and may_repeat(answer, idempotent=True)
        }
        if not pending or retry.clock() + delay >= deadline:
            return listed
        topics = None
        retry.sleep(delay)
    return listed


def _list_once(
    cluster: ClusterView,
    requested: Mapping[TopicPartition, int],
    topics: Answers[TopicDescription],
    left_s: float,
    isolation: int,
) -> dict[TopicPartition, ListedOffset | KgroupError]:
    def ask(
        leader: int, places: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ListedOffset | KgroupError]:
        return _ask_leader(cluster, leader, {p: requested[p] for p in places}, left_s, isolation)

    listed = ask_leaders(cluster, requested, topics, ask)
    for answer in listed.values():
        if isinstance(answer, KgroupError) and not isinstance(answer, Unreachable | BrokerRefused):
            raise answer
    return listed


def ask_leaders(
    cluster: ClusterView,
    partitions: Iterable[TopicPartition],
    topics: Answers[TopicDescription],
    ask: Callable[[int, Sequence[TopicPartition]], Mapping[TopicPartition, T | KgroupError]],
) -> dict[TopicPartition, T | KgroupError]:
    """Return what the leader of each partition answers, all leaders asked at once, or why it does not.

    In the order of what was asked.
    """
    leaders = {partition: leader_of(partition, topics) for partition in partitions}
    led = grouped((leader, partition) for partition, leader in leaders.items() if isinstance(leader, int))
    works = {leader: partial(ask, leader, places) for leader, places in led.items()}
    answers: dict[TopicPartition, T | KgroupError] = {
        partition: error for partition, error in leaders.items() if isinstance(error, KgroupError)
    }
    for leader, told in cluster.at_once(works).items():
        answers |= dict.fromkeys(led[leader], told) if isinstance(told, KgroupError) else told
    return {
        p: answers[p]
        if p in answers
        else refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(p), "the broker omitted it")
        for p in leaders
    }


def log_refused(partition: TopicPartition, code: int) -> BrokerRefused:
    """Return a leader's refusal to tell where something is in the log of a partition."""
    return refused(code, str(partition), needs=[on_topic(DESCRIBE, partition.topic)])


def leader_of(partition: TopicPartition, topics: Answers[TopicDescription]) -> int | KgroupError:
    """Return the broker that leads a partition, or why it has no leader."""
    topic = topics.get(partition.topic)
    if topic is None:
        return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {partition.topic}")
    if isinstance(topic, KgroupError):
        return topic
    number, all_of_it = partition.partition, topic.partitions
    # A partition stands at its number's place, unless a broker omits some.
    if 0 <= number < len(all_of_it) and all_of_it[number].partition == number:
        all_of_it = all_of_it[number : number + 1]
    for known in all_of_it:
        if known.partition == number:
            if known.leader >= 0:
                return known.leader
            return refused(ErrorCode.LEADER_NOT_AVAILABLE, str(partition), _leaderless(known.replicas))
    return refused(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        str(partition),
        f"the topic has only {count_of(len(topic.partitions), 'partition')}",
    )


def _leaderless(replicas: Sequence[int]) -> str:
    one = len(replicas) == 1
    where = f"its replica{' is' if one else 's are'} on broker{'' if one else 's'} "
    return f"it has no leader now, and {where}{', '.join(map(str, replicas))}"


def _ask_leader(
    cluster: ClusterView, leader: int, asked: Mapping[TopicPartition, int], left_s: float, isolation: int
) -> dict[TopicPartition, ListedOffset | KgroupError]:
    from kgroup.protocol.messages.list_offsets import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsResponse,
        ListOffsetsTopic,
    )

    served = cluster.transport.versions(leader, LIST_OFFSETS)
    if served == range(1):
        return _ask_oldest(cluster, leader, asked, left_s)
    request = ListOffsetsRequest(
        replica_id=CONSUMER_REPLICA,
        isolation_level=isolation,
        topics=tuple(
            ListOffsetsTopic(
                name=name,
                partitions=tuple(
                    ListOffsetsPartition(partition_index=p.partition, timestamp=asked[p]) for p in those
                ),
            )
            for name, those in by_topic(asked)
        ),
        timeout_ms=int(left_s * 1000),
    )
    lowest = max((_SINCE_VERSION.get(when, 1) for when in asked.values()), default=1)
    if served is not None and served[-1] < ISOLATION_SINCE:
        isolation = READ_UNCOMMITTED  # a broker before transactions: all of its log is stable
    lowest = max(lowest, ISOLATION_SINCE) if isolation else lowest
    answer = cluster.ask(leader, request, ListOffsetsResponse, versions=(lowest, None), timeout_s=left_s)
    return {
        (at := TopicPartition(topic.name, p.partition_index)): log_refused(at, p.error_code)
        if p.error_code
        else ListedOffset(p.offset, p.timestamp, p.leader_epoch)
        for topic in answer.topics
        for p in topic.partitions
    }


def _ask_oldest(
    cluster: ClusterView, leader: int, asked: Mapping[TopicPartition, int], left_s: float
) -> dict[TopicPartition, ListedOffset | KgroupError]:
    """Return the ends or the beginnings of logs from brokers before 0.10.1, which serve version 0 alone."""
    by_topic = grouped(
        (partition.topic, ListOffsets0Partition(partition_index=partition.partition, timestamp=when))
        for partition, when in sorted(asked.items())
    )
    topics = tuple(ListOffsets0Topic(name=name, partitions=tuple(ps)) for name, ps in by_topic.items())
    request = ListOffsets0Request(replica_id=CONSUMER_REPLICA, topics=topics)
    answer = cluster.ask(leader, request, ListOffsets0Response, timeout_s=left_s)
    listed: dict[TopicPartition, ListedOffset | KgroupError] = {}
    for topic in answer.topics:
        for p in topic.partitions:
            partition = TopicPartition(topic.name, p.partition_index)
            if p.error_code:
                listed[partition] = log_refused(partition, p.error_code)
            elif p.offsets:
                listed[partition] = ListedOffset(p.offsets[0], -1, -1)
            else:
                what = "the broker reported no offset"
                listed[partition] = refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(partition), what)
    return listed


def by_topic(partitions: Iterable[TopicPartition]) -> Iterator[tuple[str, list[TopicPartition]]]:
    """Return the partitions topic by topic, both in order."""
    return iter(grouped((partition.topic, partition) for partition in sorted(partitions)).items())
