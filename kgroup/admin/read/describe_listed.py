"""Groups that are neither classic nor consumer: share groups (KIP-932) and streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kgroup.admin.discovery import Answers, Ask, ClusterView
from kgroup.admin.models import SHARE, STREAMS, GroupDescription, ItemError, TopicDescription
from kgroup.admin.read.members import (
    in_order,
    share_member,
    streams_member,
    streams_topology,
)
from kgroup.admin.read.topologies import topology_description, unread_description
from kgroup.admin.refusals import check, not_found, undescribed
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.releases import first_release

if TYPE_CHECKING:
    from kgroup.protocol.messages import streams_group_describe
    from kgroup.protocol.messages.list_groups import ListedGroup

_APIS = {SHARE: ApiKey.SHARE_GROUP_DESCRIBE, STREAMS: ApiKey.STREAMS_GROUP_DESCRIBE}
"""The request that describes groups of a kind."""
DESCRIPTIONS_SINCE = 1
"""The version of StreamsGroupDescribe with topology descriptions (KIP-1331) and the assignor (KIP-1357)."""
Topics = Mapping[str, tuple[str, ...]]
"""The topics that each subtopology reads."""


def as_listed(
    cluster: ClusterView, node: int, ask: Ask, groups: Sequence[str], *, topologies: bool
) -> Answers[GroupDescription]:
    """Return the groups as the type their coordinator lists; not found for those that it does not list.

    Where the coordinator does not serve the request that describes them, members are None and an error says
    so. `topologies` adds the applications' descriptions of their topologies.
    """
    from kgroup.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

    listing = ask(ListGroupsRequest(), ListGroupsResponse)
    check(listing.error_code, f"listing the groups of broker {node}")
    listed = {group.group_id: group for group in listing.groups}
    answers: Answers[GroupDescription] = {}
    by_kind: dict[str, list[str]] = {}
    for group_id in groups:
        kind = listed[group_id].group_type.lower() if group_id in listed else ""
        if kind in _APIS:
            by_kind.setdefault(kind, []).append(group_id)
        else:
            answers[group_id] = not_found(group_id)
    for kind, named in by_kind.items():
        served = cluster.transport.versions(node, _APIS[kind])
        if served is None:
            answers |= {group_id: _unknown_members(node, kind, listed[group_id]) for group_id in named}
        elif kind == SHARE:
            request = ShareGroupDescribeRequest(group_ids=tuple(named))
            answers |= {
                group.group_id: undescribed(group)
                or GroupDescription(
                    group.group_id,
                    SHARE,
                    SHARE,
                    group.group_state,
                    assignor=group.assignor_name or None,
                    group_epoch=group.group_epoch,
                    assignment_epoch=group.assignment_epoch,
                    members=in_order(share_member(member) for member in group.members),
                )
                for group in ask(request, ShareGroupDescribeResponse).groups
            }
        else:
            answers |= _as_streams(cluster, ask, named, topologies and served[-1] >= DESCRIPTIONS_SINCE)
    return answers


def _unknown_members(node: int, kind: str, listed: ListedGroup) -> GroupDescription:
    name = f"{kind.capitalize()}GroupDescribe"
    lowest = 1 if kind == SHARE else 0
    message = f"broker {node} does not serve {name}: who is in the group is unknown"
    hint = f"Kafka {first_release(_APIS[kind], lowest)} and later serve it"
    left_out = ItemError("members", ErrorCode.UNSUPPORTED_VERSION.name, message, hint)
    return GroupDescription(
        listed.group_id, kind, listed.protocol_type, listed.group_state, errors=(left_out,)
    )


def _as_streams(
    cluster: ClusterView, ask: Ask, group_ids: Sequence[str], topologies: bool
) -> Answers[GroupDescription]:
    from kgroup.protocol.messages.streams_group_describe import (
        StreamsGroupDescribeRequest,
        StreamsGroupDescribeResponse,
    )

    request = StreamsGroupDescribeRequest(group_ids=tuple(group_ids), include_topology_description=topologies)
    answer = ask(request, StreamsGroupDescribeResponse).groups
    # A topic that a subtopology reads alone needs no count.
    several = {
        name
        for group in answer
        for names in (_topics_of(group.topology) or {}).values()
        if len(names) > 1
        for name in names
    }
    sizes = {
        name: len(topic.partitions)
        for name, topic in cluster.topics(several).items()
        if isinstance(topic, TopicDescription)
    }
    return {group.group_id: undescribed(group) or streams_described(group, sizes) for group in answer}


def streams_described(
    group: streams_group_describe.DescribedGroup, sizes: Mapping[str, int]
) -> GroupDescription:
    """Return a group from StreamsGroupDescribe (KIP-1071).

    `sizes` are the partitions of topics that a subtopology reads together with others.
    """
    topics = _topics_of(group.topology)
    at = group.topology
    tasks = {
        (entry.subtopology_id, number)
        for member in group.members
        for entry in (*member.assignment.active_tasks, *member.target_assignment.active_tasks)
        for number in entry.partitions
    }
    # Task n reads partition n of each topic that has so many.
    sources: dict[tuple[str, int], tuple[TopicPartition, ...]] = {}
    for task in tasks:
        names = (topics or {}).get(task[0], ())
        if len(names) == 1:
            sources[task] = (TopicPartition(names[0], task[1]),)
        elif names and all(name in sizes for name in names):
            sources[task] = tuple(TopicPartition(n, task[1]) for n in names if task[1] < sizes[n])
    read = None if topics is None else tuple(sorted({name for names in topics.values() for name in names}))
    status, description = topology_description(group)
    return GroupDescription(
        group.group_id,
        STREAMS,
        STREAMS,
        group.group_state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=group.assignor_name or None,
        topology=None
        if at is None
        else streams_topology(at.epoch, at.subtopologies or (), status, description),
        errors=tuple(unread_description(group.group_id, status)),
        members=in_order(
            streams_member(member, group.assignment_epoch, read, sources) for member in group.members
        ),
    )


def _topics_of(topology: streams_group_describe.Topology | None) -> Topics | None:
    """Return the topics each subtopology reads; None while the group has no topology that can run."""
    if topology is None or topology.subtopologies is None:
        return None
    return {
        sub.subtopology_id: (*sub.source_topics, *(topic.name for topic in sub.repartition_source_topics))
        for sub in topology.subtopologies
    }
