"""What the coordinator alone knows, as metrics: who is elected, and of each member how it answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kgroup.broker.metrics import Metric
from kgroup.zookeeper.coordinator.election import State
from kgroup.zookeeper.coordinator.registries import Group
from kgroup.zookeeper.hosts.host import LegacyHost

OWN = "kgroup:type=legacy-coordinator"


def metrics(hosts: Iterable[LegacyHost]) -> Iterator[Metric]:
    """Of each broker its state; of the one that is elected its groups and their members."""
    for host in hosts:
        machine = host.machine
        active = machine.state is State.ACTIVE
        broker = {"broker": str(host.broker_id)}
        yield Metric(OWN, "active", int(active), broker)
        # Who the coordinator is, as this broker knows it; unknown while nobody is elected.
        yield Metric(OWN, "coordinator-id", machine.elector.coordinator_id, broker)
        if not active or machine.term is None:
            continue
        yield Metric(OWN, "coordinator-epoch", machine.term.epoch, broker)
        yield Metric(OWN, "group-count", len(machine.term.groups))
        for group in machine.term.groups.values():
            yield from _of_group(group)


def _of_group(group: Group) -> Iterator[Metric]:
    tags = {"group": group.group_id}
    yield Metric(OWN, "member-count", len(group.members), {**tags, "stage": group.stage.value})
    yield Metric(OWN, "rebalancing", int(group.run is not None or group.rebalance_initiated), tags)
    yield Metric(OWN, "rebalance-failed", int(group.rebalance_failed), tags)
    for member in group.members.values():
        of_member = {**tags, "consumer": member.consumer_id}
        yield Metric(OWN, "session-timeout-ms", member.session_ms, of_member)
        yield Metric(OWN, "failed-pings", member.failed, of_member)
        yield Metric(OWN, "partitions-held", len(member.holds), of_member)
