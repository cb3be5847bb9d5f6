"""The stored form of a group, to continue later, elsewhere, in another Python: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from kgroup.domain import TopicPartition
from kgroup.history.fold.folding import Group
from kgroup.history.typed_json import Codec


@dataclass(frozen=True, slots=True)
class Kept:
    """A group as it left the fold of a partition; None if its records only failed to decode.

    `block` is what `Fold.leave` returned, `seq` how many of its events were numbered, `gaps` how many of the
    partition's gaps it knows.
    """

    log_partition: int
    block: int
    seq: int
    gaps: int
    group: Group | None


@cache
def kept() -> Codec[Kept]:
    """Return the codec for groups."""
    return Codec(Kept, shared=(TopicPartition,))
