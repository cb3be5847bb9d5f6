"""What goes when a recording is older or larger than it may be: oldest first, what is read as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kgroup.admin.recording.lines import Removed
from kgroup.admin.recording.observed import STAMP
from kgroup.domain import grouped
from kgroup.history.sources.folders import Folder, Stored
from kgroup.history.sources.layout import FORMER, OBSERVED


def remove_old(folder: Folder, now_ms: int, keep_ms: int | None, most_bytes: int | None) -> Iterator[Removed]:
    """Remove what is too old or too much, and yield each file that went. Of each log the newest segment
    stays, and so does the newest beginning of observations. StorageError if a file cannot be removed.
    """
    stored = folder.files()
    size = sum(file.bytes for file in stored)
    for files in sorted(_removable(stored), key=_age):
        old = keep_ms is not None and _age(files)[0] < now_ms - keep_ms
        if not old and (most_bytes is None or size <= most_bytes):
            break
        # What an interruption leaves is the start: files that go on from it do not stand for themselves.
        for file in reversed(files):
            folder.delete(file.name)
            size -= file.bytes
            yield Removed(now_ms, file.name)


def _age(files: Sequence[Stored]) -> tuple[int, str]:
    return max(file.modified_ms for file in files), files[0].name


def _removable(stored: Sequence[Stored]) -> Iterator[Sequence[Stored]]:
    """Yield what goes as one: a segment, or a file of observations with those that go on from it."""
    by_place = grouped((file.name.rpartition("/")[0], file) for file in stored)
    for folder, files in by_place.items():
        files.sort(key=lambda file: file.name.removesuffix(".ndjson"))
        if folder == OBSERVED:
            yield from [*grouped((Path(file.name).name[:STAMP], file) for file in files).values()][:-1]
            continue
        segments = [file for file in files if file.name.endswith(".log")]
        former = any(part.startswith(FORMER) for part in folder.split("/"))
        yield from ([file] for file in (segments if former else segments[:-1]))
