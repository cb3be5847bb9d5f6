"""The share coordinator's five APIs, which brokers use among themselves (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import AnyApi, Api, Dispatcher, Work
from kgroup.errors import Refused
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import delete_share_group_state as deleting
from kgroup.protocol.messages import initialize_share_group_state as initializing
from kgroup.protocol.messages import read_share_group_state as reading
from kgroup.protocol.messages import read_share_group_state_summary as summarizing
from kgroup.protocol.messages import write_share_group_state as writing
from kgroup.share.coordinator import Change, ShareCoordinator, StateKey

Body = (
    initializing.InitializeShareGroupStateRequest
    | reading.ReadShareGroupStateRequest
    | writing.WriteShareGroupStateRequest
    | deleting.DeleteShareGroupStateRequest
    | summarizing.ReadShareGroupStateSummaryRequest
)
R = TypeVar("R", bound=Body)
Asked = TypeVar("Asked")
Result = TypeVar("Result")


def _api(
    request: type[R],
    response: Callable[..., Message],
    topic_result: Callable[..., object],
    result: Callable[..., Result],
    operation: Callable[[ShareCoordinator, StateKey, Asked, int], Change[Result]],
) -> AnyApi:
    """Return an API whose request names partitions, each of which is answered by itself."""

    def handle(broker: Dispatcher, call: Call[R]) -> Answer:
        return broker.in_turns(call, work(broker, call))

    def work(broker: Dispatcher, call: Call[R]) -> Work:
        results = []
        for topic in call.body.topics:
            of_topic = []
            for asked in topic.partitions:
                key = StateKey(call.body.group_id, topic.topic_id, asked.partition)
                of_topic.append(one(broker, call, key, cast("Asked", asked)))
                yield
            results.append(topic_result(topic_id=topic.topic_id, partitions=tuple(of_topic)))
        return response(results=tuple(results))

    def one(broker: Dispatcher, call: Call[R], key: StateKey, asked: Asked) -> Result:
        now_ms = broker.clock.now_ms()
        try:
            return broker.share_state.run(key, lambda c: operation(c, key, asked, now_ms), call.node)
        except Refused as refused:
            return result(partition=key.partition, error_code=refused.code, error_message=refused.message)

    return Api(request, handle)


APIS: tuple[AnyApi, ...] = (
    _api(
        initializing.InitializeShareGroupStateRequest,
        initializing.InitializeShareGroupStateResponse,
        initializing.TopicResult,
        initializing.PartitionResult,
        ShareCoordinator.initialize,
    ),
    _api(
        reading.ReadShareGroupStateRequest,
        reading.ReadShareGroupStateResponse,
        reading.TopicResult,
        reading.PartitionResult,
        ShareCoordinator.read,
    ),
    _api(
        writing.WriteShareGroupStateRequest,
        writing.WriteShareGroupStateResponse,
        initializing.TopicResult,
        initializing.PartitionResult,
        ShareCoordinator.write,
    ),
    _api(
        deleting.DeleteShareGroupStateRequest,
        deleting.DeleteShareGroupStateResponse,
        initializing.TopicResult,
        initializing.PartitionResult,
        lambda coordinator, key, _, __: coordinator.delete(key),
    ),
    _api(
        summarizing.ReadShareGroupStateSummaryRequest,
        summarizing.ReadShareGroupStateSummaryResponse,
        summarizing.TopicResult,
        summarizing.PartitionResult,
        lambda coordinator, key, _, __: (None, coordinator.summary(key)),
    ),
)
