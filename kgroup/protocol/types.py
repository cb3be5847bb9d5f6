"""The vocabulary of message declarations: wire types, and the notes that say when a field exists.

    group_instance_id: Annotated[String | None, Since(3)] = None

A plain `X | None` may be null in every version the field exists in. Arrays are tuples.
"""

from typing import Annotated, Any

from kgroup.domain import value


@value
class Fixed:
    """A type of constant width: `code` is its letter in the struct module."""

    code: str


@value
class Variable:
    """A length-prefixed type: string, bytes, records; or the 16 raw bytes of a uuid."""

    kind: str


@value
class Since:
    """The first version that has the field."""

    version: int


@value
class Until:
    """The last version that has the field."""

    version: int


@value
class Tagged:
    """The field travels in the tag section, and only when it differs from its default."""

    tag: int


@value
class Absent:
    """What a tagged field left out on the wire stands for, where that is not the Python default."""

    value: Any


@value
class NullableSince:
    """The first version in which a `| None` field may be null; before it, None becomes the zero value."""

    version: int


Bool = Annotated[bool, Fixed("?")]
Int8 = Annotated[int, Fixed("b")]
Int16 = Annotated[int, Fixed("h")]
UInt16 = Annotated[int, Fixed("H")]
Int32 = Annotated[int, Fixed("i")]
UInt32 = Annotated[int, Fixed("I")]
Int64 = Annotated[int, Fixed("q")]
Float64 = Annotated[float, Fixed("d")]
Uuid = Annotated[bytes, Variable("uuid")]
String = Annotated[str, Variable("string")]
Bytes = Annotated[bytes, Variable("bytes")]
Records = Annotated[bytes, Variable("bytes")]
