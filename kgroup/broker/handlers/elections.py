"""ElectLeaders: the preferred replicas of partitions lead them again."""

from __future__ import annotations

from collections import defaultdict

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.handlers.partitions import code_of
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from kgroup.runtime.placement import Placement

PREFERRED, UNCLEAN = 0, 1  # election types


def elect_leaders(broker: Dispatcher, call: Call[ElectLeadersRequest]) -> ElectLeadersResponse:
    """Elect each partition's leader; if all are asked for, those with the right leader are omitted."""
    request = call.body
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    requested = request.topic_partitions
    if requested is None:
        requested = tuple(
            TopicPartitions(topic=name, partitions=tuple(range(topic.partitions)))
            for name, topic in broker.cluster.catalog.topics.items()
        )
    elected: dict[str, dict[int, Placement]] = defaultdict(dict)
    results = []
    for topic in requested:
        of_topic = []
        for partition in topic.partitions:
            code, text = ErrorCode.NONE, None
            try:
                elected[topic.topic][partition] = _elected(broker, request, topic.topic, partition)
            except (Refused, StorageError) as error:
                code, text = code_of(broker, call, error), error.message
            if code != ErrorCode.ELECTION_NOT_NEEDED or request.topic_partitions is not None:
                of_topic.append(PartitionResult(partition_id=partition, error_code=code, error_message=text))
        results.append(ReplicaElectionResult(topic=topic.topic, partition_result=tuple(of_topic)))
    _carry_out(broker, elected)
    return ElectLeadersResponse(replica_election_results=tuple(results))


def _elected(broker: Dispatcher, request: ElectLeadersRequest, name: str, partition: int) -> Placement:
    topic = broker.cluster.catalog.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= partition < topic.partitions:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{partition}.")
    now = broker.cluster.placement_of(topic, partition)
    if request.election_type == UNCLEAN or now.leader == now.replicas[0]:
        raise Refused(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    log = broker.cluster.log(name, partition)
    assert log is not None
    return now.elected(log.end_offset)


def _carry_out(broker: Dispatcher, elected: dict[str, dict[int, Placement]]) -> None:
    """Move the partitions in one write of the catalog, and notify those that wait at the old leaders."""
    with broker.together():
        for topic, placements in elected.items():
            broker.cluster.place(topic, placements)
    for topic, placements in elected.items():
        for partition in placements:
            broker.watchers.notify((topic, partition))


APIS = (Api(ElectLeadersRequest, elect_leaders),)
