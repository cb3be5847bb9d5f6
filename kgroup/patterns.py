"""Topic patterns of consumer groups: RE2 syntax, matched against whole topic names (KIP-848, KIP-1078)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from kgroup.errors import ErrorCode, Refused

if TYPE_CHECKING:
    import re2

LONGEST_QUOTE = 1000


class Pattern(Protocol):
    """A compiled pattern."""

    def fullmatch(self, text: str) -> object | None: ...


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a pattern is not RE2, and the index of the character where it goes wrong."""

    reason: str
    position: int


def compile_regex(pattern: str) -> Pattern:
    """The compiled pattern; Refused(INVALID_REGULAR_EXPRESSION) says why it is none, of a short one where."""
    import re2

    try:
        compiled: Pattern = re2.compile(pattern, _options())
    except (re2.error, UnicodeEncodeError) as error:
        raise Refused(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{_shortened(pattern)}` is not a valid regular expression: "
            f"{_complaint(pattern, error)}.",
        ) from None
    return compiled


def _complaint(pattern: str, error: Exception) -> str:
    """Where it goes wrong is searched for in short patterns only: whoever else asks has to wait for it."""
    if len(pattern) > LONGEST_QUOTE and not isinstance(error, UnicodeEncodeError):
        return _shortened(_text_of(error))
    fault = fault_of(pattern)
    assert fault is not None
    return f"{fault.reason} at position {fault.position}"


def matching_topics(pattern: Pattern, names: Iterable[str]) -> frozenset[str]:
    """The names that match from the first to the last character."""
    return frozenset(name for name in names if pattern.fullmatch(name))


def fault_of(pattern: str) -> Fault | None:
    """What is wrong with a pattern, or None for a valid one."""
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        return Fault("a lone surrogate", error.start)
    reason = _error(pattern)
    if reason is None:
        return None
    kind, _, fragment = reason.partition(": ")
    return Fault(reason, _position(pattern, kind, fragment))


def _shortened(text: str) -> str:
    """What a message quotes of a text: a response has no room for two as long as a string can be."""
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."


def _error(pattern: str) -> str | None:
    import re2

    try:
        re2.compile(pattern, _options())
    except re2.error as error:
        return _text_of(error)
    return None


def _text_of(error: Exception) -> str:
    message = error.args[0]
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


def _position(pattern: str, kind: str, fragment: str) -> int:
    """Where RE2's complaint points: it quotes the offending part but does not say where that is.

    RE2 reads from the left, so the place is the first at which the text so far draws the complaint. Every
    longer text draws it too: the first one is searched for by halves, as the text may be long.
    """
    if kind == "unexpected )":
        ends = [i + 1 for i, c in enumerate(pattern) if c == ")"]
        return _first_complaint(pattern, kind, ends, 1)
    if kind == "missing )":
        return len(pattern)
    if kind == "missing ]":
        return len(pattern) - len(fragment)
    if kind.startswith("trailing"):
        return len(pattern) - 1
    if not fragment:  # it is about the whole, as "pattern too large"
        return 0
    ends, start = [], pattern.find(fragment)
    while start >= 0:
        ends.append(start + len(fragment))
        start = pattern.find(fragment, start + 1)
    return _first_complaint(pattern, kind, ends, len(fragment))


def _first_complaint(pattern: str, kind: str, ends: list[int], width: int) -> int:
    """Where the offending part begins, which ends at one of `ends`; 0 if none of them draws the complaint."""
    found = bisect_left(ends, True, key=lambda end: _complains(pattern[:end], kind))
    return ends[found] - width if found < len(ends) else 0


def _complains(text: str, kind: str) -> bool:
    reason = _error(text)
    return reason is not None and reason.startswith(kind)


@cache
def _options() -> re2.Options:
    """RE2's defaults, but nothing printed to standard error."""
    import re2

    options = re2.Options()
    options.log_errors = False
    return options
