"""The entries of `kgroup explain`: error codes, states and findings, found by name or near it."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache

from kgroup.cli.explanations.entry import Entry, EntryKind
from kgroup.cli.explanations.errors import ALIASES, ERRORS, THROWN
from kgroup.cli.explanations.legacy import LEGACY
from kgroup.cli.explanations.librdkafka import LIBRDKAFKA
from kgroup.cli.explanations.states import STATES
from kgroup.errors import ErrorCode
from kgroup.numbers import is_whole


@cache
def entries() -> dict[str, Entry]:
    """Return every entry by its bare name (see `_bare`); error codes without a text included."""
    known = {_bare(entry.name): entry for entry in (*LIBRDKAFKA, *LEGACY, *THROWN, *ERRORS, *STATES)}
    for code in ErrorCode:
        if code != ErrorCode.NONE:
            known.setdefault(
                _bare(code.name),
                Entry(
                    name=code.name,
                    kind=EntryKind.ERROR,
                    code=int(code),
                    retriable=code.retriable,
                    aliases=ALIASES.get(code, ()),
                    meaning=(
                        "A Kafka error that consumer groups seldom meet; "
                        + (
                            "retriable: the same request may succeed later."
                            if code.retriable
                            else "not retriable: something must change first."
                        )
                    ),
                ),
            )
    return known


@cache
def _aliases() -> Mapping[str, Entry]:
    named = [(alias, entry) for entry in reversed(entries().values()) for alias in entry.aliases]
    spelt = {_bare(alias): entry for alias, entry in named if alias[:1].isalpha()}
    return spelt | {alias.lower(): entry for alias, entry in named}


def lookup(term: str) -> Entry | None:
    """Return the entry for an error name or number, an exception in a log, or a state; or None."""
    word = term.strip()
    if is_whole(word.removeprefix("-")):
        word = ErrorCode.name_of(int(word)) if int(word) in _CODES else word
    thrown = _THROWN.search(word)
    word = (thrown[1] or thrown[2]) if thrown else word
    return _spelt(word) or _spelt(_PREFIX.sub("", word))


_PREFIX = re.compile(r"^(?:RD_KAFKA_RESP_ERR_|(?:kerr|Errors|ErrorCode|KafkaError)\.|Err(?=[A-Z]))")
"""What clients write before the name of an error: librdkafka, franz-go, Java, sarama."""


def _spelt(word: str) -> Entry | None:
    known, bare = entries(), _bare(word)
    if bare.startswith("kg"):
        known = {**known, **findings()}
    elif bare not in known:
        known = {**known, **statuses()}
    stem = bare.removesuffix("exception")
    # TopicAuthorizationException is thrown for TOPIC_AUTHORIZATION_FAILED, and so on.
    for key in (bare, stem, bare.removesuffix("error"), f"{stem}failed", f"{stem}error", f"{stem}code"):
        if key in known:
            return known[key]
    aliases = _aliases()
    return aliases.get(word.lower()) or aliases.get(stem) or aliases.get(bare.removesuffix("error"))


def is_name(term: str) -> bool:
    """Return whether a term of several words is the name of an entry, and no line of a log."""
    known = lookup(term)
    return known is not None and _bare(term) in map(_bare, (known.name, *known.aliases))


def near(term: str) -> list[str]:
    """Return up to three names close to `term`, best first."""
    known = entries()
    bare = _bare(term)
    matches = get_close_matches(bare, known, 3, 0.6)
    parts = [key for key in known if len(bare) > 3 and bare in key]
    return [known[key].name for key in dict.fromkeys([*matches, *parts])][:3]


_THROWN = re.compile(r"\b(?:\w+\.)+(\w+(?:Exception|Error))\b|\b(\w+Exception)(?=:)")
"""An exception's class after its package, or before its message."""
_CODES = frozenset(int(code) for code in ErrorCode)


def _bare(text: str) -> str:
    """Return `text` in lower case without blanks, dashes and underscores: all spellings share one key."""
    return text.strip().lower().replace("-", "").replace("_", "").replace(" ", "")


@cache
def statuses() -> Mapping[str, Entry]:
    """Return every status of a partition by its bare name, with the severity of its finding."""
    from kgroup.admin.codes import CODES, STATUSES

    # Of two findings with one status the first counts.
    by_status = {code.status: code for code in reversed(CODES.values())}
    return {
        _bare(status): Entry(
            status,
            EntryKind.PARTITION_STATUS,
            means.means,
            cause=f"Shown by {means.shown_by}.",
            next=by_status[status].next if status in by_status else ("kgroup doctor GROUP",),
            severity=by_status[status].severity if status in by_status else None,
        )
        for status, means in STATUSES.items()
    }


@cache
def findings() -> Mapping[str, Entry]:
    """Return every finding by its bare code, with its remedy."""
    # Imported here: only a KGnnn needs the admin layer.
    from kgroup.admin.codes import CODES

    return {
        _bare(code): Entry(
            code,
            EntryKind.FINDING,
            f"{known.title}.",
            cause=known.remedy,
            next=known.next,
            severity=known.severity,
        )
        for code, known in CODES.items()
    }
