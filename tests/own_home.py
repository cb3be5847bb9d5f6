"""A home for kgroup's files that is the test's own: nothing of the developer's is read or written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PLACES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def environment(folder: Path) -> dict[str, str]:
    """The environment of a process that keeps its files in `folder` and is given no setting."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KGROUP_")}
    return kept | dict.fromkeys(PLACES, str(folder))


def move_in(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The same for commands that run in this process."""
    for name in os.environ:
        if name.startswith("KGROUP_"):
            monkeypatch.delenv(name)
    for name in PLACES[1:]:
        monkeypatch.setenv(name, str(folder))
