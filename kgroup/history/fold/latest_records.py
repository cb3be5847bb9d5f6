"""The newest record of each key, as when replaying a log."""

from __future__ import annotations

from typing import TypeVar

from kgroup.protocol.record_kinds import RecordValue

T = TypeVar("T")
V = TypeVar("V", bound=RecordValue)


def known(kind: type[V], value: RecordValue | None) -> V | None:
    """Return a record's value, known by its key to be of this kind; None for a tombstone."""
    assert value is None or isinstance(value, kind)
    return value


def put(place: dict[str, T], key: str, value: T | None) -> None:
    """Replace an older value; None removes it."""
    if value is None:
        place.pop(key, None)
    else:
        place[key] = value
