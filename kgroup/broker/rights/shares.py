"""Rules about share groups: what members read and what is shown of them (KIP-932)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.handlers.repeats import as_often_as_asked
from kgroup.broker.handlers.share_fetch import acknowledge as settle
from kgroup.broker.handlers.share_fetch import fetch as acquire
from kgroup.broker.rights.asker import Asker
from kgroup.broker.rights.groups import described
from kgroup.broker.rights.rule import asked
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)
from kgroup.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kgroup.protocol.messages.share_fetch import ShareFetchRequest
from kgroup.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from kgroup.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kgroup.protocol.releases import SHARE_VERSION
from kgroup.protocol.requests import READ_GROUP, TOPICS_OF_SHARE_GROUP
from kgroup.security.acls import Operation, ResourceType


def _is_on(broker: Dispatcher) -> bool:
    return bool(broker.cluster.catalog.features.levels.get(SHARE_VERSION))


def heartbeat(
    asker: Asker, broker: Dispatcher, call: Call[ShareGroupHeartbeatRequest], api: AnyApi
) -> Answer:
    """Require Read on the group, Describe on every topic that the member subscribes to."""
    if _is_on(broker):
        READ_GROUP.check(asker, call.body)
        if not all(map(asker.describes, call.body.subscribed_topic_names or ())):
            return ShareGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return api.handle(broker, call)


def describe(asker: Asker, broker: Dispatcher, call: Call[ShareGroupDescribeRequest], api: AnyApi) -> Answer:
    """Require Describe on each group, and on every topic that its members are assigned or subscribe to."""
    if not _is_on(broker):
        return api.handle(broker, call)
    return described(
        asker,
        broker,
        call,
        api,
        lambda group: [
            name
            for member in group.members
            for name in (
                *member.subscribed_topic_names,
                *(topic.topic_name for topic in member.assignment.topic_partitions),
            )
        ],
        "The group has described topic(s) that the client is not authorized to describe.",
    )


def fetch(asker: Asker, broker: Dispatcher, call: Call[ShareFetchRequest], api: AnyApi) -> Answer:
    """Require Read on the group, and on each topic each time its partitions are read."""
    if _is_on(broker) and call.body.group_id is not None:
        READ_GROUP.check(asker, call.body)
    return acquire(broker, call, partial(asker.may, Operation.READ, ResourceType.TOPIC))


def acknowledge(asker: Asker, broker: Dispatcher, call: Call[ShareAcknowledgeRequest], api: AnyApi) -> Answer:
    """Require Read on the group and on each topic."""
    if _is_on(broker) and call.body.group_id is not None:
        READ_GROUP.check(asker, call.body)
    return settle(broker, call, partial(asker.may, Operation.READ, ResourceType.TOPIC))


def describe_offsets(
    asker: Asker, broker: Dispatcher, call: Call[DescribeShareGroupOffsetsRequest], api: AnyApi
) -> Answer:
    """Require Describe on each group and each topic; if all topics are meant, the others are omitted."""
    if not _is_on(broker):
        return api.handle(broker, call)
    may_group = partial(asker.may, Operation.DESCRIBE, ResourceType.GROUP)
    groups = as_often_as_asked(call.body.groups, lambda group: group.group_id)
    asking = tuple(
        group
        if group.topics is None
        else replace(group, topics=tuple(t for t in group.topics if asker.describes(t.topic_name)))
        for group in groups
        if may_group(group.group_id)
    )

    def finish(response: DescribeShareGroupOffsetsResponse) -> Message:
        answers = iter(response.groups)
        result = []
        for group in groups:
            if not may_group(group.group_id):
                code = ErrorCode.GROUP_AUTHORIZATION_FAILED
                result.append(
                    DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, error_code=code)
                )
                continue
            answer = next(answers)
            shown = tuple(topic for topic in answer.topics if asker.describes(topic.topic_name))
            unseen = () if answer.error_code else group.topics or ()
            part = replace(group, topics=tuple(t for t in unseen if not asker.describes(t.topic_name)))
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            hidden = TOPICS_OF_SHARE_GROUP.refused(part, code, None, DescribeShareGroupOffsetsResponseGroup)
            result.append(replace(answer, topics=(*shown, *hidden)))
        return DescribeShareGroupOffsetsResponse(groups=tuple(result))

    return asked(broker, call, api, DescribeShareGroupOffsetsRequest(groups=asking), finish)
