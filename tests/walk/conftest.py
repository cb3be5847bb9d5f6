"""Run commands against the worlds of world.py, in this process."""

import json
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kgroup.admin.admin import Admin
from kgroup.admin.change.journal import Journal
from kgroup.cli.app import run
from kgroup.cli.env import session
from tests.own_home import move_in
from tests.walk.world import World


@dataclass(frozen=True)
class Told:
    """What a command told: its exit code, what it said, and its JSON document."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def groups(self) -> dict[str, Any]:
        """The groups of the document by id."""
        return {group["group_id"]: group for group in self.document["data"]["groups"]}


Ask = Callable[..., Told]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command line on a world; the document is JSON unless `-o` is among the arguments."""
    move_in(monkeypatch, tmp_path)

    def call(world: World, *argv: str) -> Told:
        @contextmanager
        def open_admin(env: object, **_: object):  # type: ignore[no-untyped-def]
            journal = Journal(tmp_path / "journal.jsonl")
            yield Admin(world.fake, retry=world.fake.retry(), journal=journal)

        monkeypatch.setattr(session, "open_admin", open_admin)
        capsys.readouterr()
        form = () if "-o" in argv else ("-o", "json")
        code = run([*argv, *form, "-b", "fake:9092"])
        captured = capsys.readouterr()
        return Told(code, captured.out, captured.err)

    return call
