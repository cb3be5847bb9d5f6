"""A long command shows on a terminal how far it is, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import pytest

SIMULATE = [sys.executable, "-m", "kgroup.cli.app", "simulate", "--members", "4"]


def stderr_of(command: list[str], *, terminal: bool) -> str:
    """Return what a command writes to a stderr that is a terminal, or a pipe."""
    import pty

    main, side = pty.openpty() if terminal else os.pipe()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=side, env=environment)
    os.close(side)
    found = b""
    # A terminal that nobody writes to any more raises where a pipe ends.
    with os.fdopen(main, "rb", buffering=0) as screen, suppress(OSError):
        while some := screen.read(4096):
            found += some
    assert process.wait(300) == 0, found
    return found.decode()


@pytest.mark.parametrize(("more", "terminal"), [([], True), (["-q"], True), ([], False)])
def test_a_simulation_shows_how_many_groups_are_done(more: list[str], terminal: bool) -> None:
    said = stderr_of([*SIMULATE, *more], terminal=terminal)
    assert ("groups" in said and "/" in said) is (terminal and not more)
