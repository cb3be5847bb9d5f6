"""Who wants to know that a partition has grown: parked fetches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

Key: TypeAlias = tuple[str, int]
"""Topic name and partition."""


class Watchers:
    """Callbacks by partition; empty (and false) when nobody waits, so that asking costs nothing."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        self._by_key: dict[Key, list[Callable[[], None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def watch(self, keys: Iterable[Key], callback: Callable[[], None]) -> None:
        for key in keys:
            self._by_key.setdefault(key, []).append(callback)

    def unwatch(self, keys: Iterable[Key], callback: Callable[[], None]) -> None:
        for key in keys:
            found = self._by_key.get(key)
            if found is not None and callback in found:
                found.remove(callback)
                if not found:
                    del self._by_key[key]

    def notify(self, key: Key) -> None:
        """The partition has grown, or is gone."""
        for callback in tuple(self._by_key.get(key, ())):
            callback()
