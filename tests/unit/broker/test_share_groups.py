"""Share groups on the embedded broker: who is delivered what, how often, and what a restart knows of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import SHARE_STATE_TOPIC, ZERO_UUID
from kgroup.errors import ErrorCode
from kgroup.protocol.batches import LogRecord, end_marker_record
from kgroup.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kgroup.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgroup.protocol.messages.read_share_group_state import PartitionOfLeader, TopicOfLeader
from kgroup.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from kgroup.protocol.messages.share_fetch import (
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kgroup.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.share.coordinator import StateKey
from kgroup.share.settle import Acknowledge
from tests.unit.broker.brokers import create_topic
from tests.unit.broker.share_consumers import Member, acquired, configure, data_in, records, said, values


@pytest.fixture
def member(transport: EmbeddedTransport) -> Member:
    """The only member of a group that begins at the start of topic t."""
    create_topic(transport, "t")
    configure(transport, "g", share_auto_offset_reset="earliest")
    made = Member(transport, "m1")
    made.join()
    return made


def another(member: Member, name: str = "m2") -> Member:
    other = Member(member.transport, name)
    other.join()
    return other


def offsets_of(transport: EmbeddedTransport, group_id: str = "g") -> dict[int, tuple[int, int]]:
    """Start offset and lag of each partition that the group has state of."""
    partition = transport.dispatcher.partition_of(group_id)
    node = transport.cluster.leader_of("__consumer_offsets", partition)
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    answer = transport.request(node, DescribeShareGroupOffsetsRequest(groups=(asked,)))
    assert isinstance(answer, DescribeShareGroupOffsetsResponse)
    return {
        each.partition_index: (each.start_offset, each.lag)
        for topic in answer.groups[0].topics
        for each in topic.partitions
    }


def lag_of(transport: EmbeddedTransport) -> int:
    """The lag of the one partition; its start offset is stored with the next change, as in Kafka."""
    [(_, lag)] = offsets_of(transport).values()
    return lag


def test_what_is_accepted_is_not_delivered_again(member: Member) -> None:
    records(member.transport, b"a", b"b", b"c")
    first = member.fetch()
    assert (acquired(first), values([first])) == ([(0, 2, 1)], [b"a", b"b", b"c"])
    assert acquired(member.fetch(said(0, 2))) == []
    assert lag_of(member.transport) == 0


def test_two_members_never_have_the_same_record(member: Member) -> None:
    other = another(member)
    for value in range(10):
        records(member.transport, b"%d" % value)
    mine = member.fetch(most=4, mode=1)
    theirs = other.fetch(most=4, mode=1)
    assert acquired(mine) == [(0, 3, 1)]
    assert acquired(theirs) == [(4, 7, 1)]
    assert acquired(other.fetch(said(4, 5), most=10)) == [(8, 9, 1)]


def test_released_records_come_again_and_rejected_ones_do_not(member: Member) -> None:
    records(member.transport, b"a", b"b", b"c")
    member.fetch()
    release, reject, accept = Acknowledge.RELEASE, Acknowledge.REJECT, Acknowledge.ACCEPT
    assert acquired(member.fetch(said(0, 2, release, reject, accept))) == [(0, 0, 2)]
    member.acknowledge(said(0, 0))
    assert lag_of(member.transport) == 0


def test_a_lock_ends_and_a_renewed_one_later(member: Member, clock: ManualClock) -> None:
    other = another(member)
    other.fetch()
    records(member.transport, b"a")
    assert acquired(member.fetch()) == [(0, 0, 1)]
    began = clock.now_ms()
    member.transport.run_until(began + 29_000)
    assert acquired(other.fetch()) == []
    renewed = member.fetch(said(0, 0, Acknowledge.RENEW), renew=True)
    assert (data_in(renewed).acknowledge_error_code, renewed.acquisition_lock_timeout_ms) == (0, 30_000)
    member.transport.run_until(began + 58_999)
    assert acquired(other.fetch()) == []
    member.transport.run_until(began + 59_000)
    assert acquired(other.fetch()) == [(0, 0, 2)]
    late = member.acknowledge(said(0, 0))
    assert late.responses[0].partitions[0].error_code == ErrorCode.INVALID_RECORD_STATE


def test_a_record_is_given_up_after_its_last_delivery(member: Member, clock: ManualClock) -> None:
    configure(member.transport, "g", share_auto_offset_reset="earliest", share_delivery_count_limit="2")
    records(member.transport, b"a", b"b")
    for count in (1, 2):
        found = member.fetch(mode=1, most=1)
        assert acquired(found) == [(0, 0, count)]
        member.acknowledge(said(0, 0, Acknowledge.RELEASE))
    assert acquired(member.fetch()) == [(1, 1, 1)]


def test_a_parked_fetch_wakes_for_new_records_and_for_released_ones(member: Member) -> None:
    transport, clock = member.transport, member.transport.cluster.clock
    other = another(member)
    records(transport, b"a")
    member.fetch()
    transport.dispatcher.wakeups.at(
        clock.now_ms() + 100, lambda: transport.dispatcher.share_partitions.release(key(member), "m1")
    )
    began = clock.now_ms()
    assert acquired(other.fetch(wait_ms=5000)) == [(0, 0, 2)]
    assert clock.now_ms() == began + 100
    transport.dispatcher.wakeups.at(clock.now_ms() + 100, lambda: records(transport, b"b"))
    assert acquired(other.fetch(said(0, 0), wait_ms=5000)) == [(1, 1, 1)]
    assert acquired(other.fetch(said(1, 1), wait_ms=300)) == []
    assert clock.now_ms() == began + 500


def key(member: Member, partition: int = 0) -> StateKey:
    return StateKey(member.group_id, member.topic_id, partition)


def test_a_closed_session_gives_back_what_it_had(member: Member) -> None:
    other = another(member)
    records(member.transport, b"a", b"b")
    member.fetch()
    member.acknowledge(said(0, 0), last=True)
    assert acquired(other.fetch()) == [(1, 1, 2)]
    assert member.acknowledge(said(1, 1), last=True).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_sessions_have_epochs(member: Member) -> None:
    member.fetch()
    member.session = 5
    assert member.fetch().error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.acknowledge().error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    member.session = 0
    assert member.acknowledge().error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(said(0, 0)).error_code == ErrorCode.INVALID_REQUEST
    assert Member(member.transport, "m" * 37).fetch().error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "wrong",
    [
        said(1, 0),
        said(0, 2, Acknowledge.ACCEPT, Acknowledge.ACCEPT),
        said(0, 0, Acknowledge.RENEW),
    ],
)
def test_malformed_acknowledgements_are_refused_alone(member: Member, wrong: object) -> None:
    records(member.transport, b"a", b"b", b"c")
    member.fetch()
    answer = member.acknowledge(wrong)  # type: ignore[arg-type]
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, ErrorCode.INVALID_REQUEST)
    assert member.acknowledge(said(0, 2)).responses[0].partitions[0].error_code == 0


@pytest.mark.parametrize(
    ("name", "ok"), [("m" * 36, True), ("m" * 37, False), ("😀" * 18, True), ("😀" * 19, False)]
)
def test_a_member_id_is_no_longer_than_a_uuid(transport: EmbeddedTransport, name: str, ok: bool) -> None:
    """Kafka counts UTF-16 code units, in heartbeats and sessions alike."""
    create_topic(transport, "t")
    member = Member(transport, name)
    beat = member.beat(0)
    assert beat.error_code == (ErrorCode.NONE if ok else ErrorCode.INVALID_REQUEST)
    assert beat.error_message == (None if ok else "Invalid member id in the request.")
    assert member.fetch(node=0).error_code == beat.error_code


def test_partitions_without_batches_are_in_an_answer_only_beside_one_that_has_some(member: Member) -> None:
    records(member.transport, b"a", b"b")
    member.fetch()
    assert member.acknowledge().responses == ()
    topic = member.acknowledge(said(0, 0)).responses[0]
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(0, ErrorCode.NONE)]
    # In a ShareFetch, too, where all partitions of the request are told of then.
    request = ShareFetchRequest(
        group_id="g",
        member_id=member.name,
        share_session_epoch=member.session,
        max_bytes=1 << 20,
        max_records=100,
        topics=(
            FetchTopic(
                topic_id=member.topic_id,
                partitions=(
                    FetchPartition(partition_index=0, acknowledgement_batches=(said(1, 1),)),
                    FetchPartition(partition_index=9),
                ),
            ),
        ),
    )
    answer = member.transport.request(0, request)
    assert isinstance(answer, ShareFetchResponse)
    told = {p.partition_index: p.acknowledge_error_code for t in answer.responses for p in t.partitions}
    assert told == {0: ErrorCode.NONE, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_batches_of_an_unknown_topic_are_not_looked_at(member: Member) -> None:
    member.fetch()
    known, member.topic_id = member.topic_id, bytes(15) + b"\1"
    [topic] = member.acknowledge(said(5, 4)).responses
    assert [p.error_code for p in topic.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]
    member.topic_id = known
    [topic] = member.acknowledge(said(5, 4)).responses
    assert [p.error_code for p in topic.partitions] == [ErrorCode.INVALID_REQUEST]


def test_an_unknown_way_to_acquire_fails_where_there_is_something_to_read(member: Member) -> None:
    records(member.transport, b"a")
    assert member.fetch(mode=2).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    member.session += 1  # the session has gone on, as in Kafka
    assert member.fetch(mode=-1, most=0).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    member.session += 1
    assert acquired(member.fetch()) == [(0, 0, 1)]
    stranger = another(member, "m3")
    stranger.topic_id = bytes(15) + b"\1"
    assert data_in(stranger.fetch(mode=2)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_fewer_than_no_bytes_are_an_error_of_each_partition(member: Member) -> None:
    records(member.transport, b"a")
    answer = member.fetch(max_bytes=-1, wait_ms=-1)
    data = data_in(answer)
    assert (answer.error_code, data.error_code) == (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert data.error_message == "Request max bytes must be greater than 0"
    assert member.fetch(max_bytes=0).responses == ()
    assert acquired(member.fetch(wait_ms=-1)) == [(0, 0, 1)]


def test_a_fetch_of_nothing_still_tells_what_cannot_be_read(member: Member) -> None:
    stranger = another(member, "m3")
    stranger.topic_id = bytes(15) + b"\1"
    assert data_in(stranger.fetch(most=0)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_restart_knows_what_was_settled_and_forgets_what_was_only_acquired(tmp_path: Path) -> None:
    clock = ManualClock()
    cluster = Cluster(tmp_path, brokers=3, offsets_partitions=3, seed=1, clock=clock)
    transport = EmbeddedTransport(cluster)
    create_topic(transport, "t")
    configure(transport, "g", share_auto_offset_reset="earliest")
    member = Member(transport, "m1")
    member.join()
    records(transport, *(b"%d" % number for number in range(6)))
    member.fetch()
    accept, release, reject = Acknowledge.ACCEPT, Acknowledge.RELEASE, Acknowledge.REJECT
    member.acknowledge(said(0, 3, accept, release, accept, reject))
    assert lag_of(transport) == 3
    transport.close()

    again = EmbeddedTransport(Cluster(tmp_path, brokers=3, seed=2, clock=clock))
    assert lag_of(again) == 3
    member.transport, member.session = again, 0
    assert member.beat().error_code == 0
    assert acquired(member.fetch()) == [(1, 1, 2), (4, 5, 1)]
    again.close()


def test_start_offsets_are_set_deleted_and_go_with_the_group(member: Member) -> None:
    transport = member.transport
    node = member.coordinator
    records(transport, *(b"%d" % number for number in range(6)))
    partitions = (
        AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=4),
        AlterShareGroupOffsetsRequestPartition(partition_index=7, start_offset=4),
    )
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=partitions)
    request = AlterShareGroupOffsetsRequest(group_id="g", topics=(topic,))
    answer = transport.request(node, request)
    assert isinstance(answer, AlterShareGroupOffsetsResponse)
    assert answer.error_code == ErrorCode.NON_EMPTY_GROUP
    member.fetch(last=False)
    member.acknowledge(last=True)
    member.beat(-1)
    answer = transport.request(node, request)
    assert isinstance(answer, AlterShareGroupOffsetsResponse)
    codes = [each.error_code for each in answer.responses[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert offsets_of(transport) == {0: (4, 2)}
    again = Member(transport, "m9")
    again.join()
    assert acquired(again.fetch()) == [(4, 5, 1)]
    again.acknowledge(last=True)
    again.beat(-1)
    forget = DeleteShareGroupOffsetsRequest(
        group_id="g",
        topics=tuple(DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in ("t", "u")),
    )
    deleted = transport.request(node, forget)
    assert isinstance(deleted, DeleteShareGroupOffsetsResponse)
    assert {each.topic_name: each.error_code for each in deleted.responses} == {
        "t": ErrorCode.NONE,
        "u": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert offsets_of(transport) == {}
    gone = transport.request(node, DeleteGroupsRequest(groups_names=("g", "h")))
    assert isinstance(gone, DeleteGroupsResponse)
    assert {each.group_id: each.error_code for each in gone.results}["g"] == ErrorCode.NONE
    assert not any(shard.coordinator.states for shard in transport.dispatcher.share_state.shards if shard)


@pytest.mark.parametrize("start", [-(2**63), -2, 2**63 - 1])
def test_a_start_offset_of_no_log_is_described_with_a_javas_lag(member: Member, start: int) -> None:
    """GroupMetadataManager.alterShareGroupOffsets checks no offset; the lag is subtracted in longs."""
    records(member.transport, b"x")
    member.beat(-1)
    partition = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=start)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=(partition,))
    answer = member.transport.request(
        member.coordinator, AlterShareGroupOffsetsRequest(group_id="g", topics=(topic,))
    )
    assert isinstance(answer, AlterShareGroupOffsetsResponse)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
    lag = (1 - start + 2**63) % 2**64 - 2**63
    assert offsets_of(member.transport) == {0: (start, lag)}


def test_a_read_committed_group_reads_what_is_decided(member: Member) -> None:
    transport = member.transport
    configure(transport, "g", share_auto_offset_reset="earliest", share_isolation_level="read_committed")
    log = transport.cluster.log("t", 0)
    assert log is not None
    for producer_id, committed in ((1, False), (2, True)):
        head = {"producer_id": producer_id, "producer_epoch": 0, "transactional": True}
        log.append([LogRecord(None, b"of %d" % producer_id)], base_sequence=0, **head)  # type: ignore[arg-type]
        assert acquired(member.fetch()) == []
        log.append([end_marker_record(committed, 0)], control=True, **head)  # type: ignore[arg-type]
        found = acquired(member.fetch())
        assert found == ([(1, 1, 1)] if producer_id == 1 else [(2, 3, 1)])
        member.acknowledge(*(said(first, last) for first, last, _ in found))


def test_records_deleted_from_the_log_are_passed(member: Member) -> None:
    records(member.transport, *(b"%d" % number for number in range(3)))
    records(member.transport, b"3")
    log = member.transport.cluster.log("t", 0)
    assert log is not None
    log.delete_before(3)
    assert acquired(member.fetch()) == [(3, 3, 1)]


def test_a_deleted_topic_takes_its_state_along(member: Member) -> None:
    records(member.transport, b"a")
    member.fetch()
    member.transport.request(
        None, DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=ZERO_UUID),), timeout_ms=1000)
    )
    assert not any(
        shard.coordinator.states for shard in member.transport.dispatcher.share_state.shards if shard
    )
    answer = member.fetch()
    assert data_in(answer).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_old_records_of_state_go_when_snapshots_supersede_them(tmp_path: Path) -> None:
    clock = ManualClock()
    config = {"share.coordinator.snapshot.update.records.per.snapshot": "2"}
    cluster = Cluster(tmp_path, config=config, offsets_partitions=1, seed=1, clock=clock)
    transport = EmbeddedTransport(cluster)
    create_topic(transport, "t")
    configure(transport, "g", share_auto_offset_reset="earliest")
    member = Member(transport, "m1")
    member.join()
    for number in range(12):
        records(transport, b"%d" % number)
        member.fetch()
        member.acknowledge(said(number, number))
    transport.run_until(clock.now_ms() + 300_000)
    starts = [
        log.start_offset
        for number in range(50)
        if (log := cluster.log(SHARE_STATE_TOPIC, number)) is not None and log.end_offset
    ]
    assert len(starts) == 1
    assert starts[0] > 4
    transport.close()
    again = EmbeddedTransport(Cluster(tmp_path, config=config, seed=2, clock=clock))
    assert lag_of(again) == 0
    again.close()


def test_describe_and_the_share_coordinators_own_apis(member: Member) -> None:
    transport = member.transport
    answer = transport.request(member.coordinator, ShareGroupDescribeRequest(group_ids=("g", "")))
    assert isinstance(answer, ShareGroupDescribeResponse)
    known, unknown = answer.groups
    assert (known.group_state, known.members[0].assignment.topic_partitions[0].partitions) == ("Stable", (0,))
    assert unknown.error_code in (ErrorCode.INVALID_GROUP_ID, ErrorCode.NOT_COORDINATOR)
    found = transport.request(
        None, FindCoordinatorRequest(key_type=2, coordinator_keys=(str(key(member)), "nonsense"))
    )
    assert isinstance(found, FindCoordinatorResponse)
    assert [each.error_code for each in found.coordinators] == [0, ErrorCode.INVALID_REQUEST]
    topic = TopicOfLeader(
        topic_id=member.topic_id, partitions=(PartitionOfLeader(partition=0, leader_epoch=0),)
    )
    asked = ReadShareGroupStateSummaryRequest(group_id="g", topics=(topic,))
    codes = []
    for node in transport.cluster.nodes:
        summary = transport.request(node, asked)
        assert isinstance(summary, ReadShareGroupStateSummaryResponse)
        codes.append(summary.results[0].partitions[0].error_code)
    assert sorted(codes) == [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR]
    assert codes[found.coordinators[0].node_id] == ErrorCode.NONE


def test_whom_to_turn_to_is_without_an_address_while_it_is_down(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = member.transport.dispatcher
    known = dispatcher.endpoints
    answer = member.fetch(node=1)
    assert data_in(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [each.node_id for each in answer.node_endpoints] == [0]
    monkeypatch.setattr(dispatcher, "endpoints", lambda call: {n: at for n, at in known(call).items() if n})
    answer = member.fetch(node=1)
    assert data_in(answer).current_leader.leader_id == 0 and answer.node_endpoints == ()
