"""Which Kafka release first served what kgroup needs of a broker: for telling people with an older one.

Only requests and versions that some released Kafka from 2.3 on lacks; from the release notes of their KIPs.
"""

from __future__ import annotations

_SINCE: dict[int, dict[int, str]] = {
    2: {7: "3.0"},  # ListOffsets: offset of the largest timestamp (KIP-734)
    9: {7: "2.5", 8: "3.0"},  # OffsetFetch: stable offsets (KIP-447), many groups (KIP-709)
    13: {3: "2.4"},  # LeaveGroup: members by instance id (KIP-345)
    15: {4: "2.4"},  # DescribeGroups: instance ids (KIP-345)
    18: {3: "2.4"},  # ApiVersions: client software (KIP-511), features from 2.7 on
    19: {4: "2.4"},  # CreateTopics: the broker's own numbers (KIP-464)
    47: {0: "2.4"},  # OffsetDelete (KIP-496)
    60: {0: "2.8"},  # DescribeCluster (KIP-700)
    61: {0: "2.8"},  # DescribeProducers (KIP-664)
    65: {0: "3.0"},  # DescribeTransactions (KIP-664)
    66: {0: "3.0"},  # ListTransactions (KIP-664)
    68: {0: "4.0"},  # ConsumerGroupHeartbeat (KIP-848)
    69: {0: "4.0"},  # ConsumerGroupDescribe (KIP-848)
    75: {0: "3.8"},  # DescribeTopicPartitions (KIP-966)
    77: {1: "4.1"},  # ShareGroupDescribe (KIP-932)
    88: {0: "4.2"},  # StreamsGroupHeartbeat (KIP-1071)
    89: {0: "4.2"},  # StreamsGroupDescribe (KIP-1071)
    90: {0: "4.1", 1: "4.2"},  # DescribeShareGroupOffsets (KIP-932), its lag (KIP-1226)
    91: {0: "4.1"},  # AlterShareGroupOffsets (KIP-932)
    92: {0: "4.1"},  # DeleteShareGroupOffsets (KIP-932)
}


def first_release(api_key: int, version: int) -> str | None:
    """The first Kafka whose release serves this version of a request; None where every one since 2.3 does."""
    reached = [number for number in _SINCE.get(api_key, {}) if number <= version]
    return _SINCE[api_key][max(reached)] if reached else None
