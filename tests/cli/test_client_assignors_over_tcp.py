"""Client-side assignors end to end: two members of ours over TCP, one computes for both (KIP-848)."""

import threading
import time

from kgroup.coordinator.assignors.range import RangeAssignor
from kgroup.members.client_assignor import OfferedAssignor
from kgroup.members.consumer import ConsumerMember
from kgroup.members.driver import Driver
from kgroup.members.effects import Assigned, Lost, Revoke
from kgroup.protocol import registry
from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served

FAST = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


class CountingRange(RangeAssignor):
    """Range, and how often it was asked."""

    def __init__(self):
        self.asked = 0

    def assign(self, group):
        self.asked += 1
        return super().assign(group)


def test_a_member_computes_for_the_group_over_tcp():
    """CP-29 to CP-33 over TCP: the assignor runs in the member, not in the broker."""
    cluster = Cluster(config={**FAST, "kgroup.client.assignors.enable": "true"}, offsets_partitions=1)
    assignor, owned, stop = CountingRange(), {"m-a": set(), "m-b": set()}, threading.Event()

    def run(name, bootstrap):
        client = Client(bootstrap)
        member = ConsumerMember("g", name, ("t",), client_assignors=(OfferedAssignor(assignor),))

        def heard(event):
            if isinstance(event, Assigned):
                owned[name].update(event.partitions)
            elif isinstance(event, Revoke | Lost):
                owned[name].difference_update(event.partitions)

        Driver(
            member,
            client.transport,
            clock_ms=lambda: time.monotonic_ns() // 1_000_000,
            pause=stop.wait,
            on_event=heard,
        ).run(for_good=True)
        client.close()

    def sizes():
        return [len(partitions) for partitions in owned.values()]

    with served(cluster) as bootstrap:
        client = Client(bootstrap)
        client.create_topic("t", 4)
        threads = [threading.Thread(target=run, args=(name, bootstrap)) for name in owned]
        for thread in threads:
            thread.start()
        give_up = time.monotonic() + 300
        while sizes() != [2, 2] and time.monotonic() < give_up:
            time.sleep(0.02)
        found = sizes()
        stop.set()
        for thread in threads:
            thread.join(300)
        client.close()
    assert found == [2, 2]
    assert assignor.asked >= 1


def test_the_apis_are_announced_only_when_switched_on():
    for switched_on in (False, True):
        cluster = Cluster(
            config={"kgroup.client.assignors.enable": str(switched_on).lower()}, offsets_partitions=1
        )
        with served(cluster) as bootstrap:
            client = Client(bootstrap)
            announced = [client.transport.versions(None, key) is not None for key in registry.PRIVATE_APIS]
            client.close()
        assert announced == [switched_on, switched_on]
