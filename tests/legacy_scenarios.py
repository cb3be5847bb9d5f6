"""Scenarios of the coordinator of the ZooKeeper era that need a tree: in memory and real alike."""

from __future__ import annotations

import asyncio
import json
import re
import sys

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.wire.messages import ErrorMapping, PartitionAndOffset
from tests.legacy_brokers import Peer, active, set_topic, until

SCENARIO = re.compile(r"\bscenarios? ((?:\d+(?:, | and |\b))+)", re.IGNORECASE)
ALL = frozenset(range(1, 43))
"""The scenarios of the draft's rules."""
NEED_NO_TREE = frozenset({10, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 35, 37, 38, 40})
"""Those whose outcome lies in the machines alone: what is refused at registration (10 to 12), what queues and
attempts do (15, 16, 21, 22), pings, leases and misses (17 to 20), bytes (23 to 26), memory (35), and what a
consumer does by its own clock (37, 38, 40)."""


def scenarios_of(text: str | None) -> frozenset[int]:
    """The scenarios that a docstring names."""
    named = SCENARIO.findall(text or "")
    return frozenset(int(number) for found in named for number in re.findall(r"\d+", found))


async def becomes(nodes, path, wanted):
    """Until a node has this data; None for no node."""
    async with asyncio.timeout(300):
        while (found := await nodes.data(path)) != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


async def election(made, nodes):
    """LC-05, LC-07, LC-18, scenarios 1, 8, 9: one of three is elected, all say who, and followers refuse."""
    assert sorted(host.machine.state.value for host in made.hosts) == ["active", "follower", "follower"]
    chosen = made.hosts.index(active(made))
    assert await nodes.data(paths.COORDINATOR) == str(chosen)
    assert await nodes.data(paths.EPOCH) == "1"
    for broker in range(3):
        await until(lambda at=broker: len(made.hosts[at].machine.directory.brokers) == 3)
        async with Peer() as peer:
            answer = await (await peer.connect(made, broker)).metadata()
            assert (answer.error, answer.coordinator_id) == (0, chosen)
            assert [f"{b.host}:{b.port}" for b in answer.brokers] == made.addresses
            if broker != chosen:
                assert (await peer.register()).error == ErrorMapping.NOT_COORDINATOR


async def handover(made, nodes):
    """LC-67, LC-68, scenarios 13, 14: the second member begins where the first has stopped."""
    async with Peer("c1") as first, Peer("c2") as second:
        await first.connect(made)
        assert (await first.register()).error == 0
        assert [p.offset for o in (await first.started()).ownership for p in o.partitions] == [-1] * 3
        first.positions = {("t", str(n)): 40 + n for n in range(3)}
        await second.connect(made)
        assert (await second.register()).error == 0
        (own,) = (await second.started()).ownership
        assert own.partitions == (PartitionAndOffset("t", "2", 42),)
        await until(lambda: first.owned() == ["0", "1"])
        await becomes(nodes, "/consumers/g/owners/t/2", "c2-0")
        assert await nodes.data("/consumers/g/owners/t/0") == "c1-0"
        assert await nodes.data("/consumers/g/offsets/t/1") == "41"


async def topics(made, nodes):
    """LC-32, LC-33, scenario 27: made, grown and deleted ones; who reads them has what was added."""
    async with Peer() as peer:
        await peer.connect(made)
        await peer.register(topics="*1*.*")
        await until(lambda: peer.owned() == ["0", "1", "2"])
        set_topic(made.cluster, "t", 5)
        await until(lambda: peer.owned() == ["0", "1", "2", "3", "4"])
        set_topic(made.cluster, "new", 1)
        await until(lambda: len(peer.owned()) == 6)
        made.cluster.catalog.remove("new")
        await becomes(nodes, paths.topic("new"), None)
        told = json.loads(await nodes.data(paths.topic("t")))
        assert sorted(told["partitions"]) == ["0", "1", "2", "3", "4"]


async def deleted_node(made, nodes):
    """LC-20, LC-74, scenario 6: an operator deletes the coordinator's node; somebody is elected anew."""
    async with Peer() as peer:
        await peer.connect(made)
        await peer.register()
        await peer.started()
        await nodes.delete(paths.COORDINATOR)
        await becomes(nodes, paths.EPOCH, "2")
        await until(lambda: peer.closed)
        await until(lambda: active(made))


async def going_down(made, nodes):
    """LC-22, scenario 39: the successor of one that goes down is elected at once, and nothing is lost."""
    async with Peer() as peer:
        await peer.connect(made)
        await peer.register()
        await peer.started()
        peer.positions = {("t", "0"): 7}
        first = active(made)
        await until(lambda: first.machine.term.groups["g"].offsets)
        first.shut_down()
        await first.stop()
        await until(lambda: peer.closed)
        assert await nodes.data("/consumers/g/offsets/t/0") == "7"
        await until(lambda: [h for h in made.hosts if h is not first and h.machine.state.value == "active"])
        await becomes(nodes, paths.EPOCH, "2")


async def failover(made, nodes):
    """LC-08, LC-73, LC-76, scenario 29: the members come back, and get what they had, by one rebalance."""
    async with Peer("c1") as first, Peer("c2") as second:
        for peer in (first, second):
            await peer.connect(made)
            await peer.register()
        await until(lambda: first.owned() == ["0", "1"] and second.owned() == ["2"])
        await becomes(nodes, "/consumers/g/owners/t/2", "c2-0")
        before = active(made)
        before.shut_down()
        await before.stop()
        await until(lambda: first.closed and second.closed)
        await until(lambda: [h for h in made.hosts if h is not before and h.machine.state.value == "active"])
        after = next(h for h in made.hosts if h.machine.state.value == "active")
        async with Peer("c1") as again, Peer("c2") as also:
            await again.connect(made, made.hosts.index(after))
            assert (await again.register()).error == 0
            assert not again.owned()
            await also.connect(made, made.hosts.index(after))
            await also.register()
            await until(lambda: again.owned() == ["0", "1"] and also.owned() == ["2"])


async def described(made, nodes):
    """LC-15, LC-24, LC-55, LC-64: `describe` as an operator asks it, while one reads and when none does."""
    async with Peer("c1") as peer:
        await peer.connect(made)
        await peer.register()
        await becomes(nodes, "/consumers/g/owners/t/2", "c1-0")
        group = await _describe(nodes)
        chosen = made.hosts.index(active(made))
        host, _, port = made.addresses[chosen].rpartition(":")
        assert group["coordinator"] == {"id": chosen, "host": host, "port": int(port)}
        assert group["coordinator_epoch"] == 1
        assert [row["owner_thread"] for row in group["offsets"]] == ["c1-0"] * 3
        (member,) = group["members"]
        assert (group["state"], member["member_id"], member["state"]) == ("Stable", "c1", "fetching")
        assert (member["session_timeout_ms"], member["failed_pings"]) == (3000, 0)
        peer.silent = True
        await until(lambda: active(made).machine.term.groups["g"].members["c1"].failed)
        (member,) = (await _describe(nodes))["members"]
        assert member["failed_pings"] > 0
    await until(lambda: not active(made).machine.term.groups["g"].departed)
    async with asyncio.timeout(300):
        while (group := await _describe(nodes))["state"] != "Empty":
            assert (group["state"], group["members"]) == ("Leaving", [])
    assert [row["owner_thread"] for row in group["offsets"]] == ["c1-0"] * 3, "owners outlive their consumers"


async def _describe(nodes):
    argv = (sys.executable, "-m", "kgroup", "describe", "g", "--zookeeper", nodes.where, "-o", "json")
    asked = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asked.communicate()
    assert asked.returncode == 0, err
    (group,) = json.loads(out)["data"]["groups"]
    return group


SCENARIOS = {
    "election": (3, election),
    "handover": (1, handover),
    "topics": (1, topics),
    "deleted node": (2, deleted_node),
    "going down": (2, going_down),
    "failover": (2, failover),
    "described": (2, described),
}
"""By name: how many brokers, and what happens."""
