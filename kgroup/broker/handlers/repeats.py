"""Repeated names in a request: each is answered, as in Kafka, unless it is an attack."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

MOST = 10
T = TypeVar("T")


def as_often_as_asked(items: Iterable[T], name: Callable[[T], Hashable]) -> list[T]:
    """Return the items in order; with more than MOST repeated names, the last of each name only.

    A few bytes that ask for a large group ten thousand times would otherwise make an answer of gigabytes.
    """
    asked = list(items)
    once = {name(item): item for item in asked}
    return asked if len(asked) - len(once) <= MOST else list(once.values())
