"""What strangers do to a port: each attack lasts a moment, and is told of by its name."""

from __future__ import annotations

import random
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from kgroup.protocol.codec import Message
from kgroup.protocol.headers import encode_request
from kgroup.protocol.messages.api_versions import ApiVersionsRequest
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.hostile import structure
from tests.hostile.bounds import Crew
from tests.hostile.requests import BATCH, Maker, every

BEAT = HeartbeatRequest(group_id="hostile", generation_id=1, member_id="m")
TOPIC = "hostile"


class Stranger:
    """A client without manners, on one port."""

    def __init__(self, port: int, chance: random.Random) -> None:
        self.port = port
        self.chance = chance
        self.maker = Maker(chance)
        self.crew = Crew(port, self.maker, chance)
        self.sent = 0
        self.costly: dict[int, structure.Case] = {}
        """Of each API the structure whose items took longest; what is tried next grows from these, too."""
        self.costs: dict[int, float] = {}
        self.longest: tuple[float, str] = (0, "")

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def send(self, data: bytes, *, listen_s: float = 0.2) -> None:
        """Send, listen a while or until the end, leave."""
        with suppress(OSError), self.connect() as there:
            there.sendall(data)
            there.settimeout(listen_s)
            ends = time.monotonic() + listen_s
            while time.monotonic() < ends and there.recv(1 << 16):
                pass

    def fields(self) -> None:
        """Requests of any kind, one after the other on a connection until it is closed."""
        cases = every()
        for _ in range(20):
            frames = (
                self.maker.frame(*self.chance.choice(cases)) for _ in range(self.chance.choice([1, 5, 40]))
            )
            self.send(b"".join(frames), listen_s=0.05)

    def bounds(self) -> None:
        """Members at the bounds of every value, from where the last time left them."""
        self.sent += self.crew.play(1000, seconds=5)

    def structures(self) -> None:
        """Requests whose structure makes the work: after each its answer, or a moment's silence."""
        for _ in range(5):
            with suppress(OSError), self.connect() as there:
                for _ in range(200):
                    case = structure.drawn(self.chance)
                    if self.costly and self.chance.random() < 0.5:
                        case = structure.changed(self.chance.choice(list(self.costly.values())), self.chance)
                    began = time.monotonic()
                    there.sendall(structure.frame(case))
                    self.sent += 1
                    # A parked one is left alone; a big one is awaited.
                    there.settimeout(0.05 if case.items < 1000 else 10)
                    answered = there.recv(1 << 20)
                    took = time.monotonic() - began
                    self.longest = max(self.longest, (took, str(case)))
                    if answered and took / case.items > self.costs.get(case.key, 0.0):
                        self.costs[case.key], self.costly[case.key] = took / case.items, case
                    if not answered:
                        break
                    there.setblocking(False)
                    with suppress(BlockingIOError):
                        while there.recv(1 << 20):
                            pass

    def garbage(self) -> None:
        for _ in range(20):
            self.send(self.chance.randbytes(self.chance.randrange(1, 5000)), listen_s=0.02)

    def pipelining(self) -> None:
        """100,000 requests on one connection, all answers read."""
        with suppress(OSError), self.connect() as there:
            frames = request(BEAT, 4) * 1000
            for _ in range(100):
                there.setblocking(False)
                with suppress(BlockingIOError):
                    while there.recv(1 << 20):
                        pass
                there.settimeout(20)
                there.sendall(frames)

    def never_reading(self) -> None:
        """50 connections ask for much and read nothing."""
        many: list[socket.socket] = []
        with suppress(OSError):
            for _ in range(50):
                many.append(self.connect())
                many[-1].settimeout(0.05)
                with suppress(TimeoutError):
                    many[-1].sendall(request(MetadataRequest(topics=None), 12) * 3000)
            time.sleep(2)
        for each in many:
            each.close()

    def slow(self) -> None:
        """A request byte by byte, and nothing behind its middle."""
        with suppress(OSError), self.connect() as there:
            for byte in request(MetadataRequest(topics=None), 12)[:15]:
                there.sendall(bytes([byte]))
                time.sleep(0.02)

    def half_closed(self) -> None:
        with suppress(OSError), self.connect() as there:
            there.sendall(request(BEAT, 4) * 50)
            there.shutdown(socket.SHUT_WR)
            while there.recv(1 << 16):
                pass

    def patterns(self) -> None:
        """The longest malformed patterns there can be, and valid ones that take long to match."""
        for text in (
            "(.*)" * 8000,
            "(a*)*" * 3000,
            "".join(f"(?P<n{number}>.*)" for number in range(2000)),
            "(?:.*){900}",
            "()" * 16_000 + ")",
            "[(?=]" * 6000 + "(?=",
            "|".join([".*a.{1000}"] * 500),
            "(" * 32_767,
        ):
            beat = ConsumerGroupHeartbeatRequest(
                group_id="hostile",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_regex=text,
                topic_partitions=(),
            )
            self.send(request(beat, 1), listen_s=1)

    def repeated(self) -> None:
        """A waiting fetch that names one partition 10,000 times, and produces to it."""
        part = FetchPartition(partition=0, fetch_offset=1 << 30, partition_max_bytes=1000)
        topic = FetchTopic(topic=TOPIC, partitions=(part,) * 300)
        self.send(
            request(FetchRequest(max_wait_ms=1000, min_bytes=1, topics=(topic,) * 30), 12), listen_s=0.1
        )

    def ids(self) -> None:
        """Coordinators of many ids as long as ids can be, none of them asked for before."""
        for _ in range(10):
            keys = tuple(f"{self.chance.random()}" + "k" * 32_000 for _ in range(100))
            self.send(request(FindCoordinatorRequest(coordinator_keys=keys), 4), listen_s=0.3)

    def topics(self) -> None:
        """Many topics nobody knows, none of which may be made, and some that may."""
        wanted = tuple(MetadataRequestTopic(name=f"hostile-{n}") for n in range(20_000))
        self.send(request(MetadataRequest(topics=wanted, allow_auto_topic_creation=True), 8), listen_s=1)
        self.send(request(MetadataRequest(topics=wanted[:100]), 8), listen_s=0.5)

    def retention(self) -> None:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        commit = OffsetCommitRequest(
            group_id="hostile-retention",
            member_id="",
            retention_time_ms=(1 << 63) - 1,
            topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(part,)),),
        )
        self.send(request(commit, self.chance.choice([2, 3, 4])))

    def long_client_id(self) -> None:
        """Whose member id has no encoding."""
        join = JoinGroupRequest(
            group_id="hostile-long",
            session_timeout_ms=6000,
            rebalance_timeout_ms=6000,
            member_id="",
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=BATCH),),
        )
        self.send(request(join, self.chance.choice([1, 4, 9]), "c" * 32_767), listen_s=1)

    def huge(self) -> None:
        """The start of a request of 100 MB, and one with a million items."""
        with suppress(OSError), self.connect() as there:
            there.sendall(struct.pack(">ihhih", 100 << 20, 0, 9, 1, -1) + bytes(1 << 20))
        self.send(request(MetadataRequest(topics=(MetadataRequestTopic(name=""),) * 1_000_000), 8))

    def coming_and_going(self) -> None:
        many: list[socket.socket] = []
        with suppress(OSError):
            many.extend(self.connect() for _ in range(200))
        for each in many:
            each.close()

    def all(self) -> list[Callable[[], None]]:
        """Every attack; fields come up most."""
        return [
            *[self.fields] * 6,
            *[self.bounds] * 3,
            *[self.structures] * 3,
            self.garbage,
            self.pipelining,
            self.never_reading,
            self.slow,
            self.half_closed,
            self.patterns,
            self.repeated,
            self.ids,
            self.topics,
            self.retention,
            self.long_client_id,
            self.huge,
            self.coming_and_going,
        ]


@contextmanager
def crowd(address: tuple[str, int], said: bytes, count: int = 512) -> Iterator[list[socket.socket]]:
    """So many connections that say this and no more, and stay."""
    with ExitStack() as held:
        yield [_said(held.enter_context(socket.create_connection(address)), said) for _ in range(count)]


def _said(there: socket.socket, said: bytes) -> socket.socket:
    there.sendall(said)
    return there


def client_hello() -> bytes:
    """How TLS begins."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def request(message: Message, version: int, client_id: str = "stranger") -> bytes:
    return encode_request(message, version, 1, client_id)


PING = encode_request(
    ApiVersionsRequest(client_software_name="ping", client_software_version="1"), 3, 7, "ping"
)
