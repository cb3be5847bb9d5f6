"""The consumers of a soak: a supervised process each, in librdkafka or Java, in groups of every kind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LIBRDKAFKA, JAVA = "librdkafka", "Java"
GROUPS = (("classic", False), ("classic", True), ("consumer", False), ("consumer", True))
MEMBERS = {LIBRDKAFKA: 2, JAVA: 1}
"""Of each group: both clients share it."""
SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx96m")


def commands() -> tuple[dict[str, list[str]], str | None]:
    """What starts a consumer of each client there is; and why there is no Java, if there is none."""
    from tests.interop import toolchain
    from tests.interop.jvm import java

    found = {LIBRDKAFKA: [sys.executable, "-m", "tests.soak.consumer"]}
    if absent := toolchain.missing("java", "javac", "mvn"):
        return found, f"no Java clients: {', '.join(absent)} not on PATH"
    classpath = toolchain.driver_classpath()
    return found | {JAVA: java("kgroup.interop.SoakConsumer", jvm=SMALL_JVM, classpath=classpath)}, None


@dataclass(slots=True)
class Slot:
    """A place in a group; its process may die and be started again with `command`."""

    client: str
    command: list[str]
    group: str
    protocol: str
    instance: str
    journal: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, bootstrap: str, topic: str) -> None:
        """Start the consumer, unless it runs."""
        if self.running:
            return
        self.starts += 1
        arguments = [bootstrap, self.group, self.protocol, self.instance, str(self.journal), topic]
        with self.journal.with_suffix(".log").open("ab") as log:
            self.process = subprocess.Popen([*self.command, *arguments], stdout=log, stderr=log)

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal, if it runs."""
        if self.process is not None and self.running:
            self.process.send_signal(number)

    def acknowledged(self) -> list[tuple[int, int]]:
        """Partition and offset of every commit it was told of; a line cut off by a kill is left out."""
        if not self.journal.exists():
            return []
        told = []
        for line in self.journal.read_text(encoding="utf-8").splitlines():
            try:
                _, partition, offset = json.loads(line)
            except ValueError:
                continue
            told.append((partition, offset))
        return told


def slots_for(commands: dict[str, list[str]], folder: Path) -> list[Slot]:
    """The places of all groups: static and dynamic ones of both protocols, both clients in each."""
    return [
        Slot(
            client=client,
            command=command,
            group=group,
            protocol=protocol,
            instance=f"{group}-{client}-{number}" if static else "",
            journal=folder / f"{group}-{client}-{number}.jsonl",
        )
        for protocol, static in GROUPS
        for group in (f"{protocol}-{'static' if static else 'dynamic'}",)
        for client, command in commands.items()
        for number in range(MEMBERS[client])
    ]
