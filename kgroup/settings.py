"""A setting as one row: name, type, default, range and text, as Kafka's ConfigDef has them.

Values are read, checked, written and described from the row. `Settings` has those in force as plain
attributes of a frozen object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Self, TypeAlias

from kgroup.errors import ConfigError, ErrorCode, Refused
from kgroup.numbers import INT32_MAX, INT64_MAX

UNKNOWN, BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(10)
"""Types, as DescribeConfigs reports them."""
_WHOLE_NUMBERS = {SHORT: ("SHORT", 2**15 - 1), INT: ("INT", INT32_MAX), LONG: ("LONG", INT64_MAX)}
_BLANK = "".join(map(chr, range(0x21)))
_WHOLE = re.compile(r"[+-]?\d+")
_FRACTION = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)

Value: TypeAlias = Any
"""Of the type that the setting has: a flag, a number, a text or a tuple of texts."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting; units are in the names.

    `check` gets a value within the range and returns it, perhaps in another form; ValueError says what is
    wrong with it. `own` is the setting with which a group overrides a broker's, `least_of` and `most_of`
    those that it bounds. `behind` is the broker's setting that decides where a topic or a group sets nothing.
    It has no default of its own if it `is_coarse_behind`: Kafka has a second, coarser setting behind it. A
    broker accepts an `internal` setting without showing it, and a `dynamic` one may be changed while it runs.
    """

    name: str
    type: int
    default: Value = None
    low: float | None = None
    high: float | None = None
    check: Callable[[Value], Value] | None = None
    text: str = ""
    own: str = ""
    least_of: str = ""
    most_of: str = ""
    behind: str = ""
    is_coarse_behind: bool = False
    internal: bool = False
    dynamic: bool = False

    def documented(self, text: str, behind: str = "", *, is_coarse_behind: bool = False) -> Setting:
        """Return the setting with what it means, as DescribeConfigs documents it (KIP-569)."""
        return replace(self, text=text, behind=behind, is_coarse_behind=is_coarse_behind)

    def field(self, text: str, **more: Any) -> Any:
        """Return a field of `Settings` that has the value of this setting."""
        return field(default=self.default, metadata={"setting": replace(self, text=text, **more)})

    @property
    def default_text(self) -> str | None:
        """The default as Kafka reports it."""
        return None if self.default is None else written(self.default)

    def read(self, text: str) -> Value:
        """Return the value as Java reads it, whatever the range; ValueError for one of another type."""
        trimmed = text.strip(_BLANK)
        if self.type == BOOLEAN:
            return _flag(trimmed)
        if self.type in _WHOLE_NUMBERS:
            return _whole_number(trimmed, *_WHOLE_NUMBERS[self.type])
        if self.type == DOUBLE:
            return _fraction(trimmed)
        if self.type == LIST:
            return tuple(_COMMA.split(trimmed)) if trimmed else ()
        return trimmed

    def parse(self, text: str) -> Value:
        """Return the value that a text gives; raise INVALID_CONFIG for one that the setting cannot have."""
        try:
            value = self.read(text)
            if self.high is not None and value > self.high:
                raise ValueError(f"Value must be no more than {self.high}")
            if self.low is not None and value < self.low:
                raise ValueError(f"Value must be at least {self.low}")
            return value if self.check is None else self.check(value)
        except ValueError as wrong:
            message = f"Invalid value {text[:200]} for configuration {self.name}: {wrong}"
            raise Refused(ErrorCode.INVALID_CONFIG, message) from None

    def given(self, text: str) -> Value:
        """Return the value that a text gives at the start of a broker; raise ConfigError."""
        try:
            return self.parse(text)
        except Refused as refused:
            raise ConfigError(str(refused), self._range) from None

    def nearest(self, text: str) -> Value:
        """Return the value in the range that is nearest to what was set; ValueError for no value at all."""
        value = self.read(text)
        if self.high is not None:
            value = min(value, self.high)
        if self.low is not None:
            value = max(value, self.low)
        return value if self.check is None else self.check(value)

    def shown(self, text: str) -> str:
        """Return a value as Kafka reports it: read and written again; as it is if it could not be set."""
        try:
            return written(self.parse(text))
        except Refused:
            return text

    @property
    def _range(self) -> str | None:
        if self.type not in _WHOLE_NUMBERS:
            return None
        most = _WHOLE_NUMBERS[self.type][1]
        low = -most - 1 if self.low is None else self.low
        high = most if self.high is None else self.high
        return f"a whole number from {low} to {high}"


def whole_number(text: str) -> int:
    """Return the number of a text as Java's `Integer.parseInt` reads it; ValueError for any other text."""
    return _whole_number(text, *_WHOLE_NUMBERS[INT])


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return text.lower() == "true"


def _whole_number(text: str, kind: str, most: int) -> int:
    value = int(text) if _WHOLE.fullmatch(text) and len(text) <= 4000 else most + 1
    if not -most - 1 <= value <= most:
        raise ValueError(f"Not a number of type {kind}")
    return value


def _fraction(text: str) -> float:
    if not _FRACTION.fullmatch(text):
        raise ValueError("Not a number of type DOUBLE")
    return float(text.rstrip("fFdD"))


def written(value: object) -> str:
    """Return a value as Kafka writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def one_of(*choices: str, ignore_case: bool = False) -> Callable[[str], str]:
    """Return a check for one of some words, which are lower-case if case is ignored."""

    def check(value: str) -> str:
        word = value.lower() if ignore_case else value
        if word not in choices:
            alike = " (case insensitive)" if ignore_case else ""
            raise ValueError(f"String must be one of{alike}: {', '.join(choices)}")
        return word

    return check


def no_such_setting(name: str, known: Iterable[str]) -> ConfigError:
    """Return the error for a name that is no setting."""
    return ConfigError(f"no such setting: {name}", near_misses(name, known))


def near_misses(name: str, known: Iterable[str]) -> str:
    """Return a hint with the settings that are named alike."""
    near = get_close_matches(name, list(known), 3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return "settings have Kafka's names, as in server.properties"


def number(
    name: str, default: int, low: int | None = 0, high: int | None = None, *, type: int = INT
) -> Setting:
    """Return the row of a whole number."""
    return Setting(name, type, default, low, high)


@dataclass(frozen=True, slots=True)
class Settings:
    """Values in force as attributes, each declared with its row (`Setting.field`)."""

    @classmethod
    def rows(cls) -> dict[str, Setting]:
        """Return the settings of brokers by their names."""
        rows: Iterable[Setting] = (f.metadata["setting"] for f in fields(cls) if f.metadata)
        return {row.name: row for row in rows if row.own != row.name}

    @classmethod
    def names(cls) -> dict[str, str]:
        """Return the attribute of each setting of brokers."""
        rows = cls.rows()
        pairs = ((f.metadata["setting"].name, f.name) for f in fields(cls) if f.metadata)
        return {name: attribute for name, attribute in pairs if name in rows}

    @classmethod
    def values(cls, settings: Mapping[str, str]) -> dict[str, Value]:
        """Return the values given, by attribute; ConfigError for an unknown setting or a wrong value."""
        rows, names = cls.rows(), cls.names()
        for name in settings:
            if name not in rows:
                raise no_such_setting(name, rows)
        return {names[name]: rows[name].given(text) for name, text in settings.items()}

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Self:
        """Return the settings given, on top of the defaults; raise ConfigError as `values`."""
        return cls(**cls.values(settings))

    def as_text(self) -> dict[str, str]:
        """Return each setting's value as Kafka writes it."""
        return {name: written(getattr(self, attribute)) for name, attribute in self.names().items()}
