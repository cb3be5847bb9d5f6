"""What messages are made of: slotted dataclasses, and the compiled functions of one in one version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, TypeVar, dataclass_transform

from kgroup.domain import sharing_methods

NEVER_FLEXIBLE = 1 << 15
T = TypeVar("T")
Writer: TypeAlias = Callable[[Any, bytearray], None]
"""Appends a message in one version to bytes."""
Reader: TypeAlias = Callable[[bytes, int, int], tuple[Any, int]]
"""Reads one from bytes, between a start and an end: the message, and the position behind it."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[T]) -> type[T]:
    """A slotted, keyword-only dataclass, frozen for the type checker.

    Not frozen at run time: a frozen `__init__` costs four times as much (docs/decisions/0002).
    """
    made = sharing_methods(dataclass(slots=True, kw_only=True, eq=False, repr=False)(cls))
    made.WRITERS, made.READERS = {}, {}  # type: ignore[attr-defined]
    return made


class Struct:
    """A part of a message; knows its fields, and nothing of API keys."""

    __slots__ = ()
    WRITERS: ClassVar[dict[int, Writer]]
    READERS: ClassVar[dict[int, Reader]]
