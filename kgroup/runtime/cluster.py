"""A whole cluster in one process: topics and their logs, the shards of `__consumer_offsets`, placement."""

from __future__ import annotations

import logging
import secrets
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.metrics import Counters
from kgroup.coordinator.outcome import Reply
from kgroup.domain import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTION_TOPIC, offsets_partition_of, uuid_text
from kgroup.errors import ConfigError, KgroupError, StorageError
from kgroup.log.files import adopt_start_offsets
from kgroup.log.interface import DamagedLog, Log
from kgroup.log.memory import MemoryLog
from kgroup.runtime.catalog import Catalog, CatalogTopic, adoptable
from kgroup.runtime.changes import Changes
from kgroup.runtime.clock import Clock, SystemClock
from kgroup.runtime.complaints import Complaints
from kgroup.runtime.settings import BrokerSettings
from kgroup.runtime.shard import Shard
from kgroup.runtime.topic_settings import TopicSettings

if TYPE_CHECKING:
    from kgroup.log.directory import DataDirectory

log = logging.getLogger(__name__)

OFFSETS_CONFIG = {"cleanup.policy": "compact", "compression.type": "producer"}


class Cluster:
    """Everything durable, opened and loaded: ready when the constructor returns.

    `data` None keeps all in memory. `config` holds Kafka's setting names; a name that is none raises
    ConfigError with near misses as hint. The number of offsets partitions is fixed by the first start on
    a folder: one asked for later that differs raises ConfigError. `seed` makes member ids and assignments
    repeatable; without it they are random. Partition p of every topic is led by broker p % `brokers`.
    """

    def __init__(
        self,
        data: Path | None = None,
        *,
        brokers: int = 1,
        config: Mapping[str, str] | None = None,
        offsets_partitions: int | None = None,
        seed: int | None = None,
        clock: Clock | None = None,
        owner: str = "kgroup",
    ) -> None:
        if brokers < 1:
            raise ConfigError(f"a cluster needs at least one broker, not {brokers}")
        self.brokers = brokers
        self.settings, self.group_config = read_settings(config or {})
        self.clock: Clock = clock or SystemClock()
        self.complaints = Complaints(self.clock)
        self.endpoints: dict[int, tuple[str, int]] = dict.fromkeys(range(brokers), ("127.0.0.1", 0))
        self._seed = secrets.randbits(63) if seed is None else seed
        self._reloads = 0  # a shard made again on a log that did not grow must not hand out the same ids
        self._logs: dict[tuple[str, int], Log] = {}
        self._topic_settings: dict[str, TopicSettings] = {}
        self._changes: Changes | None = None
        self._damaged: dict[tuple[str, int], DamagedLog] = {}
        self.torn_tails = 0
        self.shards: list[Shard | None] = []
        self.counters = Counters()
        self.load_times_ms: list[int] = []
        self._folder = data
        self._directory = _locked(data, owner)
        self.cluster_id = (
            self._directory.cluster_id if self._directory else uuid_text(secrets.token_bytes(16))
        )
        try:
            new = self._directory is None or self._directory.created
            self.catalog = Catalog(data, self.cluster_id, new=new)
            self._open(config or {}, offsets_partitions)
        except BaseException:
            self.close()
            raise

    def announce(self, endpoints: Mapping[int, tuple[str, int]], metrics: str = "") -> None:
        """Where the brokers listen now, for clients and for whoever finds the folder in use."""
        self.endpoints.update(endpoints)
        if self._directory is not None:
            listeners = ",".join(f"{host}:{port}" for host, port in endpoints.values())
            self._directory.announce(listeners, metrics)

    def live_shards(self) -> Iterator[Shard]:
        """The shards that are loaded."""
        return (shard for shard in self.shards if shard is not None)

    def leader_of(self, partition: int) -> int:
        """The broker that leads partition `partition`, of whatever topic."""
        return partition % self.brokers

    def replicas_of(self, topic: CatalogTopic, partition: int) -> tuple[int, ...]:
        """The brokers that hold a partition, its leader first; all in sync, as they share one log."""
        count = min(topic.replication_factor, self.brokers)
        return tuple((partition + i) % self.brokers for i in range(count))

    def offline(self, topic: str, partition: int) -> bool:
        """Whether nobody leads a partition, its log having been found damaged or contradicting itself."""
        unloaded = topic == OFFSETS_TOPIC and self.shards[partition] is None
        return unloaded or (topic, partition) in self._damaged

    def topic_settings(self, name: str) -> TopicSettings:
        """The settings in force for a topic that exists: its own, the broker's, else the defaults."""
        found = self._topic_settings.get(name)
        if found is None:
            broker = self.settings.as_text()
            if name == OFFSETS_TOPIC:
                broker["log.segment.bytes"] = broker["offsets.topic.segment.bytes"]
            elif name == TRANSACTION_TOPIC:
                broker["log.segment.bytes"] = broker["transaction.state.log.segment.bytes"]
            found = TopicSettings.of(self.catalog.topics[name].config, broker)
            self._topic_settings[name] = found
        return found

    def log(self, topic: str, partition: int) -> Log | None:
        """The log of a partition, opened on first use; None if there is no such partition.

        DamagedLog for one that was found damaged, until the process is started again; StorageError.
        """
        found = self._logs.get((topic, partition))
        if found is None:
            known = self.catalog.topics.get(topic)
            if known is None or not 0 <= partition < known.partitions:
                return None
            found = self._logs[topic, partition] = self._open_log(topic, partition)
        return found

    @contextmanager
    def together(self) -> Iterator[list[Reply]]:
        """Changes of topics and settings inside are one: written, then told to the shards, as the block ends.

        Then the list holds the replies to answers that waited for it. If the block raises, or what it changed
        cannot be written (StorageError), nothing is changed.
        """
        if self._changes is not None:
            yield []
            return
        changes = self._changes = Changes()
        try:
            with self.catalog.together():
                yield changes.replies
                self._remove_folders(changes.created)
        finally:
            self._changes = None
        for name, partitions in changes.deleted.items():
            for partition in range(partitions):
                self._damaged.pop((name, partition), None)
                opened = self._logs.pop((name, partition), None)
                if opened is not None:
                    opened.close()
        self._remove_folders(changes.deleted)
        for name in changes.settings:
            self._topic_settings.pop(name, None)
        for group_id, settings in changes.of_groups.items():
            shard = self.shards[offsets_partition_of(group_id, len(self.shards))]
            if shard is not None:
                shard.group_config_changed(group_id, settings)
        if changes.of_topics:
            changes.replies += self._topics_changed()

    def create_topic(self, topic: CatalogTopic) -> list[Reply]:
        """Create a topic that is not there yet; replies to answers that waited for it."""
        with self._change() as changes:
            self.catalog.add(topic)
            changes.created.add(topic.name)
            changes.settings.add(topic.name)
            changes.of_topics = True
        return changes.replies

    def add_partitions(self, name: str, partitions: int) -> list[Reply]:
        """Give a topic more partitions; replies to answers that waited for it."""
        with self._change() as changes:
            self.catalog.grow(name, partitions)
            changes.of_topics = True
        return changes.replies

    def delete_topic(self, name: str) -> list[Reply]:
        """Delete a topic, its records and the offsets committed for it."""
        with self._change() as changes:
            changes.deleted[name] = self.catalog.topics[name].partitions
            self.catalog.remove(name)
            changes.settings.add(name)
            changes.of_topics = True
        return changes.replies

    def configure_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Replace the settings of a topic."""
        with self._change() as changes:
            self.catalog.add(replace(self.catalog.topics[name], config=dict(config)))
            changes.settings.add(name)

    def configure_group(self, group_id: str, settings: dict[str, str]) -> None:
        """Replace a group's dynamic settings; they act from its next request on."""
        with self._change() as changes:
            self.catalog.configure_group(group_id, settings)
            changes.of_groups[group_id] = settings

    def reload(self, partition: int, now_ms: int) -> None:
        """Make a shard anew from its log. One whose log cannot be read is not led any more."""
        self.shards[partition] = None
        started_ms = self.clock.now_ms()
        try:
            found = self.log(OFFSETS_TOPIC, partition)
            assert found is not None
            self._reloads += 1
            seed = self._seed + self._reloads
            shard = Shard(
                partition, found, self.group_config, seed, self.catalog.image, self.counters, self.complaints
            )
            for group_id, settings in self.catalog.group_configs.items():
                if offsets_partition_of(group_id, len(self.shards)) == partition:
                    shard.group_config_changed(group_id, settings)
            shard.load(now_ms)
        except Exception as error:
            log.error(
                "%s-%d cannot be loaded, its groups are not served: %s", OFFSETS_TOPIC, partition, told(error)
            )
            return
        self.shards[partition] = shard
        self.load_times_ms.append(self.clock.now_ms() - started_ms)

    def close(self) -> None:
        """Close the logs and release the folder; safe to call twice."""
        for opened in self._logs.values():
            opened.close()
        self._logs.clear()
        self.shards = []
        if self._directory is not None:
            self._directory.close()
            self._directory = None

    def _open(self, config: Mapping[str, str], offsets_partitions: int | None) -> None:
        if not self.catalog.topics and self._folder is not None:
            adopt_start_offsets(self._folder)
            for topic in adoptable(self._folder, self.catalog):
                self.catalog.add(topic)
        known = self.catalog.topics.get(OFFSETS_TOPIC)
        wanted = offsets_partitions or self.settings.offsets_partitions
        asked = offsets_partitions is not None or "offsets.topic.num.partitions" in config
        if known is None:
            topic_id = self.catalog.new_topic_id()
            factor = min(self.settings.offsets_replication_factor, self.brokers)
            self.catalog.add(CatalogTopic(OFFSETS_TOPIC, topic_id, wanted, factor, OFFSETS_CONFIG))
        elif asked and known.partitions != wanted:
            raise ConfigError(
                f"{self._folder} has {known.partitions} offsets partitions, not {wanted}",
                "the number is fixed once groups are stored; leave the option out or take another folder",
            )
        partitions = self.catalog.topics[OFFSETS_TOPIC].partitions
        self.shards = [None] * partitions
        now_ms = self.clock.now_ms()
        for partition in range(partitions):
            self._clean(OFFSETS_TOPIC, partition, now_ms)
            self.reload(partition, now_ms)
        transactions = self.catalog.topics.get(TRANSACTION_TOPIC)
        for partition in range(transactions.partitions if transactions else 0):
            self._clean(TRANSACTION_TOPIC, partition, now_ms)

    def compact_one(self) -> bool:
        """Compact the first log of state that has more history than state; whether there was one.

        A pass reads the whole log while everybody waits: at most one a call, and the host leaves time
        between two.
        """
        now_ms = self.clock.now_ms()
        for topic in (OFFSETS_TOPIC, TRANSACTION_TOPIC):
            known = self.catalog.topics.get(topic)
            for partition in range(known.partitions if known else 0):
                if self._clean(topic, partition, now_ms):
                    return True
        return False

    def _clean(self, topic: str, partition: int, now_ms: int) -> bool:
        """Compact a log of state that is mostly history; whether it was done."""
        if self._folder is None:
            return False
        from kgroup.log.compaction import MIN_DIRTY_RATIO, compact, dirty_ratio
        from kgroup.log.partition import PartitionLog

        try:
            found = self.log(topic, partition)
        except StorageError:
            return False  # who loads it says so
        try:
            if isinstance(found, PartitionLog) and dirty_ratio(found) >= MIN_DIRTY_RATIO:
                return compact(found, now_ms=now_ms) is not None
        except Exception as error:
            subject = f"compaction of {topic}-{partition}"
            self.complaints.say(log, subject, f"tried again later: {told(error)}")
        return False

    def _topics_changed(self) -> list[Reply]:
        now_ms = self.clock.now_ms()
        replies: list[Reply] = []
        for shard in self.live_shards():
            try:
                replies += shard.topics_changed(self.catalog.image, now_ms)
            except Exception:
                log.exception("%s-%d failed at a change of topics", OFFSETS_TOPIC, shard.partition)
                replies += shard.abandon()
                self.reload(shard.partition, now_ms)
        return replies

    def _open_log(self, topic: str, partition: int) -> Log:
        if self._folder is None:
            return MemoryLog()
        from kgroup.log.partition import PartitionLog

        if (topic, partition) in self._damaged:
            raise self._damaged[topic, partition]
        settings = self.topic_settings(topic)
        try:
            opened = PartitionLog(
                self._folder / f"{topic}-{partition}",
                segment_bytes=settings.segment_bytes,
                fsync=settings.flush_messages == 1,
            )
        except DamagedLog as error:
            self._damaged[topic, partition] = error
            if topic not in INTERNAL_TOPICS:  # of these, those who load them say so
                log.error("%s-%d is not served: %s", topic, partition, told(error))
            raise
        if opened.torn_tail is not None:
            self.torn_tails += 1
            log.warning("%s", opened.torn_tail)
        return opened

    @contextmanager
    def _change(self) -> Iterator[Changes]:
        """One change, or a part of those being made together, whose replies are the whole's."""
        with self.together():
            assert self._changes is not None
            yield self._changes

    def _remove_folders(self, topics: Container[str]) -> None:
        """Also those a crash left behind."""
        if self._folder is None or not topics:
            return
        for path in list(self._folder.iterdir()):
            name, _, number = path.name.rpartition("-")
            if name in topics and number.isdecimal():
                shutil.rmtree(path, ignore_errors=True)


def read_settings(config: Mapping[str, str]) -> tuple[BrokerSettings, GroupConfig]:
    """The broker's and the groups' settings; ConfigError for a name that is neither's."""
    ours, theirs = BrokerSettings.names(), GroupConfig.names()
    for name in config:
        if name not in ours and name not in theirs:
            raise ConfigError(f"no such setting: {name}", near_misses(name, (*ours, *theirs)))
    return (
        BrokerSettings.of({k: v for k, v in config.items() if k in ours}),
        GroupConfig.of({k: v for k, v in config.items() if k in theirs}),
    )


def told(error: Exception) -> str:
    """One line about a failure, with what to do about it."""
    if not isinstance(error, KgroupError):
        return repr(error)
    return f"{error.message} ({error.hint})" if error.hint else error.message


def near_misses(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 3)
    return (
        f"did you mean {' or '.join(near)}?"
        if near
        else "settings have Kafka's names, as in server.properties"
    )


def _locked(data: Path | None, owner: str) -> DataDirectory | None:
    if data is None:
        return None
    from kgroup.log.directory import DataDirectory

    return DataDirectory(data, command=owner)
