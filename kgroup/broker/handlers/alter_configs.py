"""IncrementalAlterConfigs and AlterConfigs: change or replace settings of topics, groups and brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from kgroup.broker import topics as rules
from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.roster import ROWS as ROSTER
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.config_numbers import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
)
from kgroup.protocol.messages import alter_configs as replacing
from kgroup.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kgroup.runtime.broker_settings import ALL_BROKERS, check_dynamic, known
from kgroup.runtime.topic_settings import SETTINGS
from kgroup.settings import LIST, Setting, whole_number, written

AnyRequest: TypeAlias = IncrementalAlterConfigsRequest | AlterConfigsRequest
AnyResponse: TypeAlias = IncrementalAlterConfigsResponse | AlterConfigsResponse
AnyResource: TypeAlias = AlterConfigsResource | replacing.AlterConfigsResource


def alter_configs(broker: Dispatcher, call: Call[AnyRequest]) -> AnyResponse:
    """Change each resource by itself, completely or not at all; one named twice is INVALID_REQUEST."""
    request = call.body
    counts = Counter((r.resource_type, r.resource_name) for r in request.resources)
    responses = []
    with broker.together():
        for resource in request.resources:
            try:
                if counts[resource.resource_type, resource.resource_name] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                change = _checked(broker, call.node, resource)
                if not request.validate_only:
                    change()
                responses.append(_answer(resource, ErrorCode.NONE, None))
            except Refused as refused:
                responses.append(_answer(resource, refused.code, refused.message))
    return _response(request, responses)


def _response(request: AnyRequest, responses: Iterable[AlterConfigsResourceResponse]) -> AnyResponse:
    made = (
        AlterConfigsResponse if isinstance(request, AlterConfigsRequest) else IncrementalAlterConfigsResponse
    )
    return made(responses=tuple(responses))


def _checked(broker: Dispatcher, node: int, resource: AnyResource) -> Callable[[], None]:
    """Return an allowed change to a resource."""
    check_changes(resource)
    if resource.resource_type == GROUP:
        cluster, name = broker.cluster, resource.resource_name
        if not name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        before = cluster.catalog.group_configs.get(name, {})
        rows = {**GroupConfig(kafka=cluster.kafka).of_groups(), **ROSTER}
        after = _changed(before, resource, rows.get)
        cluster.group_config.check_group(after)
        return lambda: cluster.configure_group(name, after)
    if resource.resource_type == TOPIC:
        return _topic(broker, resource)
    if resource.resource_type == BROKER:
        return _broker(broker, node, resource)
    kind = resource.resource_type
    if kind == CLIENT_METRICS or (kind == BROKER_LOGGER and isinstance(resource, AlterConfigsResource)):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Settings of resource type {kind} cannot be changed here")
    raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def check_changes(resource: AnyResource) -> None:
    """Raise INVALID_REQUEST for invalid changes, whatever resource they are for."""
    changes = _changes(resource)
    if len({change.name for change in changes}) < len(changes):
        raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [change.name for change in changes if change.config_operation != DELETE and change.value is None]
    if nulls:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    odd = [change.config_operation for change in changes if change.config_operation not in range(4)]
    if odd:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown operations type {odd[0]}")


def _changes(resource: AnyResource) -> tuple[AlterableConfig, ...]:
    """Return the changes for a full replacement: set each."""
    if isinstance(resource, AlterConfigsResource):
        return resource.configs
    return tuple(AlterableConfig(name=c.name, config_operation=SET, value=c.value) for c in resource.configs)


def _topic(broker: Dispatcher, resource: AnyResource) -> Callable[[], None]:
    cluster, name = broker.cluster, resource.resource_name
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    rules.check_name(name)
    topic = cluster.catalog.topics.get(name)
    after = _changed(topic.config if topic else {}, resource, SETTINGS.get)
    rules.check_config(cluster, after)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return lambda: cluster.configure_topic(name, after)


def _broker(broker: Dispatcher, node: int, resource: AnyResource) -> Callable[[], None]:
    cluster, name = broker.cluster, resource.resource_name
    if name:
        try:
            meant = whole_number(name)
        except ValueError:
            raise Refused(
                ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
            ) from None
        if meant != node:
            raise Refused(
                ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node}, but received {name}"
            )
    entity = str(node) if name else ALL_BROKERS
    after = _changed(cluster.catalog.broker_configs.get(entity, {}), resource, known)
    check_dynamic(after, one_of_many=bool(name) and cluster.brokers > 1)
    return lambda: cluster.configure_broker(entity, after)


def _changed(
    settings: Mapping[str, str],
    resource: AnyResource,
    row_of: Callable[[str], Setting | None],
) -> dict[str, str]:
    """Return the settings after the changes; only lists have items to add and remove."""
    after = dict(settings) if isinstance(resource, AlterConfigsResource) else {}
    for change in _changes(resource):
        key, value = change.name, change.value or ""
        if change.config_operation == DELETE:
            after.pop(key, None)
        elif change.config_operation == SET:
            after[key] = value
        else:
            row = row_of(key)
            operation = "APPEND" if change.config_operation == APPEND else "SUBTRACT"
            if row is None or row.type != LIST:
                raise Refused(
                    ErrorCode.INVALID_CONFIG, f"Can't {operation} to key {key} because its type is not LIST."
                )
            parts = [part for part in after.get(key, written(row.default)).split(",") if part]
            for part in value.split(","):
                if change.config_operation == APPEND and part not in parts:
                    parts.append(part)
                elif change.config_operation == SUBTRACT and part in parts:
                    parts.remove(part)
            after[key] = ",".join(parts)
    return after


def _answer(resource: AnyResource, code: ErrorCode, message: str | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


APIS = (
    Api(IncrementalAlterConfigsRequest, alter_configs),
    Api(AlterConfigsRequest, alter_configs),
)
