"""Which brokers hold a partition and which one leads it: chosen, changed, elected, and known to clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgroup.broker.call import Call
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode
from kgroup.protocol.batches import LogRecord, batches_in, encode_batch
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kgroup.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kgroup.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kgroup.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kgroup.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.placement import Placement
from tests.unit.broker.brokers import create_topic

NO_CHANGE = ErrorCode.ELECTION_NOT_NEEDED
Replicas = tuple[int, ...]


def create(transport: EmbeddedTransport, placed: dict[int, Replicas], partitions: int = -1) -> int:
    assignments = tuple(
        CreatableReplicaAssignment(partition_index=p, broker_ids=ids) for p, ids in placed.items()
    )
    topic = CreatableTopic(
        name="t", num_partitions=partitions, replication_factor=-1, assignments=assignments
    )
    answer = transport.request(None, CreateTopicsRequest(topics=(topic,)))
    return int(answer.topics[0].error_code)  # type: ignore[attr-defined]


def places(transport: EmbeddedTransport, topic: str = "t") -> dict[int, tuple[int, int, Replicas]]:
    """Partition → leader, its epoch, replicas; from the metadata."""
    request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
    (found,) = transport.request(None, request).topics  # type: ignore[attr-defined]
    return {p.partition_index: (p.leader_id, p.leader_epoch, p.replica_nodes) for p in found.partitions}


def lead(transport: EmbeddedTransport, node: int, topic: str = "t", partition: int = 0) -> None:
    """Make a broker lead a partition, as the control port does."""
    cluster = transport.cluster
    log = cluster.log(topic, partition)
    assert log is not None
    placed = cluster.placement_of(cluster.catalog.topics[topic], partition)
    cluster.place(topic, {partition: placed.led_by(node, log.end_offset)})
    transport.dispatcher.watchers.notify((topic, partition))


def elect(transport: EmbeddedTransport, partitions: Replicas | None, kind: int = 0) -> dict[int, int]:
    wanted = None if partitions is None else (TopicPartitions(topic="t", partitions=partitions),)
    answer = transport.request(None, ElectLeadersRequest(election_type=kind, topic_partitions=wanted))
    assert isinstance(answer, ElectLeadersResponse)
    return {p.partition_id: p.error_code for t in answer.replica_election_results for p in t.partition_result}


def produced(transport: EmbeddedTransport, node: int, version: int = 12) -> ProduceResponse:
    data = PartitionProduceData(index=0, records=encode_batch([LogRecord(None, b"x")]))
    topic_id = transport.cluster.catalog.topics["t"].topic_id
    topic = TopicProduceData(name="t", topic_id=topic_id, partition_data=(data,))
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=(topic,))
    answer = transport.request(node, request, max_version=version)
    assert isinstance(answer, ProduceResponse)
    return answer


def produce(transport: EmbeddedTransport, node: int) -> int:
    return produced(transport, node).responses[0].partition_responses[0].error_code


def fetch_request(offset: int, epoch: int, wait_ms: int = 0) -> FetchRequest:
    ask = FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch
    )
    topic = FetchTopic(topic="t", partitions=(ask,))
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=(topic,))


@pytest.mark.parametrize(
    ("placed", "code"),
    [
        ({0: (2, 1), 1: (0, 2)}, ErrorCode.NONE),
        ({1: (1,), 0: (0,)}, ErrorCode.NONE),
        ({0: ()}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: (3,)}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: (1, 1)}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: (1,), 1: (1, 2)}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: (1,), 2: (1,)}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_partitions_are_placed_by_hand(
    transport: EmbeddedTransport, placed: dict[int, Replicas], code: ErrorCode
) -> None:
    assert create(transport, placed) == code
    if code == ErrorCode.NONE:
        assert places(transport) == {p: (ids[0], 0, ids) for p, ids in placed.items()}


def test_a_manual_assignment_leaves_no_number_to_choose(transport: EmbeddedTransport) -> None:
    assert create(transport, {0: (1,)}, partitions=1) == ErrorCode.INVALID_REQUEST


def test_new_partitions_are_placed_by_hand(transport: EmbeddedTransport) -> None:
    def grown(*placed: Replicas) -> int:
        assignments = tuple(CreatePartitionsAssignment(broker_ids=ids) for ids in placed)
        topic = CreatePartitionsTopic(name="t", count=3, assignments=assignments)
        answer = transport.request(None, CreatePartitionsRequest(topics=(topic,), timeout_ms=1))
        return int(answer.results[0].error_code)  # type: ignore[attr-defined]

    create_topic(transport, "t", 1)
    for wrong in [((0,),), ((0,), (5,)), ((0,), (1, 2)), ()]:
        assert grown(*wrong) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grown((2,), (0,)) == 0
    assert places(transport) == {0: (0, 0, (0,)), 1: (2, 0, (2,)), 2: (0, 0, (0,))}


def test_a_partition_moves_at_once_and_its_records_with_it(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", 2)
    assert produce(transport, 0) == 0
    lead(transport, 2)
    assert places(transport) == {0: (2, 1, (2,)), 1: (1, 0, (1,))}
    assert produce(transport, 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert produce(transport, 2) == 0
    answer = transport.request(2, fetch_request(0, 1), max_version=12)
    records = answer.responses[0].partitions[0].records  # type: ignore[attr-defined]
    assert [batch.partition_leader_epoch for batch in batches_in(records)] == [0, 1]


def test_the_preferred_replica_is_elected(transport: EmbeddedTransport) -> None:
    assert create(transport, {0: (0, 1), 1: (1, 0)}) == 0
    lead(transport, 1)
    assert places(transport)[0] == (1, 1, (0, 1))
    assert elect(transport, (0, 1, 2)) == {0: 0, 1: NO_CHANGE, 2: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert places(transport) == {0: (0, 2, (0, 1)), 1: (1, 0, (1, 0))}
    lead(transport, 1)
    assert elect(transport, (0,), kind=1) == {0: NO_CHANGE}
    assert elect(transport, None) == {0: 0}
    assert elect(transport, None) == {}
    answer = transport.request(None, ElectLeadersRequest(election_type=7, topic_partitions=None))
    assert answer.error_code == ErrorCode.INVALID_REQUEST  # type: ignore[attr-defined]


def test_old_leaders_are_fenced_and_epochs_told(transport: EmbeddedTransport) -> None:
    """KIP-320: a client that follows epochs finds the end of each."""

    def end_of(epoch: int) -> tuple[int, int]:
        ask = OffsetForLeaderPartition(partition=0, current_leader_epoch=2, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=(ask,)),))
        found = transport.request(1, request).topics[0].partitions[0]  # type: ignore[attr-defined]
        assert found.error_code == 0
        return found.leader_epoch, found.end_offset

    def epoch_of(timestamp: int) -> int:
        ask = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = ListOffsetsTopic(name="t", partitions=(ask,))
        answer = transport.request(1, ListOffsetsRequest(replica_id=-1, topics=(topic,)))
        return int(answer.topics[0].partitions[0].leader_epoch)  # type: ignore[attr-defined]

    create_topic(transport, "t", 1)
    produce(transport, 0)
    lead(transport, 2)
    produce(transport, 2)
    produce(transport, 2)
    lead(transport, 1)
    produce(transport, 1)
    assert [end_of(epoch) for epoch in (0, 1, 2, 3)] == [(0, 1), (1, 3), (2, 4), (-1, -1)]
    assert (epoch_of(-2), epoch_of(-1)) == (0, 2)
    for node, epoch, code in [
        (1, 1, ErrorCode.FENCED_LEADER_EPOCH),
        (1, 2, ErrorCode.NONE),
        (1, 3, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, 1, ErrorCode.FENCED_LEADER_EPOCH),
        (2, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ]:
        answer = transport.request(node, fetch_request(0, epoch), max_version=12)
        assert answer.responses[0].partitions[0].error_code == code  # type: ignore[attr-defined]


def test_a_fetch_at_the_wrong_broker_names_the_right_one(transport: EmbeddedTransport) -> None:
    """KIP-951: without a round of metadata."""
    create_topic(transport, "t", 1)
    lead(transport, 1)
    topic_id = transport.cluster.catalog.topics["t"].topic_id
    ask = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    wanted = FetchTopic(topic_id=topic_id, partitions=(ask,))
    answer = transport.request(0, FetchRequest(max_wait_ms=0, min_bytes=1, topics=(wanted,)))
    assert isinstance(answer, FetchResponse)
    (told,) = answer.responses[0].partitions
    assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (1, 1)
    assert [node.node_id for node in answer.node_endpoints] == [1]


@pytest.mark.parametrize(
    ("version", "leader", "endpoints"), [(9, (-1, -1), []), (10, (1, 1), [1]), (13, (1, 1), [1])]
)
def test_a_produce_at_the_wrong_broker_names_the_right_one(
    transport: EmbeddedTransport, version: int, leader: tuple[int, int], endpoints: list[int]
) -> None:
    """KIP-951: a producer need not wait for its next round of metadata, which may be seconds away."""
    create_topic(transport, "t", 1)
    lead(transport, 1)
    answer = produced(transport, 0, version)
    (told,) = answer.responses[0].partition_responses
    assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == leader
    assert [node.node_id for node in answer.node_endpoints] == endpoints
    answer = produced(transport, 1, version)
    (done,) = answer.responses[0].partition_responses
    assert (done.error_code, done.current_leader.leader_id, answer.node_endpoints) == (0, -1, ())


def test_who_waits_at_the_old_leader_is_told(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", 1)
    arrived: list[Message | None] = []
    call = Call(fetch_request(0, 0, wait_ms=5000), 12, "c", "/h", 0, arrived.append)
    assert transport.dispatcher.handle(call) is None
    lead(transport, 1)
    (answer,) = arrived
    assert isinstance(answer, FetchResponse)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_coordinator_moves_with_its_partition(transport: EmbeddedTransport) -> None:
    partition = transport.dispatcher.partition_of("g")
    to = (transport.cluster.leader_of(OFFSETS_TOPIC, partition) + 1) % 3
    lead(transport, to, OFFSETS_TOPIC, partition)
    answer = transport.request(None, FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)))
    assert answer.coordinators[0].node_id == to  # type: ignore[attr-defined]


def test_places_survive_a_restart_and_fewer_brokers(tmp_path: Path) -> None:
    transport = EmbeddedTransport(Cluster(tmp_path, brokers=3, offsets_partitions=1))
    assert create(transport, {0: (2, 1), 1: (2, 0)}) == 0
    produce(transport, 2)
    lead(transport, 0)
    before = places(transport)
    transport.close()
    transport = EmbeddedTransport(Cluster(tmp_path, brokers=3, offsets_partitions=1))
    assert places(transport) == before == {0: (0, 1, (0, 1)), 1: (2, 0, (2, 0))}
    transport.close()
    transport = EmbeddedTransport(Cluster(tmp_path, brokers=2, offsets_partitions=1))
    assert places(transport) == {0: (0, 1, (0, 1)), 1: (0, 0, (0,))}
    transport.close()


def test_epochs_without_records_leave_no_trace() -> None:
    placement = Placement((0,), 0).led_by(1, 0).led_by(2, 5).led_by(0, 5)
    assert placement.epochs == ((1, 0), (3, 5))
    assert placement.end_of(0, 9) == (0, 0)
    assert placement.end_of(1, 9) == placement.end_of(2, 9) == (1, 5)
    assert [placement.epoch_at(offset) for offset in (0, 4, 5)] == [1, 1, 3]
