"""A topic pattern read three ways: by brokers (RE2, whole names), by Java's clients, by Python's and C's."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from kgroup.admin.statuses import ERROR, WARN
from kgroup.patterns import compile_regex, fault_of, matching_topics


@dataclass(frozen=True, slots=True)
class Difference:
    """A construct of a pattern with another meaning, or none, in one of the languages."""

    severity: Annotated[str, (ERROR, WARN)]
    message: str


@dataclass(frozen=True, slots=True)
class PatternCheck:
    """A broker's reading of a pattern; `position` is where RE2's complaint `reason` points.

    `matches` are the topics of now that match, whole names only; `prefix_only` those that a client which
    anchors only at the start (librdkafka's ^patterns, Python's re.match) matches in addition.
    """

    pattern: str
    valid: bool
    reason: str | None
    position: int | None
    matches: tuple[str, ...]
    prefix_only: Annotated[tuple[str, ...], "topics of which only the beginning matches"]
    differences: tuple[Difference, ...]


def check_pattern(pattern: str, topics: Iterable[str]) -> PatternCheck:
    """Return a broker's reading of the pattern, the topics it matches, and who reads it differently."""
    names = frozenset(topics)
    fault = fault_of(pattern)
    bare = pattern.replace("\\\\", "  ")
    notes = [Difference(severity, message) for sign, severity, message in _RULES if re.search(sign, bare)]
    if pattern.startswith("^"):
        message = "a leading ^ makes librdkafka take a name for a pattern, and match its beginning only; "
        message += "brokers match whole names: end it with .* where more may follow"
        notes.append(Difference(WARN, message))
    if re.search(r"(?<!\\),", pattern):
        message = "tools that take comma lists of topics split the pattern at its comma"
        notes.append(Difference(WARN, message))
    differences = tuple(d for d in notes if fault is not None or d.severity == WARN)
    if fault is not None:
        return PatternCheck(pattern, False, fault.reason, fault.position, (), (), differences)
    matches = matching_topics(compile_regex(pattern), names)
    prefixed = matching_topics(compile_regex(f"(?:{pattern}).*"), names) - matches
    return PatternCheck(
        pattern, True, None, None, tuple(sorted(matches)), tuple(sorted(prefixed)), differences
    )


# Constructs that not all of the languages have, or read alike. An ERROR is reported only for a pattern that
# RE2 has rejected: it names the likely construct.
_RULES: tuple[tuple[str, str, str], ...] = (
    (r"\(\?<?[=!]", ERROR, "look-around is in Java and Python, not in RE2: brokers refuse the pattern"),
    (r"\\[1-9]", ERROR, "backreferences are in Java and Python, not in RE2: brokers refuse the pattern"),
    (r"\(\?>", ERROR, "atomic groups are in Java and Python 3.11, not in RE2: brokers refuse the pattern"),
    (
        r"(?:[*+?]|\{\d+(?:,\d*)?\})\+",
        ERROR,
        "possessive quantifiers are in Java and Python 3.11, not in RE2: brokers refuse the pattern",
    ),
    (r"&&\[", WARN, "intersections of classes are in Java only; RE2 and Python read [ and & literally"),
    (r"\\p\{(?:Is|In|java)", ERROR, "Java's names of character blocks are not in RE2: write \\p{Greek}"),
    (r"\\[hRX]", ERROR, "\\h, \\R and \\X are in Java, not in RE2: brokers refuse the pattern"),
    (
        r"\\Z",
        ERROR,
        "\\Z is in Java and Python, not in RE2: write \\z, or leave it out, names match as a whole",
    ),
    (r"\\z", WARN, "\\z is not in Python before 3.14: leave it out, names match as a whole"),
    (r"\\pN|\\pL|\\p\{", WARN, "\\p{...} is in Java and RE2, not in Python's re"),
    (r"\\Q|\\E", WARN, "\\Q...\\E quotes in Java and RE2, not in Python's re"),
    (r"\[\[:", WARN, "[[:alpha:]] is in RE2 only; Java and Python read another class"),
    (r"\(\?P<", WARN, "(?P<name>...) is in RE2 and Python; Java writes (?<name>...)"),
    (r"\(\?<[A-Za-z]", WARN, "(?<name>...) is in Java and RE2; Python writes (?P<name>...)"),
    (
        r"\(\?[a-zA-Z]*U",
        WARN,
        "the flag U means ungreedy in RE2, Unicode classes in Java, and nothing in Python",
    ),
    (r"\\C", WARN, "\\C (one byte) is in RE2 only"),
    (r"\\[dwsb]", WARN, "\\d, \\w, \\s and \\b are ASCII in RE2 and Java, Unicode in Python"),
)
