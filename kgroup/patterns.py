"""Topic patterns of consumer groups: RE2 syntax, matched against whole topic names (KIP-848, KIP-1078).

Kafka compiles them with RE2/J 1.8, kgroup with RE2. What only RE2 accepts is rejected here too. RE2/J has no
limit on size; here other requests wait while a pattern is matched: categories and instructions are limited.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from kgroup.errors import ErrorCode, Refused

if TYPE_CHECKING:
    import re2

LONGEST_QUOTE = 1000
MOST_INSTRUCTIONS = 10_000
"""With more, its states no longer fit RE2's 8 MiB, and RE2 falls back to an engine 100 times slower."""
MOST_CATEGORIES = 32
"""Each `\\p` may take RE2 half a millisecond to read, before it knows how large the program is."""
_MOST_KEPT = 1_000
"""RE2 keeps the last 128 patterns with all their states; larger programs are excluded."""

_REPEAT = r"\{(?:0|[1-9][0-9]*)(?:,(?:0|[1-9][0-9]*)?)?\}"
_UNICODE = r"\\[pP](?:\{[\w^]{1,40}\}|.)"
_SINGLE = r"(?:\\x\{[0-9A-Fa-f]*+\}|\\.|[^\\])"
_MEMBER = rf"(?:\[:\^?\w{{1,10}}:\]|{_UNICODE}|\\[dDsSwW]|{_SINGLE}(?:-(?!\]){_SINGLE})?)"
# None looks further than its own end, and a class without an end takes all, so nothing is tried twice: the
# time is linear. Groups do not repeat possessively: Python before 3.11.5 then loses its way (gh-106052).
_TOKEN = re.compile(
    r"\\Q(?:(?!\\E).)*(?:\\E)?"
    rf"|(?P<class>\[\^?+{_MEMBER}(?:(?!\]){_MEMBER})*(?:\]|\\?\Z))"
    rf"|(?P<escape>\\C|{_UNICODE}|\\x\{{[0-9A-Fa-f]*+\}}|\\.)"
    r"|\(\?P?<(?P<name>[^>()]*+)>"
    rf"|(?P<repeat>{_REPEAT})"
    rf"|(?P<brace>\{{(?:[*+?]|{_REPEAT}))"
    r"|.",
    re.DOTALL,
)
_ESCAPE = re.compile(rf"{_UNICODE}|\\.", re.DOTALL)
_NOT_IN_RE2J = re.compile(
    "Adlam|Ahom|Anatolian_Hieroglyphs|Bassa_Vah|Bhaiksuki|Caucasian_Albanian|Chakma|Chorasmian|"
    "Cypro_Minoan|Dives_Akuru|Dogra|Duployan|Elbasan|Elymaic|Grantha|Gunjala_Gondi|Hanifi_Rohingya|"
    "Hatran|Kawi|Khitan_Small_Script|Khojki|Khudawadi|Linear_A|Mahajani|Makasar|Manichaean|Marchen|"
    "Masaram_Gondi|Medefaidrin|Mende_Kikakui|Meroitic_Cursive|Meroitic_Hieroglyphs|Miao|Modi|Mro|"
    "Multani|Nabataean|Nag_Mundari|Nandinagari|Newa|Nushu|Nyiakeng_Puachue_Hmong|Old_Hungarian|"
    "Old_North_Arabian|Old_Permic|Old_Sogdian|Old_Uyghur|Osage|Pahawh_Hmong|Palmyrene|Pau_Cin_Hau|"
    "Psalter_Pahlavi|Sharada|Siddham|SignWriting|Sogdian|Sora_Sompeng|Soyombo|Takri|Tangsa|Tangut|"
    "Tirhuta|Toto|Vithkuqi|Wancho|Warang_Citi|Yezidi|Zanabazar_Square"
)
"""Scripts of Unicode that RE2 knows and RE2/J 1.8 does not."""


class Pattern(Protocol):
    """A compiled pattern; the time to match a name grows with its `programsize`."""

    programsize: int

    def fullmatch(self, text: str) -> object | None: ...


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a pattern is not RE2, and the index of the offending character."""

    reason: str
    position: int


def compile_regex(pattern: str) -> Pattern:
    """Compile a pattern as Kafka's brokers read it; raise Refused(INVALID_REGULAR_EXPRESSION) with the fault.

    For a short pattern it also names the place. The program has at most MOST_INSTRUCTIONS instructions and
    MOST_CATEGORIES categories.
    """
    import re2

    try:
        return _compiled(pattern)
    except (re2.error, UnicodeEncodeError) as error:
        if len(pattern) > LONGEST_QUOTE and not isinstance(error, UnicodeEncodeError):
            # To search for the place would delay other requests.
            complaint = _shortened(_text_of(error))
        else:
            fault = _fault(pattern, error)
            complaint = f"{fault.reason} at position {fault.position}"
        raise Refused(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{_shortened(pattern)}` is not a valid regular expression: {complaint}.",
        ) from None


def _compiled(pattern: str) -> Pattern:
    import re2

    pattern.encode()
    if (named := pattern.count(r"\p") + pattern.count(r"\P")) > MOST_CATEGORIES:
        raise re2.error(f"pattern too large - {named} categories of {MOST_CATEGORIES}")
    # Group names are removed: RE2 extracts named groups despite never_capture.
    names: set[str] = set()
    text = _TOKEN.sub(lambda token: _token_in_re2(token, names), pattern)
    # A program of 300,000 instructions takes RE2 a third of a second: this gives up after 20 ms.
    size = re2.compile(text, _options(1 << 20)).programsize
    if size <= MOST_INSTRUCTIONS:
        compiled = re2.compile(text, _options(8 << 20))
    if size > _MOST_KEPT:
        re2.purge()
    if size > MOST_INSTRUCTIONS:
        raise re2.error(f"pattern too large - {size} instructions of {MOST_INSTRUCTIONS}")
    return compiled  # type: ignore[no-any-return]


def _token_in_re2(token: re.Match[str], names: set[str]) -> str:
    """Rewrite a token of RE2/J for RE2; raise re2.error for what only RE2 accepts."""
    import re2

    text, name = token[0], token["name"]
    if token["class"] is not None:
        return _ESCAPE.sub(lambda escape: _escape_in_re2(escape[0]), text)
    if token["escape"] is not None:
        return _escape_in_re2(text)
    if token["brace"] is not None:  # RE2/J reads the brace as a repetition before it finds that it is none.
        raise re2.error(f"bad repetition operator: {text}")
    # RE2 reads a longer number as text.
    if token["repeat"] is not None and re.search("[0-9]{9}", text):
        raise re2.error(f"invalid repetition size: {text}")
    if name is None:
        return text
    if not (name.isascii() and name.replace("_", "a").isalnum()):
        raise re2.error(f"invalid named capture group: {text}")
    if name in names:
        raise re2.error(f"duplicate capture group name: {text}")
    names.add(name)
    return "(?:"  # RE2 accepts "(?)", which a quantifier after a name would become.


def _escape_in_re2(text: str) -> str:
    import re2

    if text == r"\C":
        raise re2.error(rf"invalid escape sequence: {text}")
    if text[1] in "pP" and _NOT_IN_RE2J.fullmatch(text[2:].strip("{}").removeprefix("^")):
        raise re2.error(f"invalid character class range: {text}")
    return text if text[1].isascii() else text[1:]


def matching_topics(pattern: Pattern, names: Iterable[str]) -> frozenset[str]:
    """Return the names that match from the first to the last character."""
    return frozenset(name for name in names if pattern.fullmatch(name))


def fault_of(pattern: str) -> Fault | None:
    """Return the fault of a pattern, or None for a valid one."""
    error = _error(pattern)
    return None if error is None else _fault(pattern, error)


def _fault(pattern: str, error: Exception) -> Fault:
    if isinstance(error, UnicodeEncodeError):
        return Fault("a lone surrogate", error.start)
    reason = _text_of(error)
    kind, _, fragment = reason.partition(": ")
    return Fault(reason, _position(pattern, kind, fragment))


def _shortened(text: str) -> str:
    """Return a message's quote of a text: a response has no room for two of the longest strings."""
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "..."


def _error(pattern: str) -> Exception | None:
    import re2

    try:
        _compiled(pattern)
    except (re2.error, UnicodeEncodeError) as error:
        return error
    return None


def _text_of(error: Exception) -> str:
    message = error.args[0]
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


def _position(pattern: str, kind: str, fragment: str) -> int:
    """Return where RE2's complaint points: it quotes the offending part without its place.

    RE2 reads from the left, so the place is the first at which the text so far draws the complaint. Every
    longer text draws it too: a binary search finds the first one, as the text may be long.
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
    """Return where the offending part that ends at one of `ends` begins; 0 if none draws the complaint."""
    index = bisect_left(
        ends,
        True,
        key=lambda end: (error := _error(pattern[:end])) is not None and _text_of(error).startswith(kind),
    )
    return ends[index] - width if index < len(ends) else 0


@cache
def _options(memory: int) -> re2.Options:
    """Return RE2's defaults, but without printing to standard error or extracting groups.

    Matching 8,000 groups against 21 names takes minutes otherwise.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory
    return options
