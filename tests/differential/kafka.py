"""Kafka's own classes in a JVM: its coordinator, its task assignor, its checks of settings."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.interop import toolchain

HERE = Path(__file__).resolve().parent
OLDEST, NEWEST = "4.3.1", "4.4.0"
"""The Kafkas whose classes these programs compile with."""
JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-Xshare:auto", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")


class Jvm:
    """A running program of a Java project that answers lines with lines; to be used in a `with`."""

    def __init__(self, program: str, kafka: str | None = OLDEST, project: Path = HERE / "java") -> None:
        path = toolchain.java_project(project, kafka)
        command = ["java", *JVM, "-cp", path, program]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate(timeout=30)

    def ask(self, what: dict[str, Any]) -> dict[str, Any]:
        """The JVM's answer, which is one line."""
        self._send(what)
        answer: dict[str, Any] = json.loads(self._line(what))
        return answer

    def _send(self, what: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        self._process.stdin.flush()

    def _line(self, what: dict[str, Any]) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended at {json.dumps(what)[:300]}")
        return line


class Kafka(Jvm):
    """Kafka's coordinator, which plays programs."""

    def __init__(self, version: str = OLDEST) -> None:
        super().__init__("kgroup.differential.Differential", version)

    def invent(self, seed: int, length: int, *, streams: bool = False) -> bytes:
        """A made-up program and its trace, one JSON object a line; with streams groups if asked to."""
        return self._ask({"seed": seed, "length": length, "streams": streams})

    def play(self, program: dict[str, Any]) -> bytes:
        """The program given and its trace."""
        return self._ask({"program": program})

    def _ask(self, what: dict[str, Any]) -> bytes:
        self._send(what)
        lines = []
        while (line := self._line(what)) != b"\n":
            lines.append(line)
        return b"".join(lines)
