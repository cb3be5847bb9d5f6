"""What Kafka answers before it asks the coordinator of a group (KafkaApis, GroupCoordinatorService)."""

from __future__ import annotations

import logging

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import offsets_partition_of
from kgroup.errors import ErrorCode as E
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.broker.brokers import create_topic

PARTITIONS, BROKERS = 6, 3

pytestmark = pytest.mark.usefixtures("topics")


@pytest.fixture
def topics(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", 2)
    create_topic(transport, "u", 1)
    create_topic(transport, "v", 1)


def leader(group_id: str) -> int:
    return offsets_partition_of(group_id, PARTITIONS) % BROKERS


def commit(transport, *topics, group_id="g", generation=-1, member_id=""):
    made = tuple(
        OffsetCommitRequestTopic(
            name=name,
            partitions=tuple(
                OffsetCommitRequestPartition(partition_index=p, committed_offset=1) for p in partitions
            ),
        )
        for name, partitions in topics
    )
    request = OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=generation, member_id=member_id, topics=made
    )
    return told(transport.request(leader(group_id), request, max_version=9))


def commit_in_transaction(transport, *topics, group_id="g", producer_id=1, version=3):
    made = tuple(
        TxnOffsetCommitRequestTopic(
            name=name,
            partitions=tuple(
                TxnOffsetCommitRequestPartition(partition_index=p, committed_offset=1) for p in partitions
            ),
        )
        for name, partitions in topics
    )
    request = TxnOffsetCommitRequest(
        transactional_id="x", group_id=group_id, producer_id=producer_id, producer_epoch=0, topics=made
    )
    return told(transport.request(leader(group_id), request, max_version=version))


def told(answer):
    return [(t.name, [(p.partition_index, E(p.error_code)) for p in t.partitions]) for t in answer.topics]


def test_what_does_not_exist_is_answered_first_and_known_topics_without_partitions_not_at_all(transport):
    answered = commit(
        transport, ("t", (0, 7, 1)), ("u", ()), ("v", ()), ("nope", ()), ("gone", (3,)), ("u", (0,))
    )
    assert answered == [
        ("t", [(7, E.UNKNOWN_TOPIC_OR_PARTITION), (0, E.NONE), (1, E.NONE)]),
        ("nope", []),
        ("gone", [(3, E.UNKNOWN_TOPIC_OR_PARTITION)]),
        ("u", [(0, E.NONE)]),
    ]


def test_a_committer_who_is_refused_hears_of_what_does_not_exist_first(transport):
    answered = commit(transport, ("t", (0, 7)), ("gone", (3,)), generation=5, member_id="m")
    assert answered == [
        ("t", [(7, E.UNKNOWN_TOPIC_OR_PARTITION), (0, E.GROUP_ID_NOT_FOUND)]),
        ("gone", [(3, E.UNKNOWN_TOPIC_OR_PARTITION)]),
    ]


def test_in_a_transaction_unknown_topics_are_unknown_before_the_transaction_or_the_group_is_looked_at(
    transport,
):
    unknown = ("gone", [(3, E.UNKNOWN_TOPIC_OR_PARTITION)])
    assert commit_in_transaction(transport, ("gone", (3,))) == [unknown]
    assert commit_in_transaction(transport, ("gone", (3,)), group_id="") == [unknown]
    both = commit_in_transaction(transport, ("t", (0,)), ("gone", (3,)))
    assert both == [unknown, ("t", [(0, E.INVALID_PRODUCER_ID_MAPPING)])]
    assert commit_in_transaction(transport, ("t", (0,)), ("gone", (3,)), group_id="") == [
        unknown,
        ("t", [(0, E.INVALID_GROUP_ID)]),
    ]


def test_a_commit_of_unknown_topics_alone_begins_no_transaction(transport):
    """From version 5 on a commit adds its group to the transaction, and begins one."""
    where = transport.request(0, FindCoordinatorRequest(key="x", key_type=1), max_version=3).node_id
    begin = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    begun = transport.request(where, begin)

    def state():
        answer = transport.request(where, DescribeTransactionsRequest(transactional_ids=("x",)))
        return answer.transaction_states[0].transaction_state

    for topic, wanted in (("gone", "Empty"), ("t", "Ongoing")):
        commit_in_transaction(transport, (topic, (0,)), producer_id=begun.producer_id, version=5)
        assert state() == wanted


def test_offsets_of_a_known_topic_without_partitions_are_not_spoken_of(transport):
    commit(transport, ("t", (0,)))
    made = [("t", ()), ("gone", ()), ("t", (0,))]
    topics = tuple(
        OffsetDeleteRequestTopic(
            name=name, partitions=tuple(OffsetDeleteRequestPartition(partition_index=p) for p in numbers)
        )
        for name, numbers in made
    )
    answer = transport.request(leader("g"), OffsetDeleteRequest(group_id="g", topics=topics))
    assert told(answer) == [("gone", []), ("t", [(0, E.NONE)])]


def test_a_group_named_twice_is_answered_twice_each_time_about_its_own_topics(transport):
    name = next(n for n in ("g", "h", "i", "j") if n != "g" and leader(n) == leader("g"))
    commit(transport, ("t", (0, 1)))
    asked = [("g", (0,)), (name, (0,)), ("g", (1, 0))]
    groups = tuple(
        OffsetFetchRequestGroup(
            group_id=group, topics=(OffsetFetchRequestTopics(name="t", partition_indexes=partitions),)
        )
        for group, partitions in asked
    )
    answer = transport.request(leader("g"), OffsetFetchRequest(groups=groups), max_version=9)
    found = [
        (g.group_id, [(p.partition_index, p.committed_offset) for t in g.topics for p in t.partitions])
        for g in answer.groups
    ]
    assert found == [("g", [(0, 1)]), (name, [(0, -1)]), ("g", [(1, 1), (0, 1)])]


@pytest.mark.parametrize(
    ("key_type", "version", "message"),
    [(0, 3, "NONE"), (0, 4, ""), (9, 3, "This most likely occurs"), (9, 4, "")],
)
def test_the_message_beside_a_coordinator(transport, key_type, version, message):
    request = FindCoordinatorRequest(key="g", coordinator_keys=("g",), key_type=key_type)
    answer = transport.request(0, request, max_version=version)
    found = answer.coordinators[0].error_message if version >= 4 else answer.error_message
    assert found.startswith(message) and bool(found) == bool(message)


@pytest.mark.parametrize("version", [3, 5])
def test_a_group_that_is_dead_can_be_operated_on_as_any_other(transport, version):
    request = DescribeGroupsRequest(groups=("none",), include_authorized_operations=True)
    (group,) = transport.request(leader("none"), request, max_version=version).groups
    assert (group.group_state, group.authorized_operations) == ("Dead", 0b110101001000)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (HeartbeatRequest(group_id="", generation_id=1, member_id="m"), E.INVALID_GROUP_ID),
        (
            JoinGroupRequest(group_id="g", session_timeout_ms=1, member_id="", protocol_type="c"),
            E.INVALID_SESSION_TIMEOUT,
        ),
        (ConsumerGroupHeartbeatRequest(group_id="g", member_id="\t\0 ", member_epoch=1), E.INVALID_REQUEST),
        (ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-3), E.INVALID_REQUEST),
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), E.NOT_COORDINATOR),
    ],
)
def test_a_request_nobody_would_accept_is_not_sent_on_to_another_broker(transport, request_, code):
    elsewhere = (leader(request_.group_id) + 1) % BROKERS
    assert transport.request(elsewhere, request_).error_code == code


def test_only_what_java_trims_is_blank(transport):
    """An ideographic space is a name in Kafka; a NUL is none."""
    for member_id, code in (("\u3000", E.UNKNOWN_MEMBER_ID), ("\0", E.INVALID_REQUEST)):
        request = ConsumerGroupHeartbeatRequest(group_id="g2", member_id=member_id, member_epoch=-1)
        answer = transport.request(leader("g2"), request)
        assert answer.error_code == (E.GROUP_ID_NOT_FOUND if code is E.UNKNOWN_MEMBER_ID else code)


def test_members_to_remove_without_any_id_are_in_the_log_of_the_server(transport, caplog):
    """KIP-345: both ids empty is an error in the server's log; each entry is UNKNOWN_MEMBER_ID."""
    with caplog.at_level(logging.ERROR):
        request = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=""),) * 25)
        answer = transport.request(leader("g"), request)
    assert {m.error_code for m in answer.members} == {E.UNKNOWN_MEMBER_ID}
    assert "25 of 25 members to remove have neither member id nor instance id" in caplog.text
