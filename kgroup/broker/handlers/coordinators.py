"""FindCoordinator: the broker that coordinates a group or a transactional id."""

from __future__ import annotations

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import Api, Dispatcher, Work
from kgroup.domain import OFFSETS_TOPIC, uuid_bytes
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kgroup.protocol.requests import COORDINATOR_MESSAGES
from kgroup.settings import whole_number

GROUP, TRANSACTION, SHARE = 0, 1, 2  # key types; the last, of brokers, is GROUP:TOPIC_ID:PARTITION
MANY_KEYS_SINCE, SHARES_SINCE = 4, 6


def find_coordinator(broker: Dispatcher, call: Call[FindCoordinatorRequest]) -> Answer:
    """Return the leader of the partition that a key belongs to; INVALID_REQUEST for other kinds of key."""
    request = call.body
    if call.version >= MANY_KEYS_SINCE:
        return broker.in_turns(call, _coordinators(broker, call))
    one = _coordinator(broker, call, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=COORDINATOR_MESSAGES[ErrorCode(one.error_code)],
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _coordinators(broker: Dispatcher, call: Call[FindCoordinatorRequest]) -> Work:
    coordinators = []
    for key in call.body.coordinator_keys:
        coordinators.append(_coordinator(broker, call, key))
        yield
    return FindCoordinatorResponse(coordinators=tuple(coordinators))


def _coordinator(broker: Dispatcher, call: Call[FindCoordinatorRequest], key: str) -> Coordinator:
    key_type = call.body.key_type
    if key_type == GROUP:
        partition = broker.partition_of(key)
        if broker.cluster.offline(OFFSETS_TOPIC, partition):
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        node = broker.cluster.leader_of(OFFSETS_TOPIC, partition)
    elif key_type == TRANSACTION:
        node = broker.transactions.node_of(key)
    elif key_type == SHARE and call.version >= SHARES_SINCE and _is_share_partition(key):
        node = broker.share_state.node_of(key)
    else:
        return _none(key, ErrorCode.INVALID_REQUEST)
    endpoint = broker.endpoints(call).get(node)
    if endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    host, port = endpoint
    return Coordinator(key=key, node_id=node, host=host, port=port)


def _is_share_partition(key: str) -> bool:
    """Return whether a key is GROUP:TOPIC_ID:PARTITION; a group's id may have colons, too."""
    group_id, _, rest = key.rpartition(":")
    group_id, _, topic_id = group_id.rpartition(":")
    try:
        return bool(group_id) and whole_number(rest) >= 0 and bool(uuid_bytes(topic_id))
    except ValueError:
        return False


def _none(key: str, code: ErrorCode) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=code)


APIS = (Api(FindCoordinatorRequest, find_coordinator),)
