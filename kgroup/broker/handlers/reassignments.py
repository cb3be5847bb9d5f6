"""AlterPartitionReassignments, ListPartitionReassignments and ElectLeaders: replicas and leaders.

All brokers share one log per partition: a move is done when it is answered, so none is ever under way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.handlers.partitions import code_of
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import alter_partition_reassignments as alter
from kgroup.protocol.messages import elect_leaders as elect
from kgroup.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kgroup.runtime.placement import Placement, check_replicas

PREFERRED, UNCLEAN = 0, 1  # election types


def reassign(
    broker: Dispatcher, call: Call[alter.AlterPartitionReassignmentsRequest]
) -> alter.AlterPartitionReassignmentsResponse:
    """Move each partition by itself; those that may move lie on their new brokers when this returns."""
    request = call.body
    moves = _Moves(broker, call)
    responses = []
    for topic in request.topics:
        of_topic = []
        for requested in topic.partitions:
            find = partial(_moved, broker, request, topic.name, requested)
            code, text = moves.plan(topic.name, requested.partition_index, find)
            of_topic.append(
                alter.ReassignablePartitionResponse(
                    partition_index=requested.partition_index, error_code=code, error_message=text
                )
            )
        responses.append(alter.ReassignableTopicResponse(name=topic.name, partitions=tuple(of_topic)))
    moves.carry_out()
    return alter.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=tuple(responses)
    )


def list_reassignments(broker: Dispatcher, call: Call[Message]) -> ListPartitionReassignmentsResponse:
    """Return none: a move is over at once."""
    return ListPartitionReassignmentsResponse()


def elect_leaders(broker: Dispatcher, call: Call[elect.ElectLeadersRequest]) -> elect.ElectLeadersResponse:
    """Elect each partition's leader; if all are asked for, those with the right leader are omitted."""
    request = call.body
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    topics = broker.cluster.catalog.topics
    requested = request.topic_partitions
    if requested is None:
        requested = tuple(
            elect.TopicPartitions(topic=name, partitions=tuple(range(topic.partitions)))
            for name, topic in topics.items()
        )
    moves = _Moves(broker, call)
    results = []
    for topic in requested:
        of_topic = []
        for partition in topic.partitions:
            find = partial(_elected, broker, request, topic.topic, partition)
            code, text = moves.plan(topic.topic, partition, find)
            if code != ErrorCode.ELECTION_NOT_NEEDED or request.topic_partitions is not None:
                of_topic.append(
                    elect.PartitionResult(partition_id=partition, error_code=code, error_message=text)
                )
        results.append(elect.ReplicaElectionResult(topic=topic.topic, partition_result=tuple(of_topic)))
    moves.carry_out()
    return elect.ElectLeadersResponse(replica_election_results=tuple(results))


class _Moves:
    """The new places of a request's partitions; they are one write of the catalog."""

    def __init__(self, broker: Dispatcher, call: Call[Message]) -> None:
        self._broker, self._call = broker, call
        self._by_topic: dict[str, dict[int, Placement]] = defaultdict(dict)

    def plan(self, topic: str, partition: int, find: Callable[[], Placement]) -> tuple[int, str | None]:
        """Note the place that `find` names; error code and message."""
        try:
            self._by_topic[topic][partition] = find()
        except (Refused, StorageError) as error:
            return code_of(self._broker, self._call, error), error.message
        return ErrorCode.NONE, None

    def carry_out(self) -> None:
        """Move what can be moved, and notify those that wait at the old leaders."""
        with self._broker.together():
            for topic, placements in self._by_topic.items():
                if placements:
                    self._broker.cluster.place(topic, placements)
        for topic, placements in self._by_topic.items():
            for partition in placements:
                self._broker.watchers.notify((topic, partition))


def _moved(
    broker: Dispatcher,
    request: alter.AlterPartitionReassignmentsRequest,
    name: str,
    requested: alter.ReassignablePartition,
) -> Placement:
    now = _known(broker, name, requested.partition_index)
    if requested.replicas is None:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_replicas(requested.replicas, broker.cluster.nodes)
    if not request.allow_replication_factor_change and len(requested.replicas) != len(now.replicas):
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(now.replicas)} to {len(requested.replicas)}",
        )
    return now.moved(requested.replicas, _end_offset(broker, name, requested.partition_index))


def _elected(broker: Dispatcher, request: elect.ElectLeadersRequest, name: str, partition: int) -> Placement:
    now = _known(broker, name, partition)
    if request.election_type == UNCLEAN or now.leader == now.replicas[0]:
        raise Refused(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    return now.elected(_end_offset(broker, name, partition))


def _known(broker: Dispatcher, name: str, partition: int) -> Placement:
    """Return a partition's place."""
    topic = broker.cluster.catalog.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= partition < topic.partitions:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{partition}.")
    return broker.cluster.placement_of(topic, partition)


def _end_offset(broker: Dispatcher, name: str, partition: int) -> int:
    log = broker.cluster.log(name, partition)
    assert log is not None
    return log.end_offset


APIS = (
    Api(alter.AlterPartitionReassignmentsRequest, reassign),
    Api(ListPartitionReassignmentsRequest, list_reassignments),
    Api(elect.ElectLeadersRequest, elect_leaders),
)
