"""Requests about share groups: to the shard of the group, and to the share coordinator (KIP-932)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import AnyApi, Api, Dispatcher
from kgroup.broker.handlers.groups import by_group, to_shard
from kgroup.broker.handlers.groups import delete_groups as delete_each
from kgroup.broker.handlers.repeats import as_often_as_asked
from kgroup.broker.handlers.share_fetch import check_member_id, refuse_if_off
from kgroup.coordinator.share import offsets, state_partitions
from kgroup.coordinator.share.group import Initialize, ShareGroup
from kgroup.coordinator.state import Step
from kgroup.domain import NO_OFFSET, OFFSETS_TOPIC, ZERO_UUID
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
)
from kgroup.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kgroup.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kgroup.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kgroup.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
)
from kgroup.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kgroup.runtime.shard import Shard
from kgroup.share.coordinator import StateKey

log = logging.getLogger(__name__)
R = TypeVar("R")


def heartbeat(broker: Dispatcher, call: Call[ShareGroupHeartbeatRequest]) -> Answer:
    """Pass it to the group's shard; the share coordinator initializes missing state before the answer.

    The answer does not wait for that, as in Kafka: the next heartbeat assigns what is ready by then.
    """
    refuse_if_off(broker)
    check_member_id(call.body.member_id)
    answer = to_shard(broker, call)
    group_id = call.body.group_id
    if isinstance(answer, ShareGroupHeartbeatResponse) and not answer.error_code:
        asked = _shard(broker, group_id, call.node).coordinator.take_to_initialize(group_id)
        if asked is not None:
            _begin(broker, group_id, call.node, asked)
    return answer


def describe(broker: Dispatcher, call: Call[ShareGroupDescribeRequest]) -> Answer:
    """Return share groups, each from its shard."""
    refuse_if_off(broker)
    return by_group(broker, call, as_often_as_asked(call.body.group_ids, str), "group_ids")


def _begin(broker: Dispatcher, group_id: str, node: int, asked: Initialize) -> dict[StateKey, Refused | None]:
    """Have the share coordinator initialize state, and record the result; return the errors by partition."""
    done = broker.share_state.initialize(group_id, asked.state_epoch, asked.offsets)
    for key in done:
        broker.share_partitions.drop(key)
    failed = [refused for refused in done.values() if refused is not None]
    if failed:
        broker.cluster.complaints.say(
            log, f"share group {group_id}", f"the state of its partitions is not begun: {failed[0].message}"
        )
    partitions = {topic_id: set(numbers) for topic_id, numbers in asked.offsets.items()}
    record = state_partitions.abandoned if failed else state_partitions.initialized

    def recorded(step: Step) -> None:
        group = step.state.groups.get(group_id)
        if isinstance(group, ShareGroup):
            record(step, group, partitions)

    _run(broker, group_id, node, recorded)
    return done


def alter_offsets(broker: Dispatcher, call: Call[AlterShareGroupOffsetsRequest]) -> Answer:
    """Start partitions of a group without members at other offsets, and drop all deliveries."""
    refuse_if_off(broker)
    request = call.body
    if not request.group_id:
        raise Refused(ErrorCode.INVALID_GROUP_ID)
    answer, asked = _run(broker, request.group_id, call.node, lambda step: offsets.alter(step, request))
    if not asked.offsets:
        return answer
    done = _begin(broker, request.group_id, call.node, asked)
    refused = {key[1:]: why for key, why in done.items() if why is not None}
    responses = []
    for topic in answer.responses:
        partitions = tuple(
            partition
            if (why := refused.get((topic.topic_id, partition.partition_index))) is None
            else replace(partition, error_code=why.code, error_message=why.message)
            for partition in topic.partitions
        )
        responses.append(replace(topic, partitions=partitions))
    return replace(answer, responses=tuple(responses))


def delete_offsets(broker: Dispatcher, call: Call[DeleteShareGroupOffsetsRequest]) -> Answer:
    """Delete all that a group without members has read of topics."""
    refuse_if_off(broker)
    request = call.body
    group_id = request.group_id
    if not group_id:
        raise Refused(ErrorCode.INVALID_GROUP_ID)
    absent, to_delete = _run(broker, group_id, call.node, lambda step: offsets.begin_delete(step, request))
    if not to_delete:
        return DeleteShareGroupOffsetsResponse(responses=tuple(absent))
    refused = _forgotten(broker, group_id, to_delete)
    gone = [topic_id for topic_id in to_delete if topic_id not in refused]
    _run(broker, group_id, call.node, lambda step: offsets.end_delete(step, group_id, gone))
    image = broker.cluster.catalog.image
    topics = (
        DeleteShareGroupOffsetsResponseTopic(
            topic_name=image.name_of(topic_id) or "",
            topic_id=topic_id,
            error_code=refused[topic_id].code if topic_id in refused else ErrorCode.NONE,
            error_message=refused[topic_id].message if topic_id in refused else None,
        )
        for topic_id in to_delete
    )
    return DeleteShareGroupOffsetsResponse(responses=(*topics, *absent))


def _forgotten(broker: Dispatcher, group_id: str, to_delete: dict[bytes, set[int]]) -> dict[bytes, Refused]:
    """Have the share coordinator remove partitions; return why not, by topic."""
    refused: dict[bytes, Refused] = {}
    for key, why in broker.share_state.delete(group_id, to_delete).items():
        broker.share_partitions.drop(key)
        if why is not None:
            refused.setdefault(key.topic_id, why)
    return refused


def delete_groups(broker: Dispatcher, call: Call[DeleteGroupsRequest]) -> Answer:
    """Delete groups of any kind, each by its shard; of share groups first the share coordinator's state.

    A group whose state could not be removed stays.
    """
    refused: dict[str, ErrorCode] = {}
    for group_id in dict.fromkeys(call.body.groups_names):
        try:
            partition = broker.partition_of(group_id)
            shard = broker.cluster.shards[partition]
            if shard is None or broker.cluster.leader_of(OFFSETS_TOPIC, partition) != call.node:
                continue
            if isinstance(shard.coordinator.state.groups.get(group_id), ShareGroup):
                begin = partial(offsets.begin_delete_group, group_id=group_id)
                to_delete = _run(broker, group_id, call.node, begin)
                for why in _forgotten(broker, group_id, to_delete).values():
                    raise why
        except Refused as error:
            refused[group_id] = error.code
    if not refused:
        return delete_each(broker, call)
    call.body = replace(
        call.body, groups_names=tuple(name for name in call.body.groups_names if name not in refused)
    )
    answer = delete_each(broker, call)
    assert isinstance(answer, DeleteGroupsResponse)  # no group is deleted later than it is asked for
    results = (DeletableGroupResult(group_id=name, error_code=code) for name, code in refused.items())
    return DeleteGroupsResponse(results=(*answer.results, *results))


def describe_offsets(broker: Dispatcher, call: Call[DescribeShareGroupOffsetsRequest]) -> Answer:
    """Return where groups begin in partitions, and how many records are left."""
    catalog = broker.cluster.catalog
    groups = []
    for group in as_often_as_asked(call.body.groups, lambda group: group.group_id):
        try:
            refuse_if_off(broker)
            shard = _shard(broker, group.group_id, call.node)
        except Refused as refused:
            groups.append(
                DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id, error_code=refused.code, error_message=refused.message
                )
            )
            continue
        if group.topics is None:
            known = shard.coordinator.state.groups.get(group.group_id)
            kept = state_partitions.kept_of(known).initialized_topics if isinstance(known, ShareGroup) else ()
            named = ((catalog.image.name_of(topic.topic_id), topic.partitions) for topic in kept)
            requested = [(name, numbers) for name, numbers in named if name is not None]
        else:
            requested = [(topic.topic_name, topic.partitions) for topic in group.topics]
        topics = []
        for name, numbers in requested:
            topic_id = catalog.image.id_of(name)
            partitions = tuple(
                DescribeShareGroupOffsetsResponsePartition(partition_index=number, start_offset=NO_OFFSET)
                if topic_id is None
                else _of_partition(broker, name, StateKey(group.group_id, topic_id, number))
                for number in numbers
            )
            topics.append(
                DescribeShareGroupOffsetsResponseTopic(
                    topic_name=name, topic_id=topic_id or ZERO_UUID, partitions=partitions
                )
            )
        groups.append(DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, topics=tuple(topics)))
    return DescribeShareGroupOffsetsResponse(groups=tuple(groups))


def _of_partition(broker: Dispatcher, name: str, key: StateKey) -> DescribeShareGroupOffsetsResponsePartition:
    """Return where a group begins in a partition, -1 without state, and what is left, -1 if unknown."""
    try:
        summary = broker.share_state.summary(key)
    except Refused:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=key.partition, start_offset=NO_OFFSET
        )
    lag = -1
    if summary.start_offset != NO_OFFSET and summary.delivery_complete_count != -1:
        end = broker.cluster.log(name, key.partition)
        assert end is not None
        lag = end.end_offset - summary.start_offset - summary.delivery_complete_count
        lag = (lag + 2**63) % 2**64 - 2**63  # a Java long: Kafka takes any start offset, and subtracts it
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition,
        start_offset=summary.start_offset,
        leader_epoch=summary.leader_epoch,
        lag=lag,
    )


def _shard(broker: Dispatcher, group_id: str, node: int) -> Shard:
    partition = broker.partition_of(group_id)
    shard = broker.cluster.shards[partition]
    if shard is None or broker.cluster.leader_of(OFFSETS_TOPIC, partition) != node:
        raise Refused(ErrorCode.NOT_COORDINATOR, "This is not the correct coordinator.")
    return shard


def _run(broker: Dispatcher, group_id: str, node: int, operation: Callable[[Step], R]) -> R:
    """Carry out an operation on the group's shard; NOT_COORDINATOR if `node` does not lead it."""
    shard = _shard(broker, group_id, node)
    result = shard.run(operation, broker.clock.now_ms(), broker.tickets.deliver)
    broker.watchers.notify((OFFSETS_TOPIC, shard.partition))
    return result


APIS: tuple[AnyApi, ...] = (
    Api(ShareGroupHeartbeatRequest, heartbeat),
    Api(ShareGroupDescribeRequest, describe),
    Api(DescribeShareGroupOffsetsRequest, describe_offsets),
    Api(AlterShareGroupOffsetsRequest, alter_offsets),
    Api(DeleteShareGroupOffsetsRequest, delete_offsets),
    Api(DeleteGroupsRequest, delete_groups),
)
