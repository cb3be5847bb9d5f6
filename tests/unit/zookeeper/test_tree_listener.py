"""The tree of `kgroup serve --legacy` as a ZooKeeper: what kazoo is answered is what the tree answers."""

from __future__ import annotations

import asyncio
import queue
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from kgroup.errors import DecodeError
from kgroup.runtime.clock import SystemClock
from kgroup.runtime.complaints import Complaints
from kgroup.zookeeper.hosts.tree_listener import TreeListener
from kgroup.zookeeper.store import wire
from kgroup.zookeeper.store.names import Ensemble
from kgroup.zookeeper.store.operations import (
    Change,
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Failure,
    Get,
    Node,
    SetData,
    Stat,
    Sync,
)
from kgroup.zookeeper.store.session import Session
from kgroup.zookeeper.store.tree import REQUEST_LIMIT, Tree

WAIT_S = 200
GREETING = struct.pack(">iiqiqi16s?", 45, 0, 0, 40_000, 0, 16, bytes(16), False)


@contextmanager
def listening(tree: Tree) -> Iterator[tuple[str, int]]:
    """The address at which a tree is served, by a loop of its own."""
    loop = asyncio.new_event_loop()

    async def start() -> TreeListener:
        return TreeListener(tree, lambda: 5_000, "127.0.0.1", 0, Complaints(SystemClock()))

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listener = asyncio.run_coroutine_threadsafe(start(), loop).result(WAIT_S)
    try:
        yield listener.address
    finally:

        async def stop() -> None:
            listener.close()
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(stop(), loop).result(WAIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()


@pytest.fixture
def tree():
    return Tree()


@pytest.fixture
def address(tree):
    with listening(tree) as found:
        yield found


def opened(address, chroot=""):
    return Session(Ensemble((address,), chroot), timeout_s=WAIT_S)


WRITES = [
    (Create("/a", b"1"),),
    (Create("/a", b"1"),),
    (Create("/a/b", b"", ephemeral=True), SetData("/a", b"2")),
    (Create("/a/b/c", b""),),
    (SetData("/a", b"3", 9), Create("/x", b"")),
    (Create("/y", b""), SetData("/a", b"3", 1), Delete("/nothing"), Check("/a", 2)),
    (Check("/a", 1), SetData("/a", b"3", 1), Check("/a", 2), Create("/z", b"z" * 1000)),
    (Delete("/a"),),
    (Delete("/z", 4),),
    (Create("/no/parent", b""),),
    (Create("/ü", "für".encode()),),
    (Delete("/z"),),
    (Delete("/a/b"),),
    (Check("/", 0),),
]
READS = (
    *(read(path) for path in ("/", "/a", "/a/b", "/z", "/ü", "/no") for read in (Exists, Get, Children)),
    Sync("/a"),
)


def test_what_is_answered_is_what_the_tree_answers(tree, address):
    """Results of reads, multis done and undone, versions and owners, one by one."""
    shadow = Tree()
    own = shadow.open()
    with opened(address) as session:
        for ops in WRITES:
            wanted = shadow.ask(own, ops, now_ms=5_000)
            assert session.ask_all(*ops) == wanted, ops
            for read in READS:
                (wanted_read,), (found,) = shadow.ask(own, (read,)), session.ask(read)
                assert _shape(found, session.id) == _shape(wanted_read, own), read


def _shape(result, own):
    stat = result.stat if isinstance(result, Node) else result if isinstance(result, Stat) else None
    if stat is None:
        return result
    owner = "own" if stat.owner == own else stat.owner
    return getattr(result, "data", None), stat.version, owner, stat.created_ms, stat.modified_ms


def test_a_session_ends_with_its_connection(tree, address):
    """Its ephemeral nodes go, whoever hears of it."""
    heard: queue.Queue[Change] = queue.Queue()
    with opened(address) as other, opened(address) as session:
        session.ask_all(Create("/e", b"", ephemeral=True))
        other.submit(Exists("/e"), lambda _: None, heard.put)
        (there,) = other.ask(Exists("/e"))
        assert there.owner == session.id
        session.close()
        assert heard.get(timeout=WAIT_S) is Change.DELETED
        assert other.ask(Exists("/e")) == (Failure.NO_NODE,)


def test_watches_see_one_change_each(tree, address):
    heard: queue.Queue[tuple[str, Change]] = queue.Queue()

    def watch(session, op):
        session.submit(op, lambda _: None, lambda change: heard.put((op.path, change)))

    with opened(address) as one, opened(address) as two:
        for op in (Exists("/a"), Children("/")):
            watch(one, op)
        one.ask(Exists("/a"))
        two.ask_all(Create("/a", b""))
        assert {heard.get(timeout=WAIT_S) for _ in range(2)} == {
            ("/a", Change.CREATED),
            ("/", Change.CHILDREN),
        }
        watch(one, Get("/a"))
        one.ask(Exists("/a"))
        two.ask_all(SetData("/a", b"1"))
        two.ask_all(SetData("/a", b"2"))
        assert heard.get(timeout=WAIT_S) == ("/a", Change.DATA)
        one.ask(Exists("/a"))
        assert heard.empty()


def test_a_chroot_is_the_clients_business(tree, address):
    with opened(address) as whole, opened(address, "/kafka") as below:
        whole.ask_all(Create("/kafka", b""))
        below.ask_all(Create("/x", b"1"))
        (node,) = whole.ask(Get("/kafka/x"))
        assert node.data == b"1"


def test_many_answers_wait_for_who_reads_slowly(tree, address):
    """A node of half a MiB, asked for 64 times at once by one who reads nothing yet; others are served."""
    with opened(address) as session:
        session.ask_all(Create("/big", b"x" * (REQUEST_LIMIT // 2)))
        with _greeted(address) as slow:
            ask = struct.pack(">iii", 17, 7, wire.Op.GET_DATA) + struct.pack(">i4s?", 4, b"/big", False)
            slow.sendall(ask * 64)
            assert isinstance(session.ask(Exists("/big"))[0], Stat)
            wanted = 64 * (4 + 16 + 4 + REQUEST_LIMIT // 2 + 68)
            found = 0
            while found < wanted:
                data = slow.recv(1 << 20)
                assert data
                found += len(data)
            assert found == wanted


@contextmanager
def _greeted(address):
    with socket.create_connection(address, WAIT_S) as made:
        made.sendall(GREETING)
        answer = made.recv(64)
        assert len(answer) == 41
        yield made


def _ended(made):
    try:
        while made.recv(4096):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"ruok",
        struct.pack(">i", 0),
        struct.pack(">iii", 8, 1, wire.Op.EXISTS),
        struct.pack(">iiii", 12, 1, wire.Op.GET_DATA, 1 << 30),
        struct.pack(">iiii", 12, 1, wire.Op.GET_CHILDREN, -2),
        struct.pack(">iii", 8, 1, wire.Op.MULTI),
        struct.pack(">iiii2s?", 15, 1, wire.Op.EXISTS, 2, b"\xff\xfe", True),
    ],
)
def test_bytes_that_make_no_request_end_the_connection_and_nothing_else(tree, address, frame):
    with opened(address) as session, _greeted(address) as bad:
        bad.sendall(frame)
        assert _ended(bad)
        assert session.ask(Exists("/x")) == (Failure.NO_NODE,)


def test_a_session_from_before_is_over(tree, address):
    """Whoever comes back to a session that ended with its connection is told so, and makes another."""
    with socket.create_connection(address, WAIT_S) as made:
        made.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 4000, 77, 16, bytes(16), False))
        answer = made.recv(64)
        assert struct.unpack_from(">iiiq", answer)[2:] == (0, 0)
        assert _ended(made)


@pytest.mark.parametrize("kind", [7, 16, 19, 100, 101, 102, 105, 999, -7])
def test_what_there_is_not_is_answered_as_unimplemented(tree, address, kind):
    with _greeted(address) as made:
        made.sendall(struct.pack(">iiii", 12, 5, kind, 0))
        assert struct.unpack(">iiqi", made.recv(64)) == (16, 5, 0, wire.Code.UNIMPLEMENTED)


def test_fuzz():
    """20,000 frames, of chance and of real ones damaged: a request or a DecodeError, and nothing else."""
    chance = random.Random(18)
    path = struct.pack(">i2s", 2, b"/a")
    real = [
        struct.pack(">ii", 1, kind) + path + struct.pack(">i1si", 1, b"x", 0) + bytes(8) for kind in wire.Op
    ]
    for _ in range(20_000):
        data = bytearray(chance.choice(real) if chance.random() < 0.7 else chance.randbytes(40))
        for _ in range(chance.randrange(4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        for read in (wire.read_request, wire.read_greeting):
            with suppress(DecodeError):
                read(bytes(data[: chance.randrange(len(data) + 1)]))
