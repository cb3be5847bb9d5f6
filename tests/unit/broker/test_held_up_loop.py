"""A loop that was held up meets deadlines and unread requests at once: what came in time is heard first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from kgroup.broker.connection import AT_ONCE, Serving
from kgroup.broker.server import Server
from kgroup.errors import ErrorCode
from kgroup.protocol.headers import encode_request
from kgroup.protocol.messages.api_versions import ApiVersionsRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.unit.broker.brokers import Client, connected, serving, until

SESSION_MS, REBALANCE_MS, DELAY_MS = 10_000, 15_000, 3000
PING = ApiVersionsRequest(client_software_name="a", client_software_version="1")


def run(test: Callable[[Server, ManualClock], Awaitable[None]]) -> None:
    """The test against a broker on a real socket, on a clock that the test moves."""

    async def inside() -> None:
        async with serving(cluster) as server:
            await test(server, clock)

    clock = ManualClock()
    config = {"group.initial.rebalance.delay.ms": str(DELAY_MS)}
    cluster = Cluster(None, offsets_partitions=1, clock=clock, seed=1, config=config)
    try:
        asyncio.run(inside())
    finally:
        cluster.close()


async def joined(server: Server, clock: ManualClock, clients: Sequence[Client], group: str) -> list[str]:
    """The member ids of a stable group of generation 1, one member a client."""
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    for client in clients:
        client.send(
            JoinGroupRequest(
                group_id=group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id="",
                protocol_type="consumer",
                protocols=protocols,
            ),
            3,
        )
    await until(lambda: sum(c.parked for c in server.connections) == len(clients))
    for _ in clients:  # each of them but the first makes it longer
        clock.advance(DELAY_MS)
        server._wake()
        await until(lambda: not server._reading_on)
    ids = []
    for client in clients:
        answer = (await client.receive(JoinGroupRequest, 3))[1]
        assert isinstance(answer, JoinGroupResponse)
        assert answer.generation_id == 1
        ids.append(answer.member_id)
    for client, member_id in zip(clients, ids, strict=True):
        client.send(SyncGroupRequest(group_id=group, generation_id=1, member_id=member_id), 3)
    for client in clients:
        await client.receive(SyncGroupRequest, 3)
    return ids


def beat(group: str, member_id: str) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, generation_id=1, member_id=member_id)


async def heard(client: Client) -> ErrorCode:
    answer = (await client.receive(HeartbeatRequest))[1]
    assert isinstance(answer, HeartbeatResponse)
    return ErrorCode(answer.error_code)


async def members_of(client: Client, *groups: str) -> list[int]:
    answer = await client.call(DescribeGroupsRequest(groups=groups), 5)
    assert isinstance(answer, DescribeGroupsResponse)
    return [len(group.members) for group in answer.groups]


def hold_up(server: Server, clock: ManualClock, ms: int, *, timer_is_due: bool) -> None:
    """Time passes and nothing is read; the timer is due in this turn of the loop, or in the next."""
    clock.advance(ms)
    if timer_is_due:
        server._wake()
    else:
        asyncio.get_running_loop().call_soon(server._wake)


@pytest.mark.parametrize("timer_is_due", [True, False])
def test_a_heartbeat_in_the_socket_comes_before_its_deadline_and_silence_does_not(timer_is_due: bool) -> None:
    async def test(server: Server, clock: ManualClock) -> None:
        async with connected(server) as live, connected(server) as silent, connected(server) as other:
            (member_id,) = await joined(server, clock, [live], "live")
            await joined(server, clock, [silent], "silent")
            other.send(beat("another", "nobody"))
            live.send(beat("live", member_id))
            hold_up(server, clock, 2 * SESSION_MS, timer_is_due=timer_is_due)
            assert await heard(live) is ErrorCode.NONE
            assert await heard(other) is ErrorCode.UNKNOWN_MEMBER_ID
            await until(lambda: not server._reading_on)
            assert await members_of(other, "live", "silent") == [1, 0]

    run(test)


def test_no_request_expels_those_whose_heartbeats_lie_unread() -> None:
    """Not even one that is read after their deadline, before the timer had its turn."""

    async def test(server: Server, clock: ManualClock) -> None:
        async with connected(server) as live, connected(server) as other:
            (member_id,) = await joined(server, clock, [live], "live")
            clock.advance(2 * SESSION_MS)
            assert await members_of(other, "live") == [1]
            live.send(beat("live", member_id))
            assert await heard(live) is ErrorCode.NONE
            clock.advance(SESSION_MS)
            server._wake()
            await until(lambda: not server._reading_on)
            assert await members_of(other, "live") == [0]

    run(test)


def test_a_heartbeat_that_waits_for_its_turn_comes_before_its_deadline() -> None:
    """More was read than may be served at once: the deadline goes behind all that wait."""

    async def test(server: Server, clock: ManualClock) -> None:
        async with connected(server) as live, connected(server) as greedy:
            (member_id,) = await joined(server, clock, [live], "live")
            greedy.send_raw(encode_request(PING, 3, 1, "greedy") * 3000)
            await greedy.writer.drain()
            pings = encode_request(PING, 3, 1, "x" * AT_ONCE)
            live.send_raw(pings + encode_request(beat("live", member_id), 4, 7, "test"))
            hold_up(server, clock, 2 * SESSION_MS, timer_is_due=True)
            await live.receive(ApiVersionsRequest, 3)
            assert await heard(live) is ErrorCode.NONE
            await until(lambda: not server._reading_on)
            assert await members_of(live, "live") == [1]

    run(test)


def test_who_sends_without_end_keeps_no_silent_member_alive() -> None:
    async def test(server: Server, clock: ManualClock) -> None:
        async with connected(server) as silent, connected(server) as greedy, connected(server) as other:
            await joined(server, clock, [silent], "silent")
            greedy.send_raw(encode_request(PING, 3, 1, "greedy") * 3000)
            hold_up(server, clock, 2 * SESSION_MS, timer_is_due=True)
            await until(lambda: not server._reading_on)
            assert any(c._serving is Serving.QUEUED for c in server.connections)
            assert await members_of(other, "silent") == [0]

    run(test)


def test_whoever_is_told_to_rejoin_after_it_has_the_time_to() -> None:
    """Time in which nothing could be heard is not taken from the members that are alive."""

    async def test(server: Server, clock: ManualClock) -> None:
        async with connected(server) as live, connected(server) as silent:
            member_id, _ = await joined(server, clock, [live, silent], "both")
            live.send(beat("both", member_id))
            hold_up(server, clock, SESSION_MS + 4 * REBALANCE_MS, timer_is_due=True)
            assert await heard(live) is ErrorCode.NONE
            await until(lambda: not server._reading_on)
            live.send(beat("both", member_id))
            assert await heard(live) is ErrorCode.REBALANCE_IN_PROGRESS
            assert await members_of(live, "both") == [1]

    run(test)
