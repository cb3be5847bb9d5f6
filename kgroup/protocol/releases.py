"""What each release of Kafka brought: versions of requests, levels of features, ways to behave.

No other module knows a release. The client looks here which one to name to people with an older broker, the
embedded cluster what it serves as one. Versions that every release from 2.3 on serves are in no table. The
sources are the release notes of the KIPs, and the jars of each release in `SERVED` (`make kafka-release`).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from kgroup.errors import ConfigError
from kgroup.protocol import registry

_SINCE: dict[int, dict[int, str]] = {
    2: {7: "3.0"},  # ListOffsets: offset of the largest timestamp (KIP-734)
    9: {7: "2.5", 8: "3.0"},  # OffsetFetch: stable offsets (KIP-447), many groups (KIP-709)
    13: {3: "2.4"},  # LeaveGroup: members by instance id (KIP-345)
    15: {4: "2.4"},  # DescribeGroups: instance ids (KIP-345)
    # ApiVersions: client software (KIP-511), features from 2.7 on; the cluster that is meant (KIP-1242)
    18: {3: "2.4", 5: "4.4"},
    19: {4: "2.4"},  # CreateTopics: the broker's own numbers (KIP-464)
    28: {6: "4.4"},  # TxnOffsetCommit: topics by id (KIP-1319)
    42: {3: "4.4"},  # DeleteGroups: why one was not deleted (KIP-1331)
    47: {0: "2.4"},  # OffsetDelete (KIP-496)
    60: {0: "2.8"},  # DescribeCluster (KIP-700)
    61: {0: "2.8"},  # DescribeProducers (KIP-664)
    65: {0: "3.0"},  # DescribeTransactions (KIP-664)
    66: {0: "3.0"},  # ListTransactions (KIP-664)
    68: {0: "4.0"},  # ConsumerGroupHeartbeat (KIP-848)
    69: {0: "4.0"},  # ConsumerGroupDescribe (KIP-848)
    75: {0: "3.8"},  # DescribeTopicPartitions (KIP-966)
    76: {1: "4.1"},  # ShareGroupHeartbeat (KIP-932)
    77: {1: "4.1"},  # ShareGroupDescribe (KIP-932)
    78: {1: "4.1", 2: "4.2"},  # ShareFetch (KIP-932), its acquire modes (KIP-1206), renewing (KIP-1222)
    79: {1: "4.1", 2: "4.2"},  # ShareAcknowledge (KIP-932), renewing (KIP-1222)
    83: {0: "4.1"},  # InitializeShareGroupState (KIP-932)
    84: {0: "4.1"},  # ReadShareGroupState (KIP-932)
    85: {0: "4.1", 1: "4.2"},  # WriteShareGroupState (KIP-932), what is done with (KIP-1226)
    86: {0: "4.1"},  # DeleteShareGroupState (KIP-932)
    87: {0: "4.1", 1: "4.2"},  # ReadShareGroupStateSummary (KIP-932), what is done with (KIP-1226)
    88: {0: "4.2", 1: "4.4"},  # StreamsGroupHeartbeat (KIP-1071), descriptions of topologies (KIP-1331)
    89: {0: "4.2", 1: "4.4"},  # StreamsGroupDescribe (KIP-1071), the assignor (KIP-1357)
    90: {0: "4.1", 1: "4.2"},  # DescribeShareGroupOffsets (KIP-932), its lag (KIP-1226)
    91: {0: "4.1"},  # AlterShareGroupOffsets (KIP-932)
    92: {0: "4.1"},  # DeleteShareGroupOffsets (KIP-932)
    93: {0: "4.4"},  # StreamsGroupTopologyDescriptionUpdate (KIP-1331)
}
"""API key → version → the release that first served it and the versions up to the next one listed."""

GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION = "group.version", "share.version", "streams.version"
_LEVELS = {
    GROUP_VERSION: {1: "4.0"},
    SHARE_VERSION: {1: "4.2"},
    STREAMS_VERSION: {1: "4.2"},
    "transaction.version": {1: "4.0", 2: "4.0"},
}
"""Feature → level → the release that first supported it; each has 0 as its lowest (KIP-584)."""

_SETTINGS = {
    "group.streams.assignors": "4.4",  # KIP-1357
    "group.streams.rack.aware.assignment.tags": "4.4",
    "streams.assignor.name": "4.4",
    "streams.rack.aware.assignment.tags": "4.4",
}
"""Setting of brokers or groups → the release that brought it; those not listed are older than `SERVED`."""


class Release(NamedTuple):
    """A minor release of Kafka; the later is the greater."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def of(cls, text: str) -> Release:
        """Return the release that `text` names; ConfigError for one whose behaviour is not built."""
        for release in SERVED:
            if str(release) == text:
                return release
        raise ConfigError(f"no Kafka {text} is built here", f"give one of {', '.join(map(str, SERVED))}")

    def versions(self, key: int) -> range:
        """Return the versions of an API that this release's brokers serve; none of an unknown API."""
        known = registry.request_class(key).VERSIONS
        later = [version for version, since in _SINCE.get(key, {}).items() if _release(since) > self]
        return range(known.start, min(later, default=known.stop))

    @property
    def levels(self) -> dict[str, int]:
        """The highest level of each feature that it supports."""
        found = {
            name: max((level for level, since in levels.items() if _release(since) <= self), default=0)
            for name, levels in _LEVELS.items()
        }
        return {name: highest for name, highest in found.items() if highest}

    def has_setting(self, name: str) -> bool:
        """Whether this release knows a setting, of those that kgroup knows."""
        return name not in _SETTINGS or self >= _release(_SETTINGS[name])

    def has(self, change: Change) -> bool:
        """Whether this release behaves so."""
        since, _ = change.value
        return self >= since


def _release(text: str) -> Release:
    major, minor = text.split(".")
    return Release(int(major), int(minor))


SERVED = (Release(4, 3), Release(4, 4))
"""The releases that the embedded cluster can be."""

NEWEST = SERVED[-1]


_4_4 = Release(4, 4)


class Change(Enum):
    """What brokers do otherwise since a release, beyond requests, features and settings."""

    TOPIC_IDS_IN_TRANSACTIONS = _4_4, "Offsets committed in a transaction are stored with their topic's id"
    STATIC_STREAMS_MEMBERS = _4_4, "Streams groups have static members and take task offsets"
    ROLES_IN_PLACE = _4_4, "A streams member's task changes its role without being released between"
    TASKS_BY_STATE = _4_4, "Task assignors see what members have and how much of its state, not their targets"
    CHANGED_ENDPOINTS = _4_4, "A streams member's endpoint may change, or go as it joins"
    RETURNS_IN_FULL_GROUPS = _4_4, "A static member returns to a full group"
    TARGETS_MOVE = _4_4, "A static member that returns has its target written once"
    ASSIGNOR_VOTES_BUMP = _4_4, "A change of the assignor that most members ask for makes a new target"
    EMPTIED_TARGETS = _4_4, "A group that loses its last member has a target of its last epoch"
    LASTING_TARGETS = _4_4, "A streams member that returns within an epoch finds the target it had"
    NEW_PARTITIONS_FROM_START = _4_4, "A share group reads partitions that a topic gets from their start"
    MALFORMED_SUBSCRIPTIONS = _4_4, "A classic join with a malformed subscription is refused, and not failed"


def first_release(api_key: int, version: int) -> str | None:
    """Return the first Kafka that serves this version of a request; None where all since 2.3 do."""
    reached = [number for number in _SINCE.get(api_key, {}) if number <= version]
    return _SINCE[api_key][max(reached)] if reached else None
