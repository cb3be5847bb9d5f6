"""A command line that was run in this process: how it ended, and what it said."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.tree import run
from kgroup.cli.schemas import schema_for


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


def document(told: Ran, command: str, code: int = ExitCode.OK) -> Any:
    """The data of a command's document, which has the command's schema and the exit code expected."""
    assert told.code == code, told.err
    jsonschema.validate(told.document, schema_for(command))
    assert told.document["exit_code"] == code
    return told.data


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, answers: str) -> None:
    """Have stdin and stderr be a terminal, at which somebody types `answers`."""
    monkeypatch.setattr(sys, "stdin", _Terminal(answers))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)


def ran(capsys: pytest.CaptureFixture[str], *argv: str) -> Ran:
    """Run a command line; what was said before is not its own."""
    capsys.readouterr()
    code = run(argv)
    return Ran(code, *capsys.readouterr())
