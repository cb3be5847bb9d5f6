"""ListOffsets and OffsetForLeaderEpoch: the offset of a time or a leader epoch."""

from __future__ import annotations

from collections import Counter

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import Api, Dispatcher, Work
from kgroup.broker.handlers.partitions import code_of, partition_log
from kgroup.domain import NO_LEADER_EPOCH
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.log.interface import Log
from kgroup.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kgroup.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
NOTHING = (-1, -1)
READ_COMMITTED = 1


def list_offsets(broker: Dispatcher, call: Call[ListOffsetsRequest]) -> Answer:
    """Offset and timestamp of each partition's record; a partition named twice is INVALID_REQUEST."""
    return broker.in_turns(call, _list_offsets(broker, call))


def _list_offsets(broker: Dispatcher, call: Call[ListOffsetsRequest]) -> Work:
    request = call.body
    counts = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    committed = request.isolation_level == READ_COMMITTED
    topics = []
    for topic in request.topics:
        of_topic = []
        for requested in topic.partitions:
            number, time = requested.partition_index, requested.timestamp
            try:
                if counts[topic.name, number] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST)
                known, log = partition_log(
                    broker, call.node, topic.name, number, requested.current_leader_epoch
                )
                if time < EARLIEST_PENDING_UPLOAD or call.version < SINCE.get(time, 0):
                    raise Refused(ErrorCode.UNSUPPORTED_VERSION)
                end = None
                if committed:
                    end = broker.producers.of(topic.name, number, log).last_stable_offset
                offset, timestamp = find_offset(log, time, end)
                epoch = NO_LEADER_EPOCH
                if offset >= 0:
                    placement = broker.cluster.placement_of(known, number)
                    epoch = placement.epoch if time == LATEST else placement.epoch_at(offset)
                of_topic.append(
                    ListOffsetsPartitionResponse(
                        partition_index=number, offset=offset, timestamp=timestamp, leader_epoch=epoch
                    )
                )
            except (Refused, StorageError) as error:
                of_topic.append(_unlisted(requested, code_of(broker, call, error)))
            yield
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(of_topic)))
    return ListOffsetsResponse(topics=tuple(topics))


def offset_for_leader_epoch(broker: Dispatcher, call: Call[OffsetForLeaderEpochRequest]) -> Answer:
    """Return where the epoch asked for ends: the end of the log for ours, undefined (-1) for a later one."""
    return broker.in_turns(call, _ends_of_epochs(broker, call))


def _ends_of_epochs(broker: Dispatcher, call: Call[OffsetForLeaderEpochRequest]) -> Work:
    request = call.body
    topics = []
    for topic in request.topics:
        of_topic = []
        for requested in topic.partitions:
            try:
                known, log = partition_log(
                    broker, call.node, topic.topic, requested.partition, requested.current_leader_epoch
                )
                placement = broker.cluster.placement_of(known, requested.partition)
                epoch, end = placement.end_of(requested.leader_epoch, log.end_offset)
                of_topic.append(
                    EpochEndOffset(partition=requested.partition, leader_epoch=epoch, end_offset=end)
                )
            except (Refused, StorageError) as error:
                code = code_of(broker, call, error)
                of_topic.append(EpochEndOffset(partition=requested.partition, error_code=code))
            yield
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(of_topic)))
    return OffsetForLeaderEpochResponse(topics=tuple(topics))


def find_offset(log: Log, timestamp: int, end: int | None = None) -> tuple[int, int]:
    """Return offset and timestamp, each -1 for none: of the first record from a time on, or a special one.

    Nothing behind `end` (None: the end of the log) exists for this reader.
    """
    if end is None:
        end = log.end_offset
    if timestamp == LATEST:
        return end, -1
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.start_offset, -1
    if timestamp == MAX_TIMESTAMP:
        timestamp = max((batch.max_timestamp for batch in log.batches(log.start_offset)), default=-1)
    entry = log.offset_for_timestamp(timestamp) if timestamp >= 0 else None
    return entry if entry and entry[0] < end else NOTHING


def _unlisted(requested: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=requested.partition_index, error_code=code)


APIS = (
    Api(ListOffsetsRequest, list_offsets),
    Api(OffsetForLeaderEpochRequest, offset_for_leader_epoch),
)
