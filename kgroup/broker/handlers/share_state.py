"""The share coordinator's five APIs, which brokers use among themselves (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar, cast

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import AnyApi, Api, Dispatcher, at_once
from kgroup.errors import ErrorCode, Refused
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

    def each(body: R, answer: Callable[[StateKey, Asked], Result]) -> Generator[None, None, Message]:
        results = []
        for topic in body.topics:
            found = []
            for asked in topic.partitions:
                key = StateKey(body.group_id, topic.topic_id, asked.partition)
                found.append(answer(key, cast("Asked", asked)))
                yield
            results.append(topic_result(topic_id=topic.topic_id, partitions=tuple(found)))
        return response(results=tuple(results))

    def handle(broker: Dispatcher, call: Call[R]) -> Answer:
        def one(key: StateKey, asked: Asked) -> Result:
            now_ms = broker.clock.now_ms()
            try:
                return broker.share_state.run(key, lambda c: operation(c, key, asked, now_ms), call.node)
            except Refused as refused:
                return result(partition=key.partition, error_code=refused.code, error_message=refused.message)

        return broker.in_turns(call, each(call.body, one))

    def refuse(body: R, code: ErrorCode, message: str | None) -> Message:
        def refused(key: StateKey, _: Asked) -> Result:
            return result(partition=key.partition, error_code=code, error_message=message)

        return at_once(each(body, refused))

    return Api(request, handle, refuse)


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
