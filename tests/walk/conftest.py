"""Run commands against the worlds of world.py, in this process."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import Journal
from kgroup.cli.env import invocation, session
from kgroup.cli.env.invocation import Env
from kgroup.client.retry import Limit, Retry
from kgroup.protocol.codec import Message
from tests.own_home import move_in
from tests.ran import Ran, ran
from tests.walk.world import World

Ask = Callable[..., Ran]
CHANGING = frozenset({8, 13, 19, 20, 21, 23, 28, 30, 31, 33, 37, 42, 44, 47, 51, 57, 91, 92})
"""The APIs by which an operator changes something, by key."""


def _changes(message: Message) -> bool:
    return message.API in CHANGING and not getattr(message, "validate_only", False)


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command line on a world; the document is JSON unless `-o` is among the arguments."""
    move_in(monkeypatch, tmp_path)

    def call(world: World, *argv: str) -> Ran:
        def admin(*_: object, retry: Retry) -> ClusterView:
            journal = Journal(tmp_path / "journal.jsonl")
            own = replace(world.fake.retry(), timeout_s=retry.timeout_s, limit=retry.limit)
            return ClusterView(world.fake, retry=own, journal=journal)

        def transport(env: Env, makes: bool) -> SimpleNamespace:
            world.fake.limit = env.limit
            return SimpleNamespace(close=lambda: None)

        monkeypatch.setattr(session, "_transport", transport)
        monkeypatch.setattr(invocation, "Limit", lambda: Limit(clock=world.fake.time))
        monkeypatch.setattr("kgroup.admin.discovery.ClusterView", admin)
        form = () if "-o" in argv else ("-o", "json")
        sent, recorded = len(world.fake.sent), len(Journal(tmp_path / "journal.jsonl").entries())
        told = ran(capsys, *argv, *form, "-b", "fake:9092")
        changes = [message for _, message, _ in world.fake.sent[sent:] if _changes(message)]
        entries = Journal(tmp_path / "journal.jsonl").entries()[recorded:]
        assert not changes or (entries and all(entry.results is not None for entry in entries))
        return told

    return call
