"""Reads a segment file in chunks of whole batches: the one loop that feeds a scanner from a file's start."""

from collections.abc import Callable, Iterator

from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.sources.layout import AnyFile
from kgroup.storage.files import RemoteFile

CHUNK_BYTES = 1 << 20
"""Read at once from a disk: what stays in the processor's caches until it is decoded."""
RANGE_BYTES = 16 << 20
"""Read at once from an object store, from a disk when searching for a batch after damage, and where each
chunk has a cost, as one that becomes columns has."""

Progress = Callable[[int], None]
"""Called with the bytes read since the last call."""


def next_read(path: AnyFile, rest: bytes, size: int = 0) -> int:
    """Return how many bytes to read after the `rest` of the chunk before: `size`, if it is given."""
    if size:
        return size
    looked_for = len(rest) > CHUNK_BYTES // 2
    return RANGE_BYTES if looked_for or isinstance(path, RemoteFile) else CHUNK_BYTES


def file_chunks(
    path: AnyFile,
    scanner: Scanner,
    progress: Progress | None = None,
    size: int = 0,
    end: int | None = None,
) -> Iterator[tuple[bytes, Iterator[BatchHeader]]]:
    """Yield chunks in order, each with its batches, to be read before the next chunk.

    They begin where the scanner is, have `size` bytes, or the best size for 0, and none reaches past `end`.
    OSError if the file cannot be read, StorageError if it is an object that cannot.
    """
    with path.open("rb") as file:
        rest = b""
        at = scanner.position
        if at:
            file.seek(at)
        while True:
            length = next_read(path, rest, size)
            read = file.read(length if end is None else min(length, end - at))
            at += len(read)
            final = len(read) < length or at == end
            chunk = rest + read if rest else read
            if chunk:
                yield chunk, scanner.headers(chunk, final)
            if progress is not None:
                progress(len(read))
            if final:
                return
            rest = chunk[scanner.consumed :]
