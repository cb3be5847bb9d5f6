"""Fetch, without fetch sessions: every request names all its partitions (KIP-227 allows it).

Everything in a log is committed, so the high watermark is its end; as no transactions are served, the last
stable offset is the high watermark.
"""

from __future__ import annotations

from kgroup.broker.call import Answer, Api, Call
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers.partitions import check_leader_epoch, partition_log, topic_name
from kgroup.broker.wakeups import Deadline
from kgroup.broker.watchers import Key
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.log.interface import OffsetOutOfRange
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)


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
    responses = []
    for topic in request.topics:
        found = []
        for partition in topic.partitions:
            try:
                name = topic_name(desk, topic.topic, topic.topic_id)
                data = _partition(desk, call.node, name, partition, left, must_progress=total == 0)
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
    desk: Dispatcher, node: int, name: str, wanted: FetchPartition, left: int, must_progress: bool
) -> PartitionData:
    _, log = partition_log(desk, node, name, wanted.partition)
    check_leader_epoch(wanted.current_leader_epoch)
    limit = min(wanted.partition_max_bytes, left)
    records = log.read(wanted.fetch_offset, max(limit, 1)) if limit > 0 or must_progress else b""
    if len(records) > limit and not must_progress:
        records = b""
    end = log.end_offset
    return PartitionData(
        partition_index=wanted.partition,
        high_watermark=end,
        last_stable_offset=end,
        log_start_offset=log.start_offset,
        records=records,
    )


def _failed(partition: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=partition, error_code=code, high_watermark=-1, log_start_offset=-1, records=b""
    )


APIS = (Api(FetchRequest.API, fetch, refuse),)
