"""Run commands against the worlds of world.py, in this process."""

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgroup.admin.admin import Admin
from kgroup.admin.change.journal import Journal
from kgroup.cli.env import session
from tests.own_home import move_in
from tests.ran import Ran, ran
from tests.walk.world import World

Ask = Callable[..., Ran]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command line on a world; the document is JSON unless `-o` is among the arguments."""
    move_in(monkeypatch, tmp_path)

    def call(world: World, *argv: str) -> Ran:
        @contextmanager
        def open_admin(env: object, **_: object):  # type: ignore[no-untyped-def]
            journal = Journal(tmp_path / "journal.jsonl")
            yield Admin(world.fake, retry=world.fake.retry(), journal=journal)

        monkeypatch.setattr(session, "open_admin", open_admin)
        form = () if "-o" in argv else ("-o", "json")
        return ran(capsys, *argv, *form, "-b", "fake:9092")

    return call
