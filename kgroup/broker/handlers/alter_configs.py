"""IncrementalAlterConfigs: change settings of topics and groups; brokers keep those they started with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from kgroup.broker import topics as rules
from kgroup.broker.call import Api, Call
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers.configs import GROUP, TOPIC
from kgroup.coordinator.consumer import settings as groups
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

SET, DELETE = 0, 1  # operations; appending to lists and taking out of them are not served


def alter_configs(desk: Dispatcher, call: Call) -> IncrementalAlterConfigsResponse:
    """Each resource on its own, all of its changes or none; one named twice is INVALID_REQUEST."""
    request = call.body
    assert isinstance(request, IncrementalAlterConfigsRequest)
    counts = Counter((r.resource_type, r.resource_name) for r in request.resources)
    responses = []
    with desk.together():
        for resource in request.resources:
            try:
                if counts[resource.resource_type, resource.resource_name] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                change = _checked(desk, resource)
                if not request.validate_only:
                    change()
                responses.append(_answer(resource, ErrorCode.NONE, None))
            except Refused as refused:
                responses.append(_answer(resource, refused.code, refused.message))
    return IncrementalAlterConfigsResponse(responses=tuple(responses))


def refuse(request: Message, code: ErrorCode, message: str | None) -> IncrementalAlterConfigsResponse:
    assert isinstance(request, IncrementalAlterConfigsRequest)
    return IncrementalAlterConfigsResponse(
        responses=tuple(_answer(resource, code, message) for resource in request.resources)
    )


def _checked(desk: Dispatcher, resource: AlterConfigsResource) -> Callable[[], None]:
    """The change to a resource, found to be allowed."""
    cluster, name = desk.cluster, resource.resource_name
    if resource.resource_type == GROUP:
        if not name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        wanted = _changed(cluster.catalog.group_configs.get(name, {}), resource.configs)
        groups.check(cluster.group_config, wanted)
        return lambda: cluster.configure_group(name, wanted)
    if resource.resource_type == TOPIC:
        rules.check_name(name)
        topic = cluster.catalog.topics.get(name)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        wanted = _changed(topic.config, resource.configs)
        rules.check_config(cluster, wanted)
        return lambda: cluster.configure_topic(name, wanted)
    raise Refused(
        ErrorCode.INVALID_REQUEST,
        f"Settings of resource type {resource.resource_type} cannot be changed here",
    )


def _changed(settings: Mapping[str, str], changes: tuple[AlterableConfig, ...]) -> dict[str, str]:
    found = dict(settings)
    if len({change.name for change in changes}) < len(changes):
        raise Refused(ErrorCode.INVALID_REQUEST, "Each setting must appear at most once.")
    for change in changes:
        if change.config_operation == DELETE:
            found.pop(change.name, None)
        elif change.config_operation != SET:
            raise Refused(ErrorCode.INVALID_REQUEST, f"{change.name} can be set or deleted, nothing else")
        elif change.value is None:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {change.name}")
        else:
            found[change.name] = change.value
    return found


def _answer(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


APIS = (Api(IncrementalAlterConfigsRequest.API, alter_configs, refuse),)
