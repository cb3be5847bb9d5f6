"""Rules about streams groups, whose heartbeats name topics and create them (KIP-1071)."""

from __future__ import annotations

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.handlers.streams import heartbeat as beat
from kgroup.broker.handlers.streams import refuse_names, topics_of
from kgroup.broker.rights.asker import Asker
from kgroup.broker.rights.groups import described
from kgroup.broker.rights.topics import may_create
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
)
from kgroup.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from kgroup.protocol.releases import STREAMS_VERSION
from kgroup.protocol.requests import READ_GROUP


def heartbeat(
    asker: Asker, broker: Dispatcher, call: Call[StreamsGroupHeartbeatRequest], api: AnyApi
) -> Answer:
    """Require Read on the group, Describe on the topology's topics, Create on missing ones."""
    request = call.body
    topology = request.topology
    seen = topology is None or all(map(asker.describes, topics_of(topology)))
    if READ_GROUP.met(asker, request) and seen:
        return beat(broker, call, lambda topic: may_create(asker, topic))
    if not broker.cluster.catalog.features.levels.get(STREAMS_VERSION):
        return api.handle(broker, call)  # which is not served, whatever the rights
    READ_GROUP.check(asker, request)
    if topology is not None:
        refuse_names(topology)
    return StreamsGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def describe(
    asker: Asker, broker: Dispatcher, call: Call[StreamsGroupDescribeRequest], api: AnyApi
) -> Answer:
    """Require Describe on each group, and on every topic of its topology."""
    if not broker.cluster.catalog.features.levels.get(STREAMS_VERSION):
        return api.handle(broker, call)
    return described(
        asker,
        broker,
        call,
        api,
        lambda group: topics_of(group.topology) if group.topology else (),
        "The described group uses topics that the client is not authorized to describe.",
    )
