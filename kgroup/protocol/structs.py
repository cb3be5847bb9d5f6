"""What messages are made of: slotted dataclasses, and the compiled functions of one in one version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, dataclass_transform

from kgroup.domain import with_methods

NEVER_FLEXIBLE = 1 << 15
Writer: TypeAlias = Callable[[Any, bytearray], None]
"""Appends a message in one version to bytes."""
Reader: TypeAlias = Callable[[bytes, int, int], tuple[Any, int]]
"""Reads one from bytes, between a start and an end: the message, and the position behind it."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _Declared(type):
    """Makes each class a slotted, keyword-only dataclass, frozen for the type checker.

    Not frozen at run time: a frozen `__init__` costs four times as much.
    What is said of the whole message stands in the class statement: `api=12, versions=range(5), flexible=4`
    become its `API`, `VERSIONS` and `FLEXIBLE`; a response that `answers` a request has the request's.
    """

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        body: dict[str, object],
        answers: type[Struct] | None = None,
        **facts: object,
    ) -> Any:
        if "__slots__" in body:  # A base, or `dataclass` making the class once more with its slots.
            return super().__new__(mcls, name, bases, body)
        if answers is not None:
            facts = {fact: getattr(answers, fact.upper()) for fact in ("api", "versions", "flexible")}
        # Where there is none, `dataclass` reads the signature and writes it out, which is slow.
        body.setdefault("__doc__", name)
        body |= {fact.upper(): value for fact, value in facts.items()} | {"WRITERS": {}, "READERS": {}}
        made = super().__new__(mcls, name, bases, body)
        declared = dataclass(slots=True, init=False, kw_only=True, eq=False, repr=False)
        return with_methods(declared(made), by_name=True)


class Struct(metaclass=_Declared):
    """A part of a message; knows its fields, and nothing of API keys."""

    __slots__ = ()
    WRITERS: ClassVar[dict[int, Writer]]
    READERS: ClassVar[dict[int, Reader]]
