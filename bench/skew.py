"""What a run of the pipeline costs by size, even or with 96 % of the bytes in one partition of 8.

    python -m bench skew [MB] [MASTER] [SHAPE …]     by default 200 MB, local[2], all shapes

MASTER `standalone` is a cluster of two workers. Each log is read into new tables in a session and a process
of its own; reported are its tasks (how many, the longest and the median of those that read and of those that
fold, in seconds), the bytes that Spark moved and that its driver got, and the most memory that a local Python
worker and that the driver with its JVM took.
"""

import itertools
import json
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.tasks import LOGGED, driver_mb, master_of, settings_for, stages, warm
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
SHAPES = {
    "even": (200, 0.0, 1 / PARTS),
    "one partition with 96 %": (200, 0.0, 0.96),
    "one group with 90 %": (200, 0.9, 1 / PARTS),
    "100,000 groups": (100_000, 0.0, 1 / PARTS),
}
"""Groups, the share of all records that the first of them has, and that of the first partition without it."""


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
    count, hot, first = SHAPES[shape]
    for part in range(PARTS):
        rng = random.Random(part)
        groups = [f"group-{number}" for number in range(part, count, PARTS)]
        # The first group's partition has its records beside those of its like.
        share = hot + (1 - hot) * first if part == 0 else (1 - hot) * (1 - first) / (PARTS - 1)
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
    settings = {**LOGGED, **settings_for(master)}
    with tempfile.TemporaryDirectory() as folder:
        (logs := Path(folder) / "logs").mkdir()
        settings["spark.eventLog.dir"] = logs.as_uri()
        with watched() as most, spark_context(master, settings) as context:
            warm(context)
            begun = time.perf_counter()
            report = ingest(context, [source], Store(Path(folder) / "tables"))
            whole, memory = time.perf_counter() - begun, driver_mb(context)
        found = stages(logs)[1:]
    read, fold = found
    told = {"moved": read["moved"], "driver": fold["driver"], "all": whole, "worker": most[0]}
    told |= {"memory": memory, "commits": report.rows["commits"]}
    for name, stage in (("read", read), ("fold", fold)):
        told |= {f"{name} {each}": stage[each] for each in ("tasks", "longest", "median")}
    return told


def main(arguments: list[str]) -> None:
    """Print a row for each shape and size."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(measure(Path(arguments[1]), arguments[2])))
        return
    size, master, *shapes = (*arguments, *("200", "local[2]")[len(arguments) :])
    columns = ["log", "MB", "commits"]
    for stage in ("read", "fold"):
        columns += [f"{stage}: tasks", "longest s", "median s", "longest / median"]
    columns += ["moved MB", "driver got MB", "in all s", "largest worker MB", "driver MB"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for shape in shapes or SHAPES:
        with tempfile.TemporaryDirectory() as folder, master_of(master) as url:
            write(Path(folder), shape, int(size) * 10**6)
            again = [sys.executable, "-m", "bench.skew", "--one", folder, url]
            told = json.loads(subprocess.run(again, stdout=subprocess.PIPE, check=True).stdout)
        cells = [shape, size, f"{told['commits']:,.0f}"]
        for stage in ("read", "fold"):
            longest, median = told[f"{stage} longest"], told[f"{stage} median"]
            cells += [f"{told[f'{stage} tasks']:.0f}", f"{longest:.1f}", f"{median:.1f}"]
            cells.append(f"{longest / median:.1f}")
        cells += [f"{told[name] / 1e6:.2f}" for name in ("moved", "driver")]
        cells += [
            f"{told['all']:.1f}",
            f"{told['worker']:.0f}" if told["worker"] else "",
            f"{told['memory']:.0f}",
        ]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
