"""The ready file: whole, for its owner alone, and never written through another's link."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from kgroup.broker.ready_file import ReadyFile
from kgroup.errors import ConfigError


def test_it_is_private_and_leaves_nothing(tmp_path: Path) -> None:
    ready = ReadyFile(tmp_path / "at.json")
    ready.write(["127.0.0.1:1", "127.0.0.1:2"], {"token": "secret"})
    assert stat.S_IMODE(ready.path.stat().st_mode) == 0o600
    content = json.loads(ready.path.read_text())
    assert content == {"bootstrap": "127.0.0.1:1,127.0.0.1:2", "pid": os.getpid(), "token": "secret"}
    ready.remove()
    ready.remove()
    assert not any(tmp_path.iterdir())


def test_no_planted_link_leads_the_token_elsewhere(tmp_path: Path) -> None:
    """Others may write to the folder, and plant links at every name that can be predicted."""
    others = tmp_path / "others"
    others.write_text("of others")
    folder = tmp_path / "shared"
    folder.mkdir()
    path = folder / "at.json"
    for name in ("at.json", f".at.json.{os.getpid()}", "at.json.tmp", f"at.json.{os.getpid()}", ".at.json"):
        (folder / name).symlink_to(others)
    ReadyFile(path).write([], {"token": "secret"})
    assert others.read_text() == "of others"
    assert not path.is_symlink() and json.loads(path.read_text())["token"] == "secret"


def test_a_write_that_fails_names_the_file_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ready = ReadyFile(tmp_path / "at.json")
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ConfigError, match="at.json cannot be written: No space left") as told:
        ready.write([], {})
    assert told.value.hint and not any(tmp_path.iterdir())
