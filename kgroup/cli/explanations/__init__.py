"""What `kgroup explain` knows: error codes, states and findings, found by name or near it."""

from collections.abc import Mapping
from difflib import get_close_matches

from kgroup.cli.explanations.entry import Entry
from kgroup.cli.explanations.errors import ERRORS
from kgroup.cli.explanations.legacy import LEGACY
from kgroup.cli.explanations.states import STATES
from kgroup.errors import ErrorCode


def entries() -> Mapping[str, Entry]:
    """Every entry by its bare name (see `_bare`); error codes with no text of their own included."""
    known = {_bare(entry.name): entry for entry in (*ERRORS, *STATES, *LEGACY)}
    for code in ErrorCode:
        if code != ErrorCode.NONE:
            known.setdefault(_bare(code.name), _plain_error(code))
    return known


def lookup(term: str) -> Entry | None:
    """The entry for an error name or number, an exception's class name, or a state; None if unknown."""
    known = entries()
    word = term.strip()
    if word.removeprefix("-").isdigit():
        word = ErrorCode.name_of(int(word)) if int(word) in _CODES else word
    bare = _bare(word)
    if bare.startswith("kg"):
        known = {**known, **_findings()}
    for key in (bare, bare.removesuffix("exception"), bare.removesuffix("error")):
        if key in known:
            return known[key]
    return next((e for e in known.values() if word.lower() in (a.lower() for a in e.aliases)), None)


def near(term: str) -> list[str]:
    """Up to three names close to `term`, best first."""
    known = entries()
    bare = _bare(term)
    matches = get_close_matches(bare, known, 3, 0.6)
    parts = [key for key in known if len(bare) > 3 and bare in key]
    return [known[key].name for key in dict.fromkeys([*matches, *parts])][:3]


_CODES = frozenset(int(code) for code in ErrorCode)


def _bare(text: str) -> str:
    """`text` in lower case without blanks, dashes and underscores: spellings of one name are one key."""
    return text.strip().lower().replace("-", "").replace("_", "").replace(" ", "")


_SEEN_BY = ("kgroup describe GROUP --section findings",)


def _findings() -> Mapping[str, Entry]:
    # Imported here: only a KGnnn needs the admin layer.
    from kgroup.admin.diagnose.doctor import DOCTOR_CODES
    from kgroup.admin.read.findings import CODES
    from kgroup.zkgroups.findings import CODES as IN_ZOOKEEPER

    return {
        _bare(code): Entry(
            code,
            "finding",
            f"{meaning.title} ({meaning.severity}).",
            next=("kgroup doctor GROUP",) if code in DOCTOR_CODES else _SEEN_BY,
        )
        for code, meaning in {**CODES, **DOCTOR_CODES, **IN_ZOOKEEPER}.items()
    }


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
