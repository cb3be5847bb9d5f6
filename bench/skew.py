"""What a skewed log costs the pipeline: one group with 90 % of all records, 100,000 groups.

    python -m bench skew [MB] [MASTER] [TIMES]     by default 200 MB, local[2]; an even log also 4 times that

Each log is read into new tables in a session of its own, in a process of its own; told are its stages
(reading, folding), the largest memory of a Python worker, and what the fold kept.
"""

import itertools
import json
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.workers import watched
from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.spark.session import spark_context
from kgroup.pipeline.spark.workers import Workers
from kgroup.pipeline.tables.ingest import _buckets, _split_bytes, fill
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


class Timed(Workers):
    """`Workers` with the seconds of each stage."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.seconds: list[float] = []

    def __call__(self, task: Callable[[Any], Any], work: Sequence[Any], /) -> list[Any]:
        begun = time.perf_counter()
        result = super().__call__(task, work)
        self.seconds.append(time.perf_counter() - begun)
        return result


def measure(source: Path, master: str) -> dict[str, float]:
    """One run in this process, its workers watched by /proc."""
    with watched() as most, tempfile.TemporaryDirectory() as folder, spark_context(master) as context:
        store, cores = Store(Path(folder)), context.defaultParallelism
        origin = Segments.of([source]).looked_at()
        split = _split_bytes(origin.plan(512 << 20, {}), cores)
        each = Timed(context)
        each(len, [()] * cores)  # workers that are up
        each.seconds.clear()
        begun = time.perf_counter()
        report = fill(each, origin, store, split, _buckets(origin.parts(), cores))
        whole = time.perf_counter() - begun
    named = {"read": each.seconds[0], "fold": each.seconds[-1], "all": whole, "worker": most[0]}
    return {**named, "commits": report.rows["commits"], "events": report.rows.get("events", 0)}


def main(arguments: list[str]) -> None:
    """Print a row for each shape and size."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(measure(Path(arguments[1]), arguments[2])))
        return
    size = int(arguments[0]) if arguments else 200
    master = arguments[1] if len(arguments) > 1 else "local[2]"
    times = int(arguments[2]) if len(arguments) > 2 else 4
    print("| log | MB | commits | read s | fold s | in all s | largest worker MB |\n" + "|---" * 7 + "|")
    plan = [(shape, size) for shape in SHAPES] + [("even", size * times)] * (times > 1)
    for shape, megabytes in plan:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), shape, megabytes * 10**6)
            again = [sys.executable, "-m", "bench.skew", "--one", folder, master]
            told = json.loads(subprocess.run(again, capture_output=True, text=True, check=True).stdout)
        cells = [shape, megabytes, f"{told['commits']:,.0f}", f"{told['read']:.1f}", f"{told['fold']:.1f}"]
        cells += [f"{told['all']:.1f}", f"{told['worker']:.0f}"]
        print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
