"""How the truth of an incident is written, and how an answer is marked against it.

Patterns are regular expressions, searched for in fields of the JSON answer, or in all of it where no field
holds what is meant. An answer is missing something that it must say, wrong where it says what it must not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kgroup.cli.exit_codes import ExitCode
from tests.ran import Ran

if TYPE_CHECKING:
    from .scene import Scene

RIGHT, WRONG, MISSING, CANNOT, NONE = "right", "wrong", "missing", "cannot be told", "-"
COMMANDS = ("describe", "lag", "doctor", "blame", "replay-log", "verify")
CELLS = (*COMMANDS, "cause", "next", "record")
"""`cause`: doctor, and after it one command that it proposes, name the cause.
`next`: the next step that doctor proposes was carried out, helped and harmed nothing.
`record`: a recorder opened one incident with its cause, and closed it after that step; or there was none."""


@dataclass(frozen=True)
class At:
    """Something at a path of the answer's data whose fields match; lists on the way are walked through."""

    path: str
    fields: tuple[tuple[str, str], ...]

    def found(self, data: Any) -> list[Any]:
        """All that match."""
        return [each for each in _walk(data, self.path) if self._matches(each)]

    def _matches(self, each: Any) -> bool:
        return all(re.search(pattern, _text(each, name), re.S) for name, pattern in self.fields)

    def __str__(self) -> str:
        return f"{self.path}({', '.join(f'{name}: {pattern}' for name, pattern in self.fields)})"


def at(path: str, **fields: str) -> At:
    """Something at `path` with these fields; a__b stands for the texts of both fields together."""
    return At(path, tuple(fields.items()))


def finding(severity: str, says: str) -> At:
    """A finding of this severity whose message, hint and evidence together match."""
    return at("groups.findings", severity=f"^({severity})$", message__hint__evidence=says)


def event(kind: str, **fields: str) -> At:
    """An event of the timeline."""
    return at("events", event=f"^({kind})$", **fields)


def blamed(about: str, says: str) -> At:
    """A sentence of blame about the last rebalance, rewind, deletion or conversion, or its evidence."""
    return at("groups.blames", about=f"^({about})$", **{"": says})


def verdict(word: str) -> At:
    """doctor's verdict on the group."""
    return at("groups", verdict=f"^({word})$")


def _walk(data: Any, path: str) -> Iterator[Any]:
    here = [data]
    for name in path.split(".") if path else ():
        here = [each[name] for each in here if isinstance(each, dict) and each.get(name) is not None]
        here = [one for each in here for one in (each if isinstance(each, list) else [each])]
    yield from here


def _text(each: Any, names: str) -> str:
    parts = [each.get(name) for name in names.split("__")] if names and isinstance(each, dict) else [each]
    return " ".join(part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in parts)


@dataclass(frozen=True)
class Says:
    """What a command must say and must not; a plain string is searched for in all of the answer.

    `cannot` says why no record and no answer of the broker can tell; `must` then makes it say so.
    `argv` is the command where it is another than the cell's own; the group comes after its first word.
    `answer` is what was said already, in the middle of the incident; one that says what it could not look at
    may end with 5 where it is `hurried`: a busy machine commits faster than its commits can be compared.
    """

    must: tuple[At | str, ...] = ()
    never: tuple[At | str, ...] = ()
    code: int = 0
    cannot: str = ""
    argv: tuple[str, ...] = ()
    answer: Ran | None = None
    hurried: bool = False


@dataclass(frozen=True)
class Next:
    """The next step that doctor proposes: a command to run, or an advice that is carried out by hand.

    `proposed` is searched for in hints; of a command it matches all its words. `promised` checks the state
    afterwards.
    """

    proposed: str
    promised: Callable[[Scene], object]
    by_hand: Callable[[Scene], object] | None = None


@dataclass(frozen=True)
class Recorded:
    """The one incident that a recorder opens: patterns of its key, a code and who caused it.

    One that `passes` may be over before two looks show it; one that does not `close` outlasts the scene.
    """

    key: str
    code: str
    caused_by: str = "^no record says$"
    passes: bool = False
    closes: bool = True


@dataclass(frozen=True)
class Truth:
    """Of one incident: who, what, when and why; what each command must say; the cause; the next step.

    Without a `cause` nobody asks for one; without a `next` doctor must propose no change. `also` are more
    commands, by the cell that they count for. Without `record` a recorder must open no incident.
    """

    who: str
    what: str
    when: str
    why: str
    describe: Says
    lag: Says
    doctor: Says
    blame: Says
    replay_log: Says
    cause: str | None = None
    next: Next | None = None
    also: tuple[tuple[str, Says], ...] = ()
    record: Recorded | None = None
    verify: Says = field(default_factory=lambda: Says((at("groups", verdict="^same$"),)))

    def says(self, cell: str) -> list[Says]:
        """What counts for a cell, its own command first."""
        own: Says = getattr(self, cell.replace("-", "_"))
        return [own, *(says for name, says in self.also if name == cell)]


@dataclass(frozen=True)
class Mark:
    """How right an answer is, and why it is not."""

    verdict: str
    why: str = ""


def marked(command: str, ran: Ran, says: Says) -> Mark:
    """The answer's mark; any error that doctor finds and the truth does not name is wrong."""
    if "Traceback" in ran.err:
        return Mark(WRONG, f"traceback: {ran.err[-300:]}")
    data = _data(ran)
    if lacking := [str(each) for each in says.must if not _found(each, data, ran)]:
        return Mark(MISSING, f"does not say {'; '.join(lacking)}")
    if said := [str(each) for each in says.never if _found(each, data, ran)]:
        return Mark(WRONG, f"says {'; '.join(said)}")
    if command == "doctor":
        named = [id(one) for each in says.must if isinstance(each, At) for one in each.found(data)]
        for one in at("groups.findings", severity="error").found(data):
            if id(one) not in named:
                return Mark(WRONG, f"finds {one['code']}, which is not so: {one['message']}")
    unseen = says.hurried and ran.code == ExitCode.PARTIAL and at("groups", skipped=r"\w").found(data)
    if ran.code != says.code and not unseen:
        return Mark(WRONG, f"exit code {ran.code} instead of {says.code}")
    return Mark(CANNOT, says.cannot) if says.cannot else Mark(RIGHT)


def _data(ran: Ran) -> Any:
    """The answer's data; None of one that is not a single document."""
    try:
        return ran.data
    except ValueError:
        return None


def _found(each: At | str, data: Any, ran: Ran) -> bool:
    if isinstance(each, At):
        return bool(each.found(data))
    return bool(re.search(each, f"{ran.out}\n{ran.err}", re.S))


HEALTHY = Says((verdict("healthy"),))
