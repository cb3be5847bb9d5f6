"""The options of `reset-offsets` for target and partitions, as Kafka's tool reads them."""

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kgroup.durations import iso_duration_ms, parse_duration
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.change.reset import Scope


def duration_ms(text: str) -> int:
    """Return the ms of an ISO-8601 duration (P1DT2H30M), or of 2h, 30m; raise ConfigError otherwise."""
    found = iso_duration_ms(text.strip())
    if found is not None:
        return found
    if text.strip().isdigit():
        raise ConfigError(f"{text!r} has no unit", "for example PT2H30M or 2h")
    return int(parse_duration(text) * 1000)


def time_ago_ms(text: str) -> int:
    """Return the moment a duration ago, in ms since 1970."""
    return time.time_ns() // 1_000_000 - duration_ms(text)


def scope_of(topics: Iterable[str] | None, all_topics: bool) -> "Scope":
    """Return the scope of `--topic T[:0,1]` and `--all-topics`; raise ConfigError for invalid numbers."""
    from kgroup.admin.change.reset import Scope

    chosen: dict[str, frozenset[int] | None] = {}
    for text in topics or ():
        topic, colon, numbers = text.partition(":")
        listed = numbers.split(",") if colon else []
        for number in listed:
            if not number.strip().isdecimal():
                hint = "as in --topic orders:0,1"
                raise ConfigError(f"--topic {text!r}: {number!r} is not a partition", hint)
        partitions = frozenset(map(int, listed)) if colon else None
        before = chosen.get(topic, frozenset())
        chosen[topic] = None if before is None or partitions is None else before | partitions
    if chosen and all_topics:
        raise ConfigError("--all-topics and --topic exclude each other")
    return Scope(all_topics, chosen)


def only_one(given: Mapping[str, object]) -> str:
    """Return the one option that is set (not None, not False); raise ConfigError for none or several."""
    names = [name for name, value in given.items() if value is not None and value is not False]
    if len(names) != 1:
        wrong = f"{' and '.join(names)} exclude each other" if names else "no place to reset to"
        raise ConfigError(wrong, "one of " + ", ".join(given))
    return names[0]
