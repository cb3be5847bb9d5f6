"""What a world takes of chance: the seed's run hands it in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Chance(Protocol):
    """What is used of `random.Random`; who makes one decides the run."""

    def random(self) -> float: ...

    def randrange(self, start: int, stop: int) -> int: ...

    def choice(self, seq: Sequence[T]) -> T: ...
