"""The file that shows programs in any language where the brokers serve."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kgroup.errors import ConfigError


class ReadyFile:
    """A file of JSON that exists while clients may connect; one left over from before is removed at once.

    It has `bootstrap`, the addresses of all brokers, behind "PROTOCOL://" if a listener is secured, and
    `pid`, and what else is written. Only its owner may read it. ConfigError if it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.unlink(missing_ok=True)
            path.parent.stat()
        except OSError as error:
            raise self._refusal(error) from None

    def write(self, addresses: Sequence[str], more: Mapping[str, str]) -> None:
        """Write the file, whole."""
        content = {"bootstrap": ",".join(addresses), "pid": os.getpid(), **more}
        unfinished: Path | None = None
        try:
            # An unpredictable name, never opened through a link: others may write to the folder.
            made, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
            unfinished = Path(name)
            with open(made, "w", encoding="utf-8") as file:
                file.write(json.dumps(content) + "\n")
            unfinished.replace(self.path)
        except OSError as error:
            if unfinished is not None:
                unfinished.unlink(missing_ok=True)
            raise self._refusal(error) from None

    def remove(self) -> None:
        """Remove the file; safe to repeat."""
        self.path.unlink(missing_ok=True)

    def _refusal(self, error: OSError) -> ConfigError:
        what = f"--ready-file {self.path} cannot be written: {error.strerror}"
        return ConfigError(what, "name a file in a folder that is there")
