"""Opening a partition's folder: clean up an interrupted change, cut a torn tail, refuse damage.

After a kill or a power loss, the last append may be there in part. Those bytes are cut off, and kept in a
file next to the segment. Anything else that is missing or wrong is damage: the log does not open, and no file
is touched.
"""

import os
from pathlib import Path
from typing import NamedTuple

from kgroup.errors import DecodeError
from kgroup.log.damage import damaged_file, too_short
from kgroup.log.files import (
    CLEANED,
    INDEX_SUFFIXES,
    START_OFFSET,
    SWAP,
    finish_swap,
    keep_rest,
    read_checkpoint,
    remove_segment,
    segment_bases,
    segment_file,
)
from kgroup.log.interface import DamagedLog, TornTail
from kgroup.log.manifest import MANIFEST, Listed, Manifest, read_manifest, write_manifest
from kgroup.log.segment import MAX_RELATIVE_OFFSET, Segment, Write
from kgroup.protocol.batches import HEADER_BYTES, LENGTH_OFFSET, MAGIC_AT, batches_in

KAFKAS_CLEAN_STOP = ".kafka_cleanshutdown"
"""Next to the partitions of a Kafka that was stopped cleanly; removed by its next start."""


class Opened(NamedTuple):
    """The segments of a folder, the first offset that may be read, and the folder's own manifest."""

    segments: list[Segment]
    start_offset: int
    manifest: Manifest | None
    torn: TornTail | None


def open_segments(folder: Path, write: Write) -> Opened:
    """Return the segments of a folder; the last one is active, and was read whole.

    Raises DamagedLog if anything that was stored is missing or damaged; or OSError.
    """
    finish_interrupted(folder)
    manifest = read_manifest(folder)
    bases = segment_bases(folder)
    for entry in manifest.segments if manifest else ():
        if entry.base_offset not in bases:
            raise DamagedLog(
                f"{segment_file(folder, entry.base_offset, '.log')} is missing",
                hint=f"restore it from a backup; or, to give up what it held, delete {folder / MANIFEST}",
            )
    start = manifest.start_offset if manifest else read_checkpoint(folder, START_OFFSET) or 0
    segments = [Segment(folder, base, write=write) for base in bases or [start]]
    for segment, following in zip(segments, bases[1:], strict=False):
        segment.load(following, manifest.get(segment.base_offset) if manifest else None)
    listed = manifest.get(segments[-1].base_offset) if manifest else None
    torn = _recover(segments[-1], listed, manifest is None and (folder.parent / KAFKAS_CLEAN_STOP).exists())
    return Opened(segments, max(segments[0].base_offset, start), manifest, torn)


def _recover(segment: Segment, listed: Listed | None, stopped_cleanly: bool) -> TornTail | None:
    """Read the last segment whole and cut a torn tail; DamagedLog for damage."""
    if not segment.path.exists():
        return None
    size = segment.path.stat().st_size
    if listed is not None and size < listed.size:
        raise damaged_file(segment.path, too_short(size, listed.size))
    damage = segment.recover(size, listed)
    if damage is None:
        return None
    stored = damage.position < listed.size if listed else stopped_cleanly
    if stored or not damage.torn or valid_batch_after(segment.path, damage.position, segment.end_offset):
        raise damaged_file(segment.path, damage)
    name = f"cut-from-{segment.base_offset:020d}-at-byte-{damage.position}"
    kept = keep_rest(segment.path, damage.position, name)
    os.truncate(segment.path, damage.position)
    for suffix in INDEX_SUFFIXES:
        segment_file(segment.folder, segment.base_offset, suffix).unlink(missing_ok=True)
    return TornTail(segment.path, damage.position, size - damage.position, damage.reason, kept)


def finish_interrupted(folder: Path) -> None:
    """Undo or complete the steps of a killed process, in the order that Kafka uses at start.

    Half-written files are deleted; a segment that was being swapped in replaces those it was made from.
    """
    for name in os.listdir(folder):
        if name.endswith((CLEANED, ".deleted", ".tmp")):
            (folder / name).unlink()
    for base in segment_bases(folder, ".log" + SWAP):
        _swap_in(folder, base)
    known = set(segment_bases(folder))
    for name in os.listdir(folder):
        orphan = name.endswith(INDEX_SUFFIXES) and name[:20].isdigit() and int(name[:20]) not in known
        if orphan or name.endswith(SWAP):
            (folder / name).unlink()


def _swap_in(folder: Path, base: int) -> None:
    swapped = Segment(folder, base, SWAP)
    size = swapped.path.stat().st_size
    damage = swapped.recover(size)
    if damage is not None:
        raise DamagedLog(
            f"{swapped.path} is damaged at byte {damage.position}: {damage.reason}",
            hint="compaction left this file; if the segments it replaces are still there, delete it and start"
            " again",
        )
    # An emptied segment has no end offset of its own; it replaces at least its namesake.
    end = max(swapped.end_offset, base + 1)
    manifest = read_manifest(folder)
    if manifest is not None:
        write_manifest(folder, manifest.replaced(end, swapped.listed._replace(indexes=None)))
    for old in segment_bases(folder):
        if base <= old < end:
            remove_segment(folder, old)
    for suffix in INDEX_SUFFIXES:
        segment_file(folder, base, suffix).unlink(missing_ok=True)
    finish_swap(folder, base)


def valid_batch_after(path: Path, position: int, next_offset: int) -> bool:
    """Return whether any whole, checksummed batch that continues the log starts behind `position`.

    Check every byte: the length field at `position` may be what is damaged.
    """
    with path.open("rb", buffering=0) as file:
        file.seek(position)
        data = file.read()
    magic = data.find(b"\x02", MAGIC_AT + 1)
    while magic >= 0:
        at = magic - MAGIC_AT
        offset = int.from_bytes(data[at : at + 8], "big")
        size = int.from_bytes(data[at + 8 : at + LENGTH_OFFSET], "big") + LENGTH_OFFSET
        plausible = next_offset <= offset <= next_offset + MAX_RELATIVE_OFFSET
        if plausible and HEADER_BYTES <= size <= len(data) - at and _checks_out(data[at : at + size]):
            return True
        magic = data.find(b"\x02", magic + 1)
    return False


def _checks_out(data: bytes) -> bool:
    try:
        return any(batches_in(data))
    except DecodeError:
        return False
