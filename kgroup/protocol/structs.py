"""What messages are made of: slotted dataclasses, and the compiled functions of one in one version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, dataclass_transform

from kgroup.domain import sharing_methods

NEVER_FLEXIBLE = 1 << 15
T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[T]) -> type[T]:
    """A slotted, keyword-only dataclass, frozen for the type checker.

    Not frozen at run time: a frozen `__init__` costs four times as much (docs/decisions/0002).
    """
    made = sharing_methods(dataclass(slots=True, kw_only=True, eq=False, repr=False)(cls))
    made.CODECS = {}  # type: ignore[attr-defined]
    return made


@dataclass(frozen=True, slots=True)
class Codec:
    """The compiled pair for one class and version."""

    write: Callable[[Any, bytearray], None]
    read: Callable[[bytes, int, int], tuple[Any, int]]


class Struct:
    """A part of a message; knows its fields, and nothing of API keys."""

    __slots__ = ()
    CODECS: ClassVar[dict[int, Codec]]
