"""What a run writes after few new records, and what a question about one group reads.

    python -m bench increments [GROUPS] [KEYS] [PARTITIONS] [MASTER]     by default 4000, 100, 50, local[2]

GROUPS groups commit KEYS partitions each, in PARTITIONS partitions of the topic, placed as a broker does.
Then every hundredth group commits again, and then a hundredth of all keys, spread over the groups. Reported
are the bytes of `folds` and `events_open` that each run writes, as a share of the first, and the bytes that
Spark reads of files for all rows of a table, and for those of one group.
"""

import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable
from pathlib import Path

from bench.tasks import LOGGED, driver_mb, master_of, settings_for, stages
from kgroup.domain import offsets_partition_of
from kgroup.pipeline.ask.queries import table
from kgroup.pipeline.spark.session import spark_context, spark_session
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import BY_GROUP, KEPT, Store
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord, encode_batch

START_MS = 1_760_000_000_000


class Logs:
    """Logs that grow by batches, each of one group."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.partitions = partitions
        self.ends = [0] * partitions
        self.files = [folder / f"__consumer_offsets-{part}" / f"{0:020d}.log" for part in range(partitions)]
        for file in self.files:
            file.parent.mkdir(parents=True)

    def commit(self, group: str, keys: range, ts: int) -> None:
        """Append a batch: each key has an offset of its own, which has grown since its last commit."""
        part = offsets_partition_of(group, self.partitions)
        records = []
        for key in keys:
            offset = zlib.crc32(f"{group}/{key}".encode()) + (ts - START_MS)
            value = r.OffsetCommitValue(offset=offset, leader_epoch=1, commit_timestamp=ts)
            named = r.OffsetCommitKey(group=group, topic="orders", partition=key)
            records.append(LogRecord(r.encode_key(named), r.encode_value(value, 3)))
        batch = encode_batch(records, timestamp_ms=ts)
        with self.files[part].open("ab") as file:
            file.write(struct.pack(">q", self.ends[part]) + batch[8:])
        self.ends[part] += len(keys)


def size(store: Store, tables: Iterable[str], run: int | None = None) -> int:
    """Bytes of the files of tables: all, or those of a run."""
    return sum(
        (store.place.root.local / name).stat().st_size
        for table in tables
        for name in store.names(table)
        if run is None or Path(name).name.startswith(f"{run}-")
    )


def asked(store: Store, name: str, group: str | None, master: str) -> float:
    """Bytes that Spark reads of files for all columns of a table."""
    with tempfile.TemporaryDirectory() as logs:
        # What Parquet's readers fetch on threads of their own, Spark does not count.
        counted = {"spark.hadoop.parquet.hadoop.vectored.io.enabled": "false"}
        settings = {**settings_for(master), **LOGGED, **counted, "spark.eventLog.dir": Path(logs).as_uri()}
        with spark_session(master, settings) as spark:
            table(spark, store, name, (), group).write.format("noop").mode("overwrite").save()
        return sum(stage["input"] for stage in stages(Path(logs)))


def grown(folder: Path, groups: int, keys: int, partitions: int, master: str) -> Store:
    """Print what each run over a log that grows writes; return the tables."""
    logs, out = Logs(folder / "log", partitions), folder / "tables"
    names = [f"group-{number}" for number in range(groups)]
    changes = {
        "all groups": [(name, range(keys)) for name in names],
        "1 % of the groups": [(name, range(keys)) for name in names[::100]],
        "1 % of the keys, of all groups": [(name, range(max(1, keys // 100))) for name in names],
    }
    print("| new records | keys | run s | state written, bytes | of the state |\n|---|---|---|---|---|")
    whole = 0
    with spark_context(master, settings_for(master)) as context:
        for number, (what, commits) in enumerate(changes.items(), 1):
            for name, places in commits:
                logs.commit(name, places, START_MS + number * 60_000)
            begun = time.perf_counter()
            ingest(context, [folder / "log"], Store(out))
            seconds = time.perf_counter() - begun
            written = size(Store(out), BY_GROUP, run=number)
            whole = whole or written
            count = sum(len(places) for _, places in commits)
            print(f"| {what} | {count:,} | {seconds:.1f} | {written:,} | {written / whole:.1%} |", flush=True)
        print(f"driver with its JVM: {driver_mb(context):,.0f} MB", flush=True)
    return Store(out)


def main(arguments: list[str]) -> None:
    """Print a row for each run, and the bytes of a question."""
    groups, keys, partitions = map(int, (*arguments[:3], "4000", "100", "50")[:3])
    if 0 < len(arguments) < 3:
        sys.exit(__doc__)
    chosen = arguments[3] if len(arguments) > 3 else "local[2]"
    with tempfile.TemporaryDirectory() as folder, master_of(chosen) as master:
        store = grown(Path(folder), groups, keys, partitions, master)
        for name in ("commits", "events"):
            every, one = (asked(store, name, group, master) for group in (None, "group-7"))
            read = f"{every:,.0f} bytes for all rows, {one:,.0f} for those of one group"
            print(f"{name}: Spark reads {read}: 1/{every / one:.0f}")
        print(f"all tables: {size(store, KEPT):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
