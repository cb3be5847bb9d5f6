"""kgroup's own broker as a subprocess, behind the interface of `RealKafka`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from .kafka import DEFAULTS
from .server import Server

EXECUTABLE = Path(sys.executable).with_name("kgroup")
# what only a replicated Kafka, or one with a controller, has a setting for
NOT_OURS = {
    "auto.create.topics.enable",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
}


class KgroupServer(Server):
    """`kgroup serve --local` with one broker on loopback; settings go in with `--set`."""

    kind = "kgroup"
    ready_line = "kgroup: serving on"

    def __init__(self, overrides: Mapping[str, object] | None = None, base: Path | None = None) -> None:
        super().__init__({**DEFAULTS, **(overrides or {})}, base)

    def command(self) -> list[str]:
        settings = (f"{key}={value}" for key, value in self.overrides.items() if key not in NOT_OURS)
        return [
            str(EXECUTABLE),
            "serve",
            "--local",
            str(self.data_dir),
            "--port",
            str(self.port),
            "--kafka",
            str(self.minor),
            "--brokers",
            "1",
            "--partitions",
            self.overrides["offsets.topic.num.partitions"],
            *(part for setting in settings for part in ("--set", setting)),
        ]

    def prepare(self) -> None:
        """Nothing to format: `serve` makes the folder."""
