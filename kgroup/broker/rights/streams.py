"""What requests about streams groups need (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.handlers.streams import heartbeat as beat
from kgroup.broker.handlers.streams import named_by, refuse_if_off, refuse_names
from kgroup.broker.rights.asker import Asker
from kgroup.broker.rights.groups import READ_GROUP, under, with_operations
from kgroup.broker.rights.rule import Each, asked, itself
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from kgroup.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from kgroup.security.acls import Operation, ResourceType

_DESCRIBED = Each("group_ids", "groups", Operation.DESCRIBE, ResourceType.GROUP, itself)
HIDDEN = "The described group uses topics that the client is not authorized to describe."


def heartbeat(
    asker: Asker, broker: Dispatcher, call: Call[StreamsGroupHeartbeatRequest], api: AnyApi
) -> Answer:
    """Read on the group, Describe on every topic of the topology; Create on those that it misses."""
    refuse_if_off(broker)
    READ_GROUP.check(asker, call.body)
    topology = call.body.topology
    if topology is not None:
        refuse_names(topology)
        if not all(map(asker.describes, named_by(topology.subtopologies))):
            return StreamsGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return beat(broker, call, partial(_may_not_create, asker))


def _may_not_create(asker: Asker, names: Sequence[str]) -> list[str]:
    """Those of the topics that the asker may not create; none for who may create any."""
    if asker.on_cluster(Operation.CREATE):
        return []
    return [name for name in names if not asker.may(Operation.CREATE, ResourceType.TOPIC, name)]


def describe(
    asker: Asker, broker: Dispatcher, call: Call[StreamsGroupDescribeRequest], api: AnyApi
) -> Answer:
    """Describe on each group, and on every topic of its topology."""

    def finish(found: StreamsGroupDescribeResponse) -> Message:
        groups: Iterable[DescribedGroup] = found.groups
        if call.body.include_authorized_operations:
            groups = with_operations(asker, groups)
        return replace(found, groups=tuple(_seen(asker, group) for group in groups))

    refuse_if_off(broker)
    return asked(broker, call, under(_DESCRIBED, asker, api), call.body, finish)


def _seen(asker: Asker, group: DescribedGroup) -> DescribedGroup:
    if group.topology is None:
        return group
    if all(map(asker.describes, named_by(group.topology.subtopologies or ()))):
        return group
    return DescribedGroup(
        group_id=group.group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=HIDDEN
    )
