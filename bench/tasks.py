"""What Spark's log of events says of a job's tasks, and what its driver took."""

import json
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.pipeline.processes import cluster

STANDALONE = "standalone"
LOGGED = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}


@contextmanager
def master_of(name: str) -> Iterator[str]:
    """The master of that name; for `standalone` that of a cluster of two workers with a core each."""
    if name != STANDALONE:
        yield name
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, cluster(Path(folder)) as url:
        yield url


def settings_for(master: str) -> dict[str, str]:
    """Spark's settings on a cluster of this machine."""
    if not master.startswith("spark:"):
        return {}
    waits = {"minRegisteredResourcesRatio": "1", "maxRegisteredResourcesWaitingTime": "300s"}
    ours = {f"spark.scheduler.{name}": value for name, value in waits.items()}
    return {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "500m", "spark.cores.max": "2"} | ours


def warm(context: Any) -> None:
    """Let every executor start its Python workers and import what tasks need."""

    def busy(number: int) -> int:
        import kgroup.pipeline.tables.ingest  # noqa: F401, PLC0415

        time.sleep(2)
        return number

    context.parallelize(range(context.defaultParallelism), context.defaultParallelism).map(busy).count()


def stages(logs: Path) -> list[dict[str, float]]:
    """Of each stage the seconds of its tasks; the bytes they read, wrote for the next, and returned."""
    tasks: dict[int, list[dict[str, Any]]] = {}
    for path in sorted(logs.rglob("*")):
        for line in path.read_text().splitlines() if path.is_file() else ():
            event = json.loads(line) if "SparkListenerTaskEnd" in line else {}
            if event.get("Event") == "SparkListenerTaskEnd":
                tasks.setdefault(event["Stage ID"], []).append(event["Task Metrics"])
    return [
        {
            "tasks": len(found),
            "longest": max(seconds := [metrics["Executor Run Time"] / 1000 for metrics in found]),
            "median": statistics.median(seconds),
            "input": sum(metrics["Input Metrics"]["Bytes Read"] for metrics in found),
            "moved": sum(metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"] for metrics in found),
            "driver": sum(metrics["Result Size"] for metrics in found),
        }
        for _, found in sorted(tasks.items())
    ]


def driver_mb(context: Any) -> float:
    """The memory of this process and of its JVM, each at its most."""
    status = Path(f"/proc/{context._gateway.proc.pid}/status").read_text()
    jvm = int(status.partition("VmHWM:")[2].split()[0])
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + jvm) / 1024
