"""A data folder and its owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kgroup.log.directory import DataDirectory


class Claim(NamedTuple):
    """A folder to lock, and the command that others see if they find it in use."""

    folder: Path
    owner: str = "kgroup"

    def lock(self, node_id: int | None = None) -> DataDirectory:
        """Return the folder, locked and identified; StorageError if another process or broker owns it."""
        from kgroup.log.directory import DataDirectory

        return DataDirectory(self.folder, command=self.owner, node_id=node_id)
