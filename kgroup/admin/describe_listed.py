"""Groups that are neither classic nor consumer: share groups (KIP-932) and streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgroup.admin.describe import described, not_found
from kgroup.admin.discovery import Answers, Cluster
from kgroup.admin.members import Sources, share_member, streams_member
from kgroup.admin.models import SHARE, STREAMS, GroupDescription, ItemError, TopicDescription
from kgroup.admin.refusals import check, refused
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode, KgroupError
from kgroup.protocol.codec import Message
from kgroup.protocol.releases import first_release

SHARE_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE = 77, 89
Ask = Callable[[Message], Any]


def as_listed(cluster: Cluster, node: int, ask: Ask, groups: Sequence[str]) -> Answers[GroupDescription]:
    """The groups as what their coordinator lists them as; not found for those that it does not list.

    Where the coordinator does not serve the request that tells them, members are None and an error says so.
    """
    from kgroup.protocol.messages.list_groups import ListGroupsRequest

    listing = ask(ListGroupsRequest())
    check(listing.error_code, f"listing the groups of broker {node}")
    listed = {group.group_id: group for group in listing.groups}
    answers: Answers[GroupDescription] = {}
    for group_id in groups:
        kind = listed[group_id].group_type.lower() if group_id in listed else ""
        if kind not in _READERS:
            answers[group_id] = not_found(group_id)
        elif cluster.transport.versions(node, _READERS[kind][0]) is not None:
            answers[group_id] = _READERS[kind][1](cluster, ask, group_id)
        else:
            answers[group_id] = _untold(node, kind, listed[group_id])
    return answers


def _untold(node: int, kind: str, listed: Any) -> GroupDescription:
    name = f"{kind.capitalize()}GroupDescribe"
    api, lowest = _READERS[kind][0], 1 if kind == SHARE else 0
    message = f"broker {node} does not serve {name}: who is in the group is unknown"
    hint = f"Kafka {first_release(api, lowest)} and later serve it"
    left_out = ItemError("members", ErrorCode.UNSUPPORTED_VERSION.name, message, hint)
    group = described(listed.group_id, kind, listed.protocol_type, listed.group_state)
    return replace(group, errors=(left_out,))


def _as_share(cluster: Cluster, ask: Ask, group_id: str) -> GroupDescription | KgroupError:
    from kgroup.protocol.messages.share_group_describe import ShareGroupDescribeRequest

    (told,) = ask(ShareGroupDescribeRequest(group_ids=(group_id,))).groups
    if told.error_code:
        return refused(told.error_code, f"group {group_id}", told.error_message)
    return described(
        group_id,
        SHARE,
        SHARE,
        told.group_state,
        assignor=told.assignor_name or None,
        group_epoch=told.group_epoch,
        assignment_epoch=told.assignment_epoch,
        members=tuple(share_member(member) for member in told.members),
    )


def _as_streams(cluster: Cluster, ask: Ask, group_id: str) -> GroupDescription | KgroupError:
    from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest

    (told,) = ask(StreamsGroupDescribeRequest(group_ids=(group_id,))).groups
    if told.error_code:
        return refused(told.error_code, f"group {group_id}", told.error_message)
    topics = _topics_of(told.topology)
    sources = _sources(cluster, topics, told.members)
    read = None if topics is None else tuple(sorted({name for names in topics.values() for name in names}))
    return described(
        group_id,
        STREAMS,
        STREAMS,
        told.group_state,
        group_epoch=told.group_epoch,
        assignment_epoch=told.assignment_epoch,
        members=tuple(
            streams_member(member, told.assignment_epoch, read, sources) for member in told.members
        ),
    )


_READERS = {SHARE: (SHARE_GROUP_DESCRIBE, _as_share), STREAMS: (STREAMS_GROUP_DESCRIBE, _as_streams)}


def _topics_of(topology: Any) -> dict[str, tuple[str, ...]] | None:
    """What each subtopology reads; None while the group has no topology that can run."""
    if topology is None or topology.subtopologies is None:
        return None
    return {
        sub.subtopology_id: (*sub.source_topics, *(topic.name for topic in sub.repartition_source_topics))
        for sub in topology.subtopologies
    }


def _sources(
    cluster: Cluster, topics: Mapping[str, tuple[str, ...]] | None, members: Iterable[Any]
) -> Sources:
    """Task n of a subtopology reads partition n of each of its topics that has so many partitions.

    With one topic that is certain; with several their sizes are asked for.
    """
    topics = topics or {}
    several = {name for names in topics.values() if len(names) > 1 for name in names}
    sizes = {
        name: len(topic.partitions)
        for name, topic in cluster.topics(several).items()
        if isinstance(topic, TopicDescription)
    }
    found: dict[tuple[str, int], tuple[TopicPartition, ...]] = {}
    for task in {task for member in members for task in _active(member)}:
        names = topics.get(task[0], ())
        if len(names) == 1:
            found[task] = (TopicPartition(names[0], task[1]),)
        elif names and all(name in sizes for name in names):
            found[task] = tuple(TopicPartition(n, task[1]) for n in names if task[1] < sizes[n])
    return found


def _active(member: Any) -> set[tuple[str, int]]:
    both = (*member.assignment.active_tasks, *member.target_assignment.active_tasks)
    return {(entry.subtopology_id, number) for entry in both for number in entry.partitions}
