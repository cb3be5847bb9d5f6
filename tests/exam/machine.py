"""The embedded cluster in this process: its time moves from one planned action to the next."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from itertools import count
from string import ascii_lowercase
from typing import Any, NamedTuple, TypeVar, cast

from kgroup.broker.call import Call
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TopicImage,
    TopicPartition,
    offsets_partition_of,
)
from kgroup.log.interface import Log
from kgroup.log.memory import MemoryLog
from kgroup.protocol.batches import Batch, LogRecord, encode_batch, end_marker_record, rebuild_batch
from kgroup.protocol.codec import Message
from kgroup.protocol.group_records import encode_key, encode_value
from kgroup.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kgroup.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kgroup.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kgroup.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kgroup.protocol.share_state_records import decode_key, decode_value
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings_in_force import read_settings
from kgroup.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from kgroup.security.principals import Principal
from kgroup.share.coordinator import Record as StateRecord
from kgroup.share.coordinator import ShareCoordinator, ShareStateConfig

R = TypeVar("R", bound=Message)
NOW_MS = 1_800_000_000_000
"""The moment at which the commands look."""
BEGIN_MS = NOW_MS - 7_200_000
HOUR_MS = 3_600_000
LONG_MS = 6 * HOUR_MS
"""Sessions and transactions that nobody ends last that long."""
FULL = 7
"""As many members as a group may have."""
SETTINGS = {
    "group.initial.rebalance.delay.ms": "100",
    "group.max.session.timeout.ms": str(LONG_MS),
    "group.consumer.max.session.timeout.ms": str(LONG_MS),
    "group.consumer.session.timeout.ms": str(LONG_MS),
    "group.consumer.assignment.interval.ms": "0",
    "group.streams.max.session.timeout.ms": str(LONG_MS),
    "group.streams.session.timeout.ms": str(LONG_MS),
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.max.size": str(FULL),
    "group.share.max.session.timeout.ms": str(LONG_MS),
    "group.share.session.timeout.ms": str(LONG_MS),
    "group.share.assignment.interval.ms": "0",
    "group.share.max.record.lock.duration.ms": "900000",
    "share.coordinator.cold.partition.snapshot.interval.ms": str(LONG_MS),
    "share.coordinator.state.topic.prune.interval.ms": str(LONG_MS),
    "group.max.size": str(FULL),
    "transaction.max.timeout.ms": str(LONG_MS),
    "group.consumer.max.size": str(FULL),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
}
OFFSETS_PARTITIONS, OPEN_PARTITION = 4, 3
"""Partitions of `__consumer_offsets`; the first broker leads two of them. Groups whose offsets are held open
are in the second one: the cleaner stops there at the open transaction, and in the other one it goes on."""
DOWN = 1
"""The broker that may be down: it leads each topic's second partition."""
USERS = ("history", "read", "topics", "groups", "settings", "lagging")
"""Who lacks the rights of this name, and has the others; `lagging` may not see `min.insync.replicas`."""
PREFIX = "x"
"""Every topic and group of the exam begins so."""
VALUE_BYTE = -2
"""The last byte of a batch's last value, from the end of the batch: its record has no headers."""


def group_name(number: int, partition: int = 0) -> str:
    """A name by which the records of a group are in this partition of `__consumer_offsets`."""
    names = (f"{PREFIX}{number:04d}{letter}" for letter in ascii_lowercase)
    return next(name for name in names if offsets_partition_of(name, OFFSETS_PARTITIONS) == partition)


SCRATCHES = 11


class Slot:
    """Where the answer to a request that may wait arrives."""

    def __init__(self) -> None:
        self.answer: Message | None = None

    def put(self, answer: Message | None) -> None:
        self.answer = answer

    def of(self, kind: type[R]) -> R:
        """The answer; it must be there, of this class."""
        assert isinstance(self.answer, kind), self.answer
        return self.answer


class Producer(NamedTuple):
    """A producer of transactions, and the broker that coordinates them."""

    node: int
    name: str
    producer_id: int
    epoch: int

    @property
    def head(self) -> dict[str, Any]:
        """What each request about its transaction begins with."""
        return {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }


class Machine:
    """A cluster of three brokers, and what is planned to happen in it; the first coordinates every group."""

    def __init__(self) -> None:
        self.clock = ManualClock(BEGIN_MS)
        self.cluster = Cluster(
            config=SETTINGS, brokers=3, offsets_partitions=OFFSETS_PARTITIONS, seed=45, clock=self.clock
        )
        self.transport = EmbeddedTransport(self.cluster)
        self._planned: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._producers: dict[str, Producer] = {}
        self._grant()
        # What every broker of a cluster of three is told to have.
        self.cluster.configure_topic(OFFSETS_TOPIC, {"min.insync.replicas": "2"})

    def close(self) -> None:
        self.transport.close()

    def restart(self, config: Mapping[str, str]) -> None:
        """Give the brokers these settings besides those of every state, as their restart does."""
        given = {**SETTINGS, **config}
        self.cluster.configs.given = given
        _, fresh = read_settings(given, self.cluster.kafka)
        for each in fields(fresh):
            object.__setattr__(self.cluster.group_config, each.name, getattr(fresh, each.name))

    # time

    def at(self, ms: int, act: Callable[[], None]) -> None:
        """Plan an action, or do it now if its time has come."""
        heapq.heappush(self._planned, (ms, next(self._order), act))

    def run(self, until_ms: int = NOW_MS) -> None:
        """Let the planned happen, each at its own time."""
        while self._planned and self._planned[0][0] <= until_ms:
            ms, _, act = heapq.heappop(self._planned)
            if ms > self.clock.now_ms():
                self.transport.run_until(ms)
            act()
        self.transport.run_until(until_ms)

    def forget(self) -> None:
        """Let nothing happen of what is planned."""
        self._planned.clear()

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    # requests

    def ask(
        self, request: Message, answer: type[R], version: int | None = None, who: str = "app", node: int = 0
    ) -> R:
        """The answer to a request that is answered at once."""
        slot = self.begin(request, version, who, node)
        for _ in range(100):
            # What the brokers do for it among themselves takes a moment.
            if slot.answer is not None:
                break
            self.transport.run_until(self.now_ms + 1)
        return slot.of(answer)

    def begin(self, request: Message, version: int | None = None, who: str = "app", node: int = 0) -> Slot:
        """Send a request; its answer may come later."""
        served = self.transport.versions(0, request.API)
        assert served is not None
        chosen = min(served[-1], type(request).VERSIONS[-1]) if version is None else version
        slot = Slot()
        body = type(request).decode(request.encode(chosen), chosen)
        call = Call(body, chosen, who, "/10.0.0.1", node, slot.put)
        if (answer := self.transport.dispatcher.handle(call)) is not None:
            slot.put(cast(Message, answer))
        return slot

    # topics and logs

    def create_topic(self, name: str, partitions: int, **config: str) -> None:
        configs = tuple(CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in config.items())
        wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
        answer = self.transport.request(0, CreateTopicsRequest(topics=(wanted,)))
        assert [each.error_code for each in answer.topics] == [0], answer  # type: ignore[attr-defined]

    def delete_topic(self, name: str) -> None:
        self.cluster.delete_topic(name)

    def add_partitions(self, topic: str, to: int) -> None:
        self.cluster.add_partitions(topic, to)

    def delete_before(self, place: TopicPartition, offset: int) -> None:
        self.log(*place).delete_before(offset)

    def epoch_of(self, place: TopicPartition) -> int:
        """The epoch of a partition's leader; -1 of a partition that does not exist."""
        topic = self.cluster.catalog.topics.get(place.topic)
        return -1 if topic is None else self.cluster.placement_of(topic, place.partition).epoch

    def cut(self, place: TopicPartition, committed: int) -> int:
        """Let the next leader of a partition lack the last batch before this offset, and all after it."""
        log, topic = self.log(*place), self.cluster.catalog.topics[place.topic]
        assert isinstance(log, MemoryLog)
        kept = bisect_left(log._last_offsets, committed - 1)
        end: int = Batch(log._batches[kept]).base_offset
        for column in (log._batches, log._last_offsets, log._max_timestamps):
            del column[kept:]
        log._end = end
        placed = self.cluster.placement_of(topic, place.partition)
        self.cluster.place(place.topic, {place.partition: placed.led_by(placed.leader, end)})
        return end

    def damage(self, place: TopicPartition, offset: int) -> range:
        """Change a bit of a value in the batch with this offset, as a disk may; return its offsets."""
        log = self.log(*place)
        assert isinstance(log, MemoryLog)
        number, batch = next(
            (n, batch) for n, raw in enumerate(log._batches) if (batch := Batch(raw)).last_offset >= offset
        )
        log._batches[number] = _scratched(log._batches[number])
        return range(batch.base_offset, batch.last_offset + 1)

    def leader_of(self, place: TopicPartition) -> int:
        return self.cluster.leader_of(*place)

    def configure_group(self, group: str, config: Mapping[str, str]) -> None:
        self.cluster.configure_group(group, dict(config))

    def log(self, topic: str, partition: int) -> Log:
        found = self.cluster.log(topic, partition)
        assert found is not None
        return found

    def begun(self, place: TopicPartition, name: str = "") -> int:
        """Begin a transaction that writes to a partition; return its producer, whose epoch is 0."""
        producer = self._producer(name or f"{place.topic}-{place.partition}")
        written = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=place.topic, partitions=(place.partition,)),),
        )
        added = self.ask(written, AddPartitionsToTxnResponse, version=3, node=producer.node)
        assert not added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code, added
        return producer.producer_id

    def _producer(self, name: str) -> Producer:
        """The producer with this transactional id, initialised when it is asked for first."""
        begin = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=LONG_MS)
        for node in range(3) if name not in self._producers else ():
            made = self.ask(begin, InitProducerIdResponse, node=node)
            if not made.error_code:  # else another broker coordinates it
                self._producers[name] = Producer(node, name, made.producer_id, made.producer_epoch)
        return self._producers[name]

    def commit_in_transaction(
        self,
        name: str,
        group: str,
        member: tuple[str, int, str | None],
        place: TopicPartition,
        offset: int,
        epoch: int,
    ) -> int:
        """Commit an offset in the transaction of a producer, begun now if none is; return the error code."""
        producer = self._producer(name)
        add = AddOffsetsToTxnRequest(**producer.head, group_id=group)
        assert not self.ask(add, AddOffsetsToTxnResponse, version=3, node=producer.node).error_code
        part = TxnOffsetCommitRequestPartition(
            partition_index=place.partition,
            committed_offset=offset,
            committed_leader_epoch=epoch,
            committed_metadata="",
        )
        commit = TxnOffsetCommitRequest(
            **producer.head,
            group_id=group,
            generation_id=member[1],
            member_id=member[0],
            group_instance_id=member[2],
            topics=(TxnOffsetCommitRequestTopic(name=place.topic, partitions=(part,)),),
        )
        return self.ask(commit, TxnOffsetCommitResponse, version=3).topics[0].partitions[0].error_code

    def end_transaction(self, name: str, *, commit: bool) -> None:
        """End the transaction of a producer."""
        producer = self._producer(name)
        end = EndTxnRequest(**producer.head, committed=commit)
        answer = self.ask(end, EndTxnResponse, version=3, node=producer.node)
        assert not answer.error_code, answer

    def topic_id(self, topic: str) -> bytes:
        return self.cluster.catalog.topics[topic].topic_id

    @contextmanager
    def cleaned(self, before_ms: int) -> Iterator[None]:
        """Leave meanwhile only the newest record of each key in the records of groups of before a moment.

        As the cleaner of a broker does in all segments but the one that is written to.
        """
        with ExitStack() as cleaned:
            for number in range(OFFSETS_PARTITIONS):
                cleaned.enter_context(_cleaned(self.log(OFFSETS_TOPIC, number), before_ms))
            state = self.cluster.catalog.topics.get(SHARE_STATE_TOPIC)
            for number in range(state.partitions if state is not None else 0):
                cleaned.enter_context(_pruned(self.log(SHARE_STATE_TOPIC, number), before_ms))
            yield

    @contextmanager
    def scratched(self) -> Iterator[None]:
        """Have every eleventh batch in the records of groups fail its checksum meanwhile, as a disk may."""
        with ExitStack() as healed:
            for number in range(OFFSETS_PARTITIONS):
                log = self.log(OFFSETS_TOPIC, number)
                assert isinstance(log, MemoryLog)
                healed.callback(setattr, log, "_batches", log._batches)
                log._batches = [
                    _scratched(raw) if at % SCRATCHES == SCRATCHES - 1 else raw
                    for at, raw in enumerate(log._batches)
                ]
            yield

    # who may see what

    def _grant(self) -> None:
        def may(user: str, kind: ResourceType, name: str, *operations: Operation) -> Iterable[Acl]:
            for each in operations:
                yield Acl(kind, name, PatternType.PREFIXED, f"User:{user}", "*", each, Permission.ALLOW)

        o, t, g = Operation, ResourceType.TOPIC, ResourceType.GROUP
        x = ResourceType.TRANSACTIONAL_ID
        rules: list[Acl] = []
        for user in USERS:
            rules += may(user, x, PREFIX, o.DESCRIBE)
            if user != "groups":
                rules += may(user, g, PREFIX, o.DESCRIBE, o.DESCRIBE_CONFIGS)
            if user != "history":
                rules += may(user, t, OFFSETS_TOPIC, o.READ, o.DESCRIBE)
                if user != "lagging":
                    rules += may(user, t, OFFSETS_TOPIC, o.DESCRIBE_CONFIGS)
                rules += may(user, t, SHARE_STATE_TOPIC, o.READ, o.DESCRIBE)
            if user != "topics":
                seen = (o.DESCRIBE,) if user == "read" else (o.READ, o.DESCRIBE)
                rules += may(user, t, PREFIX, *seen)
                if user != "settings":
                    rules += may(user, t, PREFIX, o.DESCRIBE_CONFIGS)
            cluster = [o.DESCRIBE] + ([o.DESCRIBE_CONFIGS] if user != "settings" else [])
            rules += [
                Acl(
                    ResourceType.CLUSTER,
                    "kafka-cluster",
                    PatternType.LITERAL,
                    f"User:{user}",
                    "*",
                    each,
                    Permission.ALLOW,
                )
                for each in cluster
            ]
        assert self.cluster.acls is not None
        self.cluster.acls.add(rules)

    def seen_by(self, visibility: str) -> EmbeddedTransport:
        """A transport for one who lacks the rights that `visibility` names; for "all", who has them all."""
        self.cluster.down = {DOWN} if visibility == "broker" else set()
        if visibility in USERS:
            return EmbeddedTransport(self.cluster, Principal("User", visibility))
        return self.transport


def _scratched(raw: bytes) -> bytes:
    """The batch with a bit of its last record changed."""
    changed = bytearray(raw)
    changed[VALUE_BYTE] ^= 1
    return bytes(changed)


@contextmanager
def _cleaned(log: Log, before_ms: int) -> Iterator[None]:
    """The cleaner leaves nothing of aborted transactions but their markers, and stops at an open one."""
    assert isinstance(log, MemoryLog)
    kept = log._batches, log._last_offsets, log._max_timestamps
    batches = [Batch(raw) for raw in log._batches]
    aborted, open_ = _of_transactions(batches)
    until = min(open_, default=log.end_offset)
    old = {b.base_offset for b in batches if not b.control and b.max_timestamp < before_ms}
    old = {offset for offset in old if offset < until}
    clean(log, [b for b in batches if b.base_offset not in old & aborted], old)
    try:
        yield
    finally:
        log._batches, log._last_offsets, log._max_timestamps = kept


@contextmanager
def _pruned(log: Log, before_ms: int) -> Iterator[None]:
    """Of what share groups did before a moment, snapshots are left that the coordinator wrote then."""
    assert isinstance(log, MemoryLog)
    kept = log._batches, log._last_offsets, log._max_timestamps, log._start
    batches = [Batch(raw) for raw in log._batches]
    old = [batch for batch in batches if batch.max_timestamp < before_ms]
    states = ShareCoordinator(ShareStateConfig(), TopicImage())
    for batch in old:
        for record in batch.records:
            key = decode_key(record.key or b"")
            states.replay(StateRecord(key, decode_value(key, record.value)), record.offset)
    shots = [
        LogRecord(
            encode_key(key.snapshot),
            encode_value(replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=before_ms)),
        )
        for key, state in states.states.items()
    ]
    if shots:
        end = old[-1].last_offset + 1
        raw = encode_batch(shots, base_offset=end - len(shots), timestamp_ms=before_ms)
        left = [Batch(raw), *batches[len(old) :]]
        log._start = end - len(shots)
        log._batches = [bytes(batch.raw) for batch in left]
        log._last_offsets = [batch.last_offset for batch in left]
        log._max_timestamps = [batch.max_timestamp for batch in left]
    try:
        yield
    finally:
        log._batches, log._last_offsets, log._max_timestamps, log._start = kept


def clean(log: MemoryLog, batches: Iterable[Batch], old: Container[int]) -> list[Batch]:
    """Leave these batches in the log, those that begin at `old` with the newest record of each of their keys.

    Return what is left.
    """
    batches = list(batches)
    newest = {r.key: r.offset for batch in batches if batch.base_offset in old for r in batch.records}
    left: list[Batch] = []
    for batch in batches:
        if batch.base_offset not in old:
            left.append(batch)
        elif records := [record for record in batch.records if newest[record.key] == record.offset]:
            left.append(Batch(rebuild_batch(batch, records)))
    log._batches = [bytes(batch.raw) for batch in left]
    log._last_offsets = [batch.last_offset for batch in left]
    log._max_timestamps = [batch.max_timestamp for batch in left]
    return left


def _of_transactions(batches: Iterable[Batch]) -> tuple[set[int], set[int]]:
    """Where the batches of aborted transactions begin, and those of open ones."""
    aborted: set[int] = set()
    begun: defaultdict[int, set[int]] = defaultdict(set)
    for batch in batches:
        if batch.control:
            ended = begun.pop(batch.producer_id, set())
            aborted |= ended if batch.records[0].key == end_marker_record(False).key else set()
        elif batch.transactional:
            begun[batch.producer_id].add(batch.base_offset)
    return aborted, set().union(*begun.values())
