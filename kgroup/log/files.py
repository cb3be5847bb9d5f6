"""The files of a partition's folder, named as Kafka names them, and what an interrupted change leaves.

`<20 digits>.log`, `.index` and `.timeindex` belong to the segment that starts at that offset.
Compaction writes `.cleaned` files, renames them to `.swap` once whole, deletes what they replace, and renames
them into place; indexes can always be rebuilt, so only the `.log` files decide.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from kgroup.errors import StorageError

INDEX_SUFFIXES = (".index", ".timeindex")
CATALOG = "catalog"
"""In a data folder: the cluster's state outside its logs."""
ACLS = "acls.json"
"""In a data folder: the access rules, once an authorizer was switched on."""
CREDENTIALS = "credentials.json"
"""In a data folder: the stored credentials of users; only its owner may read it."""
CLEANED = ".cleaned"
SWAP = ".swap"
START_OFFSET = "log-start-offset"
"""Checkpoint of a log whose start lies inside its first segment."""
KAFKAS_START_OFFSETS = "log-start-offset-checkpoint"
"""Where Kafka keeps the starts of all logs of a folder."""
CLEANED_TO = "cleaner-offset"
"""Checkpoint of how far compaction has come."""


def segment_file(folder: Path, base_offset: int, suffix: str) -> Path:
    return folder / f"{base_offset:020d}{suffix}"


def segment_bases(folder: Path, suffix: str = ".log") -> list[int]:
    """Return base offsets of the folder's segments, ascending."""
    names = (name.removesuffix(suffix) for name in os.listdir(folder) if name.endswith(suffix))
    return sorted(int(name) for name in names if len(name) == 20 and name.isdigit())


def remove_segment(folder: Path, base_offset: int) -> None:
    """Delete a segment, indexes first, so that no crash leaves an index without its log."""
    for suffix in (*INDEX_SUFFIXES, ".log"):
        segment_file(folder, base_offset, suffix).unlink(missing_ok=True)


def partition_folders(folder: Path) -> Iterator[tuple[Path, str, int]]:
    """Yield the folders named like a partition's, with topic and number, by name."""
    for path in sorted(folder.iterdir()):
        name, _, number = path.name.rpartition("-")
        if name and number.isdecimal() and path.is_dir():
            yield path, name, int(number)


def remove_partitions(folder: Path | None, partitions: Iterable[tuple[str, int]]) -> None:
    """Delete the folders of these partitions, named by topic and number, where there are any.

    Raises StorageError for the first that cannot be deleted, when all have been tried.
    """
    if folder is None:
        return
    failed: StorageError | None = None
    for name, number in partitions:
        path = folder / f"{name}-{number}"
        if not os.path.lexists(path):
            continue
        try:
            shutil.rmtree(path)
        except OSError as error:
            failed = failed or StorageError(
                f"{path} cannot be deleted: {error.strerror}",
                hint="delete it by hand: no topic of that name can be created before",
            )
    if failed is not None:
        raise failed


def sync_folder(folder: Path) -> None:
    """Make renames, new and deleted files of the folder durable."""
    if sys.platform == "win32":
        return  # it has no call for this
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_checkpoint(folder: Path, name: str, offset: int) -> None:
    """Store one offset so that a reader finds the old or the new one, never half of it."""
    replace_file(folder / name, f"{offset}\n")


def replace_file(path: Path, content: str | bytes, *, durable: bool = True, private: bool = False) -> None:
    """Replace a small file's content in one step, durable on return unless `durable` is off.

    A `private` one can never be read by others (mode 0600).
    """
    draft = path.with_name(path.name + ".tmp")
    if private:
        draft.unlink(missing_ok=True)
    mode = 0o600 if private else 0o666
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    draft.replace(path)
    if durable:
        sync_folder(path.parent)


def keep_rest(path: Path, position: int, name: str) -> Path:
    """Copy the bytes from `position` on into a new file in the same folder, durable on return.

    The file is `name`, with a number behind it if that is taken.
    """
    taken = sum(known.startswith(name) for known in os.listdir(path.parent))
    kept = path.with_name(f"{name}-{taken + 1}" if taken else name)
    with path.open("rb") as source, kept.open("xb") as target:
        source.seek(position)
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    sync_folder(path.parent)
    return kept


def read_checkpoint(folder: Path, name: str) -> int | None:
    """Return the stored offset, None if there is none; raises StorageError if it is no number."""
    path = folder / name
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    try:
        return int(text)
    except ValueError:
        raise StorageError(
            f"{path} holds {text[:40]!r}, not an offset", hint=f"delete {path}; it is made again when needed"
        ) from None


def adopt_start_offsets(folder: Path) -> None:
    """Give each partition of a copy of a Kafka's folder the start that its log had there.

    Raises StorageError for a file that is not what Kafka writes, or a folder that cannot be written.
    """
    path = folder / KAFKAS_START_OFFSETS
    if not path.exists():
        return
    try:
        version, count, *lines = path.read_text(encoding="utf-8").splitlines()
        entries = [line.split() for line in lines]
        starts = {f"{topic}-{int(partition)}": int(offset) for topic, partition, offset in entries}
        if int(version) != 0 or int(count) != len(starts):
            raise ValueError
        for name, offset in starts.items():
            if (folder / name).is_dir() and not (folder / name / START_OFFSET).exists():
                write_checkpoint(folder / name, START_OFFSET, offset)
    except ValueError:
        raise StorageError(
            f"{path} is not a list of offsets",
            hint="copy it again; without it, records that were deleted come back",
        ) from None
    except OSError as error:
        raise StorageError(f"{path} cannot be taken over: {error.strerror}") from None


def commit_swap(folder: Path, base_offset: int) -> None:
    """Declare the `.cleaned` files of a segment whole: from here on, a crash leads forward."""
    for suffix in (*INDEX_SUFFIXES, ".log"):
        path = segment_file(folder, base_offset, suffix)
        os.replace(f"{path}{CLEANED}", f"{path}{SWAP}")
    sync_folder(folder)


def finish_swap(folder: Path, base_offset: int) -> None:
    """Move a segment's `.swap` files into place; what they replace is gone already."""
    for suffix in (*INDEX_SUFFIXES, ".log"):
        path = segment_file(folder, base_offset, suffix)
        if os.path.exists(f"{path}{SWAP}"):
            os.replace(f"{path}{SWAP}", path)
    sync_folder(folder)
