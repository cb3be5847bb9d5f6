"""How long does a large group take to become stable? Ours beside Kafka and kfake, in turns.

    python -m bench join [members=1000] [rounds=3]

Every member has a connection of its own and follows the classic protocol: it joins, syncs, and beats every
100 ms until it hears of a rebalance. All start at once; stable is when every member has synced in one
generation. No initial delay. Wall seconds, the generations it took, and the broker's processor seconds.
"""

from __future__ import annotations

import asyncio
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median

from bench.brokers import brokers, connected, cpu_s, until_ready
from bench.history import Ratio, kept
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.headers import decode_response, encode_request
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kgroup.protocol.subscription import Subscription
from tests.interop.server import Server

BEAT_S = 0.1
TIMEOUT_MS = 300_000
SUBSCRIPTION = Subscription(topics=("bench",)).encode(1)  # Kafka parses it, and stops short if it cannot
PROTOCOLS = (JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),)


@dataclass
class Group:
    """Who has synced in which generation; `stable` is set once all have in the same."""

    name: str
    size: int
    synced: dict[int, int] = field(default_factory=dict)
    stable: asyncio.Event = field(default_factory=asyncio.Event)

    def count(self, generation: int) -> None:
        self.synced[generation] = self.synced.get(generation, 0) + 1
        if self.synced[generation] == self.size:
            self.stable.set()


class Member:
    """One member on a connection of its own."""

    def __init__(self, group: Group, port: int) -> None:
        self.group, self.port = group, port
        self.member_id, self.generation = "", -1

    async def run(self) -> None:
        """Join, sync and beat until cancelled."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            while True:
                if await self.sync(await self.join()):
                    self.group.count(self.generation)
                    await self.beat()
        finally:
            self.writer.close()

    async def call(self, request: Message, version: int) -> Message:
        self.writer.write(encode_request(request, version, 1, "bench"))
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return decode_response(await self.reader.readexactly(size), request.API, version)[1]

    async def join(self) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self.group.name,
            session_timeout_ms=TIMEOUT_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=PROTOCOLS,
        )
        while True:
            joined = await self.call(request, 9)
            assert isinstance(joined, JoinGroupResponse)
            self.member_id, self.generation = joined.member_id, joined.generation_id
            if not joined.error_code:
                return joined
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED, joined
            request = replace(request, member_id=self.member_id)

    async def sync(self, joined: JoinGroupResponse) -> bool:
        """Whether the member got its assignment; otherwise the group is rebalancing again."""
        leads = joined.leader == self.member_id and not joined.skip_assignment
        request = SyncGroupRequest(
            group_id=self.group.name,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=other.member_id, assignment=b"assignment")
                for other in (joined.members if leads else ())
            ),
        )
        return not (await self.call(request, 5)).error_code  # type: ignore[attr-defined]

    async def beat(self) -> None:
        """Until the group rebalances."""
        request = HeartbeatRequest(
            group_id=self.group.name, generation_id=self.generation, member_id=self.member_id
        )
        while True:
            await asyncio.sleep(BEAT_S)
            if (await self.call(request, 4)).error_code:  # type: ignore[attr-defined]
                return


async def converge(group: Group, port: int) -> float:
    """Start all members; wall seconds until they are stable."""
    start = time.perf_counter()
    tasks = [asyncio.create_task(Member(group, port).run()) for _ in range(group.size)]
    waiting = asyncio.create_task(group.stable.wait())
    await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    taken = time.perf_counter() - start
    for task in tasks:
        if task.done():
            task.result()
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
    return taken


def measured(server: Server, name: str, members: int) -> tuple[float, int, float]:
    """Wall seconds, generations and processor seconds of one group."""
    before = cpu_s(server.pid)
    group = Group(name, members)
    wall = asyncio.run(converge(group, server.port))
    return wall, max(group.synced), cpu_s(server.pid) - before


def main(arguments: list[str]) -> None:
    """Print the medians of each broker, and our ratio to each of the others."""
    options = dict(argument.split("=") for argument in arguments)
    members, rounds = int(options.get("members", 1000)), int(options.get("rounds", 3))
    with brokers({"group.max.session.timeout.ms": TIMEOUT_MS}) as servers:
        taken: dict[str, list[tuple[float, int, float]]] = {name: [] for name in servers}
        for server in servers.values():
            with connected(server) as transport:
                until_ready(transport, ["warm-up", *(f"group-{number}" for number in range(rounds))])
            measured(server, "warm-up", 200)
        for number in range(rounds):
            for name, server in servers.items():
                taken[name].append(measured(server, f"group-{number}", members))
    print(f"{members} members, median of {rounds}   wall s   generations   processor s")
    columns = {name: list(zip(*rows, strict=True)) for name, rows in taken.items()}
    for name, (wall, generations, cpu) in columns.items():
        print(f"{name:28}{median(wall):8.2f}{median(generations):14.0f}{median(cpu):14.2f}")
    for peer in [name for name in columns if name != "kgroup"]:
        for what, column in (("wall", 0), ("CPU", 2)):
            ratio = Ratio.of(columns["kgroup"][column], columns[peer][column])
            print(f"{what + ', ratio to ' + peer:28}{kept(f'join {members} {what} {peer}', ratio)}")
