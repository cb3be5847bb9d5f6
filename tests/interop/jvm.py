"""Programs of Kafka's jars: command lines of their own, or its tools in one warm JVM for all of them.

A JVM for each call of a tool would cost most of a test run. In the warm one the tools run unchanged, from
their `main`, one after the other; what a tool reads, prints and exits with is its own.
"""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import tempfile
from pathlib import Path

from . import toolchain
from .driver import Driver

LIGHT_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
}


def java(main: str, *args: str, jvm: tuple[str, ...] = LIGHT_JVM, classpath: str = "") -> list[str]:
    """The command line that runs one of Kafka's main classes."""
    log = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
    path = classpath or toolchain.kafka_classpath()
    return ["java", *log, *jvm, *_loaded_before(path), "-cp", path, main, *args]


def archive(jars: Path) -> Path:
    """Where the classes of a folder of jars lie as a JVM has them in memory (archives.py)."""
    return jars.with_name(f"{jars.name}.jsa")


def _loaded_before(classpath: str) -> list[str]:
    """What spares a JVM to load and verify classes; one that an archive does not suit goes without it."""
    first = classpath.split(os.pathsep)[0]
    file = archive(Path(first).parent)
    if not first.endswith("*") or not file.exists():
        return []
    # It would say on stdout, where drivers answer, why it does not suit.
    return [f"-XX:SharedArchiveFile={file}", "-Xlog:disable", "-Xlog:all=error:stderr"]


def tool(
    name: str, *args: str, stdin: str = "", timeout: float = 90.0, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """What a tool (a name of TOOLS, or a main class) printed and exited with.

    RuntimeError when it fails and `check`; TimeoutError when it takes longer than `timeout` seconds.
    """
    warm = _warm()
    try:
        said = warm.call("run", timeout, main=TOOLS.get(name, name), args=args, stdin=stdin)
    except TimeoutError:
        warm.process.kill()
        _warm.cache_clear()
        raise TimeoutError(f"{name} {' '.join(args)} took longer than {timeout} s") from None
    if check and said["status"]:
        raise RuntimeError(
            f"{name} {' '.join(args)} exited {said['status']}:\n{said['stdout']}\n{said['stderr']}"
        )
    return subprocess.CompletedProcess([name, *args], said["status"], said["stdout"], said["stderr"])


@functools.cache
def _warm() -> Driver:
    """The JVM, started with the first tool; it ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="kafka-tools-")
    command = java("kgroup.interop.Tools", classpath=toolchain.driver_classpath())
    running = Driver(command, Path(folder.name) / "stderr.log")
    atexit.register(folder.cleanup)
    atexit.register(running.close)
    return running
