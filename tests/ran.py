"""A command line that was run in this process: how it ended, and what it said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from kgroup.cli.app import run


@dataclass(frozen=True)
class Ran:
    """Exit code and output of one command; its JSON document, where it printed one."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        return self.document["data"]

    @property
    def errors(self) -> list[dict[str, Any]]:
        return self.document["errors"]  # type: ignore[no-any-return]

    @property
    def groups(self) -> dict[str, Any]:
        """The groups of the document by id."""
        return {group["group_id"]: group for group in self.data["groups"]}

    def group(self, name: str) -> Any:
        """The one of the document's groups that has this name."""
        (found,) = (group for group in self.data["groups"] if group["group_id"] == name)
        return found


def ran(capsys: pytest.CaptureFixture[str], *argv: str) -> Ran:
    """Run a command line; what was said before is not its own."""
    capsys.readouterr()
    code = run(argv)
    return Ran(code, *capsys.readouterr())
