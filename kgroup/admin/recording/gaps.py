"""What a recording lacks of the log: one file, so that who reads the log reads no observations for it."""

from __future__ import annotations

from dataclasses import dataclass

from kgroup.errors import StorageError
from kgroup.history.sources.folders import Folder, read_small
from kgroup.history.sources.layout import GAPS
from kgroup.history.typed_json import Codec, Foreign


@dataclass(frozen=True, slots=True)
class Gap:
    """Which offsets of a log are not recorded and why, in words, and when that was first noticed."""

    at_ms: int
    log: str
    text: str


_CODEC: Codec[tuple[Gap, ...]] = Codec(tuple[Gap, ...])


def gaps_in(folder: Folder) -> tuple[Gap, ...]:
    """Return the gaps that the recorder of this folder noticed; StorageError if they cannot be read."""
    data = read_small(folder, GAPS)
    try:
        return () if data is None else _CODEC.decode(data)
    except Foreign as error:
        hint = "another release of kgroup may read it"
        raise StorageError(f"{folder}/{GAPS} cannot be read: {error}", hint) from None


def add_gap(folder: Folder, gap: Gap) -> bool:
    """Store a gap, durable on return; return whether it is new. StorageError if that fails.

    Who stored nothing behind a gap meets it again.
    """
    known = gaps_in(folder)
    if any((other.log, other.text) == (gap.log, gap.text) for other in known):
        return False
    folder.write(GAPS, _CODEC.encode((*known, gap)))
    return True
