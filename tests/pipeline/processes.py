"""Commands of a test, on the Spark of all tests or as processes; a cluster; who descends from whom."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from kgroup.pipeline.spark.java import java_home
from tests.interop.server import free_port
from tests.ran import Ran

DEPLOY = "org.apache.spark.deploy"


@contextmanager
def cluster(folder: Path, hosts: Sequence[str] = ("127.0.0.1", "127.0.0.1")) -> Iterator[str]:
    """A master and a worker at each of `hosts`, on loopback; yields the master's URL.

    Every process is ended by its id.
    """
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    home = Path(pyspark.__file__).parent
    environ = {
        **os.environ,
        "JAVA_HOME": str(java_home(os.environ, folder)),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    page = ["--webui-port", "0"]
    commands = [[f"{DEPLOY}.master.Master", "--host", "127.0.0.1", *page, "--port", str(port)]]
    for number, host in enumerate(hosts):
        work = ["--cores", "1", "--memory", "700m", "--work-dir", str(folder / f"worker-{number}")]
        commands.append([f"{DEPLOY}.worker.Worker", "--host", host, *page, *work, url])
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number, command in enumerate(commands):
            with (folder / f"process-{number}.log").open("wb") as log:
                made = subprocess.Popen(
                    [home / "bin" / "spark-class", *command], env=environ, stdout=log, stderr=log
                )
            started.append(made)
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def descendants(pid: int) -> set[int]:
    """All processes below one, by /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in found | {pid}} - found:
        found |= more
    return found


def process(*words: str) -> Ran:
    """`kgroup` as a process, with a Spark of its own."""
    command = [sys.executable, "-m", "kgroup.cli.app", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    return Ran(done.returncode, done.stdout, done.stderr)
