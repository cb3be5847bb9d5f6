"""A cache of recent values."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
REMEMBERED = 8192


class Memory(dict[K, V]):
    """A table that is emptied when it is full, so that no client can make it grow."""

    def keep(self, key: K, value: V) -> V:
        """Store the value, and return it."""
        if len(self) >= REMEMBERED:
            self.clear()
        self[key] = value
        return value
