"""The commands that the demo prints at its end run as they stand, on an account that has nothing yet.

And the tour of a share group (KIP-932); the other one runs where wheels are tested.
"""

import re
import shlex
import sys
from pathlib import Path

import confluent_kafka
import pytest

from kgroup.cli.commands.demo import BROKEN, JOBS, LIMIT, MALFORMED, NEXT, program
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


def test_the_tour_of_a_share_group_ends_with_what_was_given_up(
    kgroup: Kgroup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_in(monkeypatch, tmp_path)
    told = kgroup("demo", "--share")
    assert told.code == 0, told.err
    given_up = re.findall(
        r"records-archived +jobs-0: 1 record given up after (\d).*: (\d+)$", told.out, re.MULTILINE
    )
    assert sorted(given_up) == sorted([("1", f"{MALFORMED}"), (f"{LIMIT}", f"{BROKEN}")])
    done = re.findall(r"records-acknowledged +jobs-0: (\d+) ", told.out)
    accepted = re.search(r"# Accepted: worker-1 (\d+) and worker-2 (\d+)\.", told.out)
    assert accepted is not None
    assert sum(map(int, done)) == sum(map(int, accepted.groups())) == JOBS - 2


def test_a_client_without_share_consumers_is_named(
    kgroup: Kgroup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_in(monkeypatch, tmp_path)
    monkeypatch.delattr(confluent_kafka, "ShareConsumer")
    told = kgroup("demo", "--share")
    assert told.code == 2
    assert "has no share consumer" in told.err and "pip install 'confluent-kafka>=" in told.err
