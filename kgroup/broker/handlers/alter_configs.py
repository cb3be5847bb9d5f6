"""IncrementalAlterConfigs: change settings of topics, groups and brokers (KIP-339)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from kgroup.broker import topics as rules
from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.handlers.configs import BROKER, GROUP, TOPIC
from kgroup.coordinator import group_settings as groups
from kgroup.coordinator import roster
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kgroup.runtime.broker_settings import ALL_BROKERS, DYNAMIC, check_dynamic, is_list
from kgroup.runtime.topic_settings import LIST, SETTINGS

SET, DELETE, APPEND, SUBTRACT = range(4)  # operations


def alter_configs(
    broker: Dispatcher, call: Call[IncrementalAlterConfigsRequest]
) -> IncrementalAlterConfigsResponse:
    """Each resource on its own, all of its changes or none; one named twice is INVALID_REQUEST."""
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
    return IncrementalAlterConfigsResponse(responses=tuple(responses))


def refuse(
    request: IncrementalAlterConfigsRequest, code: ErrorCode, message: str | None
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=tuple(_answer(resource, code, message) for resource in request.resources)
    )


def _checked(broker: Dispatcher, node: int, resource: AlterConfigsResource) -> Callable[[], None]:
    """The change to a resource, found to be allowed."""
    check_changes(resource.configs)
    if resource.resource_type == GROUP:
        return _group(broker, resource)
    if resource.resource_type == TOPIC:
        return _topic(broker, resource)
    if resource.resource_type == BROKER:
        return _broker(broker, node, resource)
    raise Refused(
        ErrorCode.INVALID_REQUEST,
        f"Settings of resource type {resource.resource_type} cannot be changed here",
    )


def check_changes(changes: tuple[AlterableConfig, ...]) -> None:
    """Refused with INVALID_REQUEST for changes that are none, whatever they are to."""
    if len({change.name for change in changes}) < len(changes):
        raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [each.name for each in changes if each.config_operation != DELETE and each.value is None]
    if nulls:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    odd = [each.config_operation for each in changes if each.config_operation not in range(4)]
    if odd:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown operations type {odd[0]}")


def _group(broker: Dispatcher, resource: AlterConfigsResource) -> Callable[[], None]:
    cluster, name = broker.cluster, resource.resource_name
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    before = cluster.catalog.group_configs.get(name, {})
    wanted = _changed(before, resource.configs, lambda key: "" if key in roster.LISTS else None)
    groups.check(cluster.group_config, wanted)
    return lambda: cluster.configure_group(name, wanted)


def _topic(broker: Dispatcher, resource: AlterConfigsResource) -> Callable[[], None]:
    cluster, name = broker.cluster, resource.resource_name
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    rules.check_name(name)
    topic = cluster.catalog.topics.get(name)

    def default(key: str) -> str | None:
        return SETTINGS[key].default if key in SETTINGS and SETTINGS[key].type == LIST else None

    wanted = _changed(topic.config if topic else {}, resource.configs, default)
    rules.check_config(cluster, wanted)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return lambda: cluster.configure_topic(name, wanted)


def _broker(broker: Dispatcher, node: int, resource: AlterConfigsResource) -> Callable[[], None]:
    cluster, name = broker.cluster, resource.resource_name
    if name:
        try:
            meant = int(name)
        except ValueError:
            raise Refused(
                ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
            ) from None
        if meant != node:
            raise Refused(
                ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node}, but received {name}"
            )

    def default(key: str) -> str | None:
        return DYNAMIC[key].default if is_list(key) and key in DYNAMIC else None

    entity = str(int(name)) if name else ALL_BROKERS
    wanted = _changed(cluster.catalog.broker_configs.get(entity, {}), resource.configs, default)
    check_dynamic(wanted, one_of_many=bool(name) and cluster.brokers > 1)
    return lambda: cluster.configure_broker(entity, wanted)


def _changed(
    settings: Mapping[str, str],
    changes: tuple[AlterableConfig, ...],
    default: Callable[[str], str | None],
) -> dict[str, str]:
    """The settings after the changes; `default` tells what a list is by default, None for what is no list."""
    found = dict(settings)
    for change in changes:
        key, value = change.name, change.value or ""
        if change.config_operation == DELETE:
            found.pop(key, None)
        elif change.config_operation == SET:
            found[key] = value
        else:
            unset = default(key)
            operation = "APPEND" if change.config_operation == APPEND else "SUBTRACT"
            if unset is None:
                raise Refused(
                    ErrorCode.INVALID_CONFIG, f"Can't {operation} to key {key} because its type is not LIST."
                )
            parts = [part for part in found.get(key, unset).split(",") if part]
            for part in value.split(","):
                if change.config_operation == APPEND and part not in parts:
                    parts.append(part)
                elif change.config_operation == SUBTRACT and part in parts:
                    parts.remove(part)
            found[key] = ",".join(parts)
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


APIS = (Api(IncrementalAlterConfigsRequest, alter_configs, refuse),)
