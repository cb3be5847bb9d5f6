"""Brokers: they lead shards, answer requests, stall, crash, and hand shards over to each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.metrics import Counters
from kgroup.coordinator.outcome import Reply, Request
from kgroup.domain import EndMarker, TopicImage, offsets_partition_of
from kgroup.errors import ErrorCode, StorageError
from kgroup.log.memory import MemoryLog
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest
from kgroup.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kgroup.protocol.requests import refusal
from kgroup.protocol.streams_records import TopicInfo
from kgroup.runtime.clock import SystemClock
from kgroup.runtime.complaints import Complaints
from kgroup.runtime.shard import Shard, Telemetry
from kgroup.simulation.schedule import Schedule
from kgroup.simulation.world.network import Connection, InFlight, Network

CLIENT_ID = "pod"


class Watcher:
    """Is notified of everything a shard does; this one ignores it."""

    def loaded(self, partition: Partition) -> None:
        """Note that the shard was rebuilt from its log."""

    def stepped(self, partition: Partition, request: Message | None, replies: list[Reply]) -> None:
        """Note that a request was carried out, or (None) that timers fired or topics changed."""

    def fired(self, partition: Partition) -> None:
        """Note that every due timer has fired."""


class DiskFault(Enum):
    """At the next append: it fails; it tears, and the broker dies; it is the last thing the broker does."""

    FAILS = "fails"
    TEARS = "tears"
    LAST = "last"


@dataclass(slots=True)
class Partition:
    """One partition of `__consumer_offsets`: its log, and the shard at the broker that leads it, if any."""

    number: int
    log: MemoryLog
    shard: Shard | None = None
    leader: int | None = None
    incarnation: int = 0
    loading: bool = False
    next_append: DiskFault | None = None
    broker_dies: bool = False
    wake_at_ms: int | None = None
    loaded_ms: int = 0


@dataclass(slots=True)
class Broker:
    """One broker: up or down; may stall (with all its requests waiting); has its own clock."""

    id: int
    cluster: Brokers
    up: bool = True
    stalled: bool = False
    clock_ahead_ms: int = 0
    mailbox: list[tuple[Callable[..., None], tuple[object, ...]]] = field(default_factory=list)
    tickets: dict[int, tuple[Connection, Partition | None]] = field(default_factory=dict)

    def arrived(self, connection: Connection, ticket: int, sent: InFlight, data: bytes) -> None:
        """See `network.Broker`."""
        if not self.up:
            self.cluster.network.break_connection(connection)
            return
        if self.stalled:
            self.mailbox.append((self.arrived, (connection, ticket, sent, data)))
            return
        self.cluster.handle(self, connection, ticket, sent, data)

    def closed(self, tickets: list[int]) -> None:
        """See `network.Broker`."""
        for ticket in tickets:
            _, partition = self.tickets.pop(ticket, (None, None))
            if partition is not None and partition.shard is not None:
                partition.shard.forget(ticket)


class Brokers:
    """All brokers, the partitions they lead, and the topics they know. `counters` are the totals.

    `want_topics` is called with internal topics of streams groups to be created; `is_open` returns whether a
    transactional commit belongs to an open transaction.
    """

    def __init__(
        self,
        schedule: Schedule,
        rng: Random,
        *,
        brokers: int,
        partitions: int,
        config: GroupConfig,
        image: TopicImage,
    ) -> None:
        self.schedule = schedule
        self.config = config
        self.image = image
        self.counters = Counters()
        self.want_topics: Callable[[tuple[TopicInfo, ...]], None] = lambda topics: None
        self.is_open: Callable[[TxnOffsetCommitRequest], bool] = lambda request: False
        self.watcher = Watcher()
        self.brokers = {number: Broker(number, self) for number in range(brokers)}
        self.network = Network(schedule, rng, dict(self.brokers))
        self._seed = rng.getrandbits(32)
        self._places: dict[str, Partition] = {}
        self._group_settings: dict[str, dict[str, str]] = {}
        self.partitions = [self._partition(number) for number in range(partitions)]
        for partition in self.partitions:
            self.lead(partition, partition.number % brokers)

    def partition_of(self, group_id: str) -> Partition:
        """Return the partition that holds a group."""
        partition = self._places.get(group_id)
        if partition is None:
            number = offsets_partition_of(group_id, len(self.partitions))
            partition = self._places[group_id] = self.partitions[number]
        return partition

    def coordinator_of(self, group_id: str) -> int | None:
        """Return the broker that leads the group's partition now; None while there is none."""
        return self.partition_of(group_id).leader

    def now_ms(self, broker_id: int) -> int:
        """Return the time by the broker's clock."""
        return self.schedule.now_ms + self.brokers[broker_id].clock_ahead_ms

    def lead(self, partition: Partition, broker_id: int, load_ms: int = 0) -> None:
        """Make a broker take over a partition: it loads the log, and answers once that is done."""
        self.resign(partition)
        partition.leader = broker_id
        partition.incarnation += 1
        partition.loading = load_ms > 0
        if load_ms:
            self.schedule.after(load_ms, self._load, partition, partition.incarnation)
        else:
            self._load(partition, partition.incarnation)

    def resign(self, partition: Partition) -> None:
        """Leave the partition without a leader; waiting clients get an error if the broker still runs."""
        shard, leader = partition.shard, partition.leader
        partition.shard = partition.leader = partition.wake_at_ms = None
        if shard is None or leader is None:
            return
        replies = shard.abandon()
        if self.brokers[leader].up:
            self._answer(self.brokers[leader], replies)

    def crash(self, broker: Broker) -> None:
        """Kill the broker at once: its connections break, and its partitions have no leader."""
        broker.up = broker.stalled = False
        broker.mailbox.clear()
        for partition in self.partitions:
            if partition.leader == broker.id:
                self.resign(partition)
        self.network.break_all(broker_id=broker.id)
        broker.tickets.clear()

    def stall(self, broker: Broker) -> None:
        """Pause the broker: a slow disk, a long garbage collection."""
        broker.stalled = broker.up

    def resume(self, broker: Broker, timers_first: bool) -> None:
        """Resume the broker with the requests that arrived meanwhile, or with the timers then due."""
        if not broker.stalled:
            return
        broker.stalled = False
        if timers_first:
            self._wake_all(broker)
        waiting, broker.mailbox = broker.mailbox, []
        for action, args in waiting:
            action(*args)
        self._wake_all(broker)

    def topics_changed(self, image: TopicImage) -> None:
        """Give every shard the new topics."""
        self.image = image
        for partition in self.partitions:
            if partition.shard is not None and partition.leader is not None:
                broker = self.brokers[partition.leader]
                replies = partition.shard.topics_changed(image, self.now_ms(broker.id))
                self._stepped(broker, partition, None, replies)

    def configure_group(self, group_id: str, settings: dict[str, str]) -> None:
        """Replace the settings of a group, also for shards that are loaded later."""
        self._group_settings[group_id] = settings
        partition = self.partition_of(group_id)
        if partition.shard is not None and partition.leader is not None:
            broker = self.brokers[partition.leader]
            replies = partition.shard.group_config_changed(group_id, settings, self.now_ms(broker.id))
            self._stepped(broker, partition, None, replies)

    def write_marker(self, group_id: str, marker: EndMarker) -> bool:
        """Make the group's coordinator end a transaction; False if it did not confirm that."""
        partition = self.partition_of(group_id)
        if partition.shard is None or partition.leader is None or partition.loading:
            return False
        broker = self.brokers[partition.leader]
        if broker.stalled:
            return False
        done, replies = partition.shard.end_transaction(marker, self.now_ms(broker.id))
        self._stepped(broker, partition, None, replies)
        return done and broker.up

    def handle(
        self, broker: Broker, connection: Connection, ticket: int, sent: InFlight, data: bytes
    ) -> None:
        """Execute an incoming request, or reject it."""
        body = type(sent.message).decode(data, sent.version)
        partition = self.partition_of(group_of(body))
        broker.tickets[ticket] = (connection, partition)
        code = self._unserved(broker, partition, body)
        if code is not None:
            answer = HeartbeatResponse() if code is ErrorCode.NONE else refusal(body, code)
            self._answer(broker, [Reply(ticket, answer)])
            return
        assert partition.shard is not None
        # Members share one client id, as the pods of a deployment do.
        request = Request(body, sent.version, CLIENT_ID, f"/{connection.client.name}")
        replies = partition.shard.submit(ticket, request, self.now_ms(broker.id))
        shard = partition.shard
        self._stepped(broker, partition, body, replies)
        missing = shard.coordinator.take_missing_topics(group_of(body))
        if missing and broker.up:
            self.want_topics(missing)

    def _unserved(self, broker: Broker, partition: Partition, body: Message) -> ErrorCode | None:
        if partition.leader != broker.id:
            return ErrorCode.NOT_COORDINATOR
        if not partition.loading:
            late = isinstance(body, TxnOffsetCommitRequest) and not self.is_open(body)
            return ErrorCode.INVALID_PRODUCER_EPOCH if late else None
        # A classic heartbeat is accepted while the log is loaded (Kafka's GroupCoordinatorService).
        return (
            ErrorCode.NONE if isinstance(body, HeartbeatRequest) else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )

    def _stepped(
        self, broker: Broker, partition: Partition, body: Message | None, replies: list[Reply]
    ) -> None:
        self.watcher.stepped(partition, body, replies)
        if partition.broker_dies:
            partition.broker_dies = False
            self.crash(broker)
            return
        self._answer(broker, replies)
        self._watch_timers(broker, partition)

    def _answer(self, broker: Broker, replies: list[Reply]) -> None:
        for reply in replies:
            connection, _ = broker.tickets.pop(reply.ticket, (None, None))
            if connection is not None:
                self.network.answer(connection, reply.ticket, reply.response)

    def _partition(self, number: int) -> Partition:
        partition = Partition(number, MemoryLog(lambda raw: _before_append(partition)))
        return partition

    def _load(self, partition: Partition, incarnation: int) -> None:
        if partition.incarnation != incarnation or partition.leader is None:
            return
        seed = self._seed + (partition.number << 32) + (incarnation << 40)
        partition.loading = False
        telemetry = Telemetry(self.counters, Complaints(SystemClock()))
        partition.shard = Shard(partition.number, partition.log, self.config, seed, self.image, telemetry)
        partition.loaded_ms = self.now_ms(partition.leader)
        for group_id, settings in self._group_settings.items():
            if self.partition_of(group_id) is partition:
                partition.shard.group_config_changed(group_id, settings, partition.loaded_ms)
        partition.shard.load(partition.loaded_ms)
        self.watcher.loaded(partition)
        self._watch_timers(self.brokers[partition.leader], partition)

    def _watch_timers(self, broker: Broker, partition: Partition) -> None:
        assert partition.shard is not None
        due = partition.shard.next_wake_ms()
        if due is None:
            return
        due -= broker.clock_ahead_ms
        if partition.wake_at_ms is None or due < partition.wake_at_ms:
            partition.wake_at_ms = due
            self.schedule.at(due, self._wake, partition, partition.incarnation, due)

    def _wake(self, partition: Partition, incarnation: int, due_ms: int) -> None:
        if partition.incarnation != incarnation or partition.wake_at_ms != due_ms:
            return
        partition.wake_at_ms = None
        if partition.shard is None or partition.leader is None:
            return
        broker = self.brokers[partition.leader]
        if not broker.stalled:
            self._fire(broker, partition)

    def _wake_all(self, broker: Broker) -> None:
        for partition in self.partitions:
            if partition.leader == broker.id and partition.shard is not None:
                self._fire(broker, partition)

    def _fire(self, broker: Broker, partition: Partition) -> None:
        assert partition.shard is not None
        self._stepped(broker, partition, None, partition.shard.wake(self.now_ms(broker.id)))
        if partition.shard is not None:
            self.watcher.fired(partition)


def group_of(body: Message) -> str:
    """Return the one group a request is about."""
    if isinstance(body, OffsetFetchRequest):
        return body.groups[0].group_id
    if isinstance(body, DeleteGroupsRequest):
        return body.groups_names[0]
    return str(body.group_id)  # type: ignore[attr-defined]


def _before_append(partition: Partition) -> None:
    fault, partition.next_append = partition.next_append, None
    if fault is None:
        return
    partition.broker_dies = fault is not DiskFault.FAILS
    if fault is not DiskFault.LAST:
        # A torn append is cut off when the log is next opened, as if it had never been written.
        raise StorageError(f"the append {fault.value}")
