"""`replay-log --verify` against a running broker: the log tells what the broker says, of every group."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from .server import Server
from .waiting import eventually

SESSIONS_END_S = 60
"""Members that a test killed or left behind expire one after the other; until then groups go on changing."""


def kgroup(*arguments: str) -> tuple[int, Any]:
    """Exit code and data of a command."""
    command = [sys.executable, "-m", "kgroup.cli.app", *arguments, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout).get("data")


def verified_groups(server: Server) -> set[str]:
    """The groups compared, which are all that the broker lists; AssertionError with the differences."""
    where = ("-b", server.bootstrap)

    def listed() -> set[str]:
        rows = kgroup("list", *where)[1]["groups"]
        return {row["group_id"] for row in rows}

    def compared() -> tuple[set[str]]:
        code, data = kgroup("replay-log", "--verify", *where)
        differing = [row for row in data["groups"] if row["verdict"] != "same"]
        assert (code, differing) == (0, [])
        return ({row["group_id"] for row in data["groups"]},)

    if not listed():
        return set()  # nor is there a topic to read
    (groups,) = eventually(compared, SESSIONS_END_S, every=2)
    assert listed() == groups
    return groups
