"""Requests about groups, their offsets and transactions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kgroup.errors import ErrorCode
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import add_partitions_to_txn as add
from kgroup.protocol.messages import offset_commit as commit
from kgroup.protocol.messages import offset_delete as forget
from kgroup.protocol.messages import offset_fetch as fetch
from kgroup.protocol.messages import txn_offset_commit as in_transaction
from kgroup.protocol.messages import write_txn_markers as markers
from kgroup.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kgroup.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kgroup.protocol.messages.end_txn import EndTxnRequest
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from kgroup.protocol.messages.list_transactions import ListTransactionsRequest
from kgroup.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kgroup.protocol.messages.sync_group import SyncGroupRequest

from .cases import GROUP, TOPIC, TXN, Case, Names, O, each, on, on_cluster
from .world import WAIT_S, World

NO_SUCH = "no-such"
OF_GROUP, OF_TRANSACTION = 0, 1
_LATER = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def insist(world: World, message: Message, code: Callable[[Any], int], version: int | None = None) -> Any:
    """The answer to what must work, as soon as the coordinator is ready."""
    deadline = time.monotonic() + WAIT_S
    while True:
        found = world.ask(message, version)
        if not code(found):
            return found
        assert code(found) in _LATER and time.monotonic() < deadline, (message, found)
        time.sleep(0.05)


def have_coordinators(world: World) -> None:
    """The topics of state are there: a broker makes them when first asked for a coordinator."""
    for kind in (OF_GROUP, OF_TRANSACTION):
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=("anything",))
        insist(world, request, lambda found: found.coordinators[0].error_code)


def have_offsets(world: World, names: Names) -> None:
    """Both groups have offsets in both topics."""
    partitions = (commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=7),)
    topics = tuple(commit.OffsetCommitRequestTopic(name=n, partitions=partitions) for n in (names.a, names.b))
    for group in (names.group, names.other_group):
        request = commit.OffsetCommitRequest(group_id=group, member_id="", topics=topics)
        insist(world, request, lambda found: found.topics[0].partitions[0].error_code, 9)


def have_consumers(world: World, names: Names) -> None:
    """One consumer has both topics; of another group, one has the first."""
    for group, topics in ((names.group, (names.a, names.b)), (names.other_group, (names.a,))):
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=f"member-of-{group}",
            member_epoch=0,
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=topics,
            topic_partitions=(),
        )
        insist(world, request, lambda found: found.error_code)


def have_transaction(world: World, names: Names) -> None:
    """A transaction with a partition of each topic and the group's offsets."""
    request = InitProducerIdRequest(transactional_id=names.txn, transaction_timeout_ms=600_000)
    found = insist(world, request, lambda answer: answer.error_code)
    producer = world.made[names.txn] = (found.producer_id, found.producer_epoch)
    both = tuple(add.AddPartitionsToTxnTopic(name=n, partitions=(0,)) for n in (names.a, names.b))
    added = add.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=names.txn,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=both,
    )
    insist(
        world,
        added,
        lambda a: a.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        3,
    )
    offsets = AddOffsetsToTxnRequest(
        transactional_id=names.txn,
        producer_id=producer[0],
        producer_epoch=producer[1],
        group_id=names.group,
    )
    insist(world, offsets, lambda found: found.error_code)


def commit_offsets(world: World, names: Names) -> Message:
    partitions = (commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=7),)
    topics = tuple(
        commit.OffsetCommitRequestTopic(name=n, partitions=partitions) for n in (names.a, names.b, NO_SUCH)
    )
    return commit.OffsetCommitRequest(group_id=names.group, member_id="", topics=topics)


def commit_by_id(world: World, names: Names) -> Message:
    partitions = (commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=7),)
    ids = (world.id_of(names.a), world.id_of(names.b), b"\x07" * 16)
    topics = tuple(commit.OffsetCommitRequestTopic(topic_id=each, partitions=partitions) for each in ids)
    return commit.OffsetCommitRequest(group_id=names.group, member_id="", topics=topics)


def fetch_offsets(world: World, names: Names) -> Message:
    topics = tuple(
        fetch.OffsetFetchRequestTopics(name=n, partition_indexes=(0,)) for n in (names.a, names.b, NO_SUCH)
    )
    groups = (names.group, names.other_group)
    return fetch.OffsetFetchRequest(
        groups=tuple(fetch.OffsetFetchRequestGroup(group_id=g, topics=topics) for g in groups)
    )


def fetch_by_id(world: World, names: Names) -> Message:
    ids = (world.id_of(names.a), world.id_of(names.b), b"\x07" * 16)
    topics = tuple(fetch.OffsetFetchRequestTopics(topic_id=each, partition_indexes=(0,)) for each in ids)
    groups = (fetch.OffsetFetchRequestGroup(group_id=names.group, topics=topics),)
    return fetch.OffsetFetchRequest(groups=groups)


def fetch_all_offsets(world: World, names: Names) -> Message:
    groups = (names.group, names.other_group)
    return fetch.OffsetFetchRequest(
        groups=tuple(fetch.OffsetFetchRequestGroup(group_id=g, topics=None) for g in groups)
    )


def fetch_5(world: World, names: Names) -> Message:
    topics = tuple(fetch.OffsetFetchRequestTopic(name=n, partition_indexes=(0,)) for n in (names.a, names.b))
    return fetch.OffsetFetchRequest(group_id=names.group, topics=topics)


def fetch_all_5(world: World, names: Names) -> Message:
    return fetch.OffsetFetchRequest(group_id=names.group, topics=None)


def forget_offsets(world: World, names: Names) -> Message:
    partitions = (forget.OffsetDeleteRequestPartition(partition_index=0),)
    topics = tuple(
        forget.OffsetDeleteRequestTopic(name=n, partitions=partitions) for n in (names.a, names.b, NO_SUCH)
    )
    return forget.OffsetDeleteRequest(group_id=names.group, topics=topics)


def find_group(world: World, names: Names) -> Message:
    return FindCoordinatorRequest(key_type=OF_GROUP, coordinator_keys=(names.group, names.other_group))


def find_group_3(world: World, names: Names) -> Message:
    return FindCoordinatorRequest(key_type=OF_GROUP, key=names.group)


def find_transaction(world: World, names: Names) -> Message:
    return FindCoordinatorRequest(key_type=OF_TRANSACTION, coordinator_keys=(names.txn, "another"))


def join(world: World, names: Names) -> Message:
    return JoinGroupRequest(
        group_id=names.group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )


def sync(world: World, names: Names) -> Message:
    return SyncGroupRequest(
        group_id=names.group,
        generation_id=1,
        member_id="nobody",
        protocol_type="consumer",
        protocol_name="range",
    )


def sync_without_protocol(world: World, names: Names) -> Message:
    return SyncGroupRequest(group_id=names.group, generation_id=1, member_id="nobody")


def beat(world: World, names: Names) -> Message:
    return HeartbeatRequest(group_id=names.group, generation_id=1, member_id="nobody")


def leave(world: World, names: Names) -> Message:
    return LeaveGroupRequest(group_id=names.group, members=(MemberIdentity(member_id="nobody"),))


def consumer_heartbeat(world: World, names: Names) -> Message:
    return ConsumerGroupHeartbeatRequest(
        group_id=names.group,
        member_id="nobody",
        member_epoch=5,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=(names.a,),
        topic_partitions=(),
    )


def describe_groups(world: World, names: Names) -> Message:
    return DescribeGroupsRequest(
        groups=(names.group, names.other_group, "no-such-group"), include_authorized_operations=True
    )


def describe_consumers(world: World, names: Names) -> Message:
    return ConsumerGroupDescribeRequest(
        group_ids=(names.group, names.other_group, "no-such-group"), include_authorized_operations=True
    )


def list_groups(world: World, names: Names) -> Message:
    return ListGroupsRequest()


def delete_groups(world: World, names: Names) -> Message:
    return DeleteGroupsRequest(groups_names=(names.group, names.other_group, "no-such-group"))


def init_idempotent(world: World, names: Names) -> Message:
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)


def init_transactional(world: World, names: Names) -> Message:
    return InitProducerIdRequest(transactional_id=f"{names.txn}", transaction_timeout_ms=60_000)


def add_partitions(world: World, names: Names) -> Message:
    producer_id, epoch = world.made[names.txn]
    topics = tuple(add.AddPartitionsToTxnTopic(name=n, partitions=(0,)) for n in (names.a, names.b))
    return add.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=names.txn,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=topics,
    )


def add_as_broker(world: World, names: Names) -> Message:
    producer_id, epoch = world.made[names.txn]
    only = add.AddPartitionsToTxnTransaction(
        transactional_id=names.txn,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=(add.AddPartitionsToTxnTopic(name=names.a, partitions=(0,)),),
    )
    return add.AddPartitionsToTxnRequest(transactions=(only,))


def add_offsets(world: World, names: Names) -> Message:
    producer_id, epoch = world.made[names.txn]
    return AddOffsetsToTxnRequest(
        transactional_id=names.txn, producer_id=producer_id, producer_epoch=epoch, group_id=names.group
    )


def end(world: World, names: Names) -> Message:
    """By a producer that is no more: who may end it is told so, and nothing ends."""
    producer_id, epoch = world.made[names.txn]
    return EndTxnRequest(
        transactional_id=names.txn, producer_id=producer_id + 1_000_000, producer_epoch=epoch
    )


def commit_in_transaction(world: World, names: Names) -> Message:
    producer_id, epoch = world.made[names.txn]
    partitions = (in_transaction.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=3),)
    return in_transaction.TxnOffsetCommitRequest(
        transactional_id=names.txn,
        group_id=names.group,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=tuple(
            in_transaction.TxnOffsetCommitRequestTopic(name=n, partitions=partitions)
            for n in (names.a, names.b, NO_SUCH)
        ),
    )


def produce_in_transaction(world: World, names: Names) -> Message:
    """Out of order, so that what is allowed is refused for another reason each time, alike."""
    producer_id, epoch = world.made[names.txn]
    batch = encode_batch(
        [LogRecord(None, b"v", timestamp_ms=int(time.time() * 1000))],
        producer_id=producer_id + 1_000_000,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    data = (PartitionProduceData(index=0, records=batch),)
    topics = tuple(TopicProduceData(name=n, partition_data=data) for n in (names.a, names.b))
    return ProduceRequest(transactional_id=names.txn, acks=-1, timeout_ms=10_000, topic_data=topics)


def write_markers(world: World, names: Names) -> Message:
    topic = markers.WritableTxnMarkerTopic(name=NO_SUCH, partition_indexes=(0,))
    marker = markers.WritableTxnMarker(
        producer_id=4242, producer_epoch=0, topics=(topic,), coordinator_epoch=0
    )
    return markers.WriteTxnMarkersRequest(markers=(marker,))


def describe_transactions(world: World, names: Names) -> Message:
    return DescribeTransactionsRequest(transactional_ids=(names.txn, "no-such-transaction"))


def list_transactions(world: World, names: Names) -> Message:
    return ListTransactionsRequest()


READ_BOTH = each(on(O.READ, GROUP, "group"), on(O.READ, TOPIC, "a"))
DESCRIBE_BOTH = each(on(O.DESCRIBE, GROUP, "group"), on(O.DESCRIBE, TOPIC, "a"))
WHOLLY_DESCRIBED = each(on(O.DESCRIBE, GROUP, "group", "other_group"), on(O.DESCRIBE, TOPIC, "a", "b"))
ID_AND_GROUP = each(on(O.WRITE, TXN, "txn"), on(O.READ, GROUP, "group"))
SENT = each(ID_AND_GROUP, on(O.READ, TOPIC, "a"))
READ, DESCRIBE = on(O.READ, GROUP, "group"), on(O.DESCRIBE, GROUP, "group")

CASES = (
    Case("commit", commit_offsets, READ_BOTH, 9),
    Case("commit-by-id", commit_by_id, READ_BOTH),
    Case("fetch-offsets", fetch_offsets, DESCRIBE_BOTH, 9, have_offsets),
    Case("fetch-offsets-by-id", fetch_by_id, DESCRIBE_BOTH, None, have_offsets),
    Case("fetch-all-offsets", fetch_all_offsets, DESCRIBE_BOTH, 9, have_offsets),
    Case("fetch-all-offsets-by-id", fetch_all_offsets, DESCRIBE_BOTH, None, have_offsets),
    Case("fetch-offsets-5", fetch_5, DESCRIBE_BOTH, 5, have_offsets),
    Case("fetch-all-offsets-5", fetch_all_5, DESCRIBE_BOTH, 5, have_offsets),
    Case(
        "forget-offsets",
        forget_offsets,
        each(on(O.DELETE, GROUP, "group"), on(O.READ, TOPIC, "a")),
        None,
        have_offsets,
    ),
    Case("find-group", find_group, DESCRIBE),
    Case("find-group-3", find_group_3, DESCRIBE, 3),
    Case("find-transaction", find_transaction, on(O.DESCRIBE, TXN, "txn"), None, have_transaction),
    Case("join", join, READ),
    Case("sync", sync, READ),
    Case("sync-without-protocol", sync_without_protocol, READ),
    Case("heartbeat", beat, READ),
    Case("leave", leave, READ),
    Case("consumer-heartbeat", consumer_heartbeat, each(READ, on(O.DESCRIBE, TOPIC, "a"))),
    Case("describe-groups", describe_groups, DESCRIBE, None, have_offsets),
    Case("describe-consumers", describe_consumers, WHOLLY_DESCRIBED, None, have_consumers),
    Case("list-groups", list_groups, DESCRIBE, None, have_offsets),
    Case("list-groups-on-cluster", list_groups, on_cluster(O.DESCRIBE), None, have_offsets),
    Case("delete-groups", delete_groups, on(O.DELETE, GROUP, "group"), None, have_offsets, changes=True),
    Case("init-idempotent", init_idempotent, on_cluster(O.IDEMPOTENT_WRITE)),
    Case("init-idempotent-by-topic", init_idempotent, on(O.WRITE, TOPIC, "a")),
    Case("init-transactional", init_transactional, on(O.WRITE, TXN, "txn")),
    Case(
        "add-partitions",
        add_partitions,
        each(on(O.WRITE, TXN, "txn"), on(O.WRITE, TOPIC, "a", "b")),
        3,
        have_transaction,
    ),
    Case("add-partitions-as-broker", add_as_broker, on_cluster(O.CLUSTER_ACTION), None, have_transaction),
    Case("add-offsets", add_offsets, ID_AND_GROUP, None, have_transaction),
    Case("end", end, on(O.WRITE, TXN, "txn"), None, have_transaction),
    Case("commit-in-transaction", commit_in_transaction, SENT, 4, have_transaction),
    Case(
        "produce-in-transaction",
        produce_in_transaction,
        each(on(O.WRITE, TXN, "txn"), on(O.WRITE, TOPIC, "a")),
        11,
        have_transaction,
    ),
    Case("write-markers", write_markers, on_cluster(O.CLUSTER_ACTION)),
    Case("write-markers-as-operator", write_markers, on_cluster(O.ALTER)),
    Case(
        "describe-transactions",
        describe_transactions,
        each(on(O.DESCRIBE, TXN, "txn"), on(O.DESCRIBE, TOPIC, "a")),
        None,
        have_transaction,
    ),
    Case("list-transactions", list_transactions, on(O.DESCRIBE, TXN, "txn"), None, have_transaction),
)
