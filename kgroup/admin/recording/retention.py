"""What goes when a recording is older or larger than it may be: whole segments and days, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgroup.admin.recording.days import files_of
from kgroup.admin.recording.lines import Removed
from kgroup.errors import StorageError
from kgroup.history.sources.layout import FORMER, base_offset


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    bytes: int
    modified_ms: int
    next: Path | None
    """The segment after it; None if it has none and is no segment."""


def remove_old(folder: Path, now_ms: int, keep_ms: int | None, most_bytes: int | None) -> Iterator[Removed]:
    """Remove what is too old or too much, and yield each file that went. Of each log the newest segment
    stays, and so does the newest day of observations. StorageError if a file cannot be removed.
    """
    try:
        files, size = list(_removable(folder)), _size(folder)
        files.sort(key=lambda file: (file.modified_ms, str(file.path)))
        for file in files:
            old = keep_ms is not None and file.modified_ms < now_ms - keep_ms
            if not old and (most_bytes is None or size <= most_bytes):
                break
            file.path.unlink()
            size -= file.bytes
            yield _removed(folder, file, now_ms)
            _drop_empty(file.path.parent, folder)
    except OSError as error:
        raise StorageError(f"cannot remove {error.filename}: {error.strerror}") from None


def _removed(folder: Path, file: _File, now_ms: int) -> Removed:
    first = base_offset(file.path) if file.path.suffix == ".log" else None
    until = None if file.next is None else base_offset(file.next)
    name = file.path.relative_to(folder).as_posix()
    return Removed(now_ms, name, file.bytes, file.modified_ms, first, until)


def _removable(folder: Path) -> Iterator[_File]:
    by_folder: dict[Path, list[Path]] = {}
    for segment in folder.rglob("*.log"):
        by_folder.setdefault(segment.parent, []).append(segment)
    for place, segments in by_folder.items():
        former = any(part.startswith(FORMER) for part in place.relative_to(folder).parts)
        yield from _of(sorted(segments), keep=not former)
    yield from _of(files_of(folder), keep=True)


def _of(files: Sequence[Path], keep: bool) -> Iterator[_File]:
    """Yield the files that may go: all, or all but the newest."""
    for path, after in zip(files, [*files[1:], None], strict=False):
        if after is not None or not keep:
            found = path.stat()
            yield _File(path, found.st_size, int(found.st_mtime * 1000), after)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _drop_empty(folder: Path, root: Path) -> None:
    """Remove the folders of a log that was set aside, once they are empty."""
    while folder != root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
