"""Read what decides a migration: the members' own bytes, the coordinator's settings, the APIs it serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kgroup.admin.discovery import BATCH, Answers, ClusterView
from kgroup.admin.migrate.client_kinds import CONSUMERS, Kind, kind_of_assignor, kinds_of_empty
from kgroup.admin.migrate.models import SESSION_TIMEOUT, Evidence, Logged, MemberEvidence, Serving
from kgroup.admin.models import CLASSIC, CONSUMER, DEAD, EMPTY, Description, GroupDescription
from kgroup.admin.read.describe import CONSUMER_GROUP_DESCRIBE, describe, groups_only, reports_instances
from kgroup.admin.read.in_sync import unstored
from kgroup.admin.read.members import metadata_of
from kgroup.admin.refusals import refused
from kgroup.errors import (
    BrokerRefused,
    DecodeError,
    ErrorCode,
    KgroupError,
    SafetyRefused,
    Unreachable,
)
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgroup.protocol.subscription import Assignment, Subscription, version_of
from kgroup.security.rights import DESCRIBE, DESCRIBE_CONFIGS, on_cluster, on_group

if TYPE_CHECKING:
    from kgroup.history.fold.state import GroupState
    from kgroup.history.sources.live import LiveLog
    from kgroup.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember

API_VERSIONS, CONSUMER_GROUP_HEARTBEAT = 18, 68
BROKER_RESOURCE, GROUP_RESOURCE = 4, 32
FEATURES_SINCE = 3
MEMBER_TYPES_SINCE = 1


def gather(
    cluster: ClusterView, group_id: str, *, all_topics: bool = False, read_log: bool = False
) -> Evidence:
    """Return the evidence of one group, as `gather_all` does of many; raise why it is unavailable."""
    gathered = gather_all(cluster, (group_id,), all_topics=all_topics, read_log=read_log)[group_id]
    if isinstance(gathered, KgroupError):
        raise gathered
    return gathered


def gather_all(
    cluster: ClusterView, group_ids: Iterable[str], *, all_topics: bool = False, read_log: bool = False
) -> Answers[Evidence]:
    """Return what decides each group's migration, or why it is unknown.

    One pass: requests grow with the brokers, not with the groups. `all_topics` adds the names of all topics,
    `read_log` what only the records show (it reads the groups' partitions of `__consumer_offsets`). Raise
    BrokerRefused for a group that cannot be described, SafetyRefused for one of another type.
    """
    answers: Answers[Evidence] = {}
    groups: dict[str, GroupDescription] = {}
    for group_id, group in groups_only(cluster, group_ids).items():
        if isinstance(group, KgroupError):
            answers[group_id] = group
        elif group.type in (CLASSIC, CONSUMER):
            groups[group_id] = group
        else:
            answers[group_id] = AnotherType(group)
    members = _members(cluster, [group for group in groups.values() if group.type == CLASSIC])
    for group_id, answer in members.items():
        if isinstance(answer, KgroupError):
            answers[group_id] = answer
            del groups[group_id]
        else:
            groups[group_id] = answer[0]
    logged = read_logged(cluster, groups) if read_log else dict.fromkeys(groups)
    empty = [group for group in groups.values() if _is_empty_of_consumers(group)]
    topics = cluster.metadata(None).topics if all_topics or empty else ()
    names = frozenset(topic.name for topic in topics if topic.name and not topic.is_internal)
    kinds = kinds_of_empty(cluster, [group.group_id for group in empty], names)
    live = [group.group_id for group in groups.values() if group.state != EMPTY]
    seen = describe(cluster, live, expected=False, topologies=False) if live else Description((), ())
    findings = {seen_group.group_id: seen_group.findings for seen_group in seen.groups}
    hidden = {error.item: error for error in seen.errors}
    hidden |= {seen_group.group_id: seen_group.errors[0] for seen_group in seen.groups if seen_group.errors}
    storing = unstored(cluster, groups)
    by_broker: dict[int, list[str]] = {}
    for group in groups.values():
        by_broker.setdefault(_broker_of(group), []).append(group.group_id)
    brokers = serving(cluster, by_broker)
    for group_id, group in groups.items():
        at, records = brokers[_broker_of(group)], logged[group_id]
        if isinstance(at, KgroupError) or isinstance(records, KgroupError):
            answers[group_id] = at if isinstance(at, KgroupError) else records  # type: ignore[assignment]
            continue
        own = at.own[group_id]
        read = members.get(group_id)
        answers[group_id] = Evidence(
            group=group,
            members=read[1] if isinstance(read, tuple) else (),
            broker=_broker_of(group),
            serves_heartbeat=at.serves_heartbeat,
            group_version=at.group_version,
            settings=at.settings,
            settings_error=None if at.refusal is None else at.refusal.message,
            settings_code=None if at.refusal is None else at.refusal.name,
            own_settings=None if isinstance(own, BrokerRefused) else own,
            own_error=own.message if isinstance(own, BrokerRefused) else None,
            topic_names=names if all_topics else None,
            logged=records,
            member_types=at.member_types,
            preview=at.preview,
            kind=kinds.get(group_id) or _kind(group),
            findings=findings.get(group_id, ()),
            findings_error=hidden.get(group_id),
            unstored=storing.get(group_id),
        )
    return answers


class AnotherType(SafetyRefused):
    """A group that is neither classic nor of the consumer protocol, so it cannot migrate."""

    def __init__(self, group: GroupDescription) -> None:
        super().__init__(f"{group.group_id} is a {group.type} group: groups of that type cannot be migrated")
        self.type = group.type


def _broker_of(group: GroupDescription) -> int:
    return group.coordinator.id if group.coordinator is not None else -1


def _is_empty_of_consumers(group: GroupDescription) -> bool:
    return group.type == CLASSIC and group.state == EMPTY and group.protocol_type in ("", CONSUMER)


def _kind(group: GroupDescription) -> Kind:
    """Return the kind of a group that is not empty."""
    if group.type == CLASSIC and group.assignor:
        return kind_of_assignor(group.assignor)
    return Kind(CONSUMERS if group.type == CONSUMER else None, "it rebalances: its assignor is not shown now")


def serving(cluster: ClusterView, groups: Mapping[int, Sequence[str]]) -> dict[int, Serving | KgroupError]:
    """Return what each broker reports of itself and of the groups named for it, or why it does not."""

    def ask(broker: int) -> Serving:
        own: dict[str, Mapping[str, str] | BrokerRefused] = {}
        for at in range(0, len(groups[broker]), BATCH):
            own |= _settings(cluster, broker, GROUP_RESOURCE, groups[broker][at : at + BATCH])
        settings = _settings(cluster, broker, BROKER_RESOURCE, [str(broker)])[str(broker)]
        refusal = settings if isinstance(settings, BrokerRefused) else None
        heartbeat = cluster.transport.versions(broker, CONSUMER_GROUP_HEARTBEAT)
        describes = cluster.transport.versions(broker, CONSUMER_GROUP_DESCRIBE)
        return Serving(
            broker=broker,
            settings=None if isinstance(settings, BrokerRefused) else settings,
            refusal=refusal,
            own=own,
            serves_heartbeat=heartbeat is not None,
            preview=heartbeat is not None and heartbeat[-1] == 0,
            group_version=_group_version(cluster, broker),
            member_types=describes is not None and describes[-1] >= MEMBER_TYPES_SINCE,
        )

    return cluster.at_once({broker: partial(ask, broker) for broker in groups})


def _members(
    cluster: ClusterView, groups: Sequence[GroupDescription]
) -> Answers[tuple[GroupDescription, tuple[MemberEvidence, ...]]]:
    """Return the members' bytes of classic groups, and each group in its state when they were read."""

    def ask(node: int, names: Sequence[str], left_s: float) -> Answers[DescribedGroup]:
        request = DescribeGroupsRequest(groups=tuple(names))
        answer = cluster.ask(node, request, DescribeGroupsResponse, timeout_s=left_s)
        answered: Answers[DescribedGroup] = {}
        for group in answer.groups:
            needs, what = [on_group(DESCRIBE, group.group_id)], f"group {group.group_id}"
            failed = refused(group.error_code, what, group.error_message, needs) if group.error_code else None
            answered[group.group_id] = group if failed is None else failed
        return answered

    answers: Answers[tuple[GroupDescription, tuple[MemberEvidence, ...]]] = {}
    described = cluster.ask_coordinators([group.group_id for group in groups], ask, idempotent=True)
    for group in groups:
        now, node = described[group.group_id], group.coordinator
        if isinstance(now, KgroupError):
            answers[group.group_id] = now
        elif now.group_state == DEAD:
            gone = "it changed while it was read"
            answers[group.group_id] = refused(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group.group_id}", gone)
        else:
            reports = node is None or reports_instances(cluster, node.id)
            seen = replace(
                group,
                state=now.group_state,
                protocol_type=now.protocol_type,
                assignor=now.protocol_data or None,
            )
            members = sorted((member_of(member, reports) for member in now.members), key=lambda m: m.name)
            answers[group.group_id] = seen, tuple(members)
    return answers


def member_of(wire: DescribedGroupMember, reports_instances: bool = True) -> MemberEvidence:
    """Return a member of DescribeGroups, with its embedded bytes decoded."""
    metadata = metadata_of(wire, reports_instances)
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
        instance_id_known=reports_instances,
    )


def _settings(
    cluster: ClusterView, broker: int, kind: int, names: Sequence[str]
) -> dict[str, Mapping[str, str] | BrokerRefused]:
    """Return the settings of resources as the broker reports them, or why it does not."""
    # For thousands of groups, one setting each: the others decide nothing.
    keys = (SESSION_TIMEOUT,) if kind == GROUP_RESOURCE else None
    resources = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for name in names
    )
    try:
        answer = cluster.ask(broker, DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
    except BrokerRefused as error:
        return dict.fromkeys(names, error)
    settings: dict[str, Mapping[str, str] | BrokerRefused] = {}
    for result in answer.results:
        if result.error_code:
            needs = [on_group(DESCRIBE_CONFIGS, result.resource_name), on_cluster(DESCRIBE_CONFIGS)]
            what = f"settings of {result.resource_name}"
            settings[result.resource_name] = refused(result.error_code, what, result.error_message, needs)
        else:
            settings[result.resource_name] = {c.name: c.value for c in result.configs if c.value is not None}
    left_out = "the broker omitted it"
    missing = {
        name: refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"settings of {name}", left_out)
        for name in names
        if name not in settings
    }
    return {**settings, **missing}


def _group_version(cluster: ClusterView, broker: int) -> int | None:
    """Return the finalized level of `group.version`; 0 for a cluster with features but not this one."""
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


def read_logged(cluster: ClusterView, group_ids: Iterable[str]) -> Answers[Logged | None]:
    """Return generation, leader and session timeouts from each group's records; None without any.

    Each partition is read once. Raise BrokerRefused when the topic may not be read; the failure of one
    partition, or its damage, is the answer for its groups.
    """
    from kgroup.admin.read.history import read_each, whole_story
    from kgroup.history.sources.live import LiveTopic

    topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)

    def read(log: LiveLog, names: list[str]) -> dict[str, Logged | None]:
        states = whole_story(log, names, topic.topic_names).folds[log.partition].states
        return {name: logged_in(states[name]) if name in states else None for name in names}

    return read_each(topic, group_ids, read)


def logged(cluster: ClusterView, group_id: str) -> Logged | None:
    """Return what only the group's records show; None for a group without records."""
    log = read_logged(cluster, [group_id])[group_id]
    if isinstance(log, KgroupError):
        raise log
    return log


def logged_in(state: GroupState) -> Logged:
    """Return what a group's records show, from the state that they add up to."""
    view = state.view()
    timeouts = {m.member_id: m.session_timeout_ms for m in view.members.values() if m.session_timeout_ms > 0}
    return Logged(view.epoch, view.leader or None, timeouts)
