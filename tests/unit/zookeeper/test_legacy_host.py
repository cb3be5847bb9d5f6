"""The coordinator of the ZooKeeper era on loopback, over a tree in the process."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
import threading

import pytest

from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError, Unreachable
from kgroup.runtime.cluster import Cluster
from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.config import LegacyConfig, read_settings
from kgroup.zookeeper.entry.serve import LegacyBrokers, LegacyOptions
from kgroup.zookeeper.events import Zk, ZkDone, ZkFired
from kgroup.zookeeper.groups.coordinator import describe_groups
from kgroup.zookeeper.groups.records import broker_of
from kgroup.zookeeper.hosts.host import LegacyConnection
from kgroup.zookeeper.hosts.links import SessionLink
from kgroup.zookeeper.store.names import parse_ensemble
from kgroup.zookeeper.store.operations import Change, Create, Delete, Failure, Get
from kgroup.zookeeper.store.session import Security
from kgroup.zookeeper.wire.codec import Wire
from kgroup.zookeeper.wire.messages import PingRequest
from tests.legacy_brokers import FAST, Peer, active, coordinators, set_topic, until
from tests.legacy_scenarios import SCENARIOS


def dump(made, path="/"):
    return {name: node.data.decode() for name, node in made.tree.walk(path)}


class Nodes:
    """The tree, asked as a real one is."""

    def __init__(self, made):
        self._tree = made.tree
        self.where = made.tree_at

    async def data(self, path):
        return next((node.data.decode() for name, node in self._tree.walk(path) if name == path), None)

    async def delete(self, path):
        self._tree.ask(self._tree.open(), (Delete(path),))


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name):
    brokers, scenario = SCENARIOS[name]

    async def test():
        async with coordinators(brokers) as made:
            await scenario(made, Nodes(made))

    asyncio.run(test())


def test_what_others_wrote_into_the_tree_stays(caplog):
    """A broker of another process, and a topic with partitions that this cluster does not have."""

    async def test():
        cluster = Cluster(None, offsets_partitions=1)
        set_topic(cluster, "t", 2)
        made = LegacyBrokers(cluster, LegacyOptions(config=FAST))
        other = made.tree.open()
        ours = b'{"version":1,"partitions":{"0":[1],"1":[1],"2":[1]}}'
        for op in (
            Create("/brokers", b""),
            Create(paths.BROKER_IDS, b""),
            Create(paths.TOPICS, b""),
            Create(paths.topic("t"), ours),
            Create(paths.broker("0"), b'{"host":"h","port":1}', ephemeral=True),
        ):
            made.tree.ask(other, (op,))
        await made.start()
        try:
            await until(lambda: len(caplog.records) >= 2)
            assert dump(made)[paths.topic("t")] == ours.decode()
            assert dump(made)[paths.broker("0")] == '{"host":"h","port":1}'
            made.tree.expire(other)
            await until(lambda: "LEGACY://" in dump(made).get(paths.broker("0"), ""))
        finally:
            await made.stop()
            cluster.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(test())
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "another process has registered this broker" in said
    assert "with other partitions than the cluster's 2" in said


@pytest.mark.parametrize(("scheme", "wanted"), [("", "PLAINTEXT"), ("SASL_SSL://", "SASL_SSL")])
def test_a_brokers_node_says_by_which_protocol_it_is_reached(scheme, wanted):
    """LC-36: a broker with locks is not taken for a plain one by whoever reads the tree."""

    async def test():
        cluster = Cluster(None, offsets_partitions=1)
        cluster.announce({0: ("127.0.0.1", 9093)}, scheme=scheme)
        made = LegacyBrokers(cluster, LegacyOptions(config=FAST))
        (address,) = await made.start()
        try:
            await until(lambda: paths.broker("0") in dump(made))
            told = broker_of("0", dump(made)[paths.broker("0")].encode())
            host, _, port = address.rpartition(":")
            assert told.listeners == {wanted: ("127.0.0.1", 9093), "LEGACY": (host, int(port))}
        finally:
            await made.stop()
            cluster.close()

    asyncio.run(test())


def test_garbage_ends_a_connection_and_nothing_else():
    """LC-45, scenario 26: sizes that no frame has, types that there are not, bytes left over."""

    async def test():
        async with coordinators() as made, Peer() as good:
            await good.connect(made)
            await good.register()
            await good.started()
            for garbage in ("ffffffff", "7fffffff", "000000020063", "00000003000500", "0000000200ff"):
                async with Peer("bad") as bad:
                    await bad.connect(made)
                    bad.writer.write(bytes.fromhex(garbage))
                    await until(lambda peer=bad: peer.closed)
            pings = sum(isinstance(m, PingRequest) for m in good.received)
            await until(lambda: sum(isinstance(m, PingRequest) for m in good.received) > pings)
            assert not good.closed

    asyncio.run(test())


def test_half_an_answer_is_none_and_holds_nobody_up():
    """LC-83, LC-90, scenario 23: the rest of a frame comes later, and others are served in between."""

    async def test():
        async with coordinators() as made, Peer() as slow, Peer("c2") as other:
            await slow.connect(made)
            frame = slow.wire.encode(_registration("c1"))
            slow.writer.write(frame[:20])
            await other.connect(made)
            assert (await other.register()).error == 0
            slow._awaiting = other._awaiting.REGISTRATION
            slow.writer.write(frame[20:])
            assert (await slow.next()).error == 0

    asyncio.run(test())


def _registration(name):
    from kgroup.zookeeper.wire.messages import RegisterConsumerRequest

    return RegisterConsumerRequest("g", name, '{"t":1}', True, "smallest", 3000)


class Stuck(asyncio.Transport):
    """A peer that takes nothing."""

    def __init__(self):
        super().__init__()
        self.held, self.aborted = 0, False

    def write(self, data):
        self.held += len(data)

    def get_write_buffer_size(self):
        return self.held

    def is_closing(self):
        return self.aborted

    def abort(self):
        self.aborted = True


def test_who_takes_nothing_is_cut_off():
    """LC-90, scenario 25: more than max_outbound_bytes wait for it; its partitions go to the others."""

    async def test():
        config = LegacyConfig(
            rebalance_backoff_ms=200, zk_session_ms=1200, min_session_ms=500, max_outbound_bytes=60
        )
        async with coordinators(config=config) as made, Peer("c2", 600) as other:
            host, stuck = active(made), Stuck()
            connection = LegacyConnection(host)
            connection.connection_made(stuck)
            connection.data_received(host.wire.encode(_registration("c1")))
            await until(lambda: stuck.aborted)
            assert not host.machine.term.groups["g"].members
            await other.connect(made)
            assert (await other.register()).error == 0

    asyncio.run(test())


def test_what_only_the_coordinator_knows_is_among_the_metrics():
    """LC-24, LC-55: session timeouts and failed pings; of one that is not the coordinator, no members."""

    async def test():
        async with coordinators(brokers=2) as made, Peer("c1", 600) as peer:
            await peer.connect(made)
            await peer.register()
            await peer.started()
            peer.silent = True

            def of(name):
                return [m.value for m in made.metrics() if m.name == name and m.tags.get("consumer") == "c1"]

            assert of("session-timeout-ms") == [600]
            await until(lambda: of("failed-pings") and of("failed-pings")[0] > 0)
            found = {(m.name, m.tags.get("broker")): m.value for m in made.metrics()}
            chosen = made.hosts.index(active(made))
            assert found["coordinator-id", str(1 - chosen)] == chosen
            assert found["coordinator-epoch", str(chosen)] == 1
            assert ("coordinator-epoch", str(1 - chosen)) not in found

    asyncio.run(test())


@pytest.mark.parametrize("header", [False, True])
def test_an_operator_is_told_who_is_registered(header):
    """LC-24, LC-55, LC-81: in either form of the wire; a follower knows nobody, and says so."""

    async def test():
        config = LegacyConfig(rebalance_backoff_ms=200, zk_session_ms=1200, min_session_ms=500, header=header)
        async with coordinators(2, config) as made, Peer("c1", 900) as peer:
            peer.wire = Wire(header=header)

            async def asked(broker, *names):
                host, _, port = made.addresses[broker].rpartition(":")
                return await asyncio.to_thread(describe_groups, (host, int(port)), names, 10.0)

            chosen = made.hosts.index(active(made))
            if not header:
                await peer.connect(made)
                await peer.register()
                await peer.started()
            found = await asked(chosen, "g", "nobody")
            if not header:
                (member,) = found["g"].members
                assert (member.consumer_id, member.session_timeout_ms, member.failed) == ("c1", 900, 0)
            assert (found["nobody"].state, found["nobody"].members) == ("Recovering", ())
            refused = (await asked(1 - chosen, "g"))["g"]
            assert isinstance(refused, BrokerRefused) and refused.code is ErrorCode.NOT_COORDINATOR

    asyncio.run(test())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "it closed the connection"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        (bytes.fromhex("00000002000b"), "2 bytes wanted"),
        (bytes.fromhex("00000009000b00000000010000"), "list of members did not advance"),
        (None, "no answer in time"),
    ],
)
def test_a_coordinator_that_makes_no_sense_is_told_as_one(answer, why):
    """Whatever listens where the tree says that a coordinator does."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            for _ in range(2):
                try:
                    taken, _ = server.accept()
                except OSError:
                    return
                with taken:
                    taken.recv(1024)
                    if answer is None:
                        taken.recv(1024)
                    taken.sendall(answer or b"")

        threading.Thread(target=serve, daemon=True).start()
        found = describe_groups(server.getsockname(), ["g"], 0.5 if answer is None else 100.0)
    assert isinstance(found["g"], Unreachable) and why in found["g"].message


def test_nobody_listens_where_a_coordinator_is_said_to_be():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    found = describe_groups(address, ["g", "h"], 5.0)
    assert [type(error) for error in found.values()] == [Unreachable, Unreachable]
    assert "cannot be asked: Connection refused" in found["h"].message


def test_ports_in_use_are_told():
    async def test():
        async with coordinators() as made:
            port = int(made.addresses[0].rpartition(":")[2])
            cluster = Cluster(None, offsets_partitions=1)
            another = LegacyBrokers(cluster, LegacyOptions(port=port))
            try:
                with pytest.raises(KgroupError, match=f"port {port} on 127.0.0.1 cannot be used"):
                    await another.start()
            finally:
                await another.stop()
                cluster.close()

    asyncio.run(test())


def test_settings_by_name():
    assert read_settings({"max_failed_pings": "5", "header": "true"}) == LegacyConfig(
        max_failed_pings=5, header=True
    )
    for wrong in ({"pings": "1"}, {"header": "1"}, {"queue_size": "many"}, {"max_failed_pings": "0"}):
        with pytest.raises(ConfigError):
            read_settings(wrong)


def test_a_broker_without_them_imports_nothing_of_them():
    """LC-18: nothing of the era is loaded before it is asked for, here or by the commands that can ask."""
    found = "[m for m in sys.modules if m.startswith(('kazoo', 'kgroup.zookeeper'))]"
    users = ["broker.server", "simulation.play.planning", "cli.explanations"]
    users += [f"cli.commands.{name}" for name in ("lag", "member", "serve", "simulate")]
    code = f"import sys, {', '.join('kgroup.' + user for user in users)}; print({found})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Threads:
    """A session whose answers come when the test says so."""

    def __init__(self):
        self.answers, self.watches = {}, {}

    def submit(self, op, answered, watch):
        self.answers[op.path], self.watches[op.path] = answered, watch

    def close(self):
        pass


def test_a_watch_that_is_faster_than_its_answer_waits_for_it():
    """LC-34: kazoo tells both on threads of their own; what fired first would be about nothing yet."""

    async def test():
        told = []
        link = SessionLink(parse_ensemble("127.0.0.1:1"), Security(), 6000, told.append)
        link._session = Threads()
        link.call(Zk(1, (Get("/a"),), watch=True))
        session = link._session
        session.watches["/a"](Change.DATA)
        await asyncio.sleep(0)
        assert told == []
        session.answers["/a"](Failure.NO_NODE)
        await until(lambda: len(told) == 2)
        assert told == [ZkDone(1, (Failure.NO_NODE,)), ZkFired("/a", Change.DATA)]
        link.close()

    asyncio.run(test())
