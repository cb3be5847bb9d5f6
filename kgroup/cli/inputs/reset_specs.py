"""The options of `reset-offsets` for target and partitions, as Kafka's tool reads them."""

import time
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from kgroup.durations import duration_ms
from kgroup.errors import ConfigError
from kgroup.numbers import INT32_MAX, whole_number

if TYPE_CHECKING:
    from kgroup.admin.change.reset import Scope


def time_ago_ms(text: str, what: str) -> int:
    """Return the moment a duration ago, in ms since 1970; raise ConfigError for one before 1970."""
    moment = time.time_ns() // 1_000_000 - duration_ms(text, what)
    if moment < 0:
        raise ConfigError(f"{what}: {text} ago is before 1970", "--to-earliest moves to the first record")
    return moment


def scope_of(topics: Iterable[str] | None, all_topics: bool) -> "Scope":
    """Return the scope of `--topic T[:0,2-5]` and `--all-topics`; raise ConfigError for invalid numbers."""
    from kgroup.admin.change.reset import Scope

    chosen: dict[str, frozenset[int] | None] = {}
    for text in topics or ():
        topic, colon, listed = text.partition(":")
        spans = [_span(part.strip(), f"--topic {text}") for part in (listed.split(",") if colon else ())]
        numbers = frozenset(chain.from_iterable(spans))
        partitions = numbers if colon else None
        before = chosen.get(topic, frozenset())
        chosen[topic] = None if before is None or partitions is None else before | partitions
    if chosen and all_topics:
        raise ConfigError("--all-topics and --topic exclude each other")
    return Scope(all_topics, chosen)


MOST = 200_000
"""A longer range is a mistake: no cluster of Kafka has as many partitions."""


def _span(text: str, what: str) -> range:
    """Return the partitions of `3` or `0-5`; raise ConfigError for anything else."""
    first, dash, last = text.partition("-")
    begin = whole_number(first, what, most=INT32_MAX)
    end = whole_number(last, what, most=INT32_MAX) if dash else begin
    if not begin <= end < begin + MOST:
        raise ConfigError(f"{what}: {text} is no range of partitions", "write it as 0-5")
    return range(begin, end + 1)


def only_one(given: Mapping[str, object]) -> str:
    """Return the one option that is set (not None, not False); raise ConfigError for none or several."""
    names = [name for name, value in given.items() if value is not None and value is not False]
    if len(names) != 1:
        wrong = f"{' and '.join(names)} exclude each other" if names else "no place to reset to"
        raise ConfigError(wrong, "one of " + ", ".join(given))
    return names[0]
