"""Subscription patterns across a migration: clients match their own dialect, brokers RE2 (KIP-848)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from kgroup.admin.migrate.models import BLOCK, DOWNGRADE, INFO, OK, UPGRADE, WARN, Check
from kgroup.domain import Document, count_of
from kgroup.patterns import compile_regex, fault_of, matching_topics

CODE = "patterns"
SHOWN = 5


def check_patterns(
    patterns: Sequence[str], topics: Collection[str] | None, direction: str
) -> Iterator[Check]:
    """Yield a check for each pattern given; without one, what cannot be known."""
    if not patterns:
        if direction == UPGRADE:
            message = "unknown: a classic member reports its topics, not the pattern it found them with"
            yield Check(CODE, INFO, message, "give the clients' patterns with --pattern", {"patterns": None})
        return
    for pattern in patterns:
        yield _checked(pattern, topics or (), direction)


def _checked(pattern: str, topics: Collection[str], direction: str) -> Check:
    fault = fault_of(pattern)
    if fault is not None:
        message = f"{pattern!r} is not RE2: {fault.reason} at position {fault.position}"
        evidence: Document = {"pattern": pattern, "re2": None, "position": fault.position}
        if direction == DOWNGRADE:
            return Check(CODE, OK, f"{message}; classic clients match it themselves", None, evidence)
        message += ". The broker answers INVALID_REGULAR_EXPRESSION to a member that sends it"
        return Check(CODE, BLOCK, message, "write it in RE2: no look-around, no backreferences", evidence)
    by_re2 = matching_topics(compile_regex(pattern), topics)
    evidence = {"pattern": pattern, "re2": sorted(by_re2), "position": None}
    try:
        own = re.compile(pattern)
    except re.error:
        message = (
            f"{pattern!r} is RE2 and matches {count_of(len(by_re2), 'topic')}; not readable "
            f"as a client's pattern here"
        )
        return Check(CODE, INFO, message, None, evidence)
    by_client = {name for name in topics if own.fullmatch(name)}
    by_prefix = {name for name in topics if own.match(name)}
    if by_client != by_re2 or by_prefix != by_re2:
        other = sorted((by_client | by_prefix) ^ by_re2)[:SHOWN]
        message = (
            f"{pattern!r} may match differently: RE2 wants the whole name; not alike for {', '.join(other)}"
        )
        return Check(CODE, WARN, message, "write the pattern so that it matches whole names", evidence)
    return Check(
        CODE, OK, f"{pattern!r} matches the same {count_of(len(by_re2), 'topic')} in RE2", None, evidence
    )
