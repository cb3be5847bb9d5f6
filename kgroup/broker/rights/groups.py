"""Rules about groups that are more than one right: offsets, subscriptions, and descriptions of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kgroup.broker.call import Answer, AnyCall, Call
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.handlers.coordinators import GROUP, MANY_KEYS_SINCE, SHARE, SHARES_SINCE, TRANSACTION
from kgroup.broker.handlers.repeats import as_often_as_asked
from kgroup.broker.rights.asker import Asker
from kgroup.broker.rights.rule import NameOf, Rule, asked, by_id, entries_of, per_entry
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.anatomy import Each, Entry
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    DescribedGroup,
)
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.releases import GROUP_VERSION
from kgroup.protocol.requests import CLUSTER_ACTION, READ_GROUP, TOPICS_OF_GROUP, TOPICS_OF_ONE_GROUP
from kgroup.security.acls import Operation, ResourceType
from kgroup.security.needs import Need, right_of

ON_TOP_SINCE, MANY_GROUPS_SINCE, TOPIC_IDS_SINCE = 2, 8, 10  # OffsetFetch
PROTOCOL_SINCE = 5  # SyncGroup: type and name of the protocol must be there
DESCRIBE_GROUP = right_of(Operation.DESCRIBE, ResourceType.GROUP)
DESCRIBE_TOPIC = right_of(Operation.DESCRIBE, ResourceType.TOPIC)
_DESCRIBED = entries_of(ApiKey.DESCRIBE_GROUPS, Each(Operation.DESCRIBE, even_none=True))
_CONSUMERS = entries_of(ApiKey.CONSUMER_GROUP_DESCRIBE, Each(Operation.DESCRIBE, even_none=True))
_DELETED = entries_of(ApiKey.DELETE_GROUPS, Each(Operation.DELETE, even_none=True))
_ONE_GROUP = per_entry(
    TOPICS_OF_ONE_GROUP,
    Each(Operation.DESCRIBE, (Need(Operation.DESCRIBE, ResourceType.GROUP, "group_id"),), even_none=True),
)
_KEYS = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}
_KEYS_DESCRIBED = {
    kind: entries_of(ApiKey.FIND_COORDINATOR, Each(Operation.DESCRIBE), kind) for kind in _KEYS.values()
}


def sync(asker: Asker, broker: Dispatcher, call: Call[SyncGroupRequest], api: AnyApi) -> Answer:
    """Require Read on the group; a request without its protocol is invalid before that."""
    request = call.body
    if call.version < PROTOCOL_SINCE or (request.protocol_type and request.protocol_name):
        READ_GROUP.check(asker, request)
    elif not READ_GROUP.met(asker, request):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return api.handle(broker, call)


def heartbeat(
    asker: Asker, broker: Dispatcher, call: Call[ConsumerGroupHeartbeatRequest], api: AnyApi
) -> Answer:
    """Require Read on the group, Describe on all topics named; a pattern finds only such topics."""
    request = call.body
    names = request.subscribed_topic_names
    read = READ_GROUP.met(asker, request)
    if read and (not names or all(map(asker.describes, names))):
        call.describable = asker.describes
        return api.handle(broker, call)
    if not broker.cluster.catalog.features.levels.get(GROUP_VERSION):
        return api.handle(broker, call)  # which is not served, whatever the rights
    READ_GROUP.check(asker, request)
    return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def describe(asker: Asker, broker: Dispatcher, call: Call[DescribeGroupsRequest], api: AnyApi) -> Answer:
    """Require Describe on each group; add what the caller may do with it, if asked for."""

    def finish(response: DescribeGroupsResponse) -> Message:
        if not call.body.include_authorized_operations:
            return response
        return replace(response, groups=tuple(with_operations(asker, response.groups)))

    return asked(broker, call, _under(_DESCRIBED, asker, api), call.body, finish)


def describe_consumers(
    asker: Asker, broker: Dispatcher, call: Call[ConsumerGroupDescribeRequest], api: AnyApi
) -> Answer:
    """Require Describe on each group, and on every topic that its members have or should have."""

    def topics_of(group: DescribedGroup) -> Iterable[str]:
        for member in group.members:
            for assignment in (member.assignment, member.target_assignment):
                for held in assignment.topic_partitions:
                    yield held.topic_name

    return described(
        asker,
        broker,
        call,
        api,
        topics_of,
        "The group has described topic(s) that the client is not authorized to describe.",
    )


def described(
    asker: Asker,
    broker: Dispatcher,
    call: AnyCall,
    api: AnyApi,
    topics_of: Callable[[Entry], Iterable[str]],
    hidden: str,
) -> Answer:
    """Require Describe on each of `group_ids`; a group with a hidden topic is answered by `hidden`.

    A part of an assignment would pass for all of it (KIP-848).
    """

    def shown(group: Entry) -> Entry:
        if all(map(asker.describes, topics_of(group))):
            return group
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return type(group)(group_id=group.group_id, error_code=code, error_message=hidden)

    def finish(response: Entry) -> Message:
        groups: Iterable[Entry] = response.groups
        if call.body.include_authorized_operations:
            groups = with_operations(asker, groups)
        whole: Message = replace(response, groups=tuple(map(shown, groups)))
        return whole

    return asked(broker, call, _under(_CONSUMERS, asker, api), call.body, finish)


def delete(asker: Asker, broker: Dispatcher, call: Call[DeleteGroupsRequest], api: AnyApi) -> Answer:
    """Require Delete on each group; one named twice is answered once."""
    call.body = replace(call.body, groups_names=tuple(dict.fromkeys(call.body.groups_names)))
    return _DELETED(asker, broker, call, api)


def offset_fetch(asker: Asker, broker: Dispatcher, call: Call[OffsetFetchRequest], api: AnyApi) -> Answer:
    """Require Describe on each group and each topic; if all topics are meant, the others are omitted."""
    if call.version < MANY_GROUPS_SINCE:
        return _one_group(asker, broker, call, api)
    if call.version < TOPIC_IDS_SINCE and _all_seen(asker, call.body):
        return api.handle(broker, call)
    name = by_id if call.version >= TOPIC_IDS_SINCE else lambda _, topic: topic.name
    # A group may be asked about twice, and for other topics: requests and answers match by position.
    asking: list[OffsetFetchRequestGroup] = []
    hidden: list[tuple[OffsetFetchResponseTopics, ...]] = []
    refused: dict[int, OffsetFetchResponseGroup] = {}
    for index, group in enumerate(as_often_as_asked(call.body.groups, lambda group: group.group_id)):
        if asker.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
            seen, unseen = _split(asker, broker, group, name)
            asking.append(seen)
            hidden.append(unseen)
        else:
            code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            refused[index] = OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    if not asking:
        return OffsetFetchResponse(groups=tuple(refused.values()))

    def finish(response: OffsetFetchResponse) -> Message:
        groups = [_shown_group(asker, *parts) for parts in zip(response.groups, asking, hidden, strict=True)]
        for index, refusal in refused.items():
            groups.insert(index, refusal)
        return replace(response, groups=tuple(groups))

    return asked(broker, call, api, replace(call.body, groups=tuple(asking)), finish)


def _all_seen(asker: Asker, request: OffsetFetchRequest) -> bool:
    """Return whether no request by names is restricted, as nearly always: checked first, for its cost."""
    groups, topics = asker.rights[DESCRIBE_GROUP], asker.rights[DESCRIBE_TOPIC]
    for group in request.groups:
        if group.topics is None or not groups[group.group_id]:
            return False
        for topic in group.topics:
            if not topics[topic.name]:
                return False
    return True


def _one_group(asker: Asker, broker: Dispatcher, call: Call[OffsetFetchRequest], api: AnyApi) -> Answer:
    if call.version >= ON_TOP_SINCE and not asker.may(
        Operation.DESCRIBE, ResourceType.GROUP, call.body.group_id
    ):
        return OffsetFetchResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if call.body.topics is not None:
        return _ONE_GROUP(asker, broker, call, api)

    def finish(response: OffsetFetchResponse) -> Message:
        return replace(response, topics=tuple(t for t in response.topics if asker.describes(t.name)))

    return asked(broker, call, api, call.body, finish)


def _split(
    asker: Asker, broker: Dispatcher, group: OffsetFetchRequestGroup, name: NameOf
) -> tuple[OffsetFetchRequestGroup, tuple[OffsetFetchResponseTopics, ...]]:
    """Return the request for the handler, and the answers for topics hidden from the caller."""
    may = asker.rights[DESCRIBE_TOPIC]
    hidden = []
    for topic in group.topics or ():
        topic_name = name(broker, topic)
        if topic_name is not None and not may[topic_name]:
            hidden.append(topic)
    if not hidden:
        return group, ()
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    part = replace(group, topics=tuple(hidden))
    refused = TOPICS_OF_GROUP.refused(part, code, None, OffsetFetchResponseGroup)
    return replace(group, topics=tuple(t for t in group.topics or () if t not in hidden)), refused


def _shown_group(
    asker: Asker,
    group: OffsetFetchResponseGroup,
    request: OffsetFetchRequestGroup,
    hidden: tuple[OffsetFetchResponseTopics, ...],
) -> OffsetFetchResponseGroup:
    if group.error_code:
        return group
    topics = group.topics
    if request.topics is None:
        topics = tuple(topic for topic in topics if asker.describes(topic.name))
    return replace(group, topics=(*topics, *hidden))


def _under(rule: Rule, asker: Asker, api: AnyApi) -> AnyApi:
    """Return the API with a rule before its handler."""
    return replace(api, handle=lambda broker, call: rule(asker, broker, call, api))


def with_operations(asker: Asker, groups: Iterable[Entry]) -> Iterable[Entry]:
    """Yield the groups that could be described, with what the caller may do with each."""
    for group in groups:
        if not group.error_code:
            operations = asker.operations(ResourceType.GROUP, group.group_id)
            group = replace(group, authorized_operations=operations)
        yield group


def find_coordinator(
    asker: Asker, broker: Dispatcher, call: Call[FindCoordinatorRequest], api: AnyApi
) -> Answer:
    """Require Describe on each group or transactional id."""
    request = call.body
    kind = _KEYS.get(request.key_type)
    if kind is None:
        if request.key_type == SHARE and call.version >= SHARES_SINCE:
            CLUSTER_ACTION.check(asker, request)
        return api.handle(broker, call)
    if call.version >= MANY_KEYS_SINCE:
        return _KEYS_DESCRIBED[kind](asker, broker, call, api)
    Need(Operation.DESCRIBE, kind, "key").check(asker, request)
    return api.handle(broker, call)
