"""What a skewed log costs the pipeline: one group with 90 % of all records, 100,000 groups.

    python -m bench skew [MB] [MASTER] [TIMES]     by default 200 MB, local[2]; an even log also 4 times that

Each log is read into new tables in a session of its own, in a process of its own; told are its tasks (the
longest and the median of those that read and of those that fold, in seconds), the bytes that Spark moved and
that its driver got, and the largest memory of a Python worker.
"""

import itertools
import json
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.workers import watched
from kgroup.pipeline.spark.session import spark_context
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import Store
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord, encode_batch

START_MS = 1_760_000_000_000
PARTS = 8
RECORDS = 100
TEMPLATES = 300
SHAPES = {"even": (200, 0.0), "one group with 90 %": (200, 0.9), "100,000 groups": (100_000, 0.0)}
"""Groups, and the share of all records that the first of them has."""


def batch(rng: random.Random, groups: Sequence[str], hot: float, number: int) -> bytes:
    """A batch of commits; with `hot` that share of them is of the first group."""
    ts = START_MS + number * 250
    records = []
    for place in range(RECORDS):
        # All of them in turn, so that none is left out.
        group = groups[0] if rng.random() < hot else groups[(number * RECORDS + place) % len(groups)]
        key = r.OffsetCommitKey(group=group, topic=f"topic-{rng.randrange(4)}", partition=rng.randrange(12))
        value = r.OffsetCommitValue(offset=number * 100, leader_epoch=1, metadata="", commit_timestamp=ts)
        records.append(LogRecord(r.encode_key(key), r.encode_value(value, 3)))
    return encode_batch(records, timestamp_ms=ts)


def write(folder: Path, shape: str, size: int) -> None:
    """A log of that shape and size: batches in turn, since what is behind the base offset is as it was."""
    count, hot = SHAPES[shape]
    for part in range(PARTS):
        rng = random.Random(part)
        groups = [f"group-{number}" for number in range(part, count, PARTS)]
        # The first group's partition has its records beside those of its like.
        share = (1 - hot) / PARTS + (hot if part == 0 else 0)
        mine = hot / share if part == 0 else 0.0
        made = [batch(rng, groups, mine, number) for number in range(TEMPLATES)]
        log = folder / f"__consumer_offsets-{part}" / f"{0:020d}.log"
        log.parent.mkdir(parents=True)
        written = 0
        with log.open("wb") as file:
            for number in itertools.count():
                if written >= size * share:
                    break
                data = made[number % TEMPLATES]
                file.write(struct.pack(">q", number * RECORDS) + data[8:])
                written += len(data)


def measure(source: Path, master: str) -> dict[str, float]:
    """One run in this process, its workers watched by /proc, its tasks by Spark's log of events."""
    settings = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
    with tempfile.TemporaryDirectory() as folder:
        (logs := Path(folder) / "logs").mkdir()
        settings["spark.eventLog.dir"] = logs.as_uri()
        with watched() as most, spark_context(master, settings) as context:
            context.parallelize(range(2 * context.defaultParallelism)).map(str).count()  # workers that are up
            begun = time.perf_counter()
            report = ingest(context, [source], Store(Path(folder) / "tables"))
            whole = time.perf_counter() - begun
        found = stages(logs)[1:]
    read, fold = found
    told = {"read": read["longest"], "read median": read["median"], "fold": fold["longest"]}
    told |= {"fold median": fold["median"], "moved": read["moved"], "driver": fold["driver"]}
    return {**told, "all": whole, "worker": most[0], "commits": report.rows["commits"]}


def stages(logs: Path) -> list[dict[str, float]]:
    """Of each stage the seconds of its tasks, the bytes it wrote for the next, and those for the driver."""
    tasks: dict[int, list[dict[str, Any]]] = {}
    for path in sorted(logs.rglob("*")):
        for line in path.read_text().splitlines() if path.is_file() else ():
            event = json.loads(line) if "SparkListenerTaskEnd" in line else {}
            if event.get("Event") == "SparkListenerTaskEnd":
                tasks.setdefault(event["Stage ID"], []).append(event["Task Metrics"])
    return [
        {
            "longest": max(seconds := [metrics["Executor Run Time"] / 1000 for metrics in found]),
            "median": statistics.median(seconds),
            "moved": sum(metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"] for metrics in found),
            "driver": sum(metrics["Result Size"] for metrics in found),
        }
        for _, found in sorted(tasks.items())
    ]


def main(arguments: list[str]) -> None:
    """Print a row for each shape and size."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(measure(Path(arguments[1]), arguments[2])))
        return
    size = int(arguments[0]) if arguments else 200
    master = arguments[1] if len(arguments) > 1 else "local[2]"
    times = int(arguments[2]) if len(arguments) > 2 else 4
    columns = ("log", "MB", "commits", "read s, longest", "median", "fold s, longest", "median")
    columns += ("moved MB", "driver MB", "in all s", "largest worker MB")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    plan = [(shape, size) for shape in SHAPES] + [("even", size * times)] * (times > 1)
    for shape, megabytes in plan:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), shape, megabytes * 10**6)
            again = [sys.executable, "-m", "bench.skew", "--one", folder, master]
            told = json.loads(subprocess.run(again, capture_output=True, text=True, check=True).stdout)
        cells = [shape, f"{megabytes}", f"{told['commits']:,.0f}"]
        cells += [f"{told[name]:.1f}" for name in ("read", "read median", "fold", "fold median")]
        cells += [f"{told[name] / 1e6:.2f}" for name in ("moved", "driver")]
        cells += [f"{told['all']:.1f}", f"{told['worker']:.0f}"]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
