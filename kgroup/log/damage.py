"""Where a segment's stored batches end because of damage: found by reading, reported to the operator."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kgroup.errors import DecodeError
from kgroup.log.interface import DamagedLog
from kgroup.log.manifest import MANIFEST
from kgroup.protocol.batches import CRC_START, Batch, batches_in

CHUNK_BYTES = 1 << 20
HEAD_BYTES = CRC_START
"""The part of a batch that its own checksum does not cover, and that checksum."""
OTHER_BATCHES = "its batches are not those that were stored"


class Damage(NamedTuple):
    """Where a segment stops being whole batches in order, and why; `torn` if a cut write may be why."""

    position: int
    reason: str
    torn: bool = True


class Damaged(Exception):
    """Raised by `scan`; becomes a cut or a StorageError, depending on where it is."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.damage = Damage(position, reason)


def scan(path: Path, position: int, end: int) -> Iterator[tuple[int, Batch]]:
    """Yield the verified batches of a file between two positions, each with its own; raises Damaged."""
    with path.open("rb", buffering=0) as file:
        want = CHUNK_BYTES
        while position < end:
            file.seek(position)
            data = file.read(min(want, end - position))
            reader = batches_in(data, origin=position)
            while True:
                at = position + reader.position
                try:
                    batch = next(reader)
                except StopIteration:
                    break
                except DecodeError as error:
                    raise Damaged(at, error.message) from None
                yield at, batch
            if reader.position:
                position += reader.position
                want = CHUNK_BYTES
            elif position + len(data) >= end or len(data) < want:
                raise Damaged(position, f"the batch at byte {position} is cut after {len(data)} bytes")
            else:
                want *= 2


def head_of(batch: Batch) -> bytes:
    """Return the input of a segment's digest."""
    return batch.data[batch.position : batch.position + HEAD_BYTES]


def too_short(size: int, listed: int) -> Damage:
    return Damage(size, f"the file ends here, {listed - size} bytes that were stored are gone", torn=False)


def damaged_file(path: Path, damage: Damage) -> DamagedLog:
    return DamagedLog(
        f"{path} is damaged at byte {damage.position}: {damage.reason}",
        hint="restore the file from a backup; or, to give up what follows, cut it there"
        f" (truncate -s {damage.position} {path}), and delete the segments behind it"
        f" and {path.parent / MANIFEST}",
    )
