"""The entries of `kgroup explain`: error codes, states and findings, found by name or near it."""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from kgroup.cli.explanations.entry import Entry
from kgroup.cli.explanations.errors import ALIASES, ERRORS, THROWN
from kgroup.cli.explanations.legacy import LEGACY
from kgroup.cli.explanations.librdkafka import LIBRDKAFKA
from kgroup.cli.explanations.states import STATES
from kgroup.errors import ErrorCode
from kgroup.numbers import is_whole


def entries() -> Mapping[str, Entry]:
    """Return every entry by its bare name (see `_bare`); error codes without a text included."""
    known = {_bare(entry.name): entry for entry in (*LIBRDKAFKA, *LEGACY, *THROWN, *ERRORS, *STATES)}
    for code in ErrorCode:
        if code != ErrorCode.NONE:
            known.setdefault(
                _bare(code.name),
                Entry(
                    name=code.name,
                    kind="error",
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


def lookup(term: str) -> Entry | None:
    """Return the entry for an error name or number, an exception in a log, or a state; or None."""
    known = entries()
    word = term.strip()
    if is_whole(word.removeprefix("-")):
        word = ErrorCode.name_of(int(word)) if int(word) in _CODES else word
    thrown = _THROWN.search(word)
    word = (thrown[1] or thrown[2]) if thrown else word
    bare = _bare(word)
    if bare.startswith("kg"):
        known = {**known, **findings()}
    elif bare not in known:
        known = {**known, **statuses()}
    stem = bare.removesuffix("exception")
    # TopicAuthorizationException is thrown for TOPIC_AUTHORIZATION_FAILED, and so on.
    for key in (bare, stem, bare.removesuffix("error"), f"{stem}failed", f"{stem}error", f"{stem}code"):
        if key in known:
            return known[key]
    return next((e for e in known.values() if word.lower() in (a.lower() for a in e.aliases)), None)


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


def statuses() -> Mapping[str, Entry]:
    """Return every status of a partition by its bare name."""
    from kgroup.admin.codes import CODES, STATUSES

    return {
        _bare(status): Entry(
            status,
            "partition-status",
            means.means,
            cause=f"Shown by {means.shown_by}.",
            next=next(
                (code.next for code in CODES.values() if code.status == status), ("kgroup doctor GROUP",)
            ),
        )
        for status, means in STATUSES.items()
    }


def findings() -> Mapping[str, Entry]:
    """Return every finding by its bare code, with its remedy."""
    # Imported here: only a KGnnn needs the admin layer.
    from kgroup.admin.codes import CODES

    return {
        _bare(code): Entry(
            code, "finding", f"{known.title} ({known.severity}).", cause=known.remedy, next=known.next
        )
        for code, known in CODES.items()
    }
