"""DescribeConfigs and ListConfigResources: settings of topics, brokers and groups, and which have some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kgroup.broker import topics as rules
from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.handlers.repeats import as_often_as_asked
from kgroup.coordinator.roster import ROWS as ROSTER
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.config_numbers import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    FROM_ALL_BROKERS,
    FROM_DEFAULT,
    FROM_FILE,
    FROM_GROUP,
    FROM_TOPIC,
    GROUP,
    TOPIC,
)
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kgroup.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kgroup.runtime.broker_settings import ALL_BROKERS, AT_START, DYNAMIC, Layer, in_force, known
from kgroup.runtime.settings import NODE_IDS
from kgroup.runtime.topic_settings import INTERNAL, SETTINGS
from kgroup.settings import Setting, whole_number


class Described(NamedTuple):
    """A setting of a resource: the layer that decides, None for no value, and all layers that have one."""

    row: Setting
    first: Layer | None
    layers: Sequence[Layer]
    read_only: bool = False
    is_sensitive: bool = False


def describe_configs(broker: Dispatcher, call: Call[DescribeConfigsRequest]) -> DescribeConfigsResponse:
    """Return every setting of each resource, or only the named ones."""
    request = call.body
    results = []
    for resource in as_often_as_asked(request.resources, lambda r: (r.resource_type, r.resource_name)):
        kind, name = resource.resource_type, resource.resource_name
        try:
            if kind not in _ENTRIES:
                text = f"Resource type {kind} has no configuration here"
                raise Refused(ErrorCode.INVALID_REQUEST, text)
            settings = list(_ENTRIES[kind](broker, name))
        except Refused as refused:
            results.append(_refused(resource, refused.code, refused.message))
            continue
        # An empty list of keys means all, too: clients before 0.11 send one.
        keys = resource.configuration_keys
        entries = [_entry(request, setting) for setting in settings if not keys or setting.row.name in keys]
        results.append(DescribeConfigsResult(resource_type=kind, resource_name=name, configs=tuple(entries)))
    return DescribeConfigsResponse(results=tuple(results))


def _entry(request: DescribeConfigsRequest, described: Described) -> DescribeConfigsResourceResult:
    row, first, layers, read_only, is_sensitive = described
    return DescribeConfigsResourceResult(
        name=row.name,
        value=first.value if first else None,
        read_only=read_only,
        config_source=first.source if first else FROM_DEFAULT,
        is_sensitive=is_sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(name=layer.name, value=layer.value, source=layer.source)
            for layer in layers
            if request.include_synonyms
        ),
        config_type=row.type,
        documentation=(row.text or None) if request.include_documentation else None,
    )


def _topic_entries(broker: Dispatcher, name: str) -> Iterator[Described]:
    rules.check_name(name)
    cluster = broker.cluster
    topic = cluster.catalog.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    rows = SETTINGS | INTERNAL
    own = {key: rows[key].shown(text) for key, text in cluster.in_force.own_of(topic).items()}
    for key, row in SETTINGS.items():
        layers = cluster.configs.topic_layers(key, own, cluster.in_force.only_node)
        yield Described(row, in_force(key, layers), layers)
    for key in INTERNAL.keys() & own.keys():
        yield _alone(INTERNAL[key], own[key], FROM_TOPIC)


def _broker_entries(broker: Dispatcher, name: str) -> Iterator[Described]:
    configs = broker.cluster.configs
    if not name:
        for key, value in configs.dynamic.get(ALL_BROKERS, {}).items():
            yield _alone(DYNAMIC[key], value, FROM_ALL_BROKERS)
        return
    try:
        node = whole_number(name)
    except ValueError:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}") from None
    if node not in broker.cluster.endpoints:
        nodes = ", ".join(map(str, broker.cluster.endpoints))
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {nodes} or empty string, but received {name}",
        )
    for row, shown in broker.of_listeners(node):
        yield _alone(row, shown, FROM_FILE, read_only=True, is_sensitive=shown is None)
    for key, row in (AT_START | DYNAMIC).items():
        if key in NODE_IDS:
            yield _alone(row, str(node), FROM_FILE, read_only=True)
        elif not row.internal and broker.cluster.kafka.has_setting(key):
            layers = configs.layers(row, node)
            yield Described(row, layers[0] if layers else None, layers, key not in DYNAMIC)


def _group_entries(broker: Dispatcher, group_id: str) -> Iterator[Described]:
    own = broker.cluster.catalog.group_configs.get(group_id, {})
    for key, row in broker.cluster.group_config.of_groups().items():
        if row.behind:
            layers = broker.cluster.configs.layers(known(row.behind), None)
        else:
            layers = [Layer(key, row.default_text, FROM_DEFAULT)]
        if key in own:
            layers.insert(0, Layer(key, row.shown(own[key]), FROM_GROUP))
        yield Described(row, layers[0], layers)
    # Shown only if set: to all other clients a group has the settings that Kafka knows.
    for key, row in ROSTER.items():
        if key in own:
            yield _alone(row, own[key], FROM_GROUP)


_ENTRIES = {TOPIC: _topic_entries, BROKER: _broker_entries, GROUP: _group_entries}


def _alone(
    row: Setting, value: str | None, source: int, *, read_only: bool = False, is_sensitive: bool = False
) -> Described:
    """Return a setting with a value that one place gives it."""
    layer = Layer(row.name, value, source)
    return Described(row, layer, [layer], read_only, is_sensitive)


def _refused(
    resource: DescribeConfigsResource, code: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def list_resources(broker: Dispatcher, call: Call[ListConfigResourcesRequest]) -> ListConfigResourcesResponse:
    """Return the groups with settings, existing or not, the brokers and the topics.

    Client metrics have no settings here; version 0 lists nothing else.
    """
    cluster = broker.cluster
    by_type: dict[int, Iterable[str]] = {CLIENT_METRICS: ()}
    if call.version > 0:
        nodes = [str(node) for node in cluster.endpoints]
        by_type = {
            GROUP: cluster.catalog.group_configs,
            CLIENT_METRICS: (),
            BROKER_LOGGER: nodes,
            BROKER: nodes,
            TOPIC: cluster.catalog.topics,
        }
    types = call.body.resource_types or by_type
    if any(kind not in by_type for kind in types):
        raise Refused(ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, names in by_type.items()
            if kind in types
            for name in names
        )
    )


APIS = (
    Api(DescribeConfigsRequest, describe_configs),
    Api(ListConfigResourcesRequest, list_resources),
)
