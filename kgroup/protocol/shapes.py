"""The wire shapes of a message's fields, read from annotations when a codec is compiled."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from kgroup.domain import value
from kgroup.protocol.structs import NEVER_FLEXIBLE, Struct
from kgroup.protocol.types import Absent, Fixed, NullableSince, Since, Tagged, Until, Variable


@value
class Shape:
    """What an annotation says of a value: one of fixed, string, bytes, uuid, struct, array."""

    kind: str
    code: str = ""
    struct: type[Struct] | None = None
    item: Shape | None = None
    nullable: bool = False


@value
class Slot:
    """A field: its shape, the versions that have it, the first in which it may be null, and its default."""

    name: str
    shape: Shape
    since: int
    until: int
    tag: int | None
    nullable_since: int
    default: Any


_ZERO = {"string": "", "bytes": b"", "uuid": bytes(16), "array": ()}


_SLOTS: dict[type[Any], list[Slot]] = {}  # reading the annotations costs more than all else in a compile


def slots_of(cls: type[Struct]) -> list[Slot]:
    """Return the declared fields of a struct, in wire order."""
    slots = _SLOTS.get(cls)
    if slots is None:
        declared = fields(cls)
        hints = {field.name: field.type for field in declared}
        if any(isinstance(hint, str) for hint in hints.values()):
            hints = get_type_hints(cls, include_extras=True)
        slots = _SLOTS[cls] = [_slot(field, hints[field.name]) for field in declared]
    return slots


def _slot(declared: Field[Any], hint: Any) -> Slot:
    notes: list[Any] = []
    inner, nullable = _unwrap(hint, notes)
    shape = _shape(inner, notes, nullable)
    since = next((n.version for n in notes if isinstance(n, Since)), 0)
    until = next((n.version for n in notes if isinstance(n, Until)), NEVER_FLEXIBLE)
    tag = next((n.tag for n in notes if isinstance(n, Tagged)), None)
    nullable_since = next((n.version for n in notes if isinstance(n, NullableSince)), 0)
    default = declared.default
    if default is MISSING:
        if declared.default_factory is not MISSING:
            default = declared.default_factory()
        else:
            default = _ZERO.get(shape.kind, False if shape.code == "?" else 0)
    default = next((n.value for n in notes if isinstance(n, Absent)), default)
    return Slot(declared.name, shape, since, until, tag, nullable_since, default)


def _unwrap(hint: Any, notes: list[Any]) -> tuple[Any, bool]:
    """Strip Annotated and `| None` in any order, gathering the notes."""
    nullable = False
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            notes.extend(hint.__metadata__)
            hint = hint.__origin__
        elif origin in (Union, UnionType):
            hint = next(a for a in get_args(hint) if a is not type(None))
            nullable = True
        else:
            return hint, nullable


def _shape(inner: Any, notes: list[Any], nullable: bool) -> Shape:
    if get_origin(inner) is tuple:
        item_notes: list[Any] = []
        item, item_nullable = _unwrap(get_args(inner)[0], item_notes)
        return Shape("array", item=_shape(item, item_notes, item_nullable), nullable=nullable)
    for note in notes:
        if isinstance(note, Fixed):
            return Shape("fixed", code=note.code)
        if isinstance(note, Variable):
            return Shape(note.kind, nullable=nullable)
    if isinstance(inner, type) and issubclass(inner, Struct):
        return Shape("struct", struct=inner, nullable=nullable)
    raise TypeError(f"{inner!r} is no wire type")
