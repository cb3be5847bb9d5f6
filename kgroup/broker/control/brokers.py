"""Control of whole brokers: stop, start, freeze, and move leaders and coordinators."""

from __future__ import annotations

from kgroup.broker.control.dispatcher import ControlledDispatcher
from kgroup.broker.control.nodes import of_nodes
from kgroup.broker.server import Server
from kgroup.domain import INTERNAL_TOPICS, OFFSETS_TOPIC
from kgroup.errors import ConfigError
from kgroup.runtime.placement import Placement


class Brokers:
    """The brokers of a server, whose dispatcher is a ControlledDispatcher."""

    def __init__(self, server: Server, dispatcher: ControlledDispatcher) -> None:
        self._server = server
        self._cluster = server.cluster
        self._dispatcher = dispatcher

    def stop(self, node: int) -> None:
        """Stop a broker: its port refuses connections, and others lead the partitions they have replicas of.

        Partitions that no other broker has are without a leader. ConfigError if it is down, or the last one.
        """
        self._check(node)
        down = self._cluster.down
        if node in down:
            raise ConfigError(f"broker {node} is down already", "start_broker starts it again")
        if len(down) + 1 == len(self._cluster.nodes):
            raise ConfigError(
                f"broker {node} is the only one that is up", "a cluster needs one; freeze it instead"
            )
        down.add(node)
        self._server.close_broker(node)
        for name, topic in self._cluster.catalog.topics.items():
            for number in range(topic.partitions):
                placed = self._cluster.placement_of(topic, number)
                left = [replica for replica in placed.replicas if replica not in down]
                if placed.leader == node and left:
                    self._lead(name, number, left[0])
        self._dispatcher.release(node)
        self._dispatcher.frozen_nodes.discard(node)

    def start(self, node: int) -> None:
        """Start a broker again, at its address; partitions that others lead by now stay with them."""
        self._check(node)
        if node not in self._cluster.down:
            raise ConfigError(f"broker {node} is up", "stop_broker stops it")
        self._server.open_broker(node)
        self._cluster.down.discard(node)

    def freeze(self, node: int) -> None:
        """Answer nothing that is sent to a broker, as if its process were stopped; ConfigError if it is."""
        self._check(node, up=True)
        if node in self._dispatcher.frozen_nodes:
            raise ConfigError(f"broker {node} is frozen already", "thaw_broker resumes it")
        self._dispatcher.frozen_nodes.add(node)

    def thaw(self, node: int) -> None:
        """Serve what was sent to a frozen broker meanwhile, and what is sent from now on."""
        self._check(node)
        if node not in self._dispatcher.frozen_nodes:
            frozen = ", ".join(map(str, sorted(self._dispatcher.frozen_nodes)))
            raise ConfigError(f"broker {node} is not frozen", f"{frozen} is" if frozen else "none is")
        self._dispatcher.frozen_nodes.discard(node)
        self._dispatcher.release(node)

    def move(self, topic: str, partition: int, node: int) -> None:
        """Make a broker lead a partition, in a new epoch; it becomes a replica if it was none."""
        self._check(node, up=True)
        known = self._cluster.catalog.topics.get(topic)
        if known is None or topic in INTERNAL_TOPICS:
            others = (name for name in self._cluster.catalog.topics if name not in INTERNAL_TOPICS)
            hint = (
                "move_coordinator moves groups"
                if topic == OFFSETS_TOPIC
                else f"there are {', '.join(others)}"
            )
            raise ConfigError(f"there is no topic {topic} to move", hint)
        if not 0 <= partition < known.partitions:
            raise ConfigError(
                f"{topic} has no partition {partition}", f"it has {known.partitions}, from 0 on"
            )
        self._lead(topic, partition, node)

    def move_coordinator(self, group_id: str, node: int | None, loading_ms: int = 0) -> int:
        """Make a broker coordinate a group and those that share its partition; return which.

        None takes the next one that is up. It answers COORDINATOR_LOAD_IN_PROGRESS for so long, by the
        brokers' time. Sessions then restart, as in Kafka.
        """
        partition = self._dispatcher.partition_of(group_id)
        before = self._cluster.leader_of(OFFSETS_TOPIC, partition)
        if node is None:
            up = [each for each in self._cluster.nodes if each not in self._cluster.down]
            node = next((each for each in up if each > before), up[0])
        self._check(node, up=True)
        self._lead(OFFSETS_TOPIC, partition, node)
        if loading_ms:
            faults, clock = self._dispatcher.faults, self._cluster.clock
            faults.loading.add(partition)

            def loaded() -> None:
                faults.loading.discard(partition)
                self._dispatcher.tickets.reload(partition)

            self._dispatcher.wakeups.at(clock.now_ms() + loading_ms, loaded)
        return node

    def _lead(self, topic: str, partition: int, node: int) -> None:
        known = self._cluster.catalog.topics[topic]
        log = self._cluster.log(topic, partition)
        assert log is not None
        placed: Placement = self._cluster.placement_of(known, partition)
        if placed.leader == node and topic != OFFSETS_TOPIC:
            return
        if placed.leader != node:
            self._cluster.place(topic, {partition: placed.led_by(node, log.end_offset)})
        if topic == OFFSETS_TOPIC:
            self._dispatcher.tickets.reload(partition)
        self._dispatcher.watchers.notify((topic, partition))

    def _check(self, node: int, *, up: bool = False) -> None:
        if node not in self._cluster.nodes:
            raise ConfigError(*of_nodes(node, self._cluster.nodes))
        if up and node in self._cluster.down:
            raise ConfigError(f"broker {node} is down", "start_broker starts it again")
