"""JSON Schemas of models, derived from their fields' types and annotations.

A field is `Annotated[type, …]` where its type is not enough: a string is its meaning, a tuple its values, a
mapping further keywords of JSON Schema, and a list of a class what the objects in it are made from.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Union, get_args, get_origin, get_type_hints, is_typeddict

from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, NUMBER, STRING, Schema, array, nullable, record
from kgroup.protocol.embedded.connect import ConnectWorker
from kgroup.protocol.embedded.member import Application
from kgroup.protocol.embedded.schema_registry import RegistryInstance
from kgroup.protocol.embedded.streams import StreamsThread
from kgroup.protocol.embedded.undecoded import Undecoded

_IMPORTED_FOR_TYPES: Mapping[str, type] = {
    kind.__name__: kind for kind in (ConnectWorker, Application, RegistryInstance, StreamsThread, Undecoded)
}
"""The names that modules of models import for the type checker alone."""
_PLAIN: Mapping[object, Schema] = {str: STRING, int: INTEGER, float: NUMBER, bool: BOOLEAN, object: {}}


def model(kind: type, /, *left_out: str, **others: Schema) -> Schema:
    """Return the schema of a dataclass or named tuple as `asdict` prints it, or of a TypedDict.

    `others` are fields that are printed in addition to its own, or instead of them.
    """
    fields = {name: schema for name, schema in _fields(kind).items() if name not in left_out}
    return record(**{**fields, **others})


@cache
def _fields(kind: type) -> dict[str, Schema]:
    hints = get_type_hints(kind, localns=_IMPORTED_FOR_TYPES, include_extras=True)
    own = hints if is_typeddict(kind) or issubclass(kind, tuple) else kind.__dataclass_fields__  # type: ignore[attr-defined]
    return {name: schema_of(hints[name]) for name in own}


@cache
def _record_of(kind: type) -> Schema:
    """Return one object per type: where it occurs again, the page refers to it."""
    return record(**_fields(kind))


def schema_of(kind: object) -> Schema:
    """Return the schema of what `asdict` makes of a value of this type."""
    origin, of = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _worded(schema_of(of[0]), of[1:])
    if origin in (Union, UnionType):
        (some,) = (kind for kind in of if kind is not NoneType)
        return nullable(schema_of(some))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        values = schema_of(of[1])
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if isinstance(origin, type) and issubclass(origin, Collection):
        return array(schema_of(of[0]))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [member.value for member in kind]}
    if kind in _PLAIN:
        return _PLAIN[kind]
    assert isinstance(kind, type), kind
    return _record_of(kind)


def _worded(schema: Schema, words: tuple[object, ...]) -> Schema:
    for word in words:
        if isinstance(word, str):
            schema = {**schema, "description": word}
        elif isinstance(word, tuple):
            schema = {"enum": list(word)}
        elif isinstance(word, Mapping):
            schema = {**schema, **word}
        elif get_origin(word) is list:
            schema = schema_of(word)
    return schema
