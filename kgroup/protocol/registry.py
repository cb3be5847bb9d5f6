"""API keys: their names, and the request and response classes behind them.

A message module is imported when its API is first asked for, so that a command pays only for what it uses.
"""

from enum import IntEnum
from functools import cache
from importlib import import_module

from kgroup.errors import DecodeError
from kgroup.protocol.codec import Message


class ApiKey(IntEnum):
    """Numbers of requests, by Kafka's names; the last two are for client-side assignors (KIP-848)."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    CONSUMER_GROUP_PREPARE_ASSIGNMENT = 10001
    CONSUMER_GROUP_INSTALL_ASSIGNMENT = 10002


PRIVATE_APIS = (ApiKey.CONSUMER_GROUP_PREPARE_ASSIGNMENT, ApiKey.CONSUMER_GROUP_INSTALL_ASSIGNMENT)
"""The APIs for client-side assignors, which no released Kafka serves."""

KAFKA_APIS = tuple(key for key in ApiKey if key not in PRIVATE_APIS)
"""Kafka's own APIs, ascending."""

_NAMES = {int(key): key.name.title().replace("_", "") for key in ApiKey}
_LIST_OFFSETS_0 = (ApiKey.LIST_OFFSETS, 0)


def known(key: int) -> bool:
    """Return whether kgroup has the messages of this API."""
    return key in _NAMES


def name_of(key: int) -> str:
    """Return the API's name, or `API_<n>` for one kgroup has no messages for."""
    return _NAMES.get(key, f"API_{key}")


@cache
def request_class(key: int) -> type[Message]:
    """Return the request class of an API; DecodeError if kgroup has no messages for it."""
    return _class(key, "Request")


@cache
def response_class(key: int) -> type[Message]:
    """Return the response class of an API; DecodeError if kgroup has no messages for it."""
    return _class(key, "Response")


def response_class_at(key: int, version: int) -> type[Message]:
    """Return an API's response class in a version, which only brokers before 4.0 may serve."""
    if (key, version) == _LIST_OFFSETS_0:
        from kgroup.protocol.messages.list_offsets_0 import ListOffsets0Response

        return ListOffsets0Response
    return response_class(key)


def response_class_of(request: Message) -> type[Message]:
    """Return the class of the answer to `request`."""
    return response_class(request.API)


def header_versions(key: int, version: int) -> tuple[int, int]:
    """Return the request and response header versions that go with an API version (KIP-482).

    ApiVersions is always answered with header 0: a client that asks does not know yet whether the broker
    understands flexible versions (KIP-511).
    """
    if version < request_class(key).FLEXIBLE:
        return 1, 0
    return 2, 0 if key == ApiKey.API_VERSIONS else 1


def _class(key: int, suffix: str) -> type[Message]:
    if key not in _NAMES:
        raise DecodeError(f"no API has key {key}")
    name = _NAMES[key]
    module = "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
    message_class: type[Message] = getattr(import_module(f"kgroup.protocol.messages.{module}"), name + suffix)
    return message_class
