"""The requests of the matrix, each with the rights it needs, in the order in which they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgroup.protocol.codec import Message
from kgroup.security.acls import Operation, ResourceType

from .grants import Right
from .world import World

O = Operation  # noqa: E741
TOPIC, GROUP, TXN = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID


@dataclass(frozen=True, slots=True)
class Names:
    """The resources of a row; two topics, as what is allowed for one may be refused for the other."""

    base: str

    @property
    def a(self) -> str:
        return f"{self.base}-a"

    @property
    def b(self) -> str:
        return f"{self.base}-b"

    @property
    def group(self) -> str:
        return f"{self.base}-g"

    @property
    def other_group(self) -> str:
        return f"{self.base}-h"

    @property
    def txn(self) -> str:
        return f"{self.base}-t"


@dataclass(frozen=True, slots=True)
class Case:
    """A request in a version (None: the newest both know), and what must be there before it is sent."""

    name: str
    request: Callable[[World, Names], Message]
    needs: Callable[[Names], Sequence[Right]]
    version: int | None = None
    prepare: Callable[[World, Names], None] | None = None
    changes: bool = False
    """Whether it leaves something changed, so that every row needs resources of its own."""


def on(operation: Operation, kind: ResourceType, *fields: str) -> Callable[[Names], Sequence[Right]]:
    """The operation on the resource that each of these fields of the names tells."""
    return lambda names: [Right(operation, kind, getattr(names, each)) for each in fields]


def on_cluster(*operations: Operation) -> Callable[[Names], Sequence[Right]]:
    return lambda names: [Right(operation) for operation in operations]


def each(*parts: Callable[[Names], Sequence[Right]]) -> Callable[[Names], Sequence[Right]]:
    """All of what the parts need."""
    return lambda names: [right for part in parts for right in part(names)]
