"""Requests about groups: whole to one shard, or in parts to several; only by the broker that leads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.broker.call import Call
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.coordinator.outcome import Reply
from kgroup.domain import offsets_partition_of
from kgroup.errors import ErrorCode, Unreachable
from kgroup.log.memory import MemoryLog
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kgroup.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kgroup.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kgroup.runtime.clock import ManualClock
from tests.unit.broker.brokers import create_topic

PARTITIONS, BROKERS = 6, 3
PROTOCOL = JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")


def leader(group_id: str) -> int:
    return offsets_partition_of(group_id, PARTITIONS) % BROKERS


def groups_of(node: int, count: int) -> list[str]:
    """Ids of groups that broker `node` leads, spread over its shards."""
    return [name for name in (f"g{n}" for n in range(100)) if leader(name) == node][:count]


def commit(transport: EmbeddedTransport, group_id: str, offset: int, node: int | None = None) -> int:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="t", partitions=(part,))
    request = OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=(topic,)
    )
    answer = transport.request(leader(group_id) if node is None else node, request, max_version=9)
    return answer.topics[0].partitions[0].error_code  # type: ignore[attr-defined, no-any-return]


def join_request(group_id: str = "g", member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(PROTOCOL,),
    )


def joined(transport: EmbeddedTransport, group_id: str = "g") -> JoinGroupResponse:
    """A member with an id, whose join has been answered."""
    first = transport.request(leader(group_id), join_request(group_id))
    assert isinstance(first, JoinGroupResponse)
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    answer = transport.request(leader(group_id), join_request(group_id, first.member_id))
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code == 0
    return answer


def synced(transport: EmbeddedTransport, member: JoinGroupResponse) -> None:
    assigned = (SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"x"),)
    answer = transport.request(
        leader("g"),
        SyncGroupRequest(
            group_id="g",
            generation_id=member.generation_id,
            member_id=member.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assigned,
        ),
    )
    assert isinstance(answer, SyncGroupResponse)
    assert (answer.error_code, answer.assignment) == (0, b"x")


def beat(transport: EmbeddedTransport, member: JoinGroupResponse) -> int:
    request = HeartbeatRequest(group_id="g", generation_id=member.generation_id, member_id=member.member_id)
    answer = transport.request(leader("g"), request)
    assert isinstance(answer, HeartbeatResponse)
    return answer.error_code


@pytest.fixture
def ready(transport: EmbeddedTransport) -> EmbeddedTransport:
    create_topic(transport, "t")
    return transport


@pytest.mark.parametrize("key_type", [0, 1])
def test_find_coordinator_names_a_broker_for_every_key(transport: EmbeddedTransport, key_type: int) -> None:
    keys = tuple(f"g{n}" for n in range(20))
    answer = transport.request(None, FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys))
    assert isinstance(answer, FindCoordinatorResponse)
    assert [c.key for c in answer.coordinators] == list(keys)
    assert {c.node_id for c in answer.coordinators} == {0, 1, 2}
    if key_type == 0:
        assert [c.node_id for c in answer.coordinators] == [leader(key) for key in keys]
    one = transport.request(None, FindCoordinatorRequest(key="g1", key_type=key_type), max_version=3)
    assert isinstance(one, FindCoordinatorResponse)
    assert (one.error_code, one.node_id) == (0, answer.coordinators[1].node_id)


def test_find_coordinator_refuses_other_kinds_of_key(transport: EmbeddedTransport) -> None:
    answer = transport.request(None, FindCoordinatorRequest(key_type=7, coordinator_keys=("k",)))
    assert isinstance(answer, FindCoordinatorResponse)
    assert [(c.node_id, c.error_code) for c in answer.coordinators] == [(-1, ErrorCode.INVALID_REQUEST)]


def test_a_broker_that_does_not_lead_a_group_says_so(ready: EmbeddedTransport) -> None:
    """SM-62: clients look for the coordinator again."""
    wrong = (leader("g") + 1) % BROKERS
    assert commit(ready, "g", 1, node=wrong) == ErrorCode.NOT_COORDINATOR
    assert commit(ready, "g", 1) == 0
    told = ready.request(wrong, DescribeGroupsRequest(groups=("g",)))
    assert isinstance(told, DescribeGroupsResponse)
    assert told.groups[0].error_code == ErrorCode.NOT_COORDINATOR


def test_every_broker_lists_its_own_groups(ready: EmbeddedTransport) -> None:
    names = [f"g{n}" for n in range(12)]
    for name in names:
        assert commit(ready, name, 1) == 0
    for node in range(BROKERS):
        answer = ready.request(node, ListGroupsRequest())
        assert isinstance(answer, ListGroupsResponse)
        assert {g.group_id for g in answer.groups} == {name for name in names if leader(name) == node}


def test_offsets_of_many_groups_come_in_the_order_asked(ready: EmbeddedTransport) -> None:
    names = groups_of(1, 4)
    assert len({offsets_partition_of(name, PARTITIONS) for name in names}) > 1
    for offset, name in enumerate(names):
        assert commit(ready, name, offset) == 0
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    elsewhere = groups_of(2, 1)
    asked = tuple(
        OffsetFetchRequestGroup(group_id=name, topics=topics) for name in [*reversed(names), *elsewhere]
    )
    answer = ready.request(1, OffsetFetchRequest(groups=asked), max_version=9)
    assert isinstance(answer, OffsetFetchResponse)
    assert [g.group_id for g in answer.groups] == [*reversed(names), *elsewhere]
    assert [g.error_code for g in answer.groups] == [0, 0, 0, 0, ErrorCode.NOT_COORDINATOR]
    found = [g.topics[0].partitions[0].committed_offset for g in answer.groups if g.topics]
    assert found[:4] == [3, 2, 1, 0]


def test_descriptions_come_in_the_order_asked_and_as_often(ready: EmbeddedTransport) -> None:
    a, b, c = groups_of(0, 3)
    answer = ready.request(0, DescribeGroupsRequest(groups=(c, a, b, c)))
    assert isinstance(answer, DescribeGroupsResponse)
    assert [g.group_id for g in answer.groups] == [c, a, b, c]
    empty = ready.request(0, DescribeGroupsRequest(groups=()))
    assert isinstance(empty, DescribeGroupsResponse)
    assert empty.groups == ()


def test_groups_are_deleted_once(ready: EmbeddedTransport) -> None:
    a, b, c = groups_of(0, 3)
    assert commit(ready, a, 1) == 0
    assert commit(ready, b, 1) == 0
    answer = ready.request(0, DeleteGroupsRequest(groups_names=(b, a, c, b)))
    assert isinstance(answer, DeleteGroupsResponse)
    assert [(r.group_id, r.error_code) for r in answer.results] == [
        (b, 0),
        (a, 0),
        (c, ErrorCode.GROUP_ID_NOT_FOUND),
    ]


def test_a_parked_join_is_answered_when_time_has_passed(clock: ManualClock, ready: EmbeddedTransport) -> None:
    """A second member joins: the answer waits until the first has rejoined or its time is over."""
    first = joined(ready)
    synced(ready, first)
    start = clock.now_ms()
    second = joined(ready)
    assert clock.now_ms() - start == 10_000  # the first one's session ran out
    assert [m.member_id for m in second.members] == [second.member_id]
    assert beat(ready, first) == ErrorCode.UNKNOWN_MEMBER_ID


def test_sessions_end_at_their_deadline(clock: ManualClock, ready: EmbeddedTransport) -> None:
    member = joined(ready)
    synced(ready, member)
    ready.run_until(clock.now_ms() + 9_999)
    assert beat(ready, member) == 0
    ready.run_until(clock.now_ms() + 10_000)
    assert beat(ready, member) == ErrorCode.UNKNOWN_MEMBER_ID


def test_what_is_due_happens_before_the_next_request(clock: ManualClock, ready: EmbeddedTransport) -> None:
    """However late the host wakes up, a session that is over cannot be prolonged."""
    member = joined(ready)
    synced(ready, member)
    clock.advance(10_001)
    assert beat(ready, member) == ErrorCode.UNKNOWN_MEMBER_ID


def test_no_answer_in_time(ready: EmbeddedTransport) -> None:
    member = joined(ready)
    synced(ready, member)
    other = ready.request(leader("g"), join_request())
    assert isinstance(other, JoinGroupResponse)
    with pytest.raises(Unreachable, match="no answer to JoinGroup in 1 s"):
        ready.request(leader("g"), join_request(member_id=other.member_id), timeout_s=1)


def parked_join(transport: EmbeddedTransport) -> list[Message | None]:
    """A join that waits, and where its answer will be."""
    member = joined(transport)
    synced(transport, member)
    other = transport.request(leader("g"), join_request())
    assert isinstance(other, JoinGroupResponse)
    answers: list[Message | None] = []
    call = Call(join_request(member_id=other.member_id), 9, "c", "/h", leader("g"), answers.append)
    assert transport.dispatcher.handle(call) is None
    return answers


def test_parked_answers_end_with_the_broker(ready: EmbeddedTransport) -> None:
    answers = parked_join(ready)
    ready.dispatcher.tickets.abandon()
    (answer,) = answers
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR


def test_a_shard_with_a_bug_is_loaded_again(
    ready: EmbeddedTransport, caplog: pytest.LogCaptureFixture
) -> None:
    """Hard state is what the log says; a request that fails cannot spoil it, and nobody waits for ever."""
    assert commit(ready, "g", 5) == 0
    answers = parked_join(ready)
    shard = ready.cluster.shards[offsets_partition_of("g", PARTITIONS)]
    assert shard is not None

    def broken(*_: object) -> list[Reply]:
        raise RuntimeError("a bug")

    shard.submit = broken  # type: ignore[method-assign, assignment]
    assert commit(ready, "g", 6) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "a bug" in caplog.text
    (answer,) = answers
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    asked = OffsetFetchRequestGroup(
        group_id="g", topics=(OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    )
    told = ready.request(leader("g"), OffsetFetchRequest(groups=(asked,)), max_version=9)
    assert isinstance(told, OffsetFetchResponse)
    assert told.groups[0].topics[0].partitions[0].committed_offset == 5


@pytest.mark.parametrize("method", ["wake", "topics_changed"])
def test_a_bug_at_a_deadline_or_a_change_of_topics_spoils_nothing(
    ready: EmbeddedTransport, clock: ManualClock, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    answers = parked_join(ready)
    shard = ready.cluster.shards[offsets_partition_of("g", PARTITIONS)]
    assert shard is not None

    def broken(*_: object) -> list[Reply]:
        raise RuntimeError("a bug")

    setattr(shard, method, broken)
    if method == "wake":
        clock.advance(60_000)
        assert commit(ready, "g", 1) in (0, ErrorCode.UNKNOWN_MEMBER_ID)
    else:
        create_topic(ready, "another")
    assert "a bug" in caplog.text
    (answer,) = answers
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert ready.cluster.shards[shard.partition] is not shard
    for name in groups_of(0, 3):
        assert commit(ready, name, 1) == 0


def test_a_failed_append_is_no_commit(ready: EmbeddedTransport) -> None:
    from kgroup.errors import StorageError

    log = ready.cluster.log("__consumer_offsets", offsets_partition_of("g", PARTITIONS))
    assert isinstance(log, MemoryLog)
    assert commit(ready, "g", 5) == 0

    def full(_: bytes) -> None:
        raise StorageError("no space left on device")

    log._before_append = full
    assert commit(ready, "g", 6) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    log._before_append = None
    assert commit(ready, "g", 7) == 0


def test_a_shard_that_cannot_be_loaded_is_not_led(
    ready: EmbeddedTransport, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    from kgroup.protocol.batches import LogRecord

    partition = offsets_partition_of("g", PARTITIONS)
    log = ready.cluster.log("__consumer_offsets", partition)
    assert log is not None
    log.append([LogRecord(b"\0\1\0", b"junk")])
    ready.cluster.reload(partition, clock.now_ms())
    assert f"__consumer_offsets-{partition} cannot be loaded" in caplog.text
    assert commit(ready, "g", 1) == ErrorCode.NOT_COORDINATOR
    other = next(f"g{n}" for n in range(99) if offsets_partition_of(f"g{n}", PARTITIONS) != partition)
    assert commit(ready, other, 1) == 0


def test_requests_lose_what_their_version_cannot_carry(ready: EmbeddedTransport) -> None:
    """The embedded way is no looser than a socket: JoinGroup 4 has no instance id."""
    request = replace(join_request(), group_instance_id="i1")
    answer = ready.request(leader("g"), request, max_version=4)
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
