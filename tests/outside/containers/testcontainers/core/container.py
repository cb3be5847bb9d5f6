"""A broker on loopback in the place of a container, with the settings that the container was given."""

from __future__ import annotations

import os
import subprocess
from typing import IO, Any

PREFIX = "KAFKA_"
OF_THE_CONTAINER = {"PROCESS_ROLES", "LISTENERS", "ADVERTISED_LISTENERS"}
"""Settings of where it is, with all of these beginnings; the rest is passed on."""


class DockerContainer:
    def __init__(self, image: str, hostname: str | None = None) -> None:
        if "kafka" not in image or "registry" in image:
            raise RuntimeError(f"there is no container of {image} here")
        self._settings = {"auto.create.topics.enable": "true"}
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def with_env(self, name: str, value: str) -> DockerContainer:
        told = name.removeprefix(PREFIX)
        where = told in OF_THE_CONTAINER or told.startswith(("CONTROLLER_", "LISTENER_"))
        if name.startswith(PREFIX) and not where:
            self._settings[told.lower().replace("_", ".")] = value
        return self

    def with_bind_ports(self, port: int, _: int) -> DockerContainer:
        self._port = port
        return self

    def with_network(self, _: Any) -> DockerContainer:
        return self

    def start(self) -> DockerContainer:
        settings = [f"{name}={value}" for name, value in self._settings.items()]
        python, kind, root = (os.environ[f"OUTSIDE_{what}"] for what in ("PYTHON", "SERVER", "ROOT"))
        command = [python, "-m", "tests.outside.serving", kind, str(self._port), *settings]
        environment = {**os.environ, "PYTHONPATH": root}
        self._process = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE)
        line = _out(self._process).readline()
        if not line:
            raise RuntimeError(f"{kind} did not start: see above")
        return self

    def get_logs(self) -> tuple[bytes, bytes]:
        return b"Kafka Server started", b""

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            _out(self._process).close()


def _out(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout
