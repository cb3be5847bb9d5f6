"""How a verb is declared: its method has the request that calls it, and annotations that say what it takes.

The control port derives its operations from this, and their published document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, TypeAlias, TypedDict, TypeVar

from kgroup.durations import parse_duration
from kgroup.errors import ConfigError

F = TypeVar("F", bound=Callable[..., object])
Duration: TypeAlias = str | timedelta
GroupId: TypeAlias = Annotated[str, "The group's id."]
NodeId: TypeAlias = Annotated[int, "The broker's node id."]
Timeout: TypeAlias = Annotated[Duration, 'Real time to wait, as "30s".']


class Now(TypedDict):
    """The brokers' time."""

    now_ms: int


class Named(TypedDict):
    """A member, with its group."""

    group: str
    member: str


class Seen(TypedDict):
    """A group's state, and the number of its members."""

    group: str
    state: str
    members: int


class Chosen(TypedDict):
    """A broker, by node id."""

    node: int


class NotThere(ConfigError):
    """What a field names does not exist."""

    def __init__(self, field: str, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.field = field


@dataclass(frozen=True, slots=True)
class Request:
    """The HTTP request that calls a verb; `{name}` in its path is an argument."""

    method: str
    path: str


def verb(method: str, path: str) -> Callable[[F], F]:
    """Declare a method as a verb; the first sentence of its docstring describes it."""

    def declared(function: F) -> F:
        function.request = Request(method, path)  # type: ignore[attr-defined]
        return function

    return declared


def seconds(duration: Duration) -> float:
    """Return a duration in seconds; raise ConfigError for one below zero."""
    if isinstance(duration, str):
        return parse_duration(duration)
    if duration < timedelta():
        raise ConfigError(f"{duration} is not a duration", "time only goes forward")
    return duration.total_seconds()
