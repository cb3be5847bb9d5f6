"""The `topic_count` of a registration: topics with streams, or a pattern, as in 0.8 (era 4.2)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import Refused
from kgroup.patterns import Pattern, compile_regex
from kgroup.zookeeper.store.names import is_name

MAX_STREAMS = 32_767
_WILDCARD = re.compile(r"([*!])([0-9]{1,9})\1(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a consumer reads: `topics` with their streams, or what a `pattern` matches (or does not)."""

    topics: dict[str, int]
    pattern: Pattern | None = None
    streams: int = 0
    wanted: bool = True

    def streams_of(self, topic: str) -> int:
        """How many streams of the consumer read this topic, 0 if none does."""
        if self.pattern is None:
            return self.topics.get(topic, 0)
        # The broker's own topic is not for consumers, whatever the pattern says.
        matches = topic != OFFSETS_TOPIC and bool(self.pattern.fullmatch(topic)) == self.wanted
        return self.streams if matches else 0


def parse(topic_count: str) -> Subscription | None:
    """The subscription, or None for a text that is none."""
    wildcard = _WILDCARD.fullmatch(topic_count)
    return _static(topic_count) if wildcard is None else _wildcard(*wildcard.groups())


def _wildcard(mark: str, streams: str, pattern: str) -> Subscription | None:
    if not 1 <= int(streams) <= MAX_STREAMS:
        return None
    # As 0.8's TopicFilter reads it: commas are alternatives, quotes come with properties files.
    text = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
    # RE2, not Java's: a stranger's pattern must not hold the coordinator up.
    try:
        return Subscription({}, compile_regex(text), int(streams), mark == "*")
    except Refused:
        return None


def _static(topic_count: str) -> Subscription | None:
    try:
        given = json.loads(topic_count)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or not given:
        return None
    for topic, streams in given.items():
        if not is_name(topic) or type(streams) is not int or not 1 <= streams <= MAX_STREAMS:
            return None
    return Subscription(given)
