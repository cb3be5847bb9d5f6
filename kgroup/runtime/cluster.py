"""A whole cluster in one process: topics and their logs, the shards of `__consumer_offsets`, placement."""

import logging
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import monotonic

from kgroup.coordinator.metrics import Counters
from kgroup.coordinator.outcome import Reply
from kgroup.domain import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTION_TOPIC, offsets_partition_of, uuid_text
from kgroup.errors import ConfigError
from kgroup.log.files import adopt_start_offsets, remove_partitions
from kgroup.log.interface import DamagedLog, Log, TornTail
from kgroup.log.memory import MemoryLog
from kgroup.log.open_files import OpenFiles
from kgroup.protocol.releases import NEWEST, Release
from kgroup.runtime.acl_store import access_rules
from kgroup.runtime.broker_settings import BrokerConfigs
from kgroup.runtime.catalog import Catalog, CatalogTopic, adopt_topics
from kgroup.runtime.changes import Changes
from kgroup.runtime.claim import Claim
from kgroup.runtime.cleaning import clean
from kgroup.runtime.clock import Clock, SystemClock
from kgroup.runtime.complaints import Complaints, line_of
from kgroup.runtime.credentials import Credentials
from kgroup.runtime.partition_folders import all_there, discard, ensure_room, open_partition
from kgroup.runtime.placement import Placement
from kgroup.runtime.settings import BrokerSettings
from kgroup.runtime.settings_in_force import SettingsInForce, read_settings
from kgroup.runtime.shard import Shard, Telemetry
from kgroup.runtime.topic_settings import TopicSettings

log = logging.getLogger(__name__)

CLOSING_S = 1.0
"""How long the end of a cluster may take."""
REMOVED_AT_ONCE = 100
"""Folders of deleted partitions, before the loop has its turn."""
OFFSETS_CONFIG = {"cleanup.policy": "compact", "compression.type": "producer"}


class Cluster:
    """Everything durable, opened and loaded: ready when the constructor returns.

    `data` None keeps all in memory. `config` has Kafka's setting names; an unknown name raises ConfigError
    with similar names as hint. The number of offsets partitions is fixed by the first start on a folder: a
    different one later raises ConfigError. `seed` makes member ids and assignments repeatable; without it
    they are random. `nodes` are the ids of the brokers, from the setting node.id on, or else from the one
    that a folder was made with. They lead a topic's partitions in turn, except those that were placed
    elsewhere. Versions, features and, from 4.3 on, behaviour are those of the release `kafka`.
    """

    def __init__(
        self,
        data: Path | Claim | None = None,
        *,
        brokers: int = 1,
        config: Mapping[str, str] | None = None,
        offsets_partitions: int | None = None,
        seed: int | None = None,
        clock: Clock | None = None,
        kafka: Release = NEWEST,
    ) -> None:
        if brokers < 1:
            raise ConfigError(
                f"a cluster needs at least one broker, not {brokers}", "give a number from 1 on"
            )
        self.brokers = brokers
        self.kafka = kafka
        static, self.group_config = read_settings(config or {}, kafka)
        self.clock: Clock = clock or SystemClock()
        self.complaints = Complaints(self.clock)
        self.scheme = ""
        self._seed = secrets.randbits(63) if seed is None else seed
        self._reloads = 0  # a shard made again on a log that did not grow must not reuse the same ids
        self._logs: dict[tuple[str, int], Log] = {}
        self._files = OpenFiles()
        self._placed: dict[tuple[str, int], Placement] = {}
        self._changes: Changes | None = None
        self._damaged: dict[tuple[str, int], DamagedLog] = {}
        self._doomed: dict[tuple[str, int], None] = {}  # folders of deleted topics, to be removed
        self.later: Callable[[Callable[[], None]], None] | None = None
        """Calls back in a later turn of the loop; None where nobody else waits."""
        self.torn_tails = 0
        self.shards: list[Shard | None] = []
        self.counters = Counters()
        self.load_times_ms: list[int] = []
        claim = Claim(data) if isinstance(data, Path) else data
        self.folder = claim.folder if claim else None
        node_id = static.given_node_id(config or {})
        self._directory = claim.lock(node_id) if claim else None
        first = self._directory.node_id if self._directory else node_id or 0
        self.nodes = range(first, first + brokers)
        self.endpoints: dict[int, tuple[str, int]] = dict.fromkeys(self.nodes, ("127.0.0.1", 0))
        self.down: set[int] = set()
        self.cluster_id = (
            self._directory.cluster_id if self._directory else uuid_text(secrets.token_bytes(16))
        )
        try:
            new = self._directory is None or self._directory.created
            self.catalog = Catalog(self.folder, self.cluster_id, new=new, kafka=kafka)
            _refuse_newer(self.catalog.features.levels, kafka)
            self._warn_of_torn(self.catalog.torn_tail)
            self.credentials = Credentials(self.folder, self.cluster_id)
            self.configs = BrokerConfigs(config or {}, self.catalog)
            self.in_force = SettingsInForce(
                (static, self.group_config), self.configs, self.catalog, self.nodes
            )
            self.acls = access_rules(self.folder, self.cluster_id, self.catalog, static)
            self._open(config or {}, offsets_partitions)
        except BaseException:
            self._release()
            raise

    @property
    def settings(self) -> BrokerSettings:
        """The settings of the process, as they are now."""
        return self.in_force.process

    def announce(self, endpoints: Mapping[int, tuple[str, int]], metrics: str = "", scheme: str = "") -> None:
        """Record where the brokers listen, for clients and for processes that find the folder in use.

        `scheme`, as "SASL_SSL://", means that plain connections are refused there.
        """
        self.endpoints.update(endpoints)
        self.scheme = scheme
        if self._directory is not None:
            listeners = ",".join(f"{scheme}{host}:{port}" for host, port in endpoints.values())
            self._directory.announce(listeners, metrics)

    def live_shards(self) -> Iterator[Shard]:
        """Return the shards that are loaded."""
        return (shard for shard in self.shards if shard is not None)

    def leader_of(self, topic: str, partition: int) -> int:
        """Return the broker that leads a partition."""
        placed = self._placed.get((topic, partition)) if self._placed else None
        return self.nodes[partition % self.brokers] if placed is None else placed.leader

    @property
    def controller(self) -> int:
        """The broker that clients send changes to: the first that is up."""
        return next((node for node in self.nodes if node not in self.down), self.nodes[0])

    def placement_of(self, topic: CatalogTopic, partition: int) -> Placement:
        """Return where a partition lies."""
        placed = topic.placements.get(partition) if topic.placements else None
        left = placed.among(self.nodes) if placed is not None else None
        return left or Placement.by_rule(partition, topic.replication_factor, self.nodes)

    def offline(self, topic: str, partition: int) -> bool:
        """Return whether a partition has no leader: its log was found damaged, or its only broker is down."""
        unloaded = topic == OFFSETS_TOPIC and self.shards[partition] is None
        if unloaded or (topic, partition) in self._damaged:
            return True
        return bool(self.down) and self.leader_of(topic, partition) in self.down

    def topic_settings(self, name: str, node: int | None = None) -> TopicSettings:
        """Return the settings in force for a topic that exists: its own, the broker's, else the defaults.

        Broker `node` is the one that leads the partition in question; without it, what all brokers share.
        """
        return self.in_force.of_topic(name, node)

    def log(self, topic: str, partition: int) -> Log | None:
        """Return the log of a partition, opened on first use; None if there is no such partition.

        DamagedLog for one that was found damaged, until the process is restarted; StorageError.
        """
        partition_log = self._logs.get((topic, partition))
        if partition_log is None:
            known = self.catalog.topics.get(topic)
            if known is None or not 0 <= partition < known.partitions:
                return None
            partition_log = self._logs[topic, partition] = self._open_log(topic, partition)
            partition_log.leader_epoch = self.placement_of(known, partition).epoch
        return partition_log

    def wrap_log(self, topic: str, partition: int, wrap: Callable[[Log], Log]) -> None:
        """Make all reads and appends go through what `wrap` makes of a partition's log."""
        partition_log = self.log(topic, partition)
        assert partition_log is not None
        wrapped = self._logs[topic, partition] = wrap(partition_log)
        shard = self.shards[partition] if topic == OFFSETS_TOPIC else None
        if shard is not None:
            shard.log = wrapped

    @contextmanager
    def together(self) -> Iterator[list[Reply]]:
        """Make one change of those of topics and settings inside: written, then announced, as the block ends.

        Then the list has the replies to answers that waited for it. If the block raises, or its changes
        cannot be written (StorageError), nothing is changed.
        """
        if self._changes is not None:
            yield []
            return
        changes = self._changes = Changes()
        try:
            with self.catalog.together():
                yield changes.replies
                ensure_room(self.folder, len(changes.created))
                remove_partitions(self.folder, changes.created)
                for key in changes.created:
                    self._doomed.pop(key, None)
        finally:
            self._changes = None
        self._apply(changes)

    def _apply(self, changes: Changes) -> None:
        """Apply the catalog's changes, and announce them to the shards."""
        for where in ((name, p) for name, partitions in changes.deleted.items() for p in range(partitions)):
            self._damaged.pop(where, None)
            self._placed.pop(where, None)
            opened = self._logs.pop(where, None)
            if opened is not None:
                opened.close(gone=True)
        self._doom((name, p) for name, count in changes.deleted.items() for p in range(count))
        for name in changes.placed & self.catalog.topics.keys():
            self._place(self.catalog.topics[name])
        for name in changes.settings:
            self._topic_settings_changed(name)
        if changes.of_brokers:
            self.in_force.forget_all()
            for name in {topic for topic, _ in self._logs}:
                self._topic_settings_changed(name)
        for group_id, settings in changes.of_groups.items():
            shard = self.shards[offsets_partition_of(group_id, len(self.shards))]
            if shard is not None:
                changes.replies += shard.group_config_changed(group_id, settings, self.clock.now_ms())
        if changes.of_topics:
            changes.replies += self._topics_changed()

    def _doom(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Have the folders of deleted partitions removed."""
        under_way = bool(self._doomed)
        self._doomed |= dict.fromkeys(partitions)
        if not under_way:
            self._discard()

    def _discard(self) -> None:
        """Remove folders of deleted topics, some now and the others in later turns."""
        while self._doomed:
            self._discard_some()
            if self._doomed and self.later is not None:
                self.later(self._discard)
                return

    def _discard_some(self) -> None:
        some = list(islice(self._doomed, REMOVED_AT_ONCE))
        for key in some:
            del self._doomed[key]
        discard(self.folder, some)

    def create_topic(self, topic: CatalogTopic) -> list[Reply]:
        """Create a new topic; return replies to answers that waited for it."""
        with self._change() as changes:
            self.catalog.add(topic)
            changes.created += ((topic.name, partition) for partition in range(topic.partitions))
            changes.settings.add(topic.name)
            changes.placed.add(topic.name)
            changes.of_topics = True
        return changes.replies

    def add_partitions(
        self, name: str, partitions: int, replicas: Sequence[Sequence[int]] = ()
    ) -> list[Reply]:
        """Give a topic more partitions, on the brokers that `replicas` names for each, else by the rule.

        Return replies to answers that waited for them.
        """
        with self._change() as changes:
            first = self.catalog.topics[name].partitions
            placed = {first + i: Placement.at(brokers) for i, brokers in enumerate(replicas)}
            self.catalog.grow(name, partitions, placed)
            changes.created += ((name, partition) for partition in range(first, partitions))
            changes.placed.add(name)
            changes.of_topics = True
        return changes.replies

    def place(self, name: str, placements: Mapping[int, Placement]) -> None:
        """Move partitions of a topic to where `placements` says."""
        with self._change() as changes:
            topic = self.catalog.topics[name]
            # the others stay where they are, whatever partition 0 says of replicas from now on
            kept = {p: self.placement_of(topic, p) for p in range(topic.partitions)}
            factor = len(placements[0].replicas) if 0 in placements else topic.replication_factor
            self.catalog.add(replace(topic, replication_factor=factor, placements={**kept, **placements}))
            changes.placed.add(name)

    def delete_topic(self, name: str) -> list[Reply]:
        """Delete a topic, its records and the offsets committed for it."""
        with self._change() as changes:
            changes.deleted[name] = self.catalog.topics[name].partitions
            self.catalog.remove(name)
            changes.settings.add(name)
            changes.of_topics = True
        return changes.replies

    def configure_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Replace the settings of a topic; they apply from the next request on."""
        with self._change() as changes:
            self.catalog.add(replace(self.catalog.topics[name], config=dict(config)))
            changes.settings.add(name)

    def configure_broker(self, broker: str, settings: dict[str, str]) -> None:
        """Replace the dynamic settings of one broker, or of all (""); they apply from the next request on."""
        with self._change() as changes:
            self.catalog.configure_broker(broker, settings)
            changes.of_brokers = True

    def configure_group(self, group_id: str, settings: dict[str, str]) -> None:
        """Replace a group's dynamic settings; they apply from its next request on."""
        with self._change() as changes:
            self.catalog.configure_group(group_id, settings)
            changes.of_groups[group_id] = settings

    def reload(self, partition: int, now_ms: int) -> None:
        """Make a shard again from its log. One whose log cannot be read is no longer led."""
        self.shards[partition] = None
        started_ms = self.clock.now_ms()
        try:
            partition_log = self.log(OFFSETS_TOPIC, partition)
            assert partition_log is not None
            self._reloads += 1
            seed = self._seed + self._reloads
            telemetry = Telemetry(self.counters, self.complaints)
            shard = Shard(partition, partition_log, self.group_config, seed, self.catalog.image, telemetry)
            for group_id, settings in self.catalog.group_configs.items():
                if offsets_partition_of(group_id, len(self.shards)) == partition:
                    shard.group_config_changed(group_id, settings, started_ms)
            shard.load(now_ms)
        except Exception as error:
            log.error(
                "%s-%d cannot be loaded, its groups are not served: %s",
                OFFSETS_TOPIC,
                partition,
                line_of(error),
            )
            return
        self.shards[partition] = shard
        self.load_times_ms.append(self.clock.now_ms() - started_ms)

    def close(self) -> None:
        """Close the logs and release the folder; safe to call twice."""
        if self._directory is not None:
            self.catalog.close()
        self._release()

    def _release(self) -> None:
        ends = monotonic() + CLOSING_S
        # To note what a log holds, a few writes have to reach the disk. The logs of state come first; those
        # that do not get their turn in time are read again when they are opened, as after a kill.
        for _, opened in sorted(self._logs.items(), key=lambda item: item[0][0] not in INTERNAL_TOPICS):
            opened.close(gone=monotonic() > ends)
        while self._doomed and monotonic() < ends:
            self._discard_some()
        if self._doomed:
            log.warning("%d folders of deleted partitions are still there", len(self._doomed))
        self._logs.clear()
        self.shards = []
        if self._directory is not None:
            self._directory.close()
            self._directory = None

    def _open(self, config: Mapping[str, str], offsets_partitions: int | None) -> None:
        if not self.catalog.topics and self.folder is not None:
            adopt_start_offsets(self.folder)
            adopt_topics(self.folder, self.catalog)
        for topic in self.catalog.topics.values():
            self._place(topic)
        known = self.catalog.topics.get(OFFSETS_TOPIC)
        count = offsets_partitions or self.settings.offsets_partitions
        asked = offsets_partitions is not None or "offsets.topic.num.partitions" in config
        if known is None:
            topic_id = self.catalog.new_topic_id()
            factor = min(self.settings.offsets_replication_factor, self.brokers)
            self.catalog.add(CatalogTopic(OFFSETS_TOPIC, topic_id, count, factor, OFFSETS_CONFIG))
        elif asked and known.partitions != count:
            raise ConfigError(
                f"{self.folder} has {known.partitions} offsets partitions, not {count}",
                "the number is fixed once groups are stored; leave the option out or take another folder",
            )
        partitions = self.catalog.topics[OFFSETS_TOPIC].partitions
        self.shards = [None] * partitions
        now_ms = self.clock.now_ms()
        for partition in range(partitions):
            clean(self, OFFSETS_TOPIC, partition, now_ms)
            self.reload(partition, now_ms)
        transactions = self.catalog.topics.get(TRANSACTION_TOPIC)
        for partition in range(transactions.partitions if transactions else 0):
            clean(self, TRANSACTION_TOPIC, partition, now_ms)
        for name in INTERNAL_TOPICS & self.catalog.topics.keys():
            if self.folder is not None and all_there(self.folder, self.catalog.topics[name]):
                self.catalog.settle(name)

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
        if self.folder is None:
            return MemoryLog()
        if (topic, partition) in self._damaged:
            raise self._damaged[topic, partition]
        settings = self.topic_settings(topic, self.leader_of(topic, partition))
        try:
            there = topic in self.catalog.settled
            folder = self.folder / f"{topic}-{partition}"
            opened = open_partition(folder, settings, self._files, was_there=there)
            if topic in INTERNAL_TOPICS:  # a folder of these that is missing later is damage
                opened.create()
        except DamagedLog as error:
            self._damaged[topic, partition] = error
            if topic not in INTERNAL_TOPICS:  # the loaders of these log it themselves
                log.error("%s-%d is not served: %s", topic, partition, line_of(error))
            raise
        self._warn_of_torn(opened.torn_tail)
        return opened

    def _warn_of_torn(self, torn: TornTail | None) -> None:
        if torn is not None:
            self.torn_tails += 1
            log.warning("%s", torn)

    def _place(self, topic: CatalogTopic) -> None:
        for partition in topic.placements:
            placement = self._placed[topic.name, partition] = self.placement_of(topic, partition)
            if (topic.name, partition) in self._logs:
                self._logs[topic.name, partition].leader_epoch = placement.epoch

    def _topic_settings_changed(self, name: str) -> None:
        self.in_force.forget(name)
        known = self.catalog.topics.get(name)
        for partition in range(known.partitions if known else 0):
            opened = self._logs.get((name, partition))
            if opened is not None:
                settings = self.topic_settings(name, self.leader_of(name, partition))
                opened.configure(segment_bytes=settings.segment_bytes, fsync=settings.fsync)

    @contextmanager
    def _change(self) -> Iterator[Changes]:
        """Make one change, or a part of the changes made together, whose replies belong to the whole."""
        with self.together():
            assert self._changes is not None
            yield self._changes


def _refuse_newer(levels: Mapping[str, int], kafka: Release) -> None:
    for name, level in levels.items():
        if level > kafka.levels.get(name, 0):
            raise ConfigError(
                f"the folder's cluster has {name} {level}, which Kafka {kafka} does not support",
                "serve it as the release that it was made with, or a later one",
            )
