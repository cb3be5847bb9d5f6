"""The coordinator of the ZooKeeper era on a real ZooKeeper: what needs a tree, and the outages of one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager

import pytest

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.store.names import Ensemble, parse_ensemble
from kgroup.zookeeper.store.operations import Delete, Get, Node
from kgroup.zookeeper.store.session import FOREVER, Session
from kgroup.zookeeper.wire.messages import PingRequest
from tests.legacy_brokers import Peer, active, coordinators, until
from tests.legacy_scenarios import SCENARIOS, becomes
from tests.sampled import in_full

from .era import GROUP_COMMAND, ZOOKEEPER, ZooKeeperEnsemble, ZooKeeperServer, java

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
CONFIG = LegacyConfig(rebalance_backoff_ms=200, commit_interval_ms=200, zk_session_ms=4000)


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer() as running:
        yield running


class Nodes:
    """The tree, read and changed by a session of the test's own."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.where = str(ensemble)
        self._session = Session(ensemble, timeout_s=100, rounds=FOREVER)

    async def data(self, path):
        (node,) = await asyncio.to_thread(self._session.ask, Get(path))
        return node.data.decode() if isinstance(node, Node) else None

    async def delete(self, path):
        await asyncio.to_thread(self._session.ask_all, Delete(path))

    @asynccontextmanager
    async def opened(self):
        await asyncio.to_thread(self._session.open)
        try:
            yield self
        finally:
            await asyncio.to_thread(self._session.close)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(zookeeper, name):
    """LC-16, LC-17: below a chroot that nobody has made, and that is another each time."""
    brokers, scenario = SCENARIOS[name]
    where = parse_ensemble(f"{zookeeper.bootstrap}/legacy/{name.replace(' ', '-')}")

    async def test():
        async with coordinators(brokers, CONFIG, ensemble=where) as made, Nodes(where).opened() as nodes:
            await scenario(made, nodes)

    asyncio.run(test())


def test_a_session_that_is_ended_costs_the_place(zookeeper):
    """LC-74, scenario 3: the other broker is elected with the next epoch; the first follows it."""
    where = parse_ensemble(f"{zookeeper.bootstrap}/expiry")

    async def test():
        async with (
            coordinators(2, CONFIG, ensemble=where) as made,
            Nodes(where).opened() as nodes,
            Peer() as peer,
        ):
            await peer.connect(made)
            await peer.register()
            await peer.started()
            first = active(made)
            await asyncio.to_thread(_end_session, where, first)
            await until(lambda: peer.closed)
            await becomes(nodes, paths.EPOCH, "2")
            await until(lambda: sorted(h.machine.state.value for h in made.hosts) == ["active", "follower"])

    asyncio.run(test())


def _end_session(where, host):
    """As somebody who knows the session and its password can."""
    from kazoo.client import KazooClient

    theirs = host._link._session._client.client_id
    thief = KazooClient(str(where), timeout=4, client_id=theirs)
    thief.start(30)
    thief.stop()
    thief.close()


def test_without_zookeeper_the_coordinator_stops_in_time(tmp_path):
    """LC-74, scenario 7: it closes its consumers before its session can end, and is elected again after."""

    async def test():
        with ZooKeeperServer(tmp_path / "own") as alone:
            where = parse_ensemble(alone.bootstrap)
            async with coordinators(1, CONFIG, ensemble=where) as made, Peer() as peer:
                await peer.connect(made)
                await peer.register()
                await peer.started()
                await asyncio.to_thread(alone.kill9)
                await until(lambda: peer.closed)
                assert made.hosts[0].machine.term is None
                await asyncio.to_thread(alone.start)
                await until(lambda: active(made))

    asyncio.run(test())


def test_tools_of_the_era_see_the_tree_of_a_served_cluster():
    """LC-16: ZooKeeper's own shell, with a watch; and the list of Kafka 1.1.1's tool."""

    async def test():
        async with coordinators(1, CONFIG) as made, Peer() as peer:
            await peer.connect(made)
            await peer.register()
            await peer.started()
            await until(lambda: "c1-0" in [node.data.decode() for _, node in made.tree.walk("/consumers/g")])
            shell = java(ZOOKEEPER, "org.apache.zookeeper.ZooKeeperMain", "-server", made.tree_at)
            said = await _output(
                shell,
                "ls -R /consumers\nget /coordinator_epoch\ngetAcl /consumers\ncreate /x one\nget -w /x\n"
                "set /x two\nget -s /x\ncreate -s /x/n a\ncreate -e /x/e a\ndelete /x\nls /x\nquit\n",
            )
            for wanted in (
                "/consumers/g/owners/t/2",
                "'world,'anyone",
                "type:NodeDataChanged path:/x",
                "dataVersion = 1",
                "dataLength = 3",
                "Unimplemented for /x/n",
                "Node not empty: /x",
                "[e]",
            ):
                assert wanted in said, said
            where = ("--zookeeper", made.tree_at)
            listed = await _output(java("1.1.1", GROUP_COMMAND, *where, "--list"))
            assert "g" in listed.split()

    asyncio.run(test())


async def _output(command, typed=""):
    running = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await running.communicate(typed.encode())
    return out.decode()


@in_full("an ensemble of three, where all others have one")
def test_the_leader_of_three_is_killed(tmp_path):
    """LC-74, scenario 42: suspended for less than the lease, nobody resigns, and writes go on."""

    async def test():
        with ZooKeeperEnsemble(tmp_path / "three") as ensemble:
            where = parse_ensemble(f"{ensemble.bootstrap}/kafka")
            slow = LegacyConfig(rebalance_backoff_ms=200, commit_interval_ms=200, zk_session_ms=16_000)
            async with (
                coordinators(3, slow, ensemble=where) as made,
                Nodes(where).opened() as nodes,
                Peer() as peer,
            ):
                await peer.connect(made)
                await peer.register()
                await peer.started()
                coordinator, pings = active(made), _pings(peer)
                peer.positions = {("t", "0"): 1}
                await becomes(nodes, "/consumers/g/offsets/t/0", "1")
                leader = await asyncio.to_thread(ensemble.leader)
                await asyncio.to_thread(leader.kill9)
                peer.positions = {("t", "0"): 2}
                await becomes(nodes, "/consumers/g/offsets/t/0", "2")
                assert active(made) is coordinator and not peer.closed
                assert await nodes.data(paths.EPOCH) == "1"
                await until(lambda: _pings(peer) > pings)

    asyncio.run(test())


def _pings(peer):
    return sum(isinstance(message, PingRequest) for message in peer.received)
