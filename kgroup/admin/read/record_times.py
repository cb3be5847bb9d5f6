"""When the record at an offset was written, from which a lag in time is computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import TopicDescription
from kgroup.admin.read.offsets import EARLIEST, READ_UNCOMMITTED, ask_leaders, by_topic, list_offsets
from kgroup.admin.refusals import refused
from kgroup.domain import TopicPartition
from kgroup.errors import BrokerRefused, DecodeError, ErrorCode, KgroupError, Unreachable
from kgroup.security.rights import READ, on_topic

if TYPE_CHECKING:
    from kgroup.protocol.messages.fetch import PartitionData

NAMES_UNTIL = 12
PARTITION_BYTES = 64 * 1024
ROUNDS = 8
"""How many batches without a record (transaction markers, compacted ones) to skip before giving up."""


@dataclass(frozen=True, slots=True)
class Untimed:
    """A missing time without a failure; `why` in words."""

    why: str


Age: TypeAlias = int | Untimed | KgroupError
RecordTimes: TypeAlias = dict[TopicPartition, Age]


def record_times(cluster: ClusterView, offsets: Mapping[TopicPartition, int]) -> RecordTimes:
    """Return the timestamp in ms of the first record at or after each offset, or why there is none.

    An offset before the start of the log counts from the start: those records are the oldest unread. A
    partition that cannot be read has its error; none is fatal for the others.
    """
    topics = cluster.topics({partition.topic for partition in offsets})
    times: RecordTimes = {}
    pending = dict(offsets)
    for _ in range(ROUNDS):
        if not pending:
            break
        answers = fetch_by_leader(cluster, pending, topics)
        pending = _advance(cluster, pending, answers, times)
    for partition, at in pending.items():
        batches = f"{ROUNDS} fetches from offset {offsets[partition]} to {at} brought no record"
        times[partition] = Untimed(f"{batches}: markers of transactions, or compacted away")
    return times


def times_at(
    cluster: ClusterView, requested: Iterable[tuple[TopicPartition, int]]
) -> dict[tuple[TopicPartition, int], Age]:
    """Return the same for several offsets of a partition: as many rounds as one of them has."""
    ages: dict[tuple[TopicPartition, int], Age] = {}
    for offsets in once_each(requested):
        ages |= {
            (partition, offsets[partition]): at for partition, at in record_times(cluster, offsets).items()
        }
    return ages


def once_each(requested: Iterable[tuple[TopicPartition, int]]) -> Iterator[dict[TopicPartition, int]]:
    """Yield these in rounds in which a partition stands once, as a request names it once."""
    left = set(requested)
    while left:
        offsets = dict(left)
        left -= set(offsets.items())
        yield offsets


def _advance(
    cluster: ClusterView,
    asked: Mapping[TopicPartition, int],
    answers: Mapping[TopicPartition, PartitionData | KgroupError],
    times: RecordTimes,
) -> dict[TopicPartition, int]:
    """Put the answers' times into `times`; return the offsets to request next."""
    following: dict[TopicPartition, int] = {}
    before_start: list[TopicPartition] = []
    for partition, answer in answers.items():
        if isinstance(answer, KgroupError):
            times[partition] = answer
        elif answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            before_start.append(partition)
        else:
            try:
                written_ms, after = _first_time(answer.records or b"", asked[partition])
            except DecodeError as error:
                times[partition] = error
                continue
            if written_ms is None and asked[partition] < after < answer.high_watermark:
                following[partition] = after
            times[partition] = (
                _NO_RECORD if written_ms is None else _NO_TIME if written_ms < 0 else written_ms
            )
    starts = list_offsets(cluster, dict.fromkeys(before_start, EARLIEST))
    for partition, start in starts.items():
        if isinstance(start, KgroupError):
            times[partition] = start
        elif start.offset > asked[partition]:
            following[partition] = start.offset
        else:
            times[partition] = Untimed(
                f"offset {asked[partition]} is not in its log, which begins at {start.offset}"
            )
    return following


_NO_RECORD = Untimed("no record can be read from there on: markers of transactions, or the end")
_NO_TIME = Untimed("the record there has no time")


def _first_time(data: bytes, offset: int) -> tuple[int | None, int]:
    """Return the first record's timestamp from `offset` on, and where to continue if there is none."""
    from kgroup.protocol.batches import batches_in

    after = offset
    for batch in batches_in(data):
        after = max(after, batch.last_offset + 1)
        if batch.control or batch.last_offset < offset:
            continue
        for record in batch.records:
            if record.offset >= offset:
                return record.timestamp_ms, after
    return None, after


def fetch_by_leader(
    cluster: ClusterView, offsets: Mapping[TopicPartition, int], topics: Answers[TopicDescription]
) -> dict[TopicPartition, PartitionData | KgroupError]:
    """Return each leader's answer to a Fetch from the positions on, or why there is none."""

    def whole(
        leader: int, places: Sequence[TopicPartition]
    ) -> dict[TopicPartition, PartitionData | KgroupError]:
        answers = fetch(cluster, leader, places, offsets)
        # Only the first partition of an answer may exceed its limit: a batch larger than that comes alone.
        for partition in places if len(places) > 1 else ():
            answer = answers[partition]
            if not isinstance(answer, KgroupError) and cut_off(answer):
                answers |= fetch(cluster, leader, [partition], offsets)
        return answers

    return ask_leaders(cluster, offsets, topics, whole)


def cut_off(answer: PartitionData) -> bool:
    """Return whether the answer holds no whole batch, as a batch larger than its limit does not fit."""
    from kgroup.protocol.batches import batches_in

    if answer.error_code or not answer.records:
        return not answer.error_code
    try:
        return next(batches_in(answer.records), None) is None
    except DecodeError:
        return False


def fetch(
    cluster: ClusterView,
    leader: int,
    partitions: Iterable[TopicPartition],
    offsets: Mapping[TopicPartition, int],
    *,
    partition_bytes: int = PARTITION_BYTES,
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, PartitionData | KgroupError]:
    """Return one leader's answer to a Fetch from the positions on, or why there is none.

    OFFSET_OUT_OF_RANGE is an answer: it says that the log begins later, or ends before.
    """
    from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

    asked = list(partitions)
    topics = tuple(
        FetchTopic(
            topic=name,
            partitions=tuple(
                FetchPartition(
                    partition=p.partition, fetch_offset=offsets[p], partition_max_bytes=partition_bytes
                )
                for p in those
            ),
        )
        for name, those in by_topic(asked)
    )
    request = FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=isolation, topics=topics)
    try:
        answer = cluster.ask_again(leader, request, FetchResponse, versions=(0, NAMES_UNTIL))
    except (Unreachable, BrokerRefused) as error:
        return dict.fromkeys(asked, error)
    fetched = {
        TopicPartition(topic.topic, data.partition_index): _refused(topic.topic, data) or data
        for topic in answer.responses
        for data in topic.partitions
    }
    missing = refused(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR, "Fetch", "the broker omitted it")
    return {partition: fetched.get(partition, missing) for partition in asked}


def _refused(topic: str, data: PartitionData) -> KgroupError | None:
    if data.error_code in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
        return None
    what = f"records of {TopicPartition(topic, data.partition_index)}"
    return refused(data.error_code, what, needs=[on_topic(READ, topic)])
