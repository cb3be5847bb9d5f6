"""What a commit costs on its way to disk: encode, append, read back; beside kafka-python's codec.

Run: python -m bench log_batches. Times are the best of several runs, in microseconds, on one core.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from timeit import repeat

from bench.history import Ratio, kept
from kgroup.log.compaction import compact
from kgroup.log.memory import MemoryLog
from kgroup.log.partition import PartitionLog
from kgroup.protocol.batches import LogRecord, batches_in, encode_batch, with_base_offset

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

# The sizes of an OffsetCommit record: group, topic and partition; offset, metadata and timestamps.
RECORDS = [LogRecord(b"k" * 60, b"v" * 40, (), 1_700_000_000_000) for _ in range(10)]

ROUNDS = 5


def best(call: Callable[[], object], number: int = 5000) -> float:
    return min(repeat(call, number=number, repeat=5)) / number * 1e6


def kafka_python_encode() -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    for i, record in enumerate(RECORDS):
        builder.append(i, record.timestamp_ms, record.key, record.value, [])
    return bytes(builder.build())


def codec() -> None:
    raw = encode_batch(RECORDS)
    beside_kafka_python("encode, 10 records", lambda: encode_batch(RECORDS), kafka_python_encode)
    print(f"{'encode, 1 record':28}{best(lambda: encode_batch(RECORDS[:1])):8.2f}")
    print(f"{'check header and CRC':28}{best(lambda: next(batches_in(raw))):8.2f}")
    beside_kafka_python(
        "decode, 10 records", lambda: next(batches_in(raw)).records, lambda: list(DefaultRecordBatch(raw))
    )
    print(f"{'place a produced batch':28}{best(lambda: with_base_offset(raw, 7, 1)):8.2f}")


def beside_kafka_python(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    """Print a line with both, in turns."""
    taken = [(best(ours, 2000), best(theirs, 500)) for _ in range(ROUNDS)]
    mine, other = zip(*taken, strict=True)
    ratio = kept(f"log_batches {name}", Ratio.of(mine, other))
    print(f"{name:28}{median(mine):8.2f}   kafka-python {median(other):6.1f}   {ratio}")


def logs(folder: Path) -> None:
    memory, disk = MemoryLog(), PartitionLog(folder / "t-0")
    synced = PartitionLog(folder / "t-1", fsync=True)
    print(f"{'append in memory, 10':28}{best(lambda: memory.append(RECORDS)):8.2f}")
    print(f"{'append to a folder, 10':28}{best(lambda: disk.append(RECORDS)):8.2f}")
    print(f"{'append with fsync, 10':28}{best(lambda: synced.append(RECORDS), 100):8.2f}")
    tail = disk.end_offset - 10
    middle = tail // 20 * 10
    print(f"{'read the last batch':28}{best(lambda: disk.read(tail, 4096)):8.2f}")
    print(f"{'read from the middle':28}{best(lambda: disk.read(middle, 4096)):8.2f}")
    count = disk.end_offset
    seconds = min(repeat(lambda: [batch.records for batch in disk.batches()], number=1, repeat=2))
    print(f"{'read everything':28}{count / seconds / 1e6:8.2f} M records/s")
    disk.close()
    seconds = min(repeat(lambda: PartitionLog(folder / "t-0").close(), number=1, repeat=2))
    print(f"{'open, checking the tail':28}{count / seconds / 1e6:8.2f} M records/s")


def compaction(folder: Path) -> None:
    log = PartitionLog(folder / "t-2")
    for i in range(20_000):
        log.append([LogRecord(b"k%d" % (i * n % 5000), b"v" * 40, (), 1) for n in range(10)])
    log.roll()
    seconds = min(repeat(lambda: compact(log, now_ms=1), number=1, repeat=1))
    print(f"{'compact 200,000 records':28}{seconds * 1e3:8.0f} ms")
    log.close()


def main(_: list[str]) -> None:
    """Print times in microseconds, and the ratio to kafka-python where it does the same."""
    with tempfile.TemporaryDirectory() as scratch:
        codec()
        logs(Path(scratch))
        compaction(Path(scratch))


if __name__ == "__main__":
    main([])
