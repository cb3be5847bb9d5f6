"""A segment file → chunks of whole batches: the one loop that feeds a scanner from the start of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.sources.layout import AnyFile

CHUNK_BYTES = 16 << 20

Progress = Callable[[int], None]
"""Called with the bytes read since the last call."""


def file_chunks(
    path: AnyFile, scanner: Scanner, progress: Progress | None = None, size: int = CHUNK_BYTES
) -> Iterator[tuple[bytes, Iterator[BatchHeader]]]:
    """Chunks of about `size` bytes in order, each with its batches, to be read before the next.

    OSError if the file cannot be read, StorageError if it is an object that cannot.
    """
    with path.open("rb") as file:
        rest = b""
        while True:
            read = file.read(size)
            final = len(read) < size
            chunk = rest + read if rest else read
            if chunk:
                yield chunk, scanner.headers(chunk, final)
            if progress is not None:
                progress(len(read))
            if final:
                return
            rest = chunk[scanner.consumed :]
