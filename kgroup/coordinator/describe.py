"""ListGroups, DescribeGroups and ConsumerGroupDescribe: what the coordinator shows of its groups."""

from __future__ import annotations

from kgroup.coordinator.assignors.interface import Assignment as Target
from kgroup.coordinator.classic.group import ClassicGroup, ClassicMember
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember, Epochs
from kgroup.coordinator.groups import type_of
from kgroup.coordinator.share import describe as share
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Step
from kgroup.coordinator.streams import describe as streams
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import TopicImage
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    Member,
    TopicPartitions,
)
from kgroup.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from kgroup.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kgroup.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kgroup.protocol.messages.share_group_describe import DescribedGroup as DescribedShareGroup
from kgroup.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kgroup.protocol.messages.streams_group_describe import DescribedGroup as DescribedStreamsGroup
from kgroup.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

NOT_FOUND_SINCE = 6
EVERY_GROUP_OPERATION = sum(1 << operation for operation in (3, 6, 8, 10, 11))
"""READ, DELETE, DESCRIBE and both config operations: without an authorizer any caller has them all (KIP-430).

`kgroup.broker.rights.groups` restricts what a caller with fewer rights may see.
"""
NOT_ASKED = -(1 << 31)
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def list_groups(step: Step, request: ListGroupsRequest) -> ListGroupsResponse:
    """Return every group of the shard whose state and type are among those asked for, in any case."""
    # Kafka 4.3.1 looks for "not_ready", and its own clients ask for "NotReady": either finds a group here.
    states = {state.strip().lower().replace("_", "") for state in request.states_filter}
    types = {name.strip().lower() for name in request.types_filter}
    return ListGroupsResponse(
        groups=tuple(
            ListedGroup(
                group_id=group.group_id,
                protocol_type=(
                    (group.protocol_type or "") if isinstance(group, ClassicGroup) else type_of(group)
                ),
                group_state=group.state,
                group_type=type_of(group),
            )
            for group in step.state.groups.values()
            if (not states or group.state.lower() in states) and (not types or type_of(group) in types)
        )
    )


def describe_groups(step: Step, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Return classic groups; any other is Dead, and since version 6 GROUP_ID_NOT_FOUND (KIP-1043)."""
    operations = EVERY_GROUP_OPERATION if request.include_authorized_operations else NOT_ASKED
    return DescribeGroupsResponse(
        groups=tuple(_classic(step, group_id, operations) for group_id in request.groups)
    )


def _classic(step: Step, group_id: str, operations: int) -> DescribedGroup:
    group = step.state.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        if step.version < NOT_FOUND_SINCE:
            return DescribedGroup(
                group_id=group_id, group_state=ClassicState.DEAD, authorized_operations=operations
            )
        missing = "not found" if group is None else "is not a classic group"
        return DescribedGroup(
            group_id=group_id,
            group_state=ClassicState.DEAD,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {missing}.",
        )
    # While it rebalances no protocol is chosen, so no member's subscription can be selected; the assignments
    # shown are still those of the last generation, as in Kafka.
    stable = group.state is ClassicState.STABLE
    protocol = group.protocol if stable else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=tuple(_classic_member(m, protocol) for m in (*group.members.values(), *group.held.values())),
        authorized_operations=operations,
    )


def _classic_member(member: ClassicMember, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(protocol),
        member_assignment=member.assignment,
    )


def describe_consumer_groups(
    step: Step, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Return consumer groups, with targets and assignments; any other is GROUP_ID_NOT_FOUND."""
    operations = EVERY_GROUP_OPERATION if request.include_authorized_operations else NOT_ASKED
    return ConsumerGroupDescribeResponse(
        groups=tuple(_consumer(step, group_id, operations) for group_id in request.group_ids)
    )


def describe_streams_groups(step: Step, request: StreamsGroupDescribeRequest) -> StreamsGroupDescribeResponse:
    """Return streams groups, with their topologies; any other is GROUP_ID_NOT_FOUND."""
    return StreamsGroupDescribeResponse(
        groups=tuple(_streams(step, group_id, request) for group_id in request.group_ids)
    )


def describe_share_groups(step: Step, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Return share groups; any other is GROUP_ID_NOT_FOUND."""
    operations = EVERY_GROUP_OPERATION if request.include_authorized_operations else NOT_ASKED
    return ShareGroupDescribeResponse(
        groups=tuple(_share(step, group_id, operations) for group_id in request.group_ids)
    )


def _share(step: Step, group_id: str, operations: int) -> DescribedShareGroup:
    group = step.state.groups.get(group_id)
    if not group_id:
        return DescribedShareGroup(error_code=ErrorCode.INVALID_GROUP_ID)
    if isinstance(group, ShareGroup):
        return share.described(step.state.image, group, operations)
    missing = "not found" if group is None else "is not a share group"
    return DescribedShareGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} {missing}.",
    )


def _streams(step: Step, group_id: str, request: StreamsGroupDescribeRequest) -> DescribedStreamsGroup:
    group = step.state.groups.get(group_id)
    if not group_id:
        return DescribedStreamsGroup(error_code=ErrorCode.INVALID_GROUP_ID)
    if isinstance(group, StreamsGroup):
        operations = EVERY_GROUP_OPERATION if request.include_authorized_operations else NOT_ASKED
        return streams.described(group, operations, with_description=request.include_topology_description)
    missing = "not found" if group is None else "is not a streams group"
    return DescribedStreamsGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} {missing}.",
    )


def _consumer(step: Step, group_id: str, operations: int) -> DescribedConsumerGroup:
    group = step.state.groups.get(group_id)
    if not group_id:
        return DescribedConsumerGroup(error_code=ErrorCode.INVALID_GROUP_ID)
    if not isinstance(group, ConsumerGroup):
        missing = "not found" if group is None else "is not a consumer group"
        return DescribedConsumerGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {missing}.",
        )
    image = step.state.image
    return DescribedConsumerGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor or step.config.consumer_assignors[0],
        members=tuple(_consumer_member(image, group, m) for m in group.members.values()),
        authorized_operations=operations,
    )


def _consumer_member(image: TopicImage, group: ConsumerGroup, member: ConsumerMember) -> Member:
    current = member.current
    # The member still owns what it is revoking.
    held: dict[bytes, set[int]] = {}
    for partitions in (current.assigned, current.revoking):
        for topic_id, numbers in partitions.items():
            held.setdefault(topic_id, set()).update(numbers)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.metadata.rack_id,
        member_epoch=member.epoch,
        client_id=member.metadata.client_id,
        client_host=member.metadata.client_host,
        subscribed_topic_names=member.names,
        subscribed_topic_regex=member.metadata.subscribed_topic_regex or "",
        assignment=_named(image, held),
        target_assignment=_named(image, group.target_of(member.member_id)),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _named(image: TopicImage, partitions: Epochs | Target | dict[bytes, set[int]]) -> Assignment:
    """Return partitions under their topics' names; omit deleted topics."""
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=tuple(sorted(numbers)))
            for topic_id, numbers in partitions.items()
            if (name := image.name_of(topic_id)) is not None
        )
    )
