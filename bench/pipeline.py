"""How fast the pipeline is: ingest by size and cores, and questions to the tables.

    python -m bench.pipeline SEGMENTS [ROUNDS] [MASTER …]     masters by default local[1] local[2]

Masters alternate within a round, so that what else the machine does hits both alike. Start-up is part of the
ingest; questions are asked of a warm session.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kgroup.pipeline.ingest import ingest
from kgroup.pipeline.jobs import state_at, top_writers
from kgroup.pipeline.session import spark_session
from kgroup.pipeline.store import Store


def timed(do: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = do()
    return time.perf_counter() - start, result


def measure(source: Path, master: str) -> dict[str, float]:
    """Seconds of one run with an empty store: start-up, ingest, and two questions asked twice."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, spark_session(master) as spark:
        up = time.perf_counter() - start
        store = Store(Path(folder))
        seconds, report = timed(lambda: ingest(spark, [source], store))
        found = {"start": up, "ingest": seconds, "commits": report.rows["commits"]}
        found |= {"bytes_read": report.bytes_read, "bytes_written": report.bytes_written}
        timed(lambda: state_at(spark, store).count())
        found["state"], _ = timed(lambda: state_at(spark, store).count())
        timed(lambda: top_writers(spark, store).collect())
        found["writers"], _ = timed(lambda: top_writers(spark, store).collect())
    return found


def main(arguments: list[str]) -> None:
    """Print a row a master for the segments, rounds and masters in `arguments`."""
    if not arguments:
        sys.exit(__doc__)
    source, given = Path(arguments[0]), arguments[1:]
    rounds = int(given.pop(0)) if given and given[0].isdigit() else 1
    masters = given or ["local[1]", "local[2]"]
    taken: dict[str, list[dict[str, float]]] = {master: [] for master in masters}
    for _ in range(rounds):
        for master in masters:
            taken[master].append(measure(source, master))
    print("| MB | commits | master | start s | ingest s | commits/s with start | state s | writers s |")
    print("|---|---|---|---|---|---|---|---|")
    for master, runs in taken.items():
        middle = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        rate = middle["commits"] / (middle["start"] + middle["ingest"])
        cells = [f"{middle['bytes_read'] / 2**20:.0f}", f"{middle['commits']:.0f}", master]
        cells += [f"{middle['start']:.1f}", f"{middle['ingest']:.1f}", f"{rate:,.0f}"]
        cells += [f"{middle['state']:.1f}", f"{middle['writers']:.1f}"]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
