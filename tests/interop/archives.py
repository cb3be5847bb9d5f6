"""What a broker has loaded, kept as its JVM has it in memory: the next one starts with half the work.

Java's class data sharing: a broker runs once, and writes its classes when it ends.
"""

from __future__ import annotations

import os
from pathlib import Path

from . import jvm, toolchain
from .kafka import RealKafka
from .server import TOOLS

RELEASES = (TOOLS, "4.4.0")


class _Keeping(RealKafka):
    """A broker that writes what it has loaded when it ends."""

    to: Path

    def command(self) -> list[str]:
        program, *arguments = super().command()
        return [program, f"-XX:ArchiveClassesAtExit={self.to}", *arguments]


def keep_classes() -> None:
    """Write the archives that are not there, or are of other jars."""
    for kafka in RELEASES:
        jars = toolchain.kafka_jars() if kafka == TOOLS else toolchain.release_jars(kafka)
        kept = jvm.archive(jars)
        if kept.exists() and kept.stat().st_mtime > jars.with_name(f"{jars.name}.stamp").stat().st_mtime:
            continue
        kept.unlink(missing_ok=True)
        broker = _Keeping()
        broker.kafka, broker.to = kafka, kept.with_suffix(f".{os.getpid()}")
        with broker:
            broker.stop(300)
        broker.to.replace(kept)
