"""What `kgroup explain` knows: error codes, states and findings, found by name or near it."""

from collections.abc import Mapping
from difflib import get_close_matches

from kgroup.cli.explanations.entry import Entry
from kgroup.cli.explanations.errors import ERRORS
from kgroup.cli.explanations.states import STATES
from kgroup.errors import ErrorCode


def entries() -> Mapping[str, Entry]:
    """Every entry by its name in lower case; error codes with no text of their own included."""
    known = {entry.name.lower(): entry for entry in (*ERRORS, *STATES)}
    for code in ErrorCode:
        if code != ErrorCode.NONE:
            known.setdefault(code.name.lower(), _plain_error(code))
    return known


def lookup(term: str) -> Entry | None:
    """The entry for an error name or number, an exception's class name, or a state; None if unknown."""
    known = entries()
    word = term.strip()
    if word.lstrip("-").isdigit():
        by_number = known.get(ErrorCode.name_of(int(word)).lower())
        if by_number is not None:
            return by_number
    keys = [_key(word), _key(_snake(word))]
    keys += [key.removesuffix("_exception").removesuffix("_error") for key in keys]
    for key in keys:
        if key in known:
            return known[key]
    return next((e for e in known.values() if word.lower() in (a.lower() for a in e.aliases)), None)


def near(term: str) -> list[str]:
    """Up to three names close to `term`, best first."""
    known = entries()
    names = {key: entry.name for key, entry in known.items()}
    matches = get_close_matches(_key(term), names, 3, 0.6) or get_close_matches(
        _key(_snake(term)), names, 3, 0.6
    )
    parts = [key for key in names if len(term) > 3 and _key(term) in key]
    return [names[key] for key in dict.fromkeys([*matches, *parts])][:3]


def _key(text: str) -> str:
    return text.strip().lower().replace("-", "_").replace(" ", "_")


def _snake(text: str) -> str:
    """`FencedInstanceIdException` → `Fenced_Instance_Id_Exception`; upper-case names stay whole."""
    out = text[:1]
    for before, char in zip(text, text[1:], strict=False):
        out += "_" + char if char.isupper() and before.islower() else char
    return out


def _plain_error(code: ErrorCode) -> Entry:
    return Entry(
        name=code.name,
        kind="error",
        code=int(code),
        retriable=code.retriable,
        meaning=(
            "A Kafka error that consumer groups seldom meet; "
            + (
                "retriable: the same request may succeed later."
                if code.retriable
                else "not retriable: something must change first."
            )
        ),
    )
