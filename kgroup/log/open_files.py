"""Descriptors: how many a process may have, and which logs keep theirs.

Connections and logs share what the system allows (`ulimit -n`). A few stay free for what is opened for an
instant: sealed segments, manifests, the catalog. Of the rest, logs have at most half.
"""

from collections import OrderedDict
from typing import Protocol

from kgroup.portable import file_limit

SPARE_FILES = 64


class Closable(Protocol):
    """A file that can be closed, and is opened again when it is used."""

    def close(self) -> None: ...

    def reopen(self) -> int:
        """Open it again; return its descriptor. Raise OSError."""
        ...


class OpenFiles:
    """The files of logs that are open: above `most_files`, the one used longest ago is closed."""

    def __init__(self) -> None:
        self._open: OrderedDict[Closable, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def use(self, file: Closable) -> None:
        """Have a file open and count it as the one used last; OSError if it cannot be opened."""
        if file in self._open:
            self._open.move_to_end(file)
            return
        while len(self._open) >= most_files():
            self._close_oldest()
        # Connections may have taken all that is theirs: then logs make do with the numbers kept for them.
        while file.reopen() >= file_limit() - spare_files() // 2 and self._open:
            self._close_oldest()
            file.close()
        self._open[file] = None

    def _close_oldest(self) -> None:
        oldest, _ = self._open.popitem(last=False)
        oldest.close()

    def forget(self, file: Closable) -> None:
        """Note that a file was closed for good."""
        self._open.pop(file, None)


def spare_files() -> int:
    """Return the last descriptors, not for connections: logs may keep half, half stay free."""
    return min(SPARE_FILES, file_limit() // 4)


def most_files() -> int:
    """Return how many files of logs may stay open."""
    return max((file_limit() - spare_files()) // 2, 1)
