"""Kafka Connect workers in distributed mode, each a process with a REST address of its own."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from ..jvm import LIGHT_JVM, java
from ..server import free_port
from ..waiting import eventually
from . import builds

TEXT = "org.apache.kafka.connect.storage.StringConverter"
SETTINGS = {
    "key.converter": TEXT,
    "value.converter": TEXT,
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "2",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "offset.flush.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "2000",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "plugin.discovery": "service_load",
    "consumer.auto.offset.reset": "earliest",
}


class Workers:
    """The workers of one Connect cluster, named w0, w1, …"""

    def __init__(
        self, bootstrap: str, group: str, protocol: str, folder: Path, version: str = builds.APPS
    ) -> None:
        self.folder = folder
        self.classpath = builds.apps(version)
        self.settings = {
            **SETTINGS,
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "connect.protocol": protocol,
            **{f"{each}.storage.topic": f"{group}-{each}" for each in ("config", "offset", "status")},
        }
        self.addresses: dict[str, str] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start a worker; one that ran before comes back at its old address."""
        if name not in self.addresses:
            self.addresses[name] = f"127.0.0.1:{free_port()}"
        own = {**self.settings, "client.id": name, "listeners": f"http://{self.addresses[name]}"}
        file = self.folder / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in own.items()))
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        command = java(main, str(file), jvm=(*LIGHT_JVM, "-Xmx256m"), classpath=self.classpath)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> None:
        """Stop a worker as a deployment does: it leaves the group.

        Its REST server alone may wait 60 s for a request that is under way.
        """
        self.processes[name].terminate()
        self.processes[name].wait(300)
        del self.processes[name]

    def close(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def ask(self, path: str, body: object = None) -> Any:
        """What a living worker answers; AssertionError while none does."""
        name = next(iter(self.processes))
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.addresses[name]}{path}", data, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except (OSError, urllib.error.HTTPError) as failed:
            raise AssertionError(f"{name} does not answer {path}: {failed}") from failed

    def create(self, name: str, **config: str) -> None:
        """Make a connector; asked again while the workers rebalance."""
        wanted = {"name": name, "config": config}
        eventually(lambda: self.ask("/connectors", wanted), 180, f"connector {name}")

    def shares_all(self, connectors: list[str], units: int) -> None:
        """Wait until so many connectors and tasks run, and each living worker has some of them."""
        alive = {self.addresses[name] for name in self.processes}

        def settled() -> bool:
            found = [self.ask(f"/connectors/{name}/status") for name in connectors]
            running = [unit for each in found for unit in (each["connector"], *each["tasks"])]
            return (
                len(running) == units
                and all(unit["state"] == "RUNNING" for unit in running)
                and {unit["worker_id"] for unit in running} == alive
            )

        eventually(settled, what=f"{units} connectors and tasks run", every=0.3)

    def runs_nowhere(self, connectors: list[str]) -> bool:
        """Whether one of these runs on no living worker."""
        alive = {self.addresses[name] for name in self.processes}
        found = [self.ask(f"/connectors/{name}/status")["connector"] for name in connectors]
        return any(each["state"] != "RUNNING" or each["worker_id"] not in alive for each in found)

    def shares(self, connectors: list[str]) -> list[tuple[int, int]]:
        """Connectors and tasks of each living worker once all run on these, as evenly as can be."""
        alive = {self.addresses[name] for name in self.processes}

        def settled() -> list[tuple[int, int]]:
            held: dict[str, list[int]] = {address: [0, 0] for address in alive}
            for name in connectors:
                status = self.ask(f"/connectors/{name}/status")
                assert len(status["tasks"]) == 1, status
                for kind, unit in enumerate((status["connector"], status["tasks"][0])):
                    assert unit["state"] == "RUNNING" and unit["worker_id"] in alive, status
                    held[unit["worker_id"]][kind] += 1
            totals = [sum(each) for each in held.values()]
            assert max(totals) - min(totals) <= 1, held
            return sorted((connector, task) for connector, task in held.values())

        return eventually(settled, what="all connectors run", every=0.3)
