"""Hadoop's minicluster on loopback: HDFS, WebHDFS and, if asked for, YARN, in one JVM that ends with a test.

`python -m tests.hadoop.minicluster` fetches its jars (from Maven) and compiles what starts it, so that no
test waits for a download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select

from tests.interop.jvm import LIGHT_JVM
from tests.interop.toolchain import java_project, missing

HERE = Path(__file__).resolve().parent
_UP_S = 240
_DOWN_S = 60


@dataclass(frozen=True, slots=True)
class Hadoop:
    """A cluster that is up. `hdfs` is hdfs://HOST:PORT, `webhdfs` the name node's http://HOST:PORT.

    `conf` is a folder for HADOOP_CONF_DIR and YARN_CONF_DIR; `process` is the JVM that all of it runs in.
    """

    hdfs: str
    webhdfs: str
    conf: Path
    process: subprocess.Popen[str]


def absent() -> list[str]:
    """What PATH lacks of what the cluster is built and run with."""
    return missing("java", "javac", "mvn")


@contextmanager
def hadoop(
    folder: Path, data_nodes: int = 1, node_managers: int = 0, settings: Mapping[str, str] | None = None
) -> Iterator[Hadoop]:
    """A cluster below `folder`: HDFS with so many data nodes, YARN if there are node managers.

    `settings` are Hadoop's and win. RuntimeError with the end of its log if it does not come up; when the
    block ends it is gone.
    """
    conf, log = folder / "conf", folder / "hadoop.log"
    folder.mkdir(parents=True, exist_ok=True)
    jvm = [*LIGHT_JVM, "-Xmx512m", f"-Dlog4j.configuration={(HERE / 'log4j.properties').as_uri()}"]
    jvm += [f"-Dtest.build.data={folder / 'data'}", "-cp", java_project(HERE / "java"), "MiniHadoop"]
    counts = [str(data_nodes), str(node_managers)]
    given = [f"{name}={value}" for name, value in (settings or {}).items()]
    command = ["java", *jvm, str(folder / "work"), str(conf), *counts, *given]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "JAVA_HOME": str(_java_home())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        ready, _, _ = select([process.stdout], [], [], _UP_S)
        addresses = process.stdout.readline().split() if ready else []
        if not addresses:
            raise RuntimeError(f"Hadoop did not come up:\n{log.read_text()[-4000:]}")
        yield Hadoop(addresses[0], addresses[1], conf, process)
    finally:
        _end(process)


def _java_home() -> Path:
    """That of the java on PATH: a node manager's containers ask for JAVA_HOME alone."""
    return Path(shutil.which("java") or "").resolve().parents[1]


def _end(process: subprocess.Popen[str]) -> None:
    """It ends with its stdin, and its containers with it; by force if that takes long."""
    try:
        process.communicate(timeout=_DOWN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def main() -> str | None:
    """Build it; what is missing from PATH if something is."""
    if lacking := absent():
        return f"the tests on Hadoop need {', '.join(lacking)} on PATH"
    java_project(HERE / "java")
    return None


if __name__ == "__main__":
    sys.exit(main())
