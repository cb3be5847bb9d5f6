"""Rules about settings: the resource that needs the right depends on what the settings are of."""

from __future__ import annotations

from dataclasses import replace

from kgroup.broker.call import Answer, AnyCall, Call
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.handlers.alter_configs import AnyRequest, AnyResource, AnyResponse, check_changes
from kgroup.broker.rights.asker import Asker
from kgroup.broker.rights.rule import array_of, refused_in, with_refused
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.anatomy import Entry
from kgroup.protocol.config_numbers import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from kgroup.protocol.messages.describe_configs import DescribeConfigsRequest
from kgroup.protocol.registry import ApiKey
from kgroup.security.acls import CLUSTER_NAME, Operation, ResourceType
from kgroup.security.needs import REFUSALS

_RESOURCES = {
    TOPIC: ResourceType.TOPIC,
    GROUP: ResourceType.GROUP,
    **dict.fromkeys((BROKER, BROKER_LOGGER, CLIENT_METRICS), ResourceType.CLUSTER),
}
"""The resource type that a right to settings of each type must be on."""


def _refusal(asker: Asker, operation: Operation, config_type: int, name: str) -> ErrorCode:
    kind = _RESOURCES.get(config_type)
    if kind is None or asker.may(operation, kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else name):
        return ErrorCode.NONE
    return REFUSALS[kind]


def describe(asker: Asker, broker: Dispatcher, call: Call[DescribeConfigsRequest], api: AnyApi) -> Answer:
    """Require DescribeConfigs on each topic and group, and on the cluster for its brokers."""
    request = call.body
    refused: list[Entry] = []
    allowed = []
    for asked in request.resources:
        kind, name = asked.resource_type, asked.resource_name
        if kind not in _RESOURCES:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {kind} for resource {name}")
        code = _refusal(asker, Operation.DESCRIBE_CONFIGS, kind, name)
        if code:
            refused += _refused(request, asked, code)
        else:
            allowed.append(asked)
    if not refused:
        return api.handle(broker, call)
    body = replace(request, resources=tuple(allowed))
    return with_refused(broker, call, api, body, array_of(ApiKey.DESCRIBE_CONFIGS), tuple(refused))


def _refused(request: Entry, resource: Entry, code: ErrorCode) -> tuple[Entry, ...]:
    """Return the answer about one resource, as an array."""
    return refused_in(array_of(request.API), replace(request, resources=(resource,)), code)


def alter(asker: Asker, broker: Dispatcher, call: Call[AnyRequest], api: AnyApi) -> Answer:
    """Require AlterConfigs on each topic and group, and on the cluster for its brokers.

    Invalid changes are refused before that, and so is everything about a broker's settings, because the
    broker that is asked checks them before the controller checks rights.
    """
    request = call.body
    names = [(r.resource_type, r.resource_name) for r in request.resources]
    refused: list[Entry] = []
    allowed: list[AnyResource] = []
    for changed in request.resources:
        kind, name = changed.resource_type, changed.resource_name
        code = _refusal(asker, Operation.ALTER_CONFIGS, kind, name)
        if code and names.count((kind, name)) == 1 and _well_formed(broker, call, api, changed):
            refused += _refused(request, changed, code)
        else:
            allowed.append(changed)
    if not refused:
        return api.handle(broker, call)
    body: AnyRequest = replace(request, resources=tuple(allowed))  # type: ignore[arg-type]
    return with_refused(broker, call, api, body, array_of(request.API), tuple(refused))


def _well_formed(broker: Dispatcher, call: AnyCall, api: AnyApi, changed: AnyResource) -> bool:
    """Return whether the request is valid as far as is checked before rights; the handler
    answers any other, which then changes nothing."""
    try:
        check_changes(changed)
    except Refused:
        return False
    if changed.resource_type != BROKER:
        return True
    trial = replace(call.body, resources=(changed,), validate_only=True)
    response = api.handle(broker, call.part(trial, call.answer))
    return isinstance(response, AnyResponse) and not response.responses[0].error_code
