"""`kgroup record` in a process of its own, beside a broker, and what it has recorded."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from kgroup.admin.recording.lines import OPEN, Incident, Line, Looked
from kgroup.admin.recording.observed import Unreadable, files_of, read
from kgroup.history.sources.folders import LocalFolder
from tests.own_home import environment

from .server import Server
from .waiting import eventually


class Recording:
    """A recorder of one folder; it is killed, or ended as a service manager does it, and goes on."""

    def __init__(self, kafka: Server, folder: Path, home: Path, *more: str, interval: str = "1s") -> None:
        self.folder = folder
        command = [sys.executable, "-m", "kgroup", "record", str(folder), "-b", kafka.bootstrap]
        self._argv = [*command, "--interval", interval, "--every", "200ms", *more]
        self._home = home
        self.told: list[str] = []

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)

    def begin(self) -> None:
        """Start it; what it reports is in `told`."""
        self.process = subprocess.Popen(
            self._argv,
            env=environment(self._home),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                self.told.append(line)

    def end(self, how: signal.Signals) -> int:
        """End it, and return its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(60)
        self._reader.join()
        return code

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Let no file of the recorder grow, as on a disk that is full: a write of it ends in the middle."""
        before = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (1, before[1]))
        yield
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, before)

    def lines(self, *kinds: type) -> list[Line]:
        """What it has observed so far, or the lines of some kinds."""
        found = []
        for line in read(files_of(LocalFolder(self.folder)), *kinds):
            assert not isinstance(line, Unreadable), line.text
            found.append(line)
        return found

    def changes(self) -> list[Incident]:
        """The changes of incidents so far."""
        lines = self.lines(Incident)
        return [each for each in lines if isinstance(each, Incident) and each.event != OPEN]

    def looks(self, count: int = 1) -> None:
        """Wait for so many looks that begin from now on."""
        before = len(self.lines(Looked))
        # One look may have begun already.
        eventually(lambda: len(self.lines(Looked)) > before + count, what="another look")
