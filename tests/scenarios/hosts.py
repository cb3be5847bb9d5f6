"""Where scenarios run: one small interface, and the hosts of it that need no socket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kgroup.broker.call import Call
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.outcome import Reply, Request
from kgroup.domain import OFFSETS_TOPIC, ZERO_UUID, Topic, TopicImage, offsets_partition_of
from kgroup.errors import StorageError
from kgroup.log.memory import MemoryLog
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kgroup.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kgroup.protocol.releases import Release
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.shard import Shard

from .hard_state import reloaded, same_hard_state

SEED = 7
START_MS = 1_700_000_000_000
ADDRESS = "/127.0.0.1"
CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
GROUP_RESOURCE = 32


KAFKA = "4.3.1"
"""The real Kafka whose rules the scenarios state; the differential compares those of later ones."""
JUDGE = Release.of(KAFKA.rpartition(".")[0])
"""The release that the scenarios' other hosts play."""


class Host(Protocol):
    """Something that answers requests.

    `scale` divides every time of a scenario, `prefix` goes before its names of groups and topics.
    """

    scale: int
    prefix: str

    def send(self, ticket: int, client_id: str, message: Message, version: int) -> None:
        """Submit a request; its reply comes out of a later `collect`."""
        ...

    def collect(self, expected: int) -> list[tuple[int, Message]]:
        """The replies released since the last call; a host in real time waits for `expected` of them."""
        ...

    def wait(self, ms: int) -> None:
        """Let that much of the scenario's time pass."""
        ...

    def set_topic(self, name: str, partitions: int) -> bytes:
        """Create a topic, give it more partitions, or delete it (0); its id."""
        ...

    def set_group_config(self, group_id: str, settings: Mapping[str, str]) -> None:
        """Replace the dynamic settings of a group."""
        ...

    def restart(self) -> None:
        """Load the coordinator from its log again, as another broker would that takes over."""
        ...

    def fail_next_append(self) -> None:
        """Have the next append to the coordinator's log fail."""
        ...

    def epochs(self, group_id: str) -> dict[str, str]:
        """What no request tells about a group: `generation`; empty where the host cannot know."""
        ...

    def check(self) -> None:
        """Assert what must hold after every row."""
        ...

    def close(self) -> None: ...


class BareMachine:
    """A shard over a log in memory. After every row a second shard, loaded from the log, must agree."""

    scale = 1
    prefix = ""

    def __init__(self, config: Mapping[str, str], seed: int = SEED) -> None:
        self._failing = False
        self.log = MemoryLog(self._before_append)
        self._topics: dict[str, Topic] = {}
        self._image_version = 0
        self._made = 0
        self.now_ms = START_MS
        self._replies: list[tuple[int, Message]] = []
        self._asked: dict[int, tuple[type[Message], int]] = {}
        self.shard = Shard(0, self.log, GroupConfig.of({**CONFIG, **config}, JUDGE), seed, TopicImage())
        self.shard.load(self.now_ms)

    def send(self, ticket: int, client_id: str, message: Message, version: int) -> None:
        self._asked[ticket] = type(message), version
        body = type(message).decode(message.encode(version), version)
        self._take(self.shard.submit(ticket, Request(body, version, client_id, ADDRESS), self.now_ms))
        self._take(self.shard.wake(self.now_ms))

    def collect(self, expected: int) -> list[tuple[int, Message]]:
        collected, self._replies = self._replies, []
        return collected

    def wait(self, ms: int) -> None:
        until = self.now_ms + ms
        while (due := self.shard.next_wake_ms()) is not None and due <= until:
            self.now_ms = max(self.now_ms, due)
            self._take(self.shard.wake(self.now_ms))
        self.now_ms = until

    def set_topic(self, name: str, partitions: int) -> bytes:
        known = self._topics.pop(name, None)
        self._image_version += 1
        created = self._image_version if known is None else self._image().created_version
        if partitions:
            self._made += known is None
            topic_id = known.topic_id if known else self._made.to_bytes(16)
            self._topics[name] = Topic(name, topic_id, partitions)
        image = TopicImage.of(self._topics.values(), self._image_version, created)
        self._take(self.shard.topics_changed(image, self.now_ms))
        return self._topics[name].topic_id if partitions else ZERO_UUID

    def set_group_config(self, group_id: str, settings: Mapping[str, str]) -> None:
        kept = {name: value for name, value in settings.items() if value}
        self._take(self.shard.group_config_changed(group_id, kept, self.now_ms))

    def restart(self) -> None:
        self._take(self.shard.abandon())
        self.shard.load(self.now_ms)

    def fail_next_append(self) -> None:
        self._failing = True

    def epochs(self, group_id: str) -> dict[str, str]:
        return epochs_in(self.shard, group_id)

    def check(self) -> None:
        same_hard_state(self.shard.coordinator, reloaded(self.shard, self.now_ms).coordinator)

    def close(self) -> None:
        """Nothing to release."""

    def _image(self) -> TopicImage:
        return self.shard.coordinator.state.image

    def _take(self, replies: list[Reply]) -> None:
        for reply in replies:
            _, version = self._asked[reply.ticket]
            response = reply.response
            self._replies.append((reply.ticket, type(response).decode(response.encode(version), version)))

    def _before_append(self, _: bytes) -> None:
        if self._failing:
            self._failing = False
            raise StorageError("the disk is full")


class EmbeddedHost:
    """The whole broker without sockets, on a clock that stands still between rows."""

    scale = 1
    prefix = ""

    def __init__(self, config: Mapping[str, str], seed: int = SEED) -> None:
        self.clock = ManualClock(START_MS)
        self.cluster = Cluster(
            config={**CONFIG, "auto.create.topics.enable": "false", **config},
            offsets_partitions=1,
            seed=seed,
            clock=self.clock,
            kafka=JUDGE,
        )
        self.transport = EmbeddedTransport(self.cluster)
        self._replies: list[tuple[int, Message]] = []

    def send(self, ticket: int, client_id: str, message: Message, version: int) -> None:
        def put(response: Message | None) -> None:
            assert response is not None, "ended without an answer"
            again = type(response).decode(response.encode(version), version)
            self._replies.append((ticket, again))

        body = type(message).decode(message.encode(version), version)
        call = Call(body, version, client_id, ADDRESS, 0, put)
        answer = self.transport.dispatcher.handle(call)
        if isinstance(answer, Message):
            put(answer)
        self.wait(0)

    def collect(self, expected: int) -> list[tuple[int, Message]]:
        collected, self._replies = self._replies, []
        return collected

    def wait(self, ms: int) -> None:
        self.transport.run_until(self.clock.now_ms() + ms)

    def set_topic(self, name: str, partitions: int) -> bytes:
        exists = name in self.cluster.catalog.topics
        for request in topic_requests(name, partitions, exists=exists):
            self.transport.request(0, request)
        return self.cluster.catalog.topics[name].topic_id if partitions else ZERO_UUID

    def set_group_config(self, group_id: str, settings: Mapping[str, str]) -> None:
        self.transport.request(0, group_config_request(group_id, settings))

    def restart(self) -> None:
        restart_shards(self.transport.dispatcher.tickets, self.cluster)

    def fail_next_append(self) -> None:
        raise NotImplementedError("only the bare machine's log can be made to fail")

    def epochs(self, group_id: str) -> dict[str, str]:
        return epochs_in(shard_of(self.cluster, group_id), group_id)

    def check(self) -> None:
        """The bare machine does it."""

    def close(self) -> None:
        self.transport.close()


def shard_of(cluster: Cluster, group_id: str) -> Shard:
    """The shard that holds a group."""
    shard = cluster.shards[offsets_partition_of(group_id, len(cluster.shards))]
    assert shard is not None, f"{OFFSETS_TOPIC} of {group_id} is not loaded"
    return shard


def epochs_in(shard: Shard, group_id: str) -> dict[str, str]:
    group = shard.coordinator.state.groups.get(group_id)
    generation = getattr(group, "generation", None)
    return {} if generation is None else {"generation": str(generation)}


def restart_shards(tickets, cluster: Cluster) -> None:  # type: ignore[no-untyped-def]
    """Every shard loaded again from its log; who waits is told NOT_COORDINATOR first."""
    for shard in list(cluster.live_shards()):
        tickets.deliver(shard.abandon())
        cluster.reload(shard.partition, cluster.clock.now_ms())


def topic_requests(name: str, partitions: int, *, exists: bool) -> list[Message]:
    """What brings a topic to this many partitions."""
    if not partitions:
        gone = DeleteTopicState(name=name, topic_id=ZERO_UUID)
        return [DeleteTopicsRequest(topics=(gone,), timeout_ms=10_000)]
    if exists:
        more = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        return [CreatePartitionsRequest(topics=(more,), timeout_ms=10_000)]
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return [CreateTopicsRequest(topics=(wanted,))]


def group_config_request(group_id: str, settings: Mapping[str, str]) -> Message:
    """What sets a group's dynamic settings; an empty value removes one."""
    configs = tuple(
        AlterableConfig(name=name, config_operation=0 if value else 1, value=value or None)
        for name, value in settings.items()
    )
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group_id, configs=configs)
    return IncrementalAlterConfigsRequest(resources=(resource,))
