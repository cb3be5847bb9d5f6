"""The whole simulation: topics, brokers, processes, operators, under one clock and one seed."""

from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from kgroup.coordinator.config import GroupConfig
from kgroup.domain import Topic, TopicImage, TopicPartition
from kgroup.members.effects import GroupMember
from kgroup.protocol.codec import Message
from kgroup.protocol.streams_records import TopicInfo
from kgroup.simulation.schedule import Schedule
from kgroup.simulation.world.brokers import Brokers, Watcher
from kgroup.simulation.world.network import Connection, InFlight
from kgroup.simulation.world.process import Process, ProcessSettings
from kgroup.simulation.world.transactions import Copier, Transactions

START_MS = 1_700_000_000_000
OPERATOR_TIMEOUT_MS = 10_000
CREATION_FAILS = 0.2
"""The share of attempts to create internal topics that fail."""


class World:
    """One run. `records_per_s` is how fast every partition grows; consumers keep up with it."""

    def __init__(
        self,
        rng: Random,
        topics: Mapping[str, int],
        config: GroupConfig,
        *,
        brokers: int = 3,
        offsets_partitions: int = 2,
        records_per_s: int = 100,
    ) -> None:
        self.rng = rng
        self.schedule = Schedule(START_MS)
        self.config = config
        self.records_per_s = records_per_s
        self.processes: dict[str, list[Process]] = {}
        self.operator = Operator(self)
        self._made = 0
        self.images: list[TopicImage] = []
        self._created: dict[str, int] = {}
        self._topics: dict[str, Topic] = {}
        for name, partitions in topics.items():
            self._put(name, partitions)
        self.brokers = Brokers(
            self.schedule,
            rng,
            brokers=brokers,
            partitions=offsets_partitions,
            config=config,
            image=self._next_image(),
        )
        self.network = self.brokers.network
        self.brokers.want_topics = self._create_later
        self.transactions = Transactions(self.brokers)

    @property
    def image(self) -> TopicImage:
        return self.brokers.image

    @property
    def now_ms(self) -> int:
        return self.schedule.now_ms

    def everybody(self) -> list[Process]:
        """Return all processes, running or not, in the order they were added."""
        return [process for group in self.processes.values() for process in group]

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` of everything the shards do from now on."""
        self.brokers.watcher = watcher

    def add(
        self,
        group_id: str,
        name: str,
        make_member: Callable[[int], GroupMember],
        settings: ProcessSettings | None = None,
        on_change: Callable[[Process], None] = lambda process: None,
        *,
        copies: bool = False,
    ) -> Process:
        """Return a process of a group, not started yet; one that `copies` commits with transactions."""
        kind = partial(Copier, transactions=self.transactions) if copies else Process
        process = kind(name, self.brokers, self.rng, make_member, self.end_of, settings)
        process.on_change = on_change
        self.processes.setdefault(group_id, []).append(process)
        return process

    def end_of(self, partition: TopicPartition) -> int:
        """Return the number of records in the partition now."""
        since = self.schedule.now_ms - self._created.get(partition.topic, self.schedule.now_ms)
        return since * self.records_per_s // 1000

    def set_topic(self, name: str, partitions: int) -> None:
        """Create a topic, give it more partitions, or delete it (0); clients learn of it when they ask."""
        if partitions:
            self._put(name, partitions)
        else:
            self._topics.pop(name, None)
        self.brokers.topics_changed(self._next_image())

    def _create_later(self, topics: tuple[TopicInfo, ...]) -> None:
        """Create internal topics after a while; if that fails, the coordinator asks again."""
        delay = self.rng.choice((5, 50, 1_500))
        if self.rng.random() < CREATION_FAILS:
            return
        for topic in topics:
            self.schedule.after(delay, self._create, topic.name, topic.partitions)

    def _create(self, name: str, partitions: int) -> None:
        if name not in self._topics:
            self.set_topic(name, partitions)

    def _put(self, name: str, partitions: int) -> None:
        known = self._topics.get(name)
        if known is None:
            self._made += 1
            self._created[name] = self.schedule.now_ms
        topic_id = self._made.to_bytes(16) if known is None else known.topic_id
        self._topics[name] = Topic(name, topic_id, partitions)

    def _next_image(self) -> TopicImage:
        version = len(self.images) + 1
        self.images.append(TopicImage.of(self._topics.values(), version, version))
        return self.images[-1]


class Operator:
    """A person with an admin client: sends one request at a time, and is not shown the run's outcome."""

    name = "operator"

    def __init__(self, world: World) -> None:
        self._world = world

    def send(self, group_id: str, request: Message, version: int | None = None) -> None:
        """Send a request to the group's coordinator, if there is one now."""
        broker = self._world.brokers.coordinator_of(group_id)
        if broker is not None:
            newest = request.VERSIONS[-1] if version is None else version
            self._world.network.send(self, broker, request, newest, OPERATOR_TIMEOUT_MS)

    def answered(self, connection: Connection, sent: InFlight, data: bytes) -> None:
        """See `network.Endpoint`."""

    def gave_up(self, connection: Connection, requests: list[InFlight]) -> None:
        """See `network.Endpoint`."""
