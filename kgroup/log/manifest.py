"""The files of a partition's folder when they were last certainly on disk, kept in its file `segments`.

It distinguishes damage from a torn write. What is listed was whole once: if it is missing, shorter or other
than listed, something outside kgroup changed it, and nothing of it may be cut. Only what was appended since
may end in a write that a kill or a power loss interrupted. The list is made again at a clean stop, whenever
the set of segments changes, and when a log is opened after an unclean stop (docs/decisions/0015).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from google_crc32c import value as crc32c

from kgroup.log.files import replace_file
from kgroup.log.interface import DamagedLog

MANIFEST = "segments"
_VERSION = 1


class Listed(NamedTuple):
    """A segment: its first `size` bytes are whole batches whose headers have this digest.

    `first` is that of the first batch alone, `indexes` the checksum of its index files. None for what is
    unknown: a segment that came from elsewhere, indexes that have to be made again.
    """

    base_offset: int
    size: int
    digest: int | None = None
    first: int | None = None
    indexes: int | None = None


class Manifest(NamedTuple):
    """The first offset that may be read, and the segments in order; the last one was active."""

    start_offset: int
    segments: tuple[Listed, ...]

    def get(self, base_offset: int) -> Listed | None:
        return next((segment for segment in self.segments if segment.base_offset == base_offset), None)

    def replaced(self, end_offset: int, by: Listed) -> Manifest:
        """Return it with `by` in place of the segments from its own base offset to before `end_offset`."""
        gone = range(by.base_offset, end_offset)
        kept = [segment for segment in self.segments if segment.base_offset not in gone]
        return Manifest(self.start_offset, tuple(sorted([*kept, by])))


def read_manifest(folder: Path) -> Manifest | None:
    """Return the folder's listed content, None without a list; DamagedLog for a damaged list; or OSError.

    An empty file, or one of zeros, is what a power loss leaves of a new one: it counts as no list.
    """
    path = folder / MANIFEST
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    if not raw.strip(b"\0"):
        return None
    body, _, checksum = raw.rpartition(b"checksum ")
    try:
        if int(checksum, 16) != crc32c(body):
            raise ValueError("its checksum is wrong")
        lines = [line.split(" ") for line in body.decode("utf-8").splitlines()]
        (_, version), (_, partition), (_, start), *rest = lines
        if int(version) != _VERSION:
            raise ValueError(f"its version is {version}, this kgroup reads {_VERSION}")
        if partition != folder.name:
            raise ValueError(f"it is of {partition}")
        segments = (
            Listed(int(base), int(size), _sum(digest), _sum(first), _sum(indexes))
            for _, base, size, digest, first, indexes in rest
        )
        return Manifest(int(start), tuple(segments))
    except (ValueError, TypeError) as error:
        raise DamagedLog(
            f"{path} is damaged or another partition's: {error}",
            hint="restore it from a backup; or delete it: the log then opens with what its segments hold, and"
            " whether that is all is unknown",
        ) from None


def _sum(text: str) -> int | None:
    return None if text == "-" else int(text, 16)


def draft_manifest(folder: Path, manifest: Manifest) -> Path:
    """Write the list, durable, into a file next to its own, for `Path.replace`. Raise OSError."""
    draft = folder / f"{MANIFEST}.tmp"
    with draft.open("wb") as file:
        file.write(_text(folder, manifest))
        file.flush()
        os.fsync(file.fileno())
    return draft


def write_manifest(folder: Path, manifest: Manifest, *, durable: bool = True) -> None:
    """Replace the list in one step; the caller syncs the folder if not `durable`. Raise OSError."""
    replace_file(folder / MANIFEST, _text(folder, manifest), durable=durable)


def _text(folder: Path, manifest: Manifest) -> bytes:
    lines = [f"version {_VERSION}", f"partition {folder.name}", f"start {manifest.start_offset}"]
    for base, size, *known in manifest.segments:
        sums = ("-" if checksum is None else f"{checksum:08x}" for checksum in known)
        lines.append(f"segment {base} {size} {' '.join(sums)}")
    body = "".join(f"{line}\n" for line in lines).encode("utf-8")
    return body + b"checksum %08x\n" % crc32c(body)
