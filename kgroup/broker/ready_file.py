"""The file that shows programs in any language where the brokers serve."""

from __future__ import annotations

import json
import os
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
        unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            unfinished.touch(0o600)
            unfinished.write_text(json.dumps(content) + "\n", encoding="utf-8")
            os.replace(unfinished, self.path)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise self._refusal(error) from None

    def remove(self) -> None:
        """Remove the file; safe to repeat."""
        self.path.unlink(missing_ok=True)

    def _refusal(self, error: OSError) -> ConfigError:
        what = f"--ready-file {self.path} cannot be written: {error.strerror}"
        return ConfigError(what, "name a file in a folder that is there")
