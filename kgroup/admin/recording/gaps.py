"""What a recording lacks of the log: one file, so that who reads the log reads no observations for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgroup.errors import StorageError
from kgroup.history.sources.folders import Folder, read_small
from kgroup.history.sources.layout import GAPS
from kgroup.history.typed_json import Codec, Foreign


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets that are not recorded, when that was noticed, and why; `last` is -1 where it is unknown."""

    at_ms: int
    topic: str
    partition: int
    first: int
    last: int
    why: str

    @property
    def text(self) -> str:
        """The gap in words."""
        span = f"offsets {self.first} to {self.last}" if self.last >= 0 else f"offsets from {self.first} on"
        return f"{span} are not recorded: {self.why}"


_CODEC: Codec[tuple[Gap, ...]] = Codec(tuple[Gap, ...])


def gaps_in(folder: Folder) -> tuple[Gap, ...]:
    """Return the gaps that the recorder of this folder noticed; StorageError if they cannot be read."""
    data = read_small(folder, GAPS)
    try:
        return () if data is None else _CODEC.decode(data)
    except Foreign as error:
        hint = "another release of kgroup may read it"
        raise StorageError(f"{folder}/{GAPS} cannot be read: {error}", hint) from None


def add_gaps(folder: Folder, gaps: Sequence[Gap]) -> None:
    """Store more gaps, durable on return; StorageError if that fails."""
    folder.write(GAPS, _CODEC.encode((*gaps_in(folder), *gaps)))
