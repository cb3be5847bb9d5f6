"""Kafka's own coordinator in a JVM that plays one program after the other."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tests.interop import toolchain

HERE = Path(__file__).resolve().parent
JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-Xshare:auto", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")


class Kafka:
    """The running JVM; to be used in a `with`."""

    def __init__(self) -> None:
        command = [
            "java",
            *JVM,
            "-cp",
            toolchain.java_project(HERE / "java"),
            "kgroup.differential.Differential",
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Kafka:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate(timeout=30)

    def invent(self, seed: int, length: int, *, streams: bool = False) -> bytes:
        """A made-up program and its trace, one JSON object a line; with streams groups if asked to."""
        return self._ask({"seed": seed, "length": length, "streams": streams})

    def play(self, program: dict[str, Any]) -> bytes:
        """The program given and its trace."""
        return self._ask({"program": program})

    def _ask(self, what: dict[str, Any]) -> bytes:
        self._stdin.write(json.dumps(what).encode() + b"\n")
        self._stdin.flush()
        lines = []
        stdout = self._process.stdout
        assert stdout is not None
        while (line := stdout.readline()) != b"\n":
            if not line:
                raise RuntimeError(f"the JVM ended while it played {json.dumps(what)[:200]}")
            lines.append(line)
        return b"".join(lines)

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin
