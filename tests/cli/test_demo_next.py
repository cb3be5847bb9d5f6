"""The commands that the demo prints at its end run as they stand, on an account that has nothing yet."""

import shlex
import sys
from pathlib import Path

import pytest

from kgroup.cli.commands.demo import NEXT, program
from tests.cli.conftest import Kgroup
from tests.own_home import move_in


def test_each_line_runs_from_a_new_account(
    kgroup: Kgroup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_in(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    lines = [line for line in NEXT.format(kgroup="kgroup").splitlines() if not line.startswith("#")]
    *ran, served = [shlex.split(line) for line in lines]
    assert served == ["kgroup", "serve", "--local", "./data"]  # runs until Ctrl-C: tests/cli/test_process.py
    for _, *argv in ran:
        told = kgroup(*argv)
        assert told.code == 0, (argv, told.err)


@pytest.mark.parametrize(
    ("typed", "on_path", "told"),
    [
        (".venv/bin/kgroup", False, ".venv/bin/kgroup"),
        (".venv/bin/kgroup", True, "kgroup"),
        ("kgroup/__main__.py", False, f"{sys.executable} -m kgroup"),
    ],
)
def test_the_program_is_named_as_the_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, on_path: bool, told: str
) -> None:
    program_file = tmp_path / ".venv/bin/kgroup"
    program_file.parent.mkdir(parents=True)
    program_file.touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(program_file.parent) if on_path else str(tmp_path))
    monkeypatch.setattr(sys, "argv", [typed])
    assert program() == told
