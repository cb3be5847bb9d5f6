"""The transaction coordinators of all brokers, and the markers they have written (KIP-98)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from kgroup.broker.tickets import Tickets
from kgroup.broker.wakeups import Deadline
from kgroup.broker.watchers import Watchers
from kgroup.domain import OFFSETS_TOPIC, TRANSACTION_TOPIC, EndMarker, TopicPartition, offsets_partition_of
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.protocol.batches import LogRecord, end_marker_record
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.complaints import line_of
from kgroup.runtime.transaction_shard import TransactionShard
from kgroup.transactions.config import TransactionConfig
from kgroup.transactions.coordinator import TransactionCoordinator
from kgroup.transactions.outcome import Markers, Outcome
from kgroup.transactions.producers import ProducerEpoch
from kgroup.transactions.state import LATEST_VERSION, Status

log = logging.getLogger(__name__)

RETRY_MS = 1000
TOPIC_CONFIG = {"cleanup.policy": "compact", "compression.type": "producer"}


class Transactions:
    """The shards of `__transaction_state`, which is created when the first transactional id is looked up.

    Ends that were decided before the process was last stopped are carried out by the constructor.
    """

    def __init__(self, cluster: Cluster, tickets: Tickets, watchers: Watchers) -> None:
        self._cluster = cluster
        self._tickets = tickets
        self._watchers = watchers
        self._deadlines: dict[int, Deadline] = {}
        self.shards: list[TransactionShard | None] = []
        if TRANSACTION_TOPIC in cluster.catalog.topics:
            self._load()

    def ready(self) -> None:
        """Create the topic and its shards if there are none yet."""
        if self.shards:
            return
        settings = self._cluster.settings
        factor = settings.transaction_replication_factor
        self._tickets.create_internal_topic(
            TRANSACTION_TOPIC, settings.transaction_partitions, factor, TOPIC_CONFIG
        )
        self._load()

    def node_of(self, transactional_id: str) -> int:
        """Return the broker that coordinates a transactional id."""
        self.ready()
        return self._cluster.leader_of(TRANSACTION_TOPIC, self._partition_of(transactional_id))

    def coordinator_of(self, transactional_id: str, node: int | None = None) -> TransactionCoordinator:
        """Return an id's coordinator, to read from; NOT_COORDINATOR if `node` does not lead it."""
        return self._shard(transactional_id, node).coordinator

    def coordinators_at(self, node: int) -> list[TransactionCoordinator]:
        """Return all coordinators that broker `node` leads, to read from."""
        return [
            shard.coordinator
            for shard in self.shards
            if shard is not None and self._cluster.leader_of(TRANSACTION_TOPIC, shard.partition) == node
        ]

    def run(
        self,
        transactional_id: str,
        operation: Callable[[TransactionCoordinator, int], Outcome],
        node: int | None = None,
    ) -> Outcome:
        """Carry out an operation (with the time) on the id's coordinator; Refused as it says."""
        shard = self._shard(transactional_id, node)
        now_ms = self._cluster.clock.now_ms()
        try:
            return shard.run(lambda coordinator: operation(coordinator, now_ms), now_ms)
        except Refused:
            raise
        except Exception:
            self._reload(shard.partition)
            raise
        finally:
            self._arm(shard.partition)
            self._grown(TRANSACTION_TOPIC, shard.partition)

    def admit(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> ErrorCode:
        """Return whether the producer's transaction has these partitions; `add` adds them.

        TRANSACTION_ABORTABLE if it has not, INVALID_PRODUCER_EPOCH for a fenced producer.
        """
        try:
            known = self.coordinator_of(transactional_id).transactions.get(transactional_id)
            if (
                known is not None
                and known.status is Status.ONGOING
                and (known.producer_id, known.producer_epoch) == producer
                and known.partitions.issuperset(partitions)
            ):
                return ErrorCode.NONE
            if add:
                return self.run(
                    transactional_id,
                    lambda c, now: c.add_partitions(
                        transactional_id, producer, partitions, LATEST_VERSION, now
                    ),
                ).code
            verified = self.coordinator_of(transactional_id).verify_partitions(
                transactional_id, producer, partitions
            )
            return next((code for code in verified.values() if code), ErrorCode.NONE)
        except Refused as refused:
            fenced = refused.code is ErrorCode.PRODUCER_FENCED
            return ErrorCode.INVALID_PRODUCER_EPOCH if fenced else refused.code

    def write_marker(self, partition: TopicPartition, marker: EndMarker) -> None:
        """Append the end of a transaction to one partition, and notify its readers.

        Refused for a missing partition; StorageError if it could not be appended.
        """
        topic, number = partition.topic, partition.partition
        partition_log = self._cluster.log(topic, number)
        if partition_log is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        now_ms = self._cluster.clock.now_ms()
        if topic == OFFSETS_TOPIC:
            shard = self._cluster.shards[number]
            if shard is None:
                raise StorageError(f"{partition} is not loaded")
            done, replies = shard.end_transaction(marker, now_ms)
            self._tickets.deliver(replies)
            if not done:
                raise StorageError(f"{partition} cannot be appended to")
        else:
            record: LogRecord = end_marker_record(marker.committed, marker.coordinator_epoch)
            partition_log.append(
                [record],
                timestamp_ms=now_ms,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transactional=True,
                control=True,
            )
        self._grown(topic, number)

    def _write(self, markers: Markers) -> bool:
        """Write all markers of a transaction; False if one has to be retried."""
        written = True
        for partition in sorted(markers.partitions):
            try:
                self.write_marker(partition, markers.marker)
            except Refused:
                continue  # the topic is gone, and the transaction's records with it
            except StorageError as error:
                text = f"that of {markers.transactional_id} is tried again: {line_of(error)}"
                self._cluster.complaints.say(log, f"markers for {partition}", text)
                written = False
        return written

    def _partition_of(self, transactional_id: str) -> int:
        return offsets_partition_of(transactional_id, len(self.shards))

    def _shard(self, transactional_id: str, node: int | None) -> TransactionShard:
        self.ready()
        wakeups = self._tickets.wakeups
        now_ms = self._cluster.clock.now_ms()
        if now_ms >= wakeups.due_ms:
            wakeups.before_request(now_ms)
        partition = self._partition_of(transactional_id)
        shard = self.shards[partition]
        if shard is None or node not in (None, self._cluster.leader_of(TRANSACTION_TOPIC, partition)):
            raise Refused(ErrorCode.NOT_COORDINATOR)
        return shard

    def _load(self) -> None:
        partitions = self._cluster.catalog.topics[TRANSACTION_TOPIC].partitions
        self.shards = [None] * partitions
        for partition in range(partitions):
            self._reload(partition)
        transactions = [t for s in self.shards if s for t in s.coordinator.transactions.values()]
        newest = max((max(t.producer_id, t.next_producer_id) for t in transactions), default=-1)
        self._cluster.catalog.reserve_producer_ids(newest + 1)
        for shard in self.shards:
            if shard is not None:
                shard.begin(self._cluster.clock.now_ms())
                self._arm(shard.partition)

    def _reload(self, partition: int) -> None:
        """Make a shard again from its log. One whose log cannot be read is no longer led."""
        settings = self._cluster.settings
        config = TransactionConfig(
            settings.transaction_max_timeout_ms, settings.transactional_id_expiration_ms
        )
        before, self.shards[partition] = self.shards[partition], None
        try:
            partition_log = self._cluster.log(TRANSACTION_TOPIC, partition)
            assert partition_log is not None
            allocate = self._cluster.catalog.allocate_producer_id
            complaints = self._cluster.complaints
            shard = TransactionShard(partition, partition_log, config, allocate, self._write, complaints)
            shard.load()
            if before is not None:
                shard.begin(self._cluster.clock.now_ms())
        except Exception as error:
            log.error(
                "%s-%d cannot be loaded, its ids are not served: %s",
                TRANSACTION_TOPIC,
                partition,
                line_of(error),
            )
            return
        self.shards[partition] = shard

    def _arm(self, partition: int) -> None:
        """Have the process wake this shard in time."""
        shard = self.shards[partition]
        due = shard.next_wake_ms() if shard is not None else None
        armed = self._deadlines.get(partition)
        if due is None or (armed is not None and armed.callback is not None and armed.ms <= due):
            return
        if armed is not None:
            armed.cancel()
        self._deadlines[partition] = self._tickets.wakeups.at(due, lambda: self._wake(partition))

    def _wake(self, partition: int) -> None:
        self._deadlines.pop(partition, None)
        shard = self.shards[partition]
        if shard is None:
            return
        try:
            shard.wake(self._cluster.clock.now_ms())
        except Refused as refused:
            subject, why = f"{TRANSACTION_TOPIC}-{partition}", refused.message
            self._cluster.complaints.say(log, subject, f"tries again what was due: {why}")
            later_ms = self._cluster.clock.now_ms() + RETRY_MS
            self._deadlines[partition] = self._tickets.wakeups.at(later_ms, lambda: self._wake(partition))
            return
        except Exception:
            log.exception("%s-%d failed at a deadline", TRANSACTION_TOPIC, partition)
            self._reload(partition)
        self._grown(TRANSACTION_TOPIC, partition)
        self._arm(partition)

    def _grown(self, topic: str, partition: int) -> None:
        if self._watchers:
            self._watchers.notify((topic, partition))
