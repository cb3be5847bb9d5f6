"""What a row can say: each verb makes a request of its words, and puts the answer into words again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message

from .language import Row, Told
from .names import Names


@dataclass(slots=True)
class Ask:
    """A row on its way to becoming a request: the host's `scale` divides every time a member names."""

    row: Row
    names: Names
    version: int
    scale: int = 1

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words behind actor and verb."""
        return self.row.words[2:]

    @property
    def group_id(self) -> str:
        return self.names.group_id(self.option("group", "g"))

    @property
    def member_id(self) -> str:
        """The id behind the first word that is not an option."""
        return self.names.member_id(self.arguments[0] if self.arguments else self.option("id", ""))

    def option(self, name: str, default: str) -> str:
        return self.row.options.get(name, default)

    def given(self, name: str) -> str | None:
        return self.row.options.get(name)

    def number(self, name: str, default: int) -> int:
        return int(self.row.options.get(name, default))

    def time(self, name: str, default: int) -> int:
        """A number of ms, as the host counts them; negative ones and zero mean what they say."""
        value = self.number(name, default)
        return value // self.scale if value > 0 else value


@dataclass(frozen=True, slots=True)
class Verb:
    """How one kind of request is made from a row, and how its response reads.

    `learn` names the member ids in a response that is its receiver's own, before any other is read.
    """

    request: type[Message]
    build: Callable[[Ask], Message]
    render: Callable[[Any, Ask], tuple[str, dict[str, str]]]
    learn: Callable[[Any, Names], None] = lambda response, names: None

    def tell(self, actor: str, response: Message, ask: Ask) -> Told:
        head, fields = self.render(response, ask)
        return Told(actor, head, fields)


def error(code: int) -> str:
    return ErrorCode(code).name


def alike(results: dict[str, str]) -> tuple[str, dict[str, str]]:
    """One word for results that are all the same, beside each of them."""
    found = set(results.values())
    return (found.pop() if len(found) == 1 else ""), results
