"""How `--follow` keeps up: repeated runs beside a query of Structured Streaming, over a live topic.

    python -m bench follow [RUNS] [COMMITS]     by default 40 runs, with 500 new commits before each

An embedded cluster is served; before each run so many commits arrive. Told are the seconds of a run (all
tables and the fold) until its rows are readable; those of a batch of a query that writes the table `commits`
alone; the driver's memory, and what lies in the folder, at the start and at the end.
"""

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.pipeline.read.inputs import LiveCluster
from kgroup.pipeline.read.source import NAME, OffsetsLogSource
from kgroup.pipeline.spark.session import spark_context, spark_session
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import Store
from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served

MASTER = "local[2]"


def arrive(client: Client, start: int, count: int) -> None:
    """So many commits, of 50 groups, twelve partitions each."""
    for number in range(start, start + count, 12):
        offsets = {partition: number + partition for partition in range(min(12, start + count - number))}
        client.commit(f"group-{number // 12 % 50}", "orders", offsets)


def weight(folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB"


def resident() -> float:
    """This process's memory in MB at its most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def runs(client: Client, folder: Path, rounds: int, count: int) -> list[float]:
    """The seconds of each run; the first has the start of the workers in it."""
    live = LiveCluster(ConnectionSettings(parse_bootstrap(client.bootstrap)))
    taken = []
    with spark_context(MASTER) as context:
        for number in range(rounds):
            arrive(client, number * count, count)
            begun = time.perf_counter()
            report = ingest(context, live, Store(folder))
            taken.append(time.perf_counter() - begun)
            assert report.rows["commits"] == count
            if number in (1, rounds - 1):
                print(f"  after run {number + 1}: {weight(folder)}; driver {resident():.0f} MB")
    return taken


def batches(client: Client, folder: Path, rounds: int, count: int) -> list[float]:
    """The seconds from when commits are there until a batch with them is: of one table, without a fold."""
    taken = []
    with spark_session(MASTER) as spark:
        spark.dataSource.register(OffsetsLogSource)
        source = spark.readStream.format(NAME).option("bootstrap.servers", client.bootstrap).load()
        sink: Any = source.writeStream.format("parquet").option("checkpointLocation", str(folder / "at"))
        query = sink.trigger(processingTime="0 seconds").start(str(folder / "commits"))
        query.processAllAvailable()
        for number in range(rounds):
            arrive(client, (rounds + number) * count, count)
            begun = time.perf_counter()
            query.processAllAvailable()
            taken.append(time.perf_counter() - begun)
            if number in (1, rounds - 1):
                print(f"  after batch {number + 1}: {weight(folder)}")
        query.stop()
    return taken


def tell(name: str, taken: Sequence[float]) -> None:
    rest = sorted(taken[1:])
    first, last = statistics.median(taken[1:6]), statistics.median(taken[-5:])
    print(
        f"{name}: first {taken[0]:.2f} s, then median {statistics.median(rest):.2f} s, "
        f"longest {rest[-1]:.2f} s; runs 2 to 6 {first:.2f} s, the last five {last:.2f} s"
    )


def main(arguments: list[str]) -> None:
    """Print what both take."""
    rounds, count = (*map(int, arguments), *(40, 500)[len(arguments) :])
    with (
        served(Cluster(offsets_partitions=10)) as bootstrap,
        tempfile.TemporaryDirectory() as runs_folder,
        tempfile.TemporaryDirectory() as batches_folder,
    ):
        client = Client(bootstrap)
        client.create_topic("orders", 12)
        tell("runs, all tables and the fold", runs(client, Path(runs_folder), rounds, count))
        tell("a stream, one table", batches(client, Path(batches_folder), rounds, count))
        client.close()


if __name__ == "__main__":
    main(sys.argv[1:])
