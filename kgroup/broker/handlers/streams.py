"""Requests about streams groups; their internal topics are created here (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.handlers.groups import by_group, to_shard
from kgroup.broker.handlers.repeats import as_often_as_asked
from kgroup.broker.topics import check_name, new_topic, too_many
from kgroup.coordinator.streams.topology import StatusCode
from kgroup.domain import INTERNAL_TOPICS, first_of
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
)
from kgroup.protocol.messages.streams_group_describe import Topology as DescribedTopology
from kgroup.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)
from kgroup.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from kgroup.protocol.releases import STREAMS_VERSION
from kgroup.protocol.streams_records import TopicInfo

ERRORS_SHOWN = 3


def heartbeat(
    broker: Dispatcher,
    call: Call[StreamsGroupHeartbeatRequest],
    creatable: Callable[[str], bool] | None = None,
) -> Answer:
    """Pass it to the group's shard; create missing internal topics before the answer goes out.

    As in Kafka the answer still reports them missing: the next heartbeat finds them. `creatable` returns
    which of them may be created, None for all; one that may not blocks the others.
    """
    _refuse_if_off(broker)
    request = call.body
    if request.topology is not None:
        refuse_names(request.topology)
    answer = to_shard(broker, call)
    if not isinstance(answer, StreamsGroupHeartbeatResponse):
        return answer
    shard = broker.cluster.shards[broker.partition_of(request.group_id)]
    missing = None if shard is None else shard.coordinator.take_missing_topics(request.group_id)
    if not missing:
        return answer
    refused = [info.name for info in missing if creatable is not None and not creatable(info.name)]
    if not refused:
        return _created(broker, missing, answer)
    text = f"Unauthorized to CREATE on topics {', '.join(refused)}."
    code, status = StatusCode.MISSING_INTERNAL_TOPICS, answer.status or ()
    if all(one.status_code != code for one in status):
        return replace(answer, status=(*status, Status(status_code=code, status_detail=text)))
    return replace(
        answer,
        status=tuple(
            replace(one, status_detail=f"{one.status_detail}; {text}") if one.status_code == code else one
            for one in status
        ),
    )


def describe(broker: Dispatcher, call: Call[StreamsGroupDescribeRequest]) -> Answer:
    """Return streams groups, each from its shard."""
    _refuse_if_off(broker)
    return by_group(broker, call, as_often_as_asked(call.body.group_ids, str), "group_ids")


def describe_topology(broker: Dispatcher, _: Call[StreamsGroupTopologyDescriptionUpdateRequest]) -> Answer:
    """Refuse a description, as Kafka does without a plugin that stores it (KIP-1331)."""
    _refuse_if_off(broker)
    raise Refused(
        ErrorCode.UNSUPPORTED_VERSION,
        "The broker has no streams group topology description plugin configured.",
    )


def _refuse_if_off(broker: Dispatcher) -> None:
    if not broker.cluster.catalog.features.levels.get(STREAMS_VERSION):
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, "The streams group protocol is not enabled.")


def topics_of(topology: Topology | DescribedTopology) -> list[str]:
    """Return every topic that a topology names, once."""
    return list(
        dict.fromkeys(
            name
            for part in topology.subtopologies or ()
            for name in (
                *part.source_topics,
                *part.repartition_sink_topics,
                *(info.name for info in part.repartition_source_topics),
                *(info.name for info in part.state_changelog_topics),
            )
        )
    )


def refuse_names(topology: Topology) -> None:
    """Raise STREAMS_INVALID_TOPOLOGY for topics that no application may read, write or create."""
    names = topics_of(topology)
    if prohibited := [name for name in names if name in INTERNAL_TOPICS]:
        raise _invalid(
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited."
        )
    invalid = []
    for name in names:
        try:
            check_name(name)
        except Refused:
            invalid.append(name)
    if invalid:
        raise _invalid(f"Topic names {','.join(invalid)} are not valid topic names.")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _created(
    broker: Dispatcher, missing: Collection[TopicInfo], answer: StreamsGroupHeartbeatResponse
) -> StreamsGroupHeartbeatResponse:
    """Return the answer, with the reasons why topics could not be created, if any could not."""
    refused: dict[str, str] = {}
    if why := too_many(broker.cluster, sum(info.partitions for info in missing)):
        refused = {info.name: why for info in missing}
    with broker.together():
        for info in () if refused else missing:
            settings = {config.key: config.value for config in info.topic_configs}
            try:
                made = new_topic(
                    broker.cluster, info.name, info.partitions, info.replication_factor or -1, settings
                )
                broker.cluster.create_topic(made)
            except Refused as error:
                refused[info.name] = error.message or error.code.name
    if not refused:
        return answer
    reasons = first_of([f"{name} ({why})" for name, why in refused.items()], ERRORS_SHOWN)
    status = tuple(
        replace(one, status_detail=f"{one.status_detail}; Creation failed: {reasons}.")
        if one.status_code == StatusCode.MISSING_INTERNAL_TOPICS
        else one
        for one in answer.status or ()
    )
    return replace(answer, status=status)


APIS: tuple[Api[Any], ...] = (
    Api(StreamsGroupHeartbeatRequest, heartbeat),
    Api(StreamsGroupDescribeRequest, describe),
    Api(StreamsGroupTopologyDescriptionUpdateRequest, describe_topology),
)
