"""Folds of earlier versions: what a value was stored without, it gets by its default.

The pipeline pickles folds between runs. A field that a later version adds comes last, with a default.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


C = TypeVar("C")


def stored(cls: type[C]) -> type[C]:
    """A dataclass that is restored as `restored` says; to be put above `@dataclass`.

    Python before 3.11.4 has a frozen dataclass with slots forget a `__setstate__` of its own.
    """
    cls.__setstate__ = restored  # type: ignore[attr-defined]
    return cls


def restored(self: DataclassInstance, state: list[object] | tuple[None, dict[str, object]]) -> None:
    """The `__setstate__` of a stored dataclass: field by field, as this version has them.

    `state` is what pickle takes from one with slots: values in order if it is frozen, else by name.
    """
    known = fields(self)
    values = dict(zip((f.name for f in known), state, strict=False)) if isinstance(state, list) else state[1]
    for each in known:
        value = values[each.name] if each.name in values else _default(each)
        object.__setattr__(self, each.name, value)


def _default(of: Field[Any]) -> object:
    return of.default if of.default_factory is MISSING else of.default_factory()
