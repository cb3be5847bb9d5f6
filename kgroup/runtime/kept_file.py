"""A file of entries that belongs to one cluster: JSON with a checksum, replaced as a whole."""

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kgroup.domain import Document
from kgroup.errors import StorageError
from kgroup.log.files import replace_file

FORMAT = 1
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class KeptFile:
    """The file at `path`, with its entries under the name `entries`.

    A doubtful file is refused rather than read in part: for a damaged file, or one of another cluster,
    `not_it` says what it is not, and `hint` what to do.
    """

    path: Path
    cluster_id: str
    entries: str
    not_it: str
    hint: str

    def read(self, entry: Callable[[dict[str, Any]], E]) -> list[E]:
        """Return every entry, made by `entry`; StorageError if the file cannot be read or trusted."""
        try:
            stored = json.loads(self.path.read_bytes())
            if stored["format"] != FORMAT:
                raise ValueError(f"its format is {stored['format']}, this kgroup reads {FORMAT}")
            if stored.pop("checksum") != _checksum(stored):
                raise ValueError("its checksum is wrong")
            if stored["cluster_id"] != self.cluster_id:
                raise ValueError(f"it belongs to cluster {stored['cluster_id']}, not {self.cluster_id}")
            return [entry(row) for row in stored[self.entries]]
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(f"{self.path} {self.not_it}: {error}", hint=self.hint) from None

    def write(self, entries: list[Document], *, private: bool = False) -> None:
        """Replace all entries by these, with `private` for the owner alone; StorageError."""
        content: Document = {"format": FORMAT, "cluster_id": self.cluster_id, self.entries: entries}
        content["checksum"] = _checksum(content)
        try:
            replace_file(self.path, json.dumps(content, indent=1) + "\n", private=private)
        except OSError as error:
            raise StorageError(f"cannot write {self.path}: {error.strerror}") from None


def _checksum(content: Document) -> int:
    return zlib.crc32(json.dumps(content).encode())
