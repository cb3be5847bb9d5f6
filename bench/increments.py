"""What a run writes after few new records, and what a question about one group reads.

    python -m bench increments [GROUPS] [KEYS] [PARTITIONS] [MASTER]     by default 4000, 100, 50, local[2]

GROUPS groups commit KEYS partitions each, in PARTITIONS partitions of the topic, placed as a broker does.
Then every hundredth group commits again, and then a hundredth of all keys, spread over the groups. Reported
are the bytes of `folds` that each run writes, as a share of the first, and of the files a question opens.
"""

import struct
import sys
import tempfile
import time
from pathlib import Path

from kgroup.domain import offsets_partition_of
from kgroup.pipeline.spark.session import spark_context
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import KEPT, Store
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

    def commit(self, group: str, keys: range, offset: int) -> None:
        part = offsets_partition_of(group, self.partitions)
        value = r.OffsetCommitValue(offset=offset, leader_epoch=1, commit_timestamp=START_MS)
        encoded = r.encode_value(value, 3)
        named = (r.OffsetCommitKey(group=group, topic="orders", partition=key) for key in keys)
        batch = encode_batch([LogRecord(r.encode_key(key), encoded) for key in named], timestamp_ms=START_MS)
        with self.files[part].open("ab") as file:
            file.write(struct.pack(">q", self.ends[part]) + batch[8:])
        self.ends[part] += len(keys)


def size(store: Store, table: str, group: str | None = None, run: int | None = None) -> int:
    """Bytes of a table's files: all, those that may hold a group, or those of a run."""
    names = store.names(table, group)
    return sum(
        (store.place.root.local / name).stat().st_size
        for name in names
        if run is None or Path(name).name.startswith(f"{run}-")
    )


def main(arguments: list[str]) -> None:
    """Print a row for each run, and the bytes of a question."""
    groups, keys, partitions = map(int, (*arguments[:3], "4000", "100", "50")[:3])
    if 0 < len(arguments) < 3:
        sys.exit(__doc__)
    master = arguments[3] if len(arguments) > 3 else "local[2]"
    with tempfile.TemporaryDirectory() as folder, spark_context(master) as context:
        logs, out = Logs(Path(folder) / "log", partitions), Path(folder) / "tables"
        names = [f"group-{number}" for number in range(groups)]
        changes = {
            "all groups": [(name, range(keys)) for name in names],
            "1 % of the groups": [(name, range(keys)) for name in names[::100]],
            "1 % of the keys, of all groups": [(name, range(max(1, keys // 100))) for name in names],
        }
        print("| new records | keys | run s | `folds` written, bytes | of the state |\n|---|---|---|---|---|")
        whole = 0
        for number, (what, commits) in enumerate(changes.items(), 1):
            for name, places in commits:
                logs.commit(name, places, number * 100)
            begun = time.perf_counter()
            ingest(context, [Path(folder) / "log"], Store(out))
            seconds = time.perf_counter() - begun
            written = size(Store(out), "folds", run=number)
            whole = whole or written
            count = sum(len(places) for _, places in commits)
            print(f"| {what} | {count:,} | {seconds:.1f} | {written:,} | {written / whole:.1%} |", flush=True)
        store = Store(out)
        for table in ("commits", "events"):
            every, one = size(store, table), size(store, table, names[7])
            told = f"{one:,} in files that may hold one group: 1/{every / one:.0f}"
            print(f"{table}: {every:,} bytes in all, {told}")
        print(f"all tables: {sum(size(store, table) for table in KEPT):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
