"""What each release of Kafka brought: versions of requests, levels of features, changes of behaviour.

No other module knows a release. The client looks here which one to recommend to users of an older broker, the
embedded cluster what it serves as one. The versions, in kgroup/protocol/since.py, are those that the jars of
each release declare (`make kafka-since`); `make versions` compares them with what its broker announces. The
sources of the rest are the release notes of the KIPs, and the jars of 4.3 and 4.4 (`make kafka-release`).
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum
from typing import NamedTuple

from kgroup.errors import ConfigError
from kgroup.protocol import registry
from kgroup.protocol.since import GAPS, SINCE

_OF_USE_SINCE = {68: "4.0", 69: "4.0"}
"""API key → the release from which on it does something: earlier ones refuse it unless set to try it out."""

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
"""Setting of brokers or groups → the release that brought it; all of `SERVED` know the others."""


class Release(NamedTuple):
    """A minor release of Kafka; the later is the greater."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def of(cls, text: str) -> Release:
        """Return the release that `text` names; ConfigError, with those there are, for another."""
        for release in SERVED:
            if str(release) == text:
                return release
        raise ConfigError(f"no Kafka {text} is built here", f"give one of {', '.join(map(str, SERVED))}")

    def versions(self, key: int) -> range:
        """Return the versions of an API that this release's brokers serve; none of an unknown API.

        Those that Kafka 4.0 gave up are left out (KIP-896), whatever the release.
        """
        if str(self) in GAPS.get(key, ()):
            return range(0)
        known = registry.request_class(key).VERSIONS
        later = [version for version, since in SINCE.get(key, {}).items() if _release(since) > self]
        return range(known.start, min(later, default=known.stop))

    @property
    def levels(self) -> dict[str, int]:
        """The highest supported level of each feature."""
        features = {
            name: max((level for level, since in levels.items() if _release(since) <= self), default=0)
            for name, levels in _LEVELS.items()
        }
        return {name: highest for name, highest in features.items() if highest}

    def has_setting(self, name: str) -> bool:
        """Return whether this release knows a setting, of those that kgroup knows."""
        return name not in _SETTINGS or self >= _release(_SETTINGS[name])

    def has(self, change: Change) -> bool:
        """Return whether this release behaves so; one before 4.3 does what 4.3 does."""
        since, _ = change.value
        return self >= since


def _release(text: str) -> Release:
    major, minor = text.split(".")
    return Release(int(major), int(minor))


SERVED = tuple(map(_release, ("2.3", "2.4", "2.8", "3.3", "3.9", "4.0", "4.3", "4.4")))
"""The releases that the embedded cluster can be; before 4.3 in the versions and features that it serves."""

NEWEST = SERVED[-1]


_4_4 = Release(4, 4)


class Change(Enum):
    """Changes of brokers' behaviour since a release, beyond requests, features and settings."""

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


def at_least(settings: Container[str]) -> Release:
    """Return the earliest release whose brokers have these settings, of those built here."""
    known = (_release(since) for name, since in _SETTINGS.items() if name in settings)
    return max(known, default=SERVED[0])


def first_release(api_key: int, version: int) -> str | None:
    """Return the first Kafka that serves this version of a request; None where all since 2.3 do."""
    reached = [_release(since) for number, since in SINCE.get(api_key, {}).items() if number <= version]
    if api_key in _OF_USE_SINCE:
        reached.append(_release(_OF_USE_SINCE[api_key]))
    return str(max(reached)) if reached else None
