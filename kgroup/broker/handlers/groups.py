"""Requests about groups: whole to the shard of the group, or in parts to the shards of several."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import AnyApi, Api, Dispatcher
from kgroup.broker.handlers.repeats import as_often_as_asked
from kgroup.broker.handlers.transactions import without_abortable
from kgroup.coordinator.offsets.transactions import names_something, refuse_what_exists
from kgroup.domain import OFFSETS_TOPIC, TopicPartition
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol import registry
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kgroup.protocol.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest
from kgroup.protocol.messages.leave_group import LeaveGroupRequest
from kgroup.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.protocol.messages.offset_delete import OffsetDeleteRequest
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kgroup.protocol.releases import GROUP_VERSION
from kgroup.transactions.producers import ProducerEpoch

log = logging.getLogger(__name__)

MANY_GROUPS_SINCE = 8  # OffsetFetch
ABORTABLE_SINCE, IMPLICIT_SINCE = 4, 5  # TxnOffsetCommit (KIP-890)

Merge: TypeAlias = Callable[[list[Any]], Message]
T = TypeVar("T", str, OffsetFetchRequestGroup)


class Gather:
    """Answers a call once every part of it is answered, with what `merge` makes of the parts."""

    __slots__ = ("_call", "_left", "_merge", "_parts")

    def __init__(self, call: Call[Message], count: int, merge: Merge) -> None:
        self._call = call
        self._merge = merge
        self._parts: list[Message | None] = [None] * count
        self._left = count

    def put(self, index: int, response: Message | None) -> None:
        """Add the response to a parked part; the last one ends the call."""
        if (merged := self.take(index, response)) is not None:
            self._call.answer(merged)

    def take(self, index: int, response: Message | None) -> Message | None:
        """Return the whole response if this was the last part missing."""
        self._parts[index] = response
        self._left -= 1
        return None if self._left else self._merge(self._parts)


def to_shard(broker: Dispatcher, call: Call[Any]) -> Answer:
    """Return the whole request to the shard of its group."""
    return broker.tickets.submit(broker.partition_of(call.body.group_id), call)


def leave(broker: Dispatcher, call: Call[LeaveGroupRequest]) -> Answer:
    """Pass it to the group's shard; log members that name neither of their ids (KIP-345)."""
    request = call.body
    nameless = sum(not (member.member_id or member.group_instance_id) for member in request.members)
    if nameless:
        text = (
            f"{nameless} of {len(request.members)} members to remove have neither member id nor instance id"
        )
        broker.cluster.complaints.say(log, f"LeaveGroup from {call.client_host}", text)
    return to_shard(broker, call)


def consumer_heartbeat(broker: Dispatcher, call: Call[ConsumerGroupHeartbeatRequest]) -> Answer:
    """Pass it to the group's shard, if the feature behind the consumer protocol is on (KIP-848)."""
    if not broker.cluster.catalog.features.levels.get(GROUP_VERSION):
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, "The consumer group protocol is not enabled.")
    return to_shard(broker, call)


def txn_offset_commit(broker: Dispatcher, call: Call[TxnOffsetCommitRequest]) -> Answer:
    """Pass it to the group's shard, once the producer's transaction has it; from version 5 on this adds it.

    Kafka answers for topics that do not exist first, and asks neither if nothing else is left.
    """
    request = call.body
    partition = broker.partition_of(request.group_id)
    image = broker.cluster.catalog.image
    led = broker.cluster.leader_of(OFFSETS_TOPIC, partition) == call.node
    if led and request.group_id and names_something(image, request, call.version):
        code = broker.transactions.admit(
            request.transactional_id,
            ProducerEpoch(request.producer_id, request.producer_epoch),
            [TopicPartition(OFFSETS_TOPIC, partition)],
            add=call.version >= IMPLICIT_SINCE,
        )
        if code is ErrorCode.NOT_COORDINATOR:  # the transaction's is meant: the group's is right here
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if call.version < ABORTABLE_SINCE:
            code = without_abortable(code)
        if code:
            return refuse_what_exists(image, request, call.version, code)
    return broker.tickets.submit(partition, call)


def offset_fetch(broker: Dispatcher, call: Call[OffsetFetchRequest]) -> Answer:
    """Return one group's offsets, or from version 8 those of many groups."""
    request = call.body
    if call.version < MANY_GROUPS_SINCE:
        return broker.tickets.submit(broker.partition_of(request.group_id), call)
    if len(request.groups) == 1:
        return broker.tickets.submit(broker.partition_of(request.groups[0].group_id), call)
    return by_group(broker, call, as_often_as_asked(request.groups, _id_of), "groups")


def describe_groups(broker: Dispatcher, call: Call[DescribeGroupsRequest]) -> Answer:
    """Return classic groups, each from its shard."""
    return by_group(broker, call, as_often_as_asked(call.body.groups, str), "groups")


def describe_consumer_groups(broker: Dispatcher, call: Call[ConsumerGroupDescribeRequest]) -> Answer:
    """Return consumer groups, each from its shard."""
    return by_group(broker, call, as_often_as_asked(call.body.group_ids, str), "group_ids")


def delete_groups(broker: Dispatcher, call: Call[DeleteGroupsRequest]) -> Answer:
    """Delete groups of any kind, each by its shard; a group named twice is answered once."""
    return by_group(broker, call, list(dict.fromkeys(call.body.groups_names)), "groups_names", "results")


def list_groups(broker: Dispatcher, call: Call[Message]) -> Answer:
    """Return the groups of this broker's shards; one that still loads fails the whole answer."""
    led = [
        shard.partition
        for shard in broker.cluster.live_shards()
        if broker.cluster.leader_of(OFFSETS_TOPIC, shard.partition) == call.node
    ]

    def merge(parts: list[ListGroupsResponse]) -> Message:
        for response in parts:
            if response.error_code not in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR):
                return ListGroupsResponse(error_code=response.error_code)
        return ListGroupsResponse(groups=tuple(group for response in parts for group in response.groups))

    return _fan_out(broker, call, [(partition, call.body) for partition in led], merge)


def by_group(
    broker: Dispatcher, call: Call[Any], asked: Sequence[T], field: str, entries: str = "groups"
) -> Answer:
    """Ask each shard about its groups among `asked`, which `field` of the request names.

    The answer has their `entries` in the order asked. A shard answers each item, in order: a group may be
    asked about twice, and for other topics.
    """
    by_partition: dict[int, list[int]] = {}
    for index, item in enumerate(asked):
        by_partition.setdefault(broker.partition_of(_id_of(item)), []).append(index)

    def merge(answers: list[Any]) -> Message:
        merged: list[object] = [None] * len(asked)
        for indexes, answer in zip(by_partition.values(), answers, strict=True):
            for index, entry in zip(indexes, getattr(answer, entries), strict=True):
                merged[index] = entry
        whole: Message = registry.response_class(call.body.API)(**{entries: tuple(merged)})
        return whole

    parts = [
        (partition, replace(call.body, **{field: tuple([asked[i] for i in indexes])}))
        for partition, indexes in by_partition.items()
    ]
    return _fan_out(broker, call, parts, merge)


def _id_of(asked: str | OffsetFetchRequestGroup) -> str:
    return asked if isinstance(asked, str) else asked.group_id


def _fan_out(
    broker: Dispatcher, call: Call[Message], parts: list[tuple[int, Message]], merge: Merge
) -> Answer:
    if not parts:
        return merge([])
    gather = Gather(call, len(parts), merge)
    whole: Message | None = None
    for index, (partition, body) in enumerate(parts):
        response = broker.tickets.submit(partition, call.part(body, partial(gather.put, index)))
        if response is not None:
            whole = gather.take(index, response)
    return whole


APIS: tuple[AnyApi, ...] = (
    *(
        Api(request, to_shard)
        for request in (
            HeartbeatRequest,
            OffsetCommitRequest,
            JoinGroupRequest,
            SyncGroupRequest,
            OffsetDeleteRequest,
        )
    ),
    Api(LeaveGroupRequest, leave),
    Api(ConsumerGroupHeartbeatRequest, consumer_heartbeat),
    Api(TxnOffsetCommitRequest, txn_offset_commit),
    Api(ConsumerGroupPrepareAssignmentRequest, to_shard),
    Api(ConsumerGroupInstallAssignmentRequest, to_shard),
    Api(OffsetFetchRequest, offset_fetch),
    Api(DescribeGroupsRequest, describe_groups),
    Api(ConsumerGroupDescribeRequest, describe_consumer_groups),
    Api(ListGroupsRequest, list_groups),
)
