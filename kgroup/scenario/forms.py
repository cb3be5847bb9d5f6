"""YAML forms of a scenario's values: each form reads one and writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Generic, TypeVar

from kgroup.domain import TopicPartition, partitions_text
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError

T = TypeVar("T")
_PLACE = re.compile(r"([A-Za-z0-9._-]{1,249}):(\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*)")
MAX_PARTITIONS = 1_000_000
Shares = Mapping[str, tuple[TopicPartition, ...]]
"""Partitions by the name of the member that owns them."""


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """A way to write a value: `read` raises ConfigError for an invalid one, `write` returns plain data."""

    read: Callable[[object], T]
    write: Callable[[T], object]


def given(form: Form[T], **more: object) -> Any:
    """Return a dataclass field with this form in the file; required unless it has a default."""
    return field(metadata={"form": form}, **more)  # type: ignore[call-overload]


def key_of(field_: Field[object]) -> str:
    """Return a field's key in the file."""
    return field_.name.removesuffix("_ms")


def read_fields(made: type[T], options: object, where: str) -> T:
    """Return a dataclass from a mapping; ConfigError, prefixed with `where`, says what is wrong."""
    if not isinstance(options, Mapping):
        raise ConfigError(f"{where}: {options!r} has no options", "options are written {key: value}")
    known = {key_of(declared): declared for declared in fields(made)}  # type: ignore[arg-type]
    values = {}
    for key, value in options.items():
        if key not in known:
            raise ConfigError(f"{where}: the key {key!r} is unknown", "one of " + ", ".join(sorted(known)))
        values[known[key].name] = read(known[key].metadata["form"], value, f"{where}: {key}")
    for key, declared in known.items():
        if (
            declared.name not in values
            and declared.default is MISSING
            and declared.default_factory is MISSING
        ):
            raise ConfigError(f"{where}: {key} is missing", f"it needs {key}")
    return made(**values)


def read(form: Form[T], value: object, where: str) -> T:
    """Return a value; ConfigError names its place."""
    try:
        return form.read(value)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", error.hint) from None


def written(made: object) -> dict[str, object]:
    """Return the mapping that `read_fields` reads; defaults are omitted."""
    return {
        key_of(field_): field_.metadata["form"].write(value)
        for field_ in fields(made)  # type: ignore[arg-type]
        if (value := getattr(made, field_.name))
        != (field_.default_factory() if field_.default_factory is not MISSING else field_.default)
    }


def duration_written(ms: int) -> str:
    """Return a duration that `parse_duration` reads, to the millisecond."""
    return f"{ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"


def _text(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise ConfigError(f"{value!r} is not text", "quote a name that YAML reads as a number, as '7'")


def _number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ConfigError(f"{value!r} is not a number", "a whole number from 0 on")


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{value!r} is neither true nor false")


def _duration_ms(value: object) -> int:
    return round(parse_duration(str(value)) * 1000)


def _mapping(value: object) -> Mapping[object, object]:
    if isinstance(value, Mapping):
        return value
    raise ConfigError(f"{value!r} is not a mapping", "write {key: value}")


def _partitions(value: object) -> tuple[TopicPartition, ...]:
    if value == "-":
        return ()
    partitions: list[TopicPartition] = []
    for part in str(value).split():
        match = _PLACE.fullmatch(part)
        if match is None:
            raise ConfigError(f"{part!r} is no partitions", 'write "orders:0-3,6 pay:0", or "-" for none')
        for span in match[2].split(","):
            first, _, last = span.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            if not numbers or numbers[-1] >= MAX_PARTITIONS:
                raise ConfigError(
                    f"{span!r} is no range of partitions", f"such as 0-3, below {MAX_PARTITIONS}"
                )
            partitions += (TopicPartition(match[1], number) for number in numbers)
    return tuple(sorted(partitions))


def _offsets(value: object) -> Mapping[TopicPartition, int]:
    offsets = {}
    for key, offset in _mapping(value).items():
        places = _partitions(key)
        if len(places) != 1:
            raise ConfigError(f"{key!r} is not one partition", 'write "orders:0": 12')
        offsets[places[0]] = _number(offset)
    return offsets


def _shares(value: object) -> Shares:
    return {_text(name): _partitions(share) for name, share in _mapping(value).items()}


def one_of(words: Iterable[str]) -> Form[str]:
    """Return the form of a value that is one of some words."""
    known = tuple(words)

    def word(value: object) -> str:
        if value in known:
            return str(value)
        raise ConfigError(f"{value!r} is unknown here", "one of " + ", ".join(known))

    return Form(word, str)


def list_of(form: Form[T]) -> Form[tuple[T, ...]]:
    """Return the form of a list of such values."""

    def read_all(value: object) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise ConfigError(f"{value!r} is not a list", "write [a, b]")
        return tuple(map(form.read, value))

    return Form(read_all, lambda values: [form.write(item) for item in values])


TEXT = Form(_text, str)
TEXTS = list_of(TEXT)
NUMBER = Form(_number, int)
FLAG = Form(_flag, bool)
DURATION = Form(_duration_ms, duration_written)
PARTITIONS = Form(_partitions, partitions_text)
OFFSETS = Form(_offsets, lambda offsets: {partitions_text((p,)): at for p, at in sorted(offsets.items())})
SHARES = Form(_shares, lambda shares: {name: partitions_text(share) for name, share in shares.items()})
SIZES = Form(lambda value: {_text(k): _number(v) for k, v in _mapping(value).items()}, dict)
