"""Fetch, without fetch sessions: every request names all its partitions (KIP-227 allows it).

Everything in a log is replicated, so the high watermark is its end. A read_committed consumer gets nothing
from the first open transaction on, and the list of aborted ones to skip (KIP-98).
"""

from __future__ import annotations

import struct

from kgroup.broker.call import Answer, Api, Call
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers.partitions import check_leader_epoch, partition_log, topic_name
from kgroup.broker.wakeups import Deadline
from kgroup.broker.watchers import Key
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.log.interface import OffsetOutOfRange
from kgroup.protocol.batches import LENGTH_OFFSET
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

READ_COMMITTED = 1
_BATCH_START = struct.Struct(">qi")
_LAST_OFFSET_DELTA = struct.Struct(">i")
_DELTA_AT = 23  # bytes of a batch before its last offset delta


def fetch(desk: Dispatcher, call: Call) -> Answer:
    """Answer at once if there is enough to read or something to report; else park until there is."""
    request = call.body
    assert isinstance(request, FetchRequest)
    if request.session_id:
        return refuse(request, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, None)
    response, size, failed = read(desk, call, request)
    wait_ms = request.max_wait_ms
    if failed or size >= request.min_bytes or wait_ms <= 0 or not request.topics:
        return response
    ParkedFetch(desk, call, request)
    return None


def read(desk: Dispatcher, call: Call, request: FetchRequest) -> tuple[FetchResponse, int, bool]:
    """The response as of now, the bytes of records in it, and whether a partition has an error.

    The first batch found is returned whatever its size, so that a consumer always gets on (KIP-74).
    """
    left = min(request.max_bytes, desk.cluster.settings.fetch_max_bytes)
    total, failed = 0, False
    committed = request.isolation_level == READ_COMMITTED
    responses = []
    for topic in request.topics:
        found = []
        for partition in topic.partitions:
            try:
                name = topic_name(desk, topic.topic, topic.topic_id)
                data = _partition(
                    desk, call.node, name, partition, left, must_progress=total == 0, committed=committed
                )
            except Refused as refused:
                data = _failed(partition.partition, refused.code)
            except OffsetOutOfRange:
                data = _failed(partition.partition, ErrorCode.OFFSET_OUT_OF_RANGE)
            except StorageError:
                data = _failed(partition.partition, ErrorCode.KAFKA_STORAGE_ERROR)
            size = len(data.records or b"")
            total += size
            left -= size
            failed = failed or data.error_code != 0
            found.append(data)
        responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=tuple(found))
        )
    return FetchResponse(responses=tuple(responses)), total, failed


def refuse(request: Message, code: ErrorCode, message: str | None) -> FetchResponse:
    """Nothing could be read, because of `code`."""
    assert isinstance(request, FetchRequest)
    return FetchResponse(
        error_code=code,
        responses=tuple(
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=tuple(_failed(p.partition, code) for p in topic.partitions),
            )
            for topic in request.topics
        ),
    )


class ParkedFetch:
    """A fetch that waits for `min_bytes` to arrive, for a partition to fail, or for its time to run out."""

    __slots__ = ("_call", "_deadline", "_desk", "_keys", "_request")

    def __init__(self, desk: Dispatcher, call: Call, request: FetchRequest) -> None:
        self._desk = desk
        self._call = call
        self._request = request
        self._keys: list[Key] = [
            (topic_name(desk, topic.topic, topic.topic_id), partition.partition)
            for topic in request.topics
            for partition in topic.partitions
        ]
        desk.watchers.watch(self._keys, self.grown)
        self._deadline: Deadline = desk.wakeups.at(desk.clock.now_ms() + request.max_wait_ms, self.expire)
        call.forget = self.forget

    def grown(self) -> None:
        """One of the partitions is not what it was."""
        response, size, failed = read(self._desk, self._call, self._request)
        if failed or size >= self._request.min_bytes:
            self.forget()
            self._call.answer(response)

    def expire(self) -> None:
        """The time is over: answer with what there is."""
        self.forget()
        self._call.answer(read(self._desk, self._call, self._request)[0])

    def forget(self) -> None:
        self._deadline.cancel()
        self._desk.watchers.unwatch(self._keys, self.grown)


def _partition(
    desk: Dispatcher,
    node: int,
    name: str,
    wanted: FetchPartition,
    left: int,
    *,
    must_progress: bool,
    committed: bool,
) -> PartitionData:
    _, log = partition_log(desk, node, name, wanted.partition)
    check_leader_epoch(wanted.current_leader_epoch)
    limit = min(wanted.partition_max_bytes, left)
    records = log.read(wanted.fetch_offset, max(limit, 1)) if limit > 0 or must_progress else b""
    if len(records) > limit and not must_progress:
        records = b""
    producers = desk.producers.of(name, wanted.partition, log)
    stable = producers.last_stable_offset
    aborted = None
    if committed:
        records, end = decided(records, stable)
        aborted = tuple(
            AbortedTransaction(producer_id=producer_id, first_offset=first)
            for producer_id, first in producers.aborted_between(wanted.fetch_offset, end)
        )
    return PartitionData(
        partition_index=wanted.partition,
        high_watermark=log.end_offset,
        last_stable_offset=stable,
        log_start_offset=log.start_offset,
        aborted_transactions=aborted,
        records=records,
    )


def decided(records: bytes, stable: int) -> tuple[bytes, int]:
    """The whole batches before the last stable offset, and the offset behind them (0 for none)."""
    at, end = 0, 0
    while at < len(records):
        base_offset, length = _BATCH_START.unpack_from(records, at)
        if base_offset >= stable:
            break
        end = base_offset + _LAST_OFFSET_DELTA.unpack_from(records, at + _DELTA_AT)[0] + 1
        at += length + LENGTH_OFFSET
    return records[:at], end


def _failed(partition: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=code,
        high_watermark=-1,
        log_start_offset=-1,
        records=b"",
        aborted_transactions=None,
    )


APIS = (Api(FetchRequest.API, fetch, refuse),)
