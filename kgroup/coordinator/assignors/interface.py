"""The input and output of a server-side assignor (KIP-848, server-side assignors).

An assignor is a pure function of its `GroupSpec`: the order of its mappings never matters, so a
coordinator that was reloaded from its log computes the same targets as one that never stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from kgroup.domain import Topic

Assignment = Mapping[bytes, tuple[int, ...]]
"""One member's partitions: topic id → partition numbers, ascending, never empty."""

NOTHING: Assignment = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member as assignors see it.

    `topic_ids` are the existing topics the member subscribes to; members that subscribe alike should
    share one frozenset. `current` is its present target; no partition may be in two members' targets.
    """

    topic_ids: frozenset[bytes]
    current: Assignment = field(default_factory=lambda: NOTHING)
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group as assignors see it: members by member id, topics by topic id.

    `homogeneous` is whether the coordinator found that all members subscribe to the same topics.
    """

    members: Mapping[str, MemberSpec]
    topics: Mapping[bytes, Topic]
    homogeneous: bool


class AssignorError(Exception):
    """An assignment that cannot be computed; the old target stays in force."""


class Assignor(Protocol):
    """A server-side assignor, chosen by `name`."""

    @property
    def name(self) -> str: ...

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        """Return a target for every member of the group.

        Every partition of every subscribed topic has exactly one owner, which subscribes to it. A member
        whose target does not change gets its `current` object back, so that callers may compare with `is`.
        """


def partitions_of(group: GroupSpec, topic_id: bytes) -> int:
    """Return the partition count of a subscribed topic; AssignorError if the topic does not exist."""
    topic = group.topics.get(topic_id)
    if topic is None:
        raise AssignorError(f"A member is subscribed to topic id {topic_id.hex()}, which does not exist")
    return topic.partitions


def by_subscription(members: Sequence[MemberSpec]) -> dict[frozenset[bytes], list[int]]:
    """Return the members' indices, ascending, under each distinct subscription."""
    classes: dict[frozenset[bytes], list[int]] = {}
    for index, member in enumerate(members):
        indices = classes.get(member.topic_ids)
        if indices is None:
            classes[member.topic_ids] = [index]
        else:
            indices.append(index)
    return classes
