"""Names of topics, for records that have only ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kgroup.domain import TopicPartition, uuid_text

MAX_NAMES = 100_000
"""Topic ids kept before they are requested: a bound for logs that are not what they seem."""


class Listed(Protocol):
    """Partitions of one topic, as records list them."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


@dataclass(slots=True)
class TopicNames:
    """What the log, or the reader, knows about topic ids; `of` falls back to the id as text."""

    names: dict[bytes, str] = field(default_factory=dict)
    _wanted: set[bytes] = field(default_factory=set)

    def learn(self, topic_id: bytes, name: str) -> bool:
        """Add a record's id and name; return True if the name was requested in vain before."""
        if topic_id in self.names or not any(topic_id):
            return False
        requested = topic_id in self._wanted
        if requested or len(self.names) < MAX_NAMES:
            self.names[topic_id] = name
            self._wanted.discard(topic_id)
        return requested

    def of(self, topic_id: bytes) -> str:
        name = self.names.get(topic_id)
        if name is None:
            self._wanted.add(topic_id)
            return uuid_text(topic_id)
        return name

    def partitions(self, topics: Iterable[Listed]) -> frozenset[TopicPartition]:
        """Return the partitions that a record lists by topic ids."""
        return frozenset(TopicPartition(self.of(t.topic_id), p) for t in topics for p in t.partitions)
