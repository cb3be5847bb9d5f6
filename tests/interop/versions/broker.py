"""A Kafka of one version with its own tools; on ZooKeeper up to 3.2, on its own quorum after.

`python -m tests.interop.versions.broker [VERSION ...]` fetches those versions, or all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.kafka_release.releases import LAST

from .. import jvm, server
from ..foreign import builds
from ..jvm import LIGHT_JVM
from ..kafka import DEFAULTS, RealKafka
from ..server import free_port
from ..toolchain import built, copy_jars, locked, missing, release_jars

HERE = Path(__file__).resolve().parent
RELEASES = {minor: LAST[minor] for minor in ("2.3", "2.4", "2.8", "3.3", "3.9", "4.0", "4.3", "4.4")}
"""The release that stands for each version of the table."""
UNTOOLED = LAST["4.4"]
"""A release whose tools are not published: those of 4.3.1 say what it is like."""
TOOLS = {
    "kafka-consumer-groups": (
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "kafka.admin.ConsumerGroupCommand",
    ),
    "kafka-dump-log": ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"),
    "kafka-storage": ("kafka.tools.StorageTool",),
}
"""Main classes of the tools, the newest first."""


def jars(release: str) -> Path:
    """Folder with the broker, tools and clients of a release and all they need at run time (from Maven)."""
    if release == UNTOOLED:
        return release_jars(release)
    pom = HERE / "broker.xml"
    scala, profile = ("2.12" if release < "2.4" else "2.13"), [] if release >= "2.8" else ["-Pzookeeper"]
    which = [f"-Dkafka.version={release}", f"-Dscala.version={scala}", *profile]
    with locked():
        return built(f"kafka-{release}", [pom], lambda to: copy_jars(pom, to, *which))


def java(release: str, main: str, *args: str, level: str = "warn") -> list[str]:
    """The command line of a main class with the jars of a release."""
    options = (f"-Dorg.slf4j.simpleLogger.defaultLogLevel={level}", "-Dzookeeper.admin.enableServer=false")
    light = (*LIGHT_JVM, "-Xmx384m", *options)
    return jvm.java(main, *args, jvm=light, classpath=f"{jars(release)}{os.sep}*")


def _files(jar: Path) -> list[str]:
    with zipfile.ZipFile(jar) as archive:
        return archive.namelist()


def _main(release: str, tool: str) -> str:
    wanted = {f"{main.replace('.', '/')}.class": main for main in TOOLS[tool]}
    found = {path for jar in jars(release).glob("kafka*.jar") for path in _files(jar)}
    return next(main for path, main in wanted.items() if path in found)


class OldKafka(RealKafka):
    """A broker of one version (a key of RELEASES); its tools and its client are those of the same release."""

    def __init__(self, version: str, base: Path, overrides: Mapping[str, object] | None = None) -> None:
        base.mkdir()
        super().__init__(overrides, base=base)
        self.kind, self.release = f"kafka-{version}", RELEASES[version]
        self.version = tuple(int(part) for part in version.split("."))
        self.with_zookeeper = self.version < (3, 3)
        self.zookeeper: subprocess.Popen[bytes] | None = None
        self.zookeeper_port = free_port()
        if self.with_zookeeper:
            self.ready_line = "[KafkaServer id=1] started"

    def prepare(self) -> None:
        if not self.with_zookeeper:
            return super().prepare()
        self._properties_file.write_text("".join(f"{k}={v}\n" for k, v in self.properties().items()))
        self.data_dir.mkdir()
        settings = {
            "dataDir": self.base / "zookeeper",
            "clientPort": self.zookeeper_port,
            "clientPortAddress": "127.0.0.1",
        }
        file = self.base / "zookeeper.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = java(self.release, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(file))
        with (self.base / "zookeeper.log").open("wb") as log:
            self.zookeeper = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return None

    def properties(self) -> dict[str, str]:
        if not self.with_zookeeper:
            return super().properties()
        return {
            "broker.id": "1",
            "zookeeper.connect": f"127.0.0.1:{self.zookeeper_port}",
            "zookeeper.connection.timeout.ms": "60000",
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.data_dir),
            **DEFAULTS,
            **self.overrides,
        }

    def command(self) -> list[str]:
        return java(self.release, "kafka.Kafka", str(self._properties_file), level="info")

    def driver(self) -> list[str]:
        """The command line of the Java driver with this release's client."""
        return jvm.java("kgroup.foreign.Driver", classpath=builds.java_driver(self.release))

    def tool(
        self, name: str, *args: str, stdin: str = "", timeout: float = 90.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a tool of this release, in a process of its own."""
        if name == "kafka-consumer-groups":
            args = ("--bootstrap-server", self.bootstrap, *args)
        # Its own storage tool is a part of the broker, and formats with the release's features.
        from_release = server.TOOLS if self.release == UNTOOLED and name != "kafka-storage" else self.release
        command = java(from_release, _main(from_release, name), *args, level="error")
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout, check=check
        )

    def close(self) -> None:
        self.stop()  # before what it needs to stop in peace
        if self.zookeeper is not None:
            self.zookeeper.kill()
            self.zookeeper.wait(30)
        super().close()


def main(versions: list[str]) -> str | None:
    """Fetch what the named versions need; what is missing from PATH if something is."""
    if absent := missing("java", "javac", "mvn"):
        return f"the interop tests need {', '.join(absent)} on PATH"
    for version in versions or RELEASES:
        jars(RELEASES[version])
        builds.java_driver(RELEASES[version])
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
