"""A broker process a test can start, stop, kill and point Kafka's own tools at.

`RealKafka` and `KgroupServer` are the two kinds; tests see only what is here.
"""

from __future__ import annotations

import abc
import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from kgroup.protocol.releases import Release

from . import jvm

TOOLS = "4.3.1"
"""The newest release whose tools are published; they and the clients are of it."""
JUDGE = os.environ.get("KGROUP_INTEROP_KAFKA", TOOLS)
"""The release of the real Kafka."""
OFFLINE_TOOLS = {"kafka-dump-log", "kafka-storage"}


_given: set[int] = set()


def free_port() -> int:
    """A loopback port that nobody listens on at this moment, and that this process was not given before.

    The system may give the same port again once the probe is closed: two listeners of one broker then
    have it, and the broker does not start.
    """
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in _given:
            _given.add(port)
            return port


class Server(abc.ABC):
    """One broker process in a temporary folder of its own.

    After `start` (or entering the context) the broker answers requests at `bootstrap`.
    `restart` keeps data, port and settings. Leaving the context ends the process and removes the folder.
    """

    kind: str
    ready_line: str
    kafka = JUDGE
    """The release that a real Kafka is, and ours plays."""

    def __init__(self, overrides: Mapping[str, object] | None = None, base: Path | None = None) -> None:
        self.overrides = {key: str(value) for key, value in (overrides or {}).items()}
        self._own_base = base is None
        self.base = base or Path(tempfile.mkdtemp(prefix=f"{self.kind}-interop-"))
        self.data_dir = self.base / "data"
        self.log_path = self.base / "broker.log"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    @abc.abstractmethod
    def command(self) -> list[str]:
        """What starts the broker on `data_dir`; called before every start."""

    @abc.abstractmethod
    def prepare(self) -> None:
        """Make `data_dir` ready for the first start."""

    @property
    def minor(self) -> Release:
        """The minor release that it is or plays."""
        return Release.of(self.kafka.rpartition(".")[0])

    @property
    def bootstrap(self) -> str:
        """host:port of the plaintext listener."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        assert self.process is not None, "the broker is not running"
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, timeout: float = 600.0) -> Self:
        """Start the broker and wait until it says that it serves."""
        assert not self.running, "already running"
        if not self.data_dir.exists():
            self.prepare()
        self.log_path.touch()
        seen = self.log_path.stat().st_size
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.base
            )
        self._wait_until_ready(seen, time.monotonic() + timeout)
        return self

    def _wait_until_ready(self, log_from: int, deadline: float) -> None:
        while self.ready_line not in (text := self._log_text(log_from)):
            if not self.running or time.monotonic() > deadline:
                self.kill9()
                raise RuntimeError(f"{self.kind} did not come up; its log ends:\n{text[-4000:]}")
            time.sleep(0.02)

    def _log_text(self, start: int = 0) -> str:
        with self.log_path.open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace")

    def log_text(self) -> str:
        """All that the broker has written to stdout and stderr so far."""
        return self._log_text()

    def stop(self, timeout: float = 30.0) -> int | None:
        """SIGTERM, then SIGKILL after `timeout`; returns the exit status (None when it was not running)."""
        return self._end(signal.SIGTERM, timeout)

    def kill9(self) -> None:
        """SIGKILL: the broker gets no chance to write anything."""
        self._end(signal.SIGKILL, 30.0)

    def _end(self, how: signal.Signals, timeout: float) -> int | None:
        process, self.process = self.process, None
        if process is None:
            return None
        process.send_signal(how)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait(30)

    def restart(self) -> Self:
        """Stop if running, then start again on the same data, port and settings."""
        self.stop()
        return self.start()

    def tool(
        self, name: str, *args: str, stdin: str = "", timeout: float = 90.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own tools; `--bootstrap-server` is added where it is wanted and not given."""
        if name not in OFFLINE_TOOLS and "--bootstrap-server" not in args:
            args = ("--bootstrap-server", self.bootstrap, *args)
        return jvm.tool(name, *args, stdin=stdin, timeout=timeout, check=check)

    def segments(self, topic: str = "__consumer_offsets") -> list[Path]:
        """The topic's non-empty segment files, by partition and base offset."""
        found = (path for path in self.data_dir.rglob(f"{topic}-*/*.log") if path.stat().st_size)
        return sorted(found, key=lambda path: (int(path.parent.name.rpartition("-")[2]), path.name))

    def close(self) -> None:
        """End the process and remove the folder, unless somebody else made it."""
        atexit.unregister(self.close)
        self.stop()
        if self._own_base and not os.environ.get("KGROUP_INTEROP_KEEP"):
            shutil.rmtree(self.base, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()
