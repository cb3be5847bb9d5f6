"""Read what decides a migration: the members' own bytes, the coordinator's settings, what it serves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.migrate.kinds import CONSUMERS, Kind, kind_of_assignor, kind_of_empty
from kgroup.admin.migrate.models import Evidence, Logged, MemberEvidence
from kgroup.admin.models import CLASSIC, CONSUMER, DEAD, EMPTY, GroupDescription
from kgroup.admin.read.describe import CONSUMER_GROUP_DESCRIBE, one_group, tells_instances
from kgroup.admin.read.members import metadata_of
from kgroup.admin.refusals import check, refused
from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of
from kgroup.errors import BrokerRefused, DecodeError, ErrorCode, KgroupError, SafetyRefused, Unreachable
from kgroup.protocol.subscription import Assignment, Subscription, version_of
from kgroup.security.rights import DESCRIBE, DESCRIBE_CONFIGS, on_cluster, on_group

if TYPE_CHECKING:
    from kgroup.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember

API_VERSIONS, CONSUMER_GROUP_HEARTBEAT = 18, 68
BROKER_RESOURCE, GROUP_RESOURCE = 4, 32
FEATURES_SINCE = 3
MEMBER_TYPES_SINCE = 1


def gather(
    cluster: ClusterView, group_id: str, *, all_topics: bool = False, read_log: bool = False
) -> Evidence:
    """What is to be known about a group before it is migrated.

    `all_topics` adds the names of all topics, `read_log` what only the records tell (it reads the group's
    partition of `__consumer_offsets`). BrokerRefused when the group cannot be described, SafetyRefused for
    groups of other types.
    """
    group = one_group(cluster, group_id)
    if group.type not in (CLASSIC, CONSUMER):
        raise SafetyRefused(f"{group_id} is a {group.type} group: groups of that type cannot be migrated")
    broker = group.coordinator.id if group.coordinator is not None else -1
    members: tuple[MemberEvidence, ...] = ()
    if group.type == CLASSIC:
        group, members = _members(cluster, group)
    settings, refusal = _settings(cluster, broker, BROKER_RESOURCE, str(broker))
    own, own_refusal = _settings(cluster, broker, GROUP_RESOURCE, group_id)
    empty = group.type == CLASSIC and group.state == EMPTY
    names = (
        frozenset(
            topic.name for topic in cluster.metadata(None).topics if topic.name and not topic.is_internal
        )
        if all_topics or empty
        else None
    )
    served = cluster.transport.versions(broker, CONSUMER_GROUP_DESCRIBE)
    return Evidence(
        group=group,
        members=members,
        broker=broker,
        serves_heartbeat=cluster.transport.versions(broker, CONSUMER_GROUP_HEARTBEAT) is not None,
        group_version=_group_version(cluster, broker),
        settings=settings,
        settings_error=None if refusal is None else refusal.message,
        settings_code=None if refusal is None else refusal.name,
        own_settings=own,
        own_error=None if own_refusal is None else own_refusal.message,
        topic_names=names if all_topics else None,
        logged=read_logged(cluster, group_id) if read_log else None,
        member_types=(served is not None and served[-1] >= MEMBER_TYPES_SINCE),
        kind=_kind(cluster, group, names or ()),
    )


def _kind(cluster: ClusterView, group: GroupDescription, topic_names: Collection[str]) -> Kind:
    if group.type == CLASSIC and group.state == EMPTY and group.protocol_type in ("", CONSUMER):
        return kind_of_empty(cluster, group.group_id, topic_names)
    if group.type == CLASSIC and group.assignor:
        return kind_of_assignor(group.assignor)
    return Kind(CONSUMERS if group.type == CONSUMER else None, "it rebalances: its assignor is not told now")


def _members(
    cluster: ClusterView, group: GroupDescription
) -> tuple[GroupDescription, tuple[MemberEvidence, ...]]:
    """The members' bytes, and the group in the state it was in when they were read."""
    from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

    def ask(node: int, _: Sequence[str], left_s: float) -> Answers[DescribedGroup]:
        request = DescribeGroupsRequest(groups=(group.group_id,))
        answer = cluster.ask(node, request, DescribeGroupsResponse, timeout_s=left_s)
        (told,) = answer.groups
        if told.error_code:
            needs = [on_group(DESCRIBE, group.group_id)]
            what = f"group {group.group_id}"
            return {group.group_id: refused(told.error_code, what, told.error_message, needs)}
        return {group.group_id: told}

    told = cluster.ask_coordinators([group.group_id], ask, idempotent=True)[group.group_id]
    if isinstance(told, KgroupError):
        raise told
    if told.group_state == DEAD:
        raise refused(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group.group_id}", "it changed while it was read")
    now = replace(
        group, state=told.group_state, protocol_type=told.protocol_type, assignor=told.protocol_data or None
    )
    tells = tells_instances(cluster, node.id) if (node := group.coordinator) is not None else True
    return now, tuple(sorted((member_of(member, tells) for member in told.members), key=lambda s: s.name))


def member_of(wire: DescribedGroupMember, tells_instances: bool = True) -> MemberEvidence:
    """A member out of DescribeGroups, with its embedded bytes taken apart."""
    metadata = metadata_of(wire, tells_instances)
    faults = []
    subscription, subscription_version = None, None
    assignment, assignment_version = Assignment(), None
    try:
        if metadata:
            subscription_version = version_of(metadata)
            subscription = Subscription.decode(metadata)
    except DecodeError as error:
        faults.append(f"subscription: {error.message}")
    try:
        if wire.member_assignment:
            assignment_version = version_of(wire.member_assignment)
            assignment = Assignment.decode(wire.member_assignment)
    except DecodeError as error:
        faults.append(f"assignment: {error.message}")
    return MemberEvidence(
        member_id=wire.member_id,
        instance_id=wire.group_instance_id,
        client_id=wire.client_id,
        host=wire.client_host.removeprefix("/"),
        subscription=subscription,
        subscription_version=subscription_version,
        assignment_version=assignment_version,
        assigned=frozenset(assignment.partitions),
        user_data_bytes=len(assignment.user_data or b""),
        faults=tuple(faults),
        instance_id_known=tells_instances,
    )


def _settings(
    cluster: ClusterView, broker: int, kind: int, name: str
) -> tuple[Mapping[str, str] | None, BrokerRefused | None]:
    """The settings of a resource as the broker gives them, or why it does not."""
    from kgroup.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResponse,
    )

    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    try:
        answer = cluster.ask(broker, DescribeConfigsRequest(resources=(resource,)), DescribeConfigsResponse)
        (told,) = answer.results
        needs = [on_group(DESCRIBE_CONFIGS, name), on_cluster(DESCRIBE_CONFIGS)]
        check(told.error_code, f"settings of {name}", told.error_message, needs)
    except BrokerRefused as error:
        return None, error
    return {entry.name: entry.value for entry in told.configs if entry.value is not None}, None


def _group_version(cluster: ClusterView, broker: int) -> int | None:
    """The finalized level of `group.version`; 0 when the cluster has features but not this one."""
    from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

    served = cluster.transport.versions(broker, API_VERSIONS)
    if served is None or served[-1] < FEATURES_SINCE:
        return None
    request = ApiVersionsRequest(client_software_name="kgroup", client_software_version="1")
    try:
        answer = cluster.ask(broker, request, ApiVersionsResponse, versions=(FEATURES_SINCE, None))
    except (BrokerRefused, Unreachable):
        return None
    if answer.error_code or answer.finalized_features_epoch < 0:
        return None
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    return levels.get("group.version", 0)


def read_logged(cluster: ClusterView, group_id: str) -> Logged | None:
    """Generation, leader and session timeouts out of the group's records; None where there are none.

    BrokerRefused when the topic may not be read.
    """
    from kgroup.history.replay import replay
    from kgroup.history.sources.live import LiveLog, LiveTopic

    topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)
    partition = offsets_partition_of(group_id, len(topic.partitions))
    if partition not in topic.leaders:
        raise BrokerRefused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{OFFSETS_TOPIC}-{partition} is not in the metadata"
        )
    story = replay([LiveLog(topic, partition)], topic_names=topic.topic_names, names=[group_id])
    state = story.folds[partition].states.get(group_id)
    if state is None:
        return None
    view = state.view()
    timeouts = {m.member_id: m.session_timeout_ms for m in view.members.values() if m.session_timeout_ms > 0}
    return Logged(view.epoch, view.leader or None, timeouts)
