"""Scenarios as text: on the left who does what, on the right every reply that this line released.

    == A member joins, and is gone after its session timeout (SM-04)
    only virtual: the deadline is tested to the millisecond
    config group.max.size=2
    a joins              | a: m1 generation=1 leader=m1
    a syncs m1 gen=1     | a: assignment=
    wait 9999            | -
    state                | Stable generation=1 members=m1

`==` begins a scenario; `#` a comment. `only HOSTS: reason` and `not HOSTS: reason` say where it runs.
A row without a left side carries on the right side of the row above; `;` separates replies in a row.
A reply has a head (`NONE`, an error, a member) and fields; the fields it does not name are not compared,
`*` stands for anything. `-` says that nobody hears anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

VIRTUAL = ("bare", "embedded", "tcp")
HOSTS = (*VIRTUAL, "kafka")
_DIRECTIVE = re.compile(r"(only|not) ([a-z, ]+): (.+)")


@dataclass(frozen=True, slots=True)
class Told:
    """One reply, as the tables show it: who got it, its first words, and its fields by name."""

    actor: str
    head: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        words = [self.head] if self.head else []
        text = " ".join([*words, *(f"{name}={value}" for name, value in self.fields.items())])
        return f"{self.actor}: {text}" if self.actor else text

    @classmethod
    def parse(cls, text: str) -> Told:
        actor, colon, rest = text.partition(": ")
        if not colon or " " in actor or "=" in actor:
            actor, rest = "", text
        words = rest.split()
        named = [word.partition("=") for word in words if "=" in word]
        head = " ".join(word for word in words if "=" not in word)
        return cls(actor, head, {name: value for name, _, value in named})

    def allows(self, told: Told) -> bool:
        """Whether `told` is what this expectation asks for."""
        if self.actor != told.actor or not _matches(self.head, told.head):
            return False
        return all(
            name in told.fields and _matches(value, told.fields[name]) for name, value in self.fields.items()
        )


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


@dataclass(frozen=True, slots=True)
class Row:
    """One line: its words, its options (`name=value`), the replies it must release, and where it stands."""

    words: tuple[str, ...]
    options: dict[str, str]
    expected: list[Told]
    number: int

    @property
    def text(self) -> str:
        return " ".join([*self.words, *(f"{name}={value}" for name, value in self.options.items())])


@dataclass(slots=True)
class Scenario:
    """A table, its settings, and the hosts it runs on; `reason` says why it does not run on the others."""

    title: str
    source: str
    hosts: tuple[str, ...] = HOSTS
    reason: str = ""
    config: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    @property
    def waits(self) -> bool:
        return any(row.words[0] == "wait" for row in self.rows)

    def restrict(self, how: str, names: str, reason: str) -> None:
        named = {part for name in names.replace(",", " ").split() for part in _HOST_SETS.get(name, (name,))}
        assert named <= set(HOSTS), f"{self.title}: no such host among {names}"
        self.hosts = tuple(host for host in self.hosts if (host in named) == (how == "only"))
        self.reason = reason


_HOST_SETS = {"virtual": VIRTUAL}


def parse(text: str, source: str = "") -> Iterator[Scenario]:
    """The scenarios in a text, in order; AssertionError for a line that is none of the above."""
    current: Scenario | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("=="):
            if current is not None:
                yield current
            current = Scenario(line[2:].strip(), source)
            continue
        assert current is not None, f"{source}:{number}: no scenario has begun"
        _add(current, line, number)
    if current is not None:
        yield current


def load(path: Path) -> list[Scenario]:
    """The scenarios of a file."""
    return list(parse(path.read_text(), path.name))


def _add(scenario: Scenario, line: str, number: int) -> None:
    left, bar, right = line.partition("|")
    if not bar:
        directive = _DIRECTIVE.fullmatch(line)
        if directive:
            scenario.restrict(*directive.groups())
            return
        assert line.startswith("config "), f"{scenario.source}:{number}: a row needs its right side: {line}"
        scenario.config.update(_options(line.split()))
        return
    told = [Told.parse(part.strip()) for part in right.split(";") if part.strip() not in ("", "-")]
    if not left.strip():
        scenario.rows[-1].expected.extend(told)
        return
    tokens = left.split()
    options = _options(tokens)
    words = tuple(word for word in tokens if "=" not in word)
    scenario.rows.append(Row(words, options, told, number))


def _options(words: list[str]) -> dict[str, str]:
    named = (word.partition("=") for word in words if "=" in word)
    return {name: value for name, _, value in named}
