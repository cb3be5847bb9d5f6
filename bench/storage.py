"""How much slower an object store is than a disk: the same segments from a folder and from S3 on loopback.

    python -m bench storage SEGMENTS [ROUNDS]

Both take turns within a round: a replay in this process, all groups, and a run of the pipeline in local[2].
The server is a gateway to files written in Go (Go 1.26), on the same cores. The one of the tests is of no use
here: it is Python, and serves a GB in half a minute. KGROUP_BENCH_S3=s3://BUCKET/FOLDER names another one
that holds the same files already (credentials and AWS_ENDPOINT_URL by the environment).
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.history import Ratio, keep
from bench.s3gateway import S3Gateway
from kgroup.history.replay import replay
from kgroup.history.sources.logs import segment_logs
from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.spark.session import spark_context
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import Store
from kgroup.storage.location import Location
from kgroup.storage.options import StorageOptions
from tests.s3 import S3Server

MASTER = "local[2]"


@contextmanager
def uploaded(source: Path) -> Iterator[tuple[Location, StorageOptions]]:
    """The segments in a store."""
    if there := os.environ.get("KGROUP_BENCH_S3"):
        yield Location.parse(there), StorageOptions()
        return
    with S3Gateway() as gateway:
        server = S3Server(gateway.endpoint)
        bucket = server.bucket(source)
        yield Location.parse(f"s3://{bucket}"), StorageOptions.of(server.options, 120)


def timed(do: Any) -> float:
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


def ingested(context: Any, segments: Segments) -> float:
    """Seconds of one run into an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        return timed(lambda: ingest(context, segments, Store(Path(folder))))


def main(arguments: list[str]) -> None:
    """Print the seconds of each, and their ratio."""
    if not arguments:
        sys.exit(__doc__)
    source, rounds = Path(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 3
    size = sum(log.size for log in segment_logs([source])) / 1e6
    with uploaded(source) as (place, options), spark_context(MASTER) as context:
        here, there = Segments.of([source]), Segments.of([place], options=options)
        ways = {
            "replay-log": (
                lambda: timed(lambda: replay(segment_logs([source]))),
                lambda: timed(lambda: replay(segment_logs([place], options=options))),
            ),
            f"pipeline, {MASTER}": (lambda: ingested(context, here), lambda: ingested(context, there)),
        }
        for do in (way for pair in ways.values() for way in pair):
            do()  # workers come up, pages are read
        print(f"{size:.0f} MB, median of {rounds} rounds")
        print("| | disk s | S3 s | × |\n|---|---|---|---|")
        for name, (disk, s3) in ways.items():
            pairs = [(disk(), s3()) for _ in range(rounds)]
            a, b = zip(*pairs, strict=True)
            ratio = Ratio.of(b, a)
            said = keep(f"storage {size:.0f} {name}", ratio.middle)
            middle = f"{statistics.median(a):.1f} | {statistics.median(b):.1f}"
            print(f"| {name} | {middle} | {ratio} | {said}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
