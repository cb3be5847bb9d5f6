"""The operator's hook: a command that deploys a wave, run while kgroup watches."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Protocol

from kgroup.admin.migrate.waves import Command
from kgroup.domain import Document
from kgroup.errors import KgroupError

GRACE_S = 10.0
"""The time between SIGTERM and SIGKILL."""
LONGEST = 100_000
"""The bytes of a variable: systems allow little more."""
STDERR = 2


class HookFailed(KgroupError):
    """A hook that could not be started."""


class Running(Protocol):
    """A hook that was started."""

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None as long as it runs."""

    def end(self) -> int:
        """End it and its process group, and return its exit code."""


class Process:
    """A hook as a process with its own process group; its output goes to stderr."""

    def __init__(self, command: Command, document: Document) -> None:
        text = json.dumps(document).encode()
        # A file rather than a pipe: a hook need not read it.
        with tempfile.TemporaryFile() as stdin:
            stdin.write(text)
            stdin.seek(0)
            try:
                # Strings are unchanged, others JSON; a field too long for a variable is on stdin alone.
                variables = {
                    f"KGROUP_HOOK_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
                    for name, value in document.items()
                }
                short = {
                    name: value
                    for name, value in variables.items()
                    if len(value.encode()) <= LONGEST and "\0" not in value
                }
                self._process = subprocess.Popen(
                    command if isinstance(command, str) else list(command),
                    shell=isinstance(command, str),
                    stdin=stdin,
                    stdout=STDERR,
                    stderr=STDERR,
                    env={**os.environ, **short},
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else str(error)
                raise HookFailed(f"it cannot be started: {why}") from None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None as long as it runs."""
        return self._process.poll()

    def end(self) -> int:
        """Send SIGTERM to its process group, SIGKILL if it does not end in time; return its exit code."""
        self._signal()
        try:
            return self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._signal(kill=True)
            return self._process.wait()

    def _signal(self, *, kill: bool = False) -> None:
        if self._process.poll() is None:
            if sys.platform == "win32":
                command = ["taskkill", "/F", "/T", "/PID", str(self._process.pid)]
                with contextlib.suppress(OSError):
                    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self._process.kill()
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL if kill else signal.SIGTERM)


def shown(command: Command) -> str:
    """Return a hook as it is typed into a shell."""
    from kgroup.admin.shell import word

    return command if isinstance(command, str) else " ".join(map(word, command))


def failure_of(code: int) -> str | None:
    """Return why a hook has no exit code of its own; None for one that has."""
    if code >= 0:
        return None
    names: Sequence[signal.Signals] = [known for known in signal.Signals if known == -code]
    return f"ended by {names[0].name if names else f'signal {-code}'}"
