"""Instructions that a broker executes, counted by valgrind: the same on a quiet machine and on a busy one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.interop.kgroup_server import KgroupServer

_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
START_S = 900.0
"""A broker under valgrind takes fifty times as long to start."""


class Counted:
    """Of one of our brokers that runs under callgrind, what it executed since it was last asked."""

    def __init__(self, server: KgroupServer) -> None:
        self._server = server
        self._told = 0

    def since(self) -> int:
        """Instructions, in user space, since this was last called."""
        asked = ["callgrind_control", "--dump", str(self._server.pid)]
        subprocess.run(asked, check=True, capture_output=True, timeout=120)
        self._told += 1
        written = Path(f"{dump_file(self._server)}.{self._told}").read_text()
        found = _TOTAL.search(written)
        assert found, "callgrind wrote no total"
        return int(found[1])


def dump_file(server: KgroupServer) -> Path:
    """What callgrind's dumps of this broker begin with."""
    return server.base / "callgrind.out"


def under_valgrind(server: KgroupServer, command: list[str]) -> list[str]:
    """The command that runs the broker under callgrind."""
    options = ["--tool=callgrind", f"--callgrind-out-file={dump_file(server)}", "--dump-line=no"]
    return ["valgrind", "-q", *options, *command]
