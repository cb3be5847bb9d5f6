"""Control of whole brokers: stop, start, freeze, and move leaders and coordinators."""

from __future__ import annotations

from typing import Annotated

from kgroup.broker.control.declaring import Chosen, Duration, GroupId, NodeId, NotThere, seconds, verb
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

    @verb("POST", "/brokers/{node}/stop")
    def stop(self, node: NodeId) -> Chosen:
        """Stop a broker.

        Its port refuses connections, and others lead the partitions they have replicas of. Partitions that
        no other broker has are without a leader. ConfigError if it is down, or the last one.
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
        return {"node": node}

    @verb("POST", "/brokers/{node}/start")
    def start(self, node: NodeId) -> Chosen:
        """Start it again.

        At its address; partitions that others lead by now stay with them.
        """
        self._check(node)
        if node not in self._cluster.down:
            raise ConfigError(f"broker {node} is up", "stop_broker stops it")
        self._server.open_broker(node)
        self._cluster.down.discard(node)
        return {"node": node}

    @verb("POST", "/brokers/{node}/freeze")
    def freeze(self, node: NodeId) -> Chosen:
        """Freeze it: it answers nothing."""
        self._check(node, up=True)
        if node in self._dispatcher.frozen_nodes:
            raise ConfigError(f"broker {node} is frozen already", "thaw_broker resumes it")
        self._dispatcher.frozen_nodes.add(node)
        return {"node": node}

    @verb("POST", "/brokers/{node}/thaw")
    def thaw(self, node: NodeId) -> Chosen:
        """Answer again.

        First what was sent to the frozen broker meanwhile.
        """
        self._check(node)
        if node not in self._dispatcher.frozen_nodes:
            frozen = ", ".join(map(str, sorted(self._dispatcher.frozen_nodes)))
            raise ConfigError(f"broker {node} is not frozen", f"{frozen} is" if frozen else "none is")
        self._dispatcher.frozen_nodes.discard(node)
        self._dispatcher.release(node)
        return {"node": node}

    @verb("POST", "/topics/{topic}/{partition}/move")
    def move(
        self,
        topic: Annotated[str, "The topic's name."],
        partition: Annotated[int, "The partition's number."],
        node: NodeId,
    ) -> Chosen:
        """Make a broker lead a partition.

        In a new epoch; it becomes a replica if it was none.
        """
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
        return {"node": node}

    @verb("POST", "/groups/{group}/move")
    def move_coordinator(
        self,
        group: GroupId,
        node: Annotated[int | None, "Which broker; the next one if it is left out."] = None,
        loading: Annotated[Duration, "How long it loads, in the brokers' time."] = "0s",
    ) -> Chosen:
        """Make another broker coordinate a group.

        Groups that share its partition move with it. While it loads, it answers COORDINATOR_LOAD_IN_PROGRESS.
        Sessions then restart, as in Kafka.
        """
        partition = self._dispatcher.partition_of(group)
        loading_ms = int(seconds(loading) * 1000)
        before = self._cluster.leader_of(OFFSETS_TOPIC, partition)
        if node is None:
            up = [candidate for candidate in self._cluster.nodes if candidate not in self._cluster.down]
            node = next((candidate for candidate in up if candidate > before), up[0])
        self._check(node, up=True)
        self._lead(OFFSETS_TOPIC, partition, node)
        if loading_ms:
            faults, clock = self._dispatcher.faults, self._cluster.clock
            faults.loading.add(partition)

            def loaded() -> None:
                faults.loading.discard(partition)
                self._dispatcher.tickets.reload(partition)

            self._dispatcher.wakeups.at(clock.now_ms() + loading_ms, loaded)
        return {"node": node}

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
            raise NotThere("node", *of_nodes(node, self._cluster.nodes))
        if up and node in self._cluster.down:
            raise ConfigError(f"broker {node} is down", "start_broker starts it again")
