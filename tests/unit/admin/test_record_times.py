"""When the record at an offset was written: past markers and gaps, from the log's start, or not known."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kgroup.admin.read.record_times import ROUNDS, RecordTimes, Untimed, record_times
from kgroup.domain import TopicPartition
from kgroup.errors import BrokerRefused, DecodeError, ErrorCode, Unreachable
from kgroup.protocol.batches import encode_batch, end_marker_record
from kgroup.protocol.log_records import LogRecord
from kgroup.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from kgroup.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.unit.admin.fake_cluster import FakeCluster

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 2)
"""Both are led by broker 1."""


def batch(base: int, *times: int) -> bytes:
    return encode_batch([LogRecord(b"k", b"v", (), time) for time in times], base_offset=base)


def marker(base: int) -> bytes:
    return encode_batch([end_marker_record(True)], base_offset=base, transactional=True, control=True)


class Logs:
    """Logs of partitions by number: batches by their last offset, and how many are told at once."""

    def __init__(self, logs: Mapping[int, list[tuple[int, bytes]]], start: int = 0, at_once: int = 1) -> None:
        self.logs = logs
        self.start = start
        self.at_once = at_once
        self.together: list[int] = []
        self.fake = FakeCluster(topics={"orders": 4})
        self.fake.on(FetchRequest, self._fetch).on(ListOffsetsRequest, self._starts)

    def times(self, offsets: Mapping[TopicPartition, int]) -> RecordTimes:
        return record_times(self.fake.cluster(), offsets)

    def _fetch(self, node: int, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        self.together.append(len(topic.partitions))
        rows = tuple(self._told(asked.partition, asked.fetch_offset) for asked in topic.partitions)
        return FetchResponse(responses=(FetchableTopicResponse(topic=topic.topic, partitions=rows),))

    def _told(self, number: int, offset: int) -> PartitionData:
        log = self.logs[number]
        end = log[-1][0] + 1 if log else 0
        if not self.start <= offset <= end:
            return PartitionData(partition_index=number, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        left = [data for last, data in log if last >= offset][: self.at_once]
        return PartitionData(partition_index=number, high_watermark=end, records=b"".join(left))

    def _starts(self, node: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        (topic,) = request.topics
        rows = tuple(
            ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=self.start)
            for asked in topic.partitions
        )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=topic.name, partitions=rows),))


@pytest.mark.parametrize(("offset", "time"), [(0, 100), (1, 200), (3, 400), (5, 600)])
def test_the_first_record_from_an_offset_on(offset: int, time: int) -> None:
    """Inside a batch too; where compaction took the record, the next one counts."""
    log = [(2, batch(0, 100, 200, 300)), (3, batch(3, 400)), (6, batch(6, 600))]
    assert Logs({0: log}).times({FIRST: offset}) == {FIRST: time}


def test_markers_of_transactions_are_no_records() -> None:
    log = [(0, batch(0, 100)), (1, marker(1)), (2, marker(2)), (3, batch(3, 400))]
    assert Logs({0: log}).times({FIRST: 1}) == {FIRST: 400}


def test_where_all_is_read_there_is_no_record() -> None:
    told = Logs({0: [(0, batch(0, 100))], 2: []}).times({FIRST: 1, SECOND: 0})
    assert told == dict.fromkeys(
        (FIRST, SECOND), Untimed("no record can be read from there on: markers of transactions, or the end")
    )


def test_what_keeps_a_time_from_being_known_is_said() -> None:
    """Each was None without a word: too many markers, a record without a time, an offset past the end."""
    markers = [(n, marker(n)) for n in range(ROUNDS + 1)]
    told = Logs({0: [*markers, (ROUNDS + 1, batch(ROUNDS + 1, 400))], 2: [(0, batch(0, -1))]})
    known = told.times({FIRST: 0, SECOND: 0})
    given_up = f"{ROUNDS} fetches from offset 0 to {ROUNDS} brought no record"
    assert known == {
        FIRST: Untimed(f"{given_up}: markers of transactions, or compacted away"),
        SECOND: Untimed("the record there has no time"),
    }
    beyond = Logs({0: [(0, batch(0, 100))]}).times({FIRST: 7})
    assert beyond == {FIRST: Untimed("offset 7 is not in its log, which begins at 0")}


def test_a_start_that_cannot_be_looked_up_is_the_reason() -> None:
    logs = Logs({0: [(5, batch(5, 700))]}, start=5)

    def refuse(node: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        denied = ListOffsetsPartitionResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        topic = ListOffsetsTopicResponse(name="orders", partitions=(denied,))
        return ListOffsetsResponse(topics=(topic,))

    logs.fake.on(ListOffsetsRequest, refuse)
    why = logs.times({FIRST: 2})[FIRST]
    assert isinstance(why, BrokerRefused) and why.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_an_offset_before_the_start_counts_from_the_start() -> None:
    assert Logs({0: [(5, batch(5, 700))]}, start=5).times({FIRST: 2}) == {FIRST: 700}


def test_a_partition_that_cannot_be_read_costs_itself_only() -> None:
    garbled = bytearray(batch(0, 100))
    garbled[-1] ^= 1
    logs = Logs({0: [(0, batch(0, 100))], 2: [(0, bytes(garbled))]})
    logs.fake.leaders["orders"] = {3: -1}
    logs.fake.down.add(2)
    leaderless, down = TopicPartition("orders", 3), TopicPartition("orders", 1)
    told = logs.times({FIRST: 0, SECOND: 0, leaderless: 0, down: 0, TopicPartition("gone", 0): 0})
    assert told[FIRST] == 100
    assert isinstance(told[SECOND], DecodeError)
    assert isinstance(told[leaderless], BrokerRefused) and isinstance(told[down], Unreachable)
    assert "its replica is on broker 2" in str(told[leaderless])
    gone = told[TopicPartition("gone", 0)]
    assert isinstance(gone, BrokerRefused) and gone.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_batch_that_leaves_others_no_room_is_fetched_beside_them() -> None:
    """A broker fills an answer with the first partition; one that got nothing is asked for alone."""
    logs = Logs({0: [(0, batch(0, 100))], 2: [(0, batch(0, 300))]})
    told = logs._told

    def full(number: int, offset: int) -> PartitionData:
        if number == SECOND.partition and logs.together[-1] > 1:
            return PartitionData(partition_index=number, high_watermark=1, records=b"")
        return told(number, offset)

    logs._told = full  # type: ignore[method-assign]
    assert logs.times({FIRST: 0, SECOND: 0}) == {FIRST: 100, SECOND: 300}
    assert logs.together == [2, 1]
