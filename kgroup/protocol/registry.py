"""API keys: their names, and the request and response classes behind them.

A message module is imported when its API is first asked for, so that a command pays only for what it uses.
"""

from functools import cache
from importlib import import_module

from kgroup.errors import DecodeError
from kgroup.protocol.codec import Message

_KAFKA = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    57: "UpdateFeatures",
    60: "DescribeCluster",
    61: "DescribeProducers",
    65: "DescribeTransactions",
    66: "ListTransactions",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    74: "ListConfigResources",
    75: "DescribeTopicPartitions",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
    93: "StreamsGroupTopologyDescriptionUpdate",
}
_PRIVATE = {
    10001: "ConsumerGroupPrepareAssignment",
    10002: "ConsumerGroupInstallAssignment",
}
_NAMES = _KAFKA | _PRIVATE
_LIST_OFFSETS_0 = (2, 0)

KAFKA_APIS = tuple(_KAFKA)
"""Keys of Kafka's own APIs, ascending."""

PRIVATE_APIS = tuple(_PRIVATE)
"""Keys of the APIs for client-side assignors (KIP-848), which no released Kafka serves."""


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
    return 2, 0 if _NAMES[key] == "ApiVersions" else 1


def _class(key: int, suffix: str) -> type[Message]:
    if key not in _NAMES:
        raise DecodeError(f"no API has key {key}")
    name = _NAMES[key]
    module = "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
    found: type[Message] = getattr(import_module(f"kgroup.protocol.messages.{module}"), name + suffix)
    return found
