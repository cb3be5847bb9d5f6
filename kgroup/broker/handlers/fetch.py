"""Fetch, with fetch sessions or without (KIP-227).

Everything in a log is replicated, so the high watermark is its end. A read_committed consumer gets nothing
from the first open transaction on, and the list of aborted ones to skip (KIP-98).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.fetch_sessions import IDS_SINCE, Answers, Named, Plan, Wanted
from kgroup.broker.handlers.partitions import code_of, partition_log, topic_name
from kgroup.broker.wakeups import Deadline
from kgroup.broker.watchers import Key
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.protocol.batches import EXTENT, LENGTH_OFFSET
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

READ_COMMITTED = 1
STORAGE_ERROR_SINCE = 6
LEADERS_SINCE = 16
_MOVED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
_UNKNOWN = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def fetch(
    broker: Dispatcher, call: Call[FetchRequest], readable: Callable[[str], bool] | None = None
) -> Answer:
    """Answer at once if there is enough to read or something to report; else park until there is.

    `readable` returns whether a topic may be read; None for all.
    """
    request = call.body
    sessions = broker.sessions(call.node)
    try:
        plan = sessions.plan(
            request, call.version, wanted_by(broker, request, call.version), broker.clock.now_ms()
        )
    except Refused as refused:
        return FetchResponse(error_code=refused.code)
    plan.readable = readable
    result = read(broker, call, plan)
    if result.enough or request.max_wait_ms <= 0:
        return respond(broker, call, plan, result)
    ParkedFetch(broker, call, plan, result)
    return None


def wanted_by(broker: Dispatcher, request: FetchRequest, version: int) -> dict[Named, Wanted]:
    """Return the partitions a request names, each once, with its last request."""
    asked: dict[Named, Wanted] = {}
    by_id = version >= IDS_SINCE
    for topic in request.topics:
        topic_id = topic.topic_id
        name = broker.cluster.catalog.image.name_of(topic_id) if by_id else topic.topic
        label = topic_id if by_id else topic.topic
        for partition in topic.partitions:
            asked[label, partition.partition] = Wanted(topic.topic, topic_id, name, partition)
    return asked


class Found(NamedTuple):
    """What was read, unknown partitions last; and whether that is worth an answer now."""

    answers: Answers
    enough: bool


def read(broker: Dispatcher, call: Call[FetchRequest], plan: Plan) -> Found:
    """Return what can be read now.

    The first batch found is returned whatever its size, so that a consumer always proceeds (KIP-74).
    """
    request = call.body
    most = left = min(request.max_bytes, broker.cluster.settings.fetch_max_bytes)
    total, failed = 0, False
    known: Answers = []
    unknown: Answers = []
    readable, failing = plan.readable, call.failing
    for key, partition in plan.partitions:
        if failing is not None and (code := failing.get((partition.name, partition.ask.partition))):
            data = _failed(partition.ask.partition, ErrorCode(code))
        elif (
            readable is not None
            and (name := partition.name or broker.cluster.catalog.image.name_of(partition.topic_id))
            is not None
            and not readable(name)
        ):
            data = _failed(partition.ask.partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            data = _data(broker, call, partition, plan.by_id, left, must_progress=total == 0)
        if data.error_code in _UNKNOWN:
            unknown.append((key, partition, data))
            continue
        size = len(data.records or b"")
        total += size
        left -= size
        failed = failed or data.error_code != 0
        known.append((key, partition, data))
    if plan.unknown is None:
        plan.unknown = {key for key, _, _ in unknown}
    gone = len(unknown) > len(plan.unknown)
    return Found(known + unknown, failed or gone or not known or total >= min(request.min_bytes, most))


def _data(
    broker: Dispatcher,
    call: Call[FetchRequest],
    partition: Wanted,
    by_id: bool,
    left: int,
    *,
    must_progress: bool,
) -> PartitionData:
    name = partition.name
    try:
        if name is None:
            name = partition.name = topic_name(broker, partition.topic, partition.topic_id)
        elif by_id:
            # A session keeps the first name found, whatever the id stands for later.
            topic = broker.cluster.catalog.topics.get(name)
            if topic is not None and topic.topic_id != partition.topic_id:
                raise Refused(ErrorCode.INCONSISTENT_TOPIC_ID)
        return _partition(broker, call, name, partition.ask, left, must_progress=must_progress)
    except (Refused, StorageError) as error:
        code = code_of(broker, call, error)
        if code is ErrorCode.KAFKA_STORAGE_ERROR and call.version < STORAGE_ERROR_SINCE:
            return _failed(partition.ask.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        failed = _failed(partition.ask.partition, code)
        if name is not None and code in _MOVED and call.version >= LEADERS_SINCE:
            failed = replace(failed, current_leader=leader_of(broker, name, partition.ask.partition))
        return failed


def respond(broker: Dispatcher, call: Call[Message], plan: Plan, result: Found) -> FetchResponse:
    """Return the answer with what was read; in a session, with what is new."""
    try:
        session_id, answers = broker.sessions(call.node).answered(plan, result.answers, broker.clock.now_ms())
    except Refused as refused:
        assert plan.session is not None
        return FetchResponse(error_code=refused.code, session_id=plan.session.id)
    responses: list[FetchableTopicResponse] = []
    leaders: set[int] = set()
    of_topic: list[PartitionData] = []
    last: Wanted | None = None
    for _, partition, data in answers:
        if last is not None and (partition.topic_id != last.topic_id or partition.topic != last.topic):
            responses.append(_topic(last, of_topic))
            of_topic = []
        last = partition
        of_topic.append(data)
        if data.error_code in _MOVED and data.current_leader.leader_id >= 0:
            leaders.add(data.current_leader.leader_id)
    if last is not None:
        responses.append(_topic(last, of_topic))
    return FetchResponse(
        session_id=session_id,
        responses=tuple(responses),
        node_endpoints=node_endpoints(broker, call, leaders) if leaders else (),
    )


def _topic(partition: Wanted, partitions: list[PartitionData]) -> FetchableTopicResponse:
    return FetchableTopicResponse(
        topic=partition.topic, topic_id=partition.topic_id, partitions=tuple(partitions)
    )


def leader_of(broker: Dispatcher, topic: str, partition: int) -> LeaderIdAndEpoch:
    """Return the leader of a partition that is led by another broker (KIP-951)."""
    placement = broker.cluster.placement_of(broker.cluster.catalog.topics[topic], partition)
    return LeaderIdAndEpoch(leader_id=placement.leader, leader_epoch=placement.epoch)


def node_endpoints(broker: Dispatcher, call: Call[Message], nodes: Iterable[int]) -> tuple[NodeEndpoint, ...]:
    """Return the addresses of these brokers, except those that are down."""
    known = broker.endpoints(call)
    return tuple(
        NodeEndpoint(node_id=node, host=known[node][0], port=known[node][1])
        for node in nodes
        if node in known
    )


class ParkedFetch:
    """A fetch that waits for `min_bytes` to arrive, for a partition to fail, or for its time to run out.

    When a partition has grown, only that one is checked; all are read again once there is enough.
    """

    __slots__ = ("_call", "_deadline", "_broker", "_enough", "_plan", "_size", "_sizes", "_wanted")

    def __init__(self, broker: Dispatcher, call: Call[FetchRequest], plan: Plan, so_far: Found) -> None:
        request = call.body
        self._broker = broker
        self._call = call
        self._plan = plan
        self._enough = min(request.min_bytes, request.max_bytes, broker.cluster.settings.fetch_max_bytes)
        self._wanted: dict[Key, Wanted] = {}
        self._sizes: dict[Key, int] = {}
        for _, partition, data in so_far.answers:
            if partition.name is not None:
                key = partition.name, partition.ask.partition
                self._wanted[key] = partition
                self._sizes[key] = len(data.records or b"")
        self._size = sum(self._sizes.values())
        broker.watchers.watch(self._wanted, self.grown)
        self._deadline: Deadline = broker.wakeups.at(broker.clock.now_ms() + request.max_wait_ms, self.expire)
        call.forget = self.forget

    def grown(self, key: Key) -> None:
        """A partition has changed; if there are others, it is first checked alone."""
        if len(self._plan.partitions) > 1:
            limit = self._broker.cluster.settings.fetch_max_bytes
            partition = self._wanted[key]
            data = _data(self._broker, self._call, partition, self._plan.by_id, limit, must_progress=True)
            self._size += len(data.records or b"") - self._sizes[key]
            self._sizes[key] = len(data.records or b"")
            if data.error_code == 0 and self._size < self._enough:
                return
        result = read(self._broker, self._call, self._plan)
        if result.enough:
            self._answer(result)

    def expire(self) -> None:
        """Answer with what there is: the time is over."""
        self._answer(read(self._broker, self._call, self._plan))

    def forget(self) -> None:
        self._deadline.cancel()
        self._broker.watchers.unwatch(self._wanted, self.grown)

    def _answer(self, result: Found) -> None:
        self.forget()
        self._call.answer(respond(self._broker, self._call, self._plan, result))


def _partition(
    broker: Dispatcher,
    call: Call[FetchRequest],
    name: str,
    ask: FetchPartition,
    left: int,
    *,
    must_progress: bool,
) -> PartitionData:
    _, log = partition_log(broker, call.node, name, ask.partition, ask.current_leader_epoch)
    limit = min(ask.partition_max_bytes, left)
    records = log.read(ask.fetch_offset, max(limit, 1)) if limit > 0 or must_progress else b""
    if len(records) > limit and not must_progress:
        records = b""
    producers = broker.producers.of(name, ask.partition, log)
    stable = producers.last_stable_offset
    aborted = None
    if call.body.isolation_level == READ_COMMITTED:
        records, end = decided(records, stable)
        aborted = tuple(
            AbortedTransaction(producer_id=producer_id, first_offset=first)
            for producer_id, first in producers.aborted_between(ask.fetch_offset, end)
        )
    return PartitionData(
        partition_index=ask.partition,
        high_watermark=log.end_offset,
        last_stable_offset=stable,
        log_start_offset=log.start_offset,
        aborted_transactions=aborted,
        records=records,
    )


def decided(records: bytes, stable: int) -> tuple[bytes, int]:
    """Return the whole batches before the last stable offset, and the offset behind them (0 for none)."""
    at, end = 0, 0
    while at < len(records):
        base_offset, length, last_delta = EXTENT.unpack_from(records, at)
        if base_offset >= stable:
            break
        end = base_offset + last_delta + 1
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


APIS = (Api(FetchRequest, fetch),)
