"""One release of Kafka, read from its jars."""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from functools import cached_property
from pathlib import Path

from tests.interop.toolchain import release_jars

from .wire import Spec, specs

HERE = Path(__file__).resolve().parent


class Release:
    """What a release declares; `version` as 4.4.0."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.jars = release_jars(version)

    @cached_property
    def requests(self) -> dict[int, tuple[Spec, Spec]]:
        """Request and response of each API that clients may send, by key."""
        found = specs(self.jars, "kafka-clients")
        return {
            spec["apiKey"]: (spec, found[name.removesuffix("Request") + "Response"])
            for name, spec in found.items()
            if spec["type"] == "request" and "broker" in spec.get("listeners", ())
        }

    @cached_property
    def records(self) -> dict[str, Spec]:
        """Keys and values of `__consumer_offsets` and `__share_group_state`, by name."""
        return {
            name: spec
            for jar in ("kafka-group-coordinator", "kafka-share-coordinator")
            for name, spec in specs(self.jars, jar).items()
            if spec["type"] in ("coordinator-key", "coordinator-value")
        }

    @cached_property
    def declared(self) -> dict[str, dict[str, str]]:
        """Error, feature, broker setting and group setting: the value of each name (`Declared.java`)."""
        command = ["java", "-cp", f"{self.jars}{os.sep}*", str(HERE / "Declared.java")]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for line in printed.splitlines():
            kind, name, value = line.split("\t")
            found[kind][name] = value
        return found
