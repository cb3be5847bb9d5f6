"""Values of declared types as JSON, and back: dataclasses, named tuples, enumerations, collections of them.

Stored data may have been written by any program. Only values of the declared types come out: no class is
looked up by a name from the data, only the constructors of those types are called, and a value is as deep as
its type. A class becomes the list of its fields' values in the order of their declaration, a dictionary the
list of its keys and the list of its values, bytes become base64, and where several classes are allowed, a
value is preceded by the name of its class.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
import types
import typing
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")
Plain: TypeAlias = Any
"""What JSON returns, and values whose types are known only by their declarations."""
MAX_BYTES = 512 << 20
"""No value is longer: one is a group, or something that a log has once."""
_MOST_SHARED = 400_000
_COLLECTIONS = (tuple, list, set, frozenset)
_JSON = (str, int, bool, float)


class Foreign(ValueError):
    """Bytes that are no value of the declared type."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of one type are written: the types their JSON has, and the conversions there and back.

    A conversion is None if value and JSON are the same. `layout` describes the type. A class has a `row`.
    """

    json: frozenset[type]
    to: Callable[[Plain], Plain] | None
    back: Callable[[Plain], Plain] | None
    layout: str
    row: _Row | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    """A class as a row: where in a value each of its cells is, and the call that makes a value of cells.

    A class within a class has its cells in the same row. Names in `call` are those of `Codec._calls`; each
    `{}` is a cell.
    """

    name: str
    cells: tuple[tuple[str, _Form], ...]
    call: str


class Codec(Generic[T]):
    """JSON of the values of one declared type; equal values of the classes in `shared` become one object."""

    def __init__(self, of: object, shared: Iterable[type] = ()) -> None:
        self._shared = frozenset(shared)
        self._known: dict[Plain, Plain] = {}
        self._forms: dict[Plain, _Form] = {}
        self._layouts: list[str] = []
        self._calls: dict[str, Plain] = {"_shared": self._share, "_tuple": tuple.__new__}
        self._form = self._of(of)
        self._back = _checked(self._form)

    @property
    def layout(self) -> str:
        """A digest of the declared types: a different one is a different format."""
        return hashlib.sha256("\n".join([self._form.layout, *self._layouts]).encode()).hexdigest()[:16]

    def encode(self, value: T) -> bytes:
        """Return the JSON of a value, which must be of the declared type."""
        to = self._form.to
        return _text(value if to is None else to(value)).encode()

    def decode(self, data: bytes) -> T:
        """Return the value in `data`; Foreign if anything in it is not of the declared type."""
        if len(data) > MAX_BYTES:
            raise Foreign(f"{len(data)} bytes, and no value has more than {MAX_BYTES}")
        if len(self._known) > _MOST_SHARED:
            self._known.clear()
        try:
            value = json.loads(data.decode())
            if b"\\ud" in data or b"\\uD" in data:
                _text(value).encode()  # half of a surrogate pair is no text that a table can hold
            decoded: T = self._back(value)
        except Foreign:
            raise
        except RecursionError:
            raise Foreign("it is nested more deeply than any value") from None
        except UnicodeError:
            raise Foreign("it is not UTF-8") from None
        except ValueError as error:
            raise Foreign(f"it is not JSON: {error}") from None
        return decoded

    def _of(self, declared: Plain) -> _Form:
        form = self._forms.get(declared)
        if form is None:
            form = self._forms[declared] = self._made(declared)
        return form

    def _made(self, declared: Plain) -> _Form:
        origin: Plain = typing.get_origin(declared)
        arguments = typing.get_args(declared)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if origin in (dict, Mapping):
            return self._dictionary(*map(self._of, arguments))
        if origin is tuple and (len(arguments) != 2 or arguments[1] is not ...):
            cells = [(f"[{at}]", self._of(argument)) for at, argument in enumerate(arguments)]
            name = f"({', '.join(form.layout for _, form in cells)})"
            return self._rowed(name, cells, f"({', '.join(['{}'] * len(cells))},)")
        if origin in _COLLECTIONS:
            return _collection(origin, self._of(arguments[0]))
        if declared in _JSON:
            return _Form(
                frozenset({declared}), None, _fitting if declared is int else None, declared.__name__
            )
        if declared is bytes:
            return _Form(frozenset({str}), _base64, _bytes, "bytes")
        if isinstance(declared, type) and issubclass(declared, Enum):
            return _enumeration(declared)
        return self._class(declared)

    def _class(self, cls: Plain) -> _Form:
        """Return a dataclass or a named tuple."""
        label: str = cls.__name__
        if self._calls.setdefault(label, cls) is not cls:
            label = f"{cls.__module__.rpartition('.')[2]}_{label}"
            self._calls[label] = cls
        hints = typing.get_type_hints(cls)
        named = issubclass(cls, tuple)
        names = cls._fields if named else [field.name for field in dataclasses.fields(cls)]
        cells: list[tuple[str, _Form]] = []
        parts = []
        for name in names:
            form = self._of(hints[name])
            if form.row is None:
                cells.append((f".{name}", form))
                parts.append("{}")
            else:
                cells += [(f".{name}{path}", cell) for path, cell in form.row.cells]
                parts.append(form.row.call)
        if named:
            call = f"_tuple({label}, ({', '.join(parts)},))"
        else:
            call = f"{label}({', '.join(f'{n}={part}' for n, part in zip(names, parts, strict=True))})"
        own = ", ".join(f"{name}: {self._of(hints[name]).layout}" for name in names)
        self._layouts.append(f"{label}({own})")
        return self._rowed(label, cells, f"_shared({call})" if cls in self._shared else call)

    def _share(self, value: Plain) -> Plain:
        return self._known.setdefault(value, value)

    def _rowed(self, name: str, cells: Sequence[tuple[str, _Form]], call: str) -> _Form:
        """Return a row; its types are compared with those of rows before, its numbers checked, at once.

        Most stored values are numbers and names in many rows of few shapes.
        """
        calls = dict(self._calls)
        there, back = [], []
        for at, (path, form) in enumerate(cells):
            calls |= {f"to_{at}": form.to, f"back_{at}": form.back}
            there.append(f"value{path}" if form.to is None else f"to_{at}(value{path})")
            back.append(f"row[{at}]" if form.back in (None, _fitting) else f"back_{at}(row[{at}])")
        numbers = [at for at, (_, form) in enumerate(cells) if form.back is _fitting]
        # Only declarations are compiled here, never anything that was stored.
        to = eval(f"lambda value: ({', '.join(there)},)", calls)
        make = eval(f"lambda row: {call.format(*back)}", calls)
        pick = eval(f"lambda row: ({''.join(f'row[{at}],' for at in numbers)})", {})
        fit = struct.Struct(f"{len(numbers)}q").pack
        usual: set[tuple[type, ...]] = set()

        def checked(plain: list[Plain]) -> Plain:
            kinds = tuple(map(type, plain))
            if kinds not in usual:
                if len(kinds) != len(cells):
                    raise Foreign(f"{name} has {len(cells)} values, and there are {len(kinds)}")
                for kind, (path, form) in zip(kinds, cells, strict=True):
                    if kind not in form.json:
                        raise Foreign(f"{name}{path} is {kind.__name__} where {form.layout} is wanted")
                usual.add(kinds)
            try:
                fit(*pick(plain))
            except struct.error:
                raise Foreign(f"{name} has a number of more than 64 bits") from None
            return make(plain)

        return _Form(frozenset({list}), to, checked, name, _Row(name, tuple(cells), call))

    def _union(self, arguments: Sequence[Plain]) -> _Form:
        kinds = [kind for kind in arguments if kind is not types.NoneType]
        form = self._tagged(kinds) if len(kinds) > 1 else self._of(kinds[0])
        if len(kinds) == len(arguments):
            return form
        to, back = form.to, _checked(form)
        return _Form(
            form.json | {types.NoneType},
            None if to is None else lambda value: None if value is None else to(value),
            lambda plain: None if plain is None else back(plain),
            f"{form.layout}?",
        )

    def _tagged(self, classes: Sequence[type]) -> _Form:
        forms = {cls: self._of(cls) for cls in classes}
        ways = {cls: (cls.__name__, form.to or (lambda value: value)) for cls, form in forms.items()}
        backs = {cls.__name__: _checked(form) for cls, form in forms.items()}
        assert len(backs) == len(ways), "two classes of one name"

        def to(value: Plain) -> list[Plain]:
            name, way = ways[type(value)]
            return [name, way(value)]

        def back(plain: Plain) -> Plain:
            if len(plain) != 2 or type(plain[0]) is not str or plain[0] not in backs:
                raise Foreign(f"one of {', '.join(backs)} is wanted")
            return backs[plain[0]](plain[1])

        return _Form(frozenset({list}), to, back, f"one of {', '.join(backs)}")

    def _dictionary(self, key: _Form, value: _Form) -> _Form:
        keys, values = _collection(list, key), _collection(list, value)
        keys_to, values_to = keys.to or list, values.to or list
        back_of = _checked(keys), _checked(values)

        def to(mapping: Plain) -> list[Plain]:
            return [keys_to(mapping), values_to(mapping.values())]

        def back(plain: Plain) -> Plain:
            if len(plain) != 2:
                raise Foreign("a list of keys and one of values are wanted")
            first, second = (way(part) for way, part in zip(back_of, plain, strict=True))
            entries = dict(zip(first, second, strict=False))
            if not len(entries) == len(first) == len(second):
                raise Foreign("each key needs one value")
            return entries

        return _Form(frozenset({list}), to, back, f"{{{key.layout}: {value.layout}}}")


_text = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def _checked(form: _Form) -> Callable[[Plain], Plain]:
    """Return the conversion back for JSON of any type."""
    classes, way, layout = form.json, form.back, form.layout

    def back(plain: Plain) -> Plain:
        if type(plain) not in classes:
            raise Foreign(f"{type(plain).__name__} where {layout} is wanted")
        return plain if way is None else way(plain)

    return back


def _fitting(plain: int) -> int:
    if not -(1 << 63) <= plain < 1 << 63:
        raise Foreign("a number of more than 64 bits")
    return plain


def _base64(value: bytes) -> str:
    return b2a_base64(value, newline=False).decode()


def _bytes(plain: str) -> bytes:
    try:
        return a2b_base64(plain, strict_mode=True)
    except ValueError as error:
        raise Foreign(f"it is not base64: {error}") from None


def _enumeration(kind: type[Enum]) -> _Form:
    by_value = {member.value: member for member in kind}

    def back(plain: Plain) -> Enum:
        if plain not in by_value:
            raise Foreign(f"{plain!r:.40} is no {kind.__name__}")
        return by_value[plain]

    return _Form(frozenset(map(type, by_value)), attrgetter("value"), back, kind.__name__)


def _collection(make: Callable[[Plain], Plain], item: _Form) -> _Form:
    """Return the form of any number of values of one type."""
    allowed, item_to, item_back = item.json, item.to, item.back

    def to(values: Plain) -> list[Plain]:
        return list(values) if item_to is None else [item_to(value) for value in values]

    def back(plain: Plain) -> Plain:
        if not allowed.issuperset(map(type, plain)):
            raise Foreign(f"something in a list is not {item.layout}")
        return make(plain if item_back is None else [item_back(value) for value in plain])

    return _Form(frozenset({list}), to, back, f"[{item.layout}]")
