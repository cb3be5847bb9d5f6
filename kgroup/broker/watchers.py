"""Parked fetches that wait for a partition to grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

Key: TypeAlias = tuple[str, int]
"""Topic name and partition."""
Watcher: TypeAlias = Callable[[Key], None]


class Watchers:
    """Callbacks `by_key`: each partition's; empty without waiting ones, so that asking costs nothing."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[Key, dict[Watcher, None]] = {}

    def watch(self, keys: Iterable[Key], callback: Watcher) -> None:
        for key in keys:
            self.by_key.setdefault(key, {})[callback] = None

    def unwatch(self, keys: Iterable[Key], callback: Watcher) -> None:
        for key in keys:
            callbacks = self.by_key.get(key)
            if callbacks is not None:
                callbacks.pop(callback, None)
                if not callbacks:
                    del self.by_key[key]

    def notify(self, key: Key) -> None:
        """Wake those that wait for the partition, which has grown or is gone."""
        for callback in tuple(self.by_key.get(key, ())):
            callback(key)
