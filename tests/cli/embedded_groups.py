"""Groups of Connect, Streams and Schema Registry with one member, joined as such an application joins."""

from __future__ import annotations

from dataclasses import replace

from kgroup.client.transport import SocketTransport
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kgroup.protocol.subscription import Assignment, Subscription
from tests.cli.live import Client
from tests.embedded_written import (
    connect_assignment,
    connect_metadata,
    streams_assignment,
    streams_subscription,
)

PROCESS = 0x0123456789ABCDEF0123456789ABCDEF
URL = "http://10.0.0.1:8083/"
WORK = (("orders-sink", -1), ("orders-sink", 0), ("orders-sink", 1))


def connect_worker(client: Client, group: str) -> str:
    """A worker that had the connector and its first task, and was given the other; its member id."""
    had, got = WORK[:2], WORK[2:]
    metadata = connect_metadata(2, URL, 12, had)

    def given(member_id: str) -> bytes:
        return connect_assignment(2, got, delay_ms=60_000, config_offset=12, leader=(member_id, URL))

    return _alone(client, group, "connect-1", ("connect", "sessioned"), metadata, given)


def streams_thread(client: Client, group: str) -> str:
    """A thread that runs 0_0 and 0_1 of topic orders, ran 0_0 before, and has a standby of 1_0."""
    metadata = Subscription(("orders",), streams_subscription(PROCESS, [(0, 0, -2), (1, 0, 41)])).encode()
    places = (TopicPartition("orders", 0), TopicPartition("orders", 1))
    assignment = Assignment(places, streams_assignment([(0, 0), (0, 1)], [(1, 0)])).encode()
    return _alone(
        client, group, "app-StreamThread-1-consumer", ("consumer", "stream"), metadata, lambda _: assignment
    )


def registry(client: Client, group: str) -> str:
    """An instance of Schema Registry that leads."""
    identity = '{"version":1,"host":"sr-1","port":8081,"master_eligibility":true,"scheme":"https"}'

    def elected(member_id: str) -> bytes:
        return f'{{"version":1,"error":0,"master":"{member_id}","master_identity":{identity}}}'.encode()

    return _alone(client, group, "sr-1", ("sr", "v0"), identity.encode(), elected)


def from_the_future(client: Client, group: str) -> str:
    """A worker of a protocol that nobody here knows."""
    return _alone(client, group, "w", ("connect", "next"), b"\0\3" + bytes(9), lambda _: b"\0\3" + bytes(7))


def leave(client: Client, group: str, member_id: str) -> None:
    request = LeaveGroupRequest(group_id=group, members=(MemberIdentity(member_id=member_id),))
    assert client.transport.request(None, request).error_code == 0


def _alone(
    client: Client, group: str, client_id: str, speaks: tuple[str, str], metadata: bytes, given
) -> str:
    transport = SocketTransport(replace(client.transport.settings, client_id=client_id))
    protocol_type, protocol = speaks
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type=protocol_type,
        protocols=(JoinGroupRequestProtocol(name=protocol, metadata=metadata),),
    )
    try:
        answer = transport.request(None, request)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = transport.request(None, replace(request, member_id=answer.member_id))
        assert answer.error_code == 0, answer
        assignment = SyncGroupRequestAssignment(
            member_id=answer.member_id, assignment=given(answer.member_id)
        )
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            assignments=(assignment,),
        )
        assert transport.request(None, sync, max_version=4).error_code == 0
        return answer.member_id
    finally:
        transport.close()
