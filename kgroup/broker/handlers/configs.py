"""DescribeConfigs: settings of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Iterable

from kgroup.broker import topics as rules
from kgroup.broker.call import Api, Call
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers.repeats import as_often_as_asked
from kgroup.coordinator.consumer.settings import bounds as group_bounds
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kgroup.runtime.settings import BrokerSettings
from kgroup.runtime.topic_settings import SETTINGS, TopicSetting, written

TOPIC, BROKER, GROUP = 2, 4, 32  # resource types
FROM_TOPIC, FROM_FILE, FROM_DEFAULT, FROM_GROUP = 1, 4, 5, 8  # config sources
BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7  # config types


def describe_configs(desk: Dispatcher, call: Call) -> DescribeConfigsResponse:
    """Every setting of each resource, or only the ones named."""
    request = call.body
    assert isinstance(request, DescribeConfigsRequest)
    results = []
    for resource in as_often_as_asked(request.resources, lambda r: (r.resource_type, r.resource_name)):
        try:
            entries = list(_entries(desk, resource, request.include_synonyms))
        except Refused as refused:
            results.append(_refused(resource, refused.code, refused.message))
            continue
        keys = resource.configuration_keys
        results.append(
            DescribeConfigsResult(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                # an empty list means all, too: clients before 0.11 send one
                configs=tuple(entry for entry in entries if not keys or entry.name in keys),
            )
        )
    return DescribeConfigsResponse(results=tuple(results))


def refuse(request: Message, code: ErrorCode, message: str | None) -> DescribeConfigsResponse:
    assert isinstance(request, DescribeConfigsRequest)
    return DescribeConfigsResponse(results=tuple(_refused(r, code, message) for r in request.resources))


def _entries(
    desk: Dispatcher, resource: DescribeConfigsResource, synonyms: bool
) -> Iterable[DescribeConfigsResourceResult]:
    if resource.resource_type == TOPIC:
        return _topic_entries(desk, resource.resource_name, synonyms)
    if resource.resource_type == BROKER:
        return _broker_entries(desk, resource.resource_name, synonyms)
    if resource.resource_type == GROUP:
        return _group_entries(desk, resource.resource_name, synonyms)
    raise Refused(
        ErrorCode.INVALID_REQUEST, f"Resource type {resource.resource_type} has no configuration here"
    )


def _topic_entries(desk: Dispatcher, name: str, synonyms: bool) -> Iterable[DescribeConfigsResourceResult]:
    rules.check_name(name)
    topic = desk.cluster.catalog.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker, defaults = desk.cluster.settings.as_text(), BrokerSettings().as_text()
    for key, setting in SETTINGS.items():
        layers = []
        if key in topic.config:
            layers.append((key, written(key, topic.config[key]), FROM_TOPIC))
        if setting.broker_name:
            behind = setting.broker_name
            in_force = broker.get(behind, setting.default)
            if in_force != defaults.get(behind, setting.default):
                layers.append((behind, in_force, FROM_FILE))
            layers.append((behind, setting.default, FROM_DEFAULT))
        yield _layered(key, setting, layers, synonyms)


def _broker_entries(desk: Dispatcher, name: str, synonyms: bool) -> Iterable[DescribeConfigsResourceResult]:
    if name not in {str(node) for node in desk.cluster.endpoints}:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, there is no broker {name!r}")
    defaults = {**BrokerSettings().as_text(), **type(desk.cluster.group_config)().as_settings()}
    in_force = {**desk.cluster.settings.as_text(), **desk.cluster.group_config.as_settings()}
    yield _entry("broker.id", name, FROM_FILE, synonyms)
    for key, value in in_force.items():
        yield _entry(key, value, FROM_DEFAULT if value == defaults[key] else FROM_FILE, synonyms, True)


def _group_entries(
    desk: Dispatcher, group_id: str, synonyms: bool
) -> Iterable[DescribeConfigsResourceResult]:
    own = desk.cluster.catalog.group_configs.get(group_id, {})
    for key, bounds in group_bounds(desk.cluster.group_config).items():
        source = FROM_GROUP if key in own else FROM_DEFAULT
        yield _entry(key, own.get(key, str(bounds.default)), source, synonyms)


def _layered(
    name: str, setting: TopicSetting, layers: list[tuple[str, str, int]], synonyms: bool
) -> DescribeConfigsResourceResult:
    """A setting that is asked for in several places, the first of which decides."""
    _, value, source = layers[0] if layers else (name, setting.default, FROM_DEFAULT)
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        config_source=source,
        synonyms=tuple(DescribeConfigsSynonym(name=n, value=v, source=s) for n, v, s in layers if synonyms),
        config_type=setting.type,
    )


def _entry(
    name: str, value: str, source: int, synonyms: bool, read_only: bool = False
) -> DescribeConfigsResourceResult:
    same = (DescribeConfigsSynonym(name=name, value=value, source=source),) if synonyms else ()
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=read_only,
        config_source=source,
        synonyms=same,
        config_type=_type_of(name, value),
    )


def _type_of(name: str, value: str) -> int:
    if value in ("true", "false"):
        return BOOLEAN
    if name in ("cleanup.policy", "group.consumer.assignors", "group.coordinator.rebalance.protocols"):
        return LIST
    if name.endswith(".ratio"):
        return DOUBLE
    if not value.lstrip("-").isdecimal():
        return STRING
    return LONG if name.endswith(".ms") else INT


def _refused(
    resource: DescribeConfigsResource, code: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


APIS = (Api(DescribeConfigsRequest.API, describe_configs, refuse),)
