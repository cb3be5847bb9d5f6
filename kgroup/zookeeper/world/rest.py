"""When a cluster is at rest (era 12.3)."""

from __future__ import annotations

from kgroup.domain import grouped
from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.election import State
from kgroup.zookeeper.coordinator.registries import Stage
from kgroup.zookeeper.coordinator.subscription import parse
from kgroup.zookeeper.coordinator.target import consumer_of
from kgroup.zookeeper.store.operations import Node
from kgroup.zookeeper.wire.messages import Partition
from kgroup.zookeeper.world.consumer import ConsumerProcess
from kgroup.zookeeper.world.world import World


def unrest(world: World) -> str | None:
    """Why the cluster is not at rest, None if it is."""
    active = [broker for broker in world.brokers if broker.alive and broker.machine.state is State.ACTIVE]
    if len(active) != 1:
        return f"{len(active)} coordinators"
    term = active[0].machine.term
    assert term is not None
    for group in term.groups.values():
        if group.members and (group.stage is not Stage.NORMAL or group.run or group.rebalance_initiated):
            return f"group {group.group_id} is {group.stage.value}, rebalancing: {group.run is not None}"
    by_group = grouped((consumer.config.group_id, consumer) for consumer in running(world))
    for group_id, consumers in by_group.items():
        for partition in _subscribed(world, consumers):
            why = _owned(world, group_id, partition, consumers)
            if why is not None:
                return why
    return None


def running(world: World) -> list[ConsumerProcess]:
    return [consumer for consumer in world.consumers if consumer.running]


def _subscribed(world: World, consumers: list[ConsumerProcess]) -> list[Partition]:
    found = []
    for topic, partitions in world.topics.items():
        subscriptions = [parse(consumer.topic_count) for consumer in consumers]
        if any(subscription and subscription.streams_of(topic) for subscription in subscriptions):
            found += [Partition(topic, str(number)) for number in range(partitions)]
    return found


def _owned(world: World, group_id: str, partition: Partition, consumers: list[ConsumerProcess]) -> str | None:
    """Why the partition lacks one holder, which its owner node names; None if not (era 12.3)."""
    holders = [c for c in consumers if c.machine.may_deliver(partition, world.now_ms)]
    if len(holders) != 1:
        return f"{group_id} {partition}: {len(holders)} holders"
    owner = consumer_of(data_at(world, paths.owner(group_id, partition)) or "")
    named = holders[0].config.consumer_id
    return None if owner == named else f"{group_id} {partition}: {named} holds it, {owner!r} owns it"


def data_at(world: World, path: str) -> str | None:
    node = world.read(path)
    return node.data.decode() if isinstance(node, Node) else None
