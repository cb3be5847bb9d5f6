"""How fast the pipeline is: ingest by size and cores beside kafka-dump-log, and questions to the tables.

    python -m bench pipeline SEGMENTS [ROUNDS] [MASTER …]     masters by default local[1] local[2]

Masters and kafka-dump-log take turns within a round, so that what else the machine does hits all alike.
"In all" is what a run takes in a session of its own: start of the JVM, and ingest. Questions are asked of a
warm session. Kafka's tool comes from Maven.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.decode import commands, run
from bench.workers import watched
from kgroup.pipeline.ask.spark_views import derived
from kgroup.pipeline.spark.session import spark_context, spark_session
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import Store

PEER = "kafka-dump-log"


def timed(do: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = do()
    return time.perf_counter() - start, result


def measure(source: Path, master: str) -> dict[str, float]:
    """Seconds of one run with an empty store, and of two questions asked twice; bytes and commits."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        start = time.perf_counter()
        with watched() as most, spark_context(master) as context:
            up = time.perf_counter() - start
            seconds, report = timed(lambda: ingest(context, [source], store))
        found = {"all": up + seconds, "start": up, "ingest": seconds, "commits": report.rows["commits"]}
        found |= {"bytes": report.bytes_read, "worker": most[0]}
        with spark_session(master) as spark:
            for name, view in (("state", "state_at"), ("writers", "top_writers")):
                timed(lambda view=view: derived(spark, store, view).collect())
                found[name], _ = timed(lambda view=view: derived(spark, store, view).collect())
    return found


def main(arguments: list[str]) -> None:
    """Print a row a master for the segments, rounds and masters in `arguments`."""
    if not arguments:
        sys.exit(__doc__)
    source, given = Path(arguments[0]), arguments[1:]
    rounds = int(given.pop(0)) if given and given[0].isdigit() else 1
    masters = given or ["local[1]", "local[2]"]
    taken: dict[str, list[dict[str, float]]] = {master: [] for master in masters}
    peer = []
    for _ in range(rounds):
        peer.append(run(commands(source, "")[PEER])[0])
        for master in masters:
            taken[master].append(measure(source, master))
    dumped = statistics.median(peer)
    print(f"median of {rounds}; {PEER}: {dumped:.1f} s ({', '.join(f'{s:.1f}' for s in sorted(peer))})")
    names = ("MB", "commits", "master", "in all s", "start s", "ingest s", "commits/s", "× dump-log")
    print("| " + " | ".join((*names, "state s", "writers s", "largest worker MB")) + " |")
    print("|---" * (len(names) + 3) + "|")
    for master, runs in taken.items():
        middle = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        cells = [f"{middle['bytes'] / 1e6:.0f}", f"{middle['commits']:.0f}", master]
        cells += [f"{middle[name]:.1f}" for name in ("all", "start", "ingest")]
        cells += [f"{middle['commits'] / middle['all']:,.0f}", f"{dumped / middle['all']:.1f}"]
        cells += [f"{middle[name]:.1f}" for name in ("state", "writers")] + [f"{middle['worker']:.0f}"]
        print(f"| {' | '.join(cells)} |")
    for name in ("all", "ingest"):
        listed = {m: ", ".join(f"{run[name]:.1f}" for run in runs) for m, runs in taken.items()}
        print(f"{name} by round: " + "; ".join(f"{master}: {seconds}" for master, seconds in listed.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
