"""Logs made for a test: batches of records of the offsets topic, and readers of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from google_crc32c import value as crc32c

from kgroup.errors import KgroupError
from kgroup.history.decode.decoder import Decoder
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.fold.folding import Fold
from kgroup.history.fold.snapshot import Kept, kept
from kgroup.history.log_items import BadRange, Item
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord, encode_batch

GROUP = "pay"


@dataclass
class MemoryLog:
    """A partition's log in memory, handed out in chunks of `chunk` bytes."""

    data: bytes
    chunk: int = 1 << 30
    partition: int = 0
    source: str = "memory"
    bad: list[BadRange] = field(default_factory=list)
    failure: KgroupError | None = None

    def batches(self, progress: object = None) -> Iterator[tuple[bytes, Iterator[BatchHeader]]]:
        scanner, rest, at = Scanner(self.source), b"", 0
        while True:
            read = self.data[at : at + self.chunk]
            at += self.chunk
            final = at >= len(self.data)
            chunk = rest + read
            if chunk:
                yield chunk, scanner.headers(chunk, final)
            if final:
                self.bad += scanner.bad
                return
            rest = chunk[scanner.consumed :]


def sealed(data: bytes | bytearray) -> bytes:
    """The same batch, its checksum right whatever its bytes say."""
    return bytes(data[:17]) + crc32c(bytes(data[21:])).to_bytes(4, "big") + bytes(data[21:])


def items(data: bytes, chunk: int = 1 << 30, decoder: Decoder | None = None) -> list[Item]:
    """All items of a log."""
    decoder = decoder or Decoder()
    found: list[Item] = []
    for part, headers in MemoryLog(data, chunk).batches():
        found += decoder.feed(part, headers)
    return [*found, *decoder.flush()]


def commit(
    topic: str, partition: int, offset: int, *, group: str = GROUP, version: int = 4, **more: object
) -> tuple[bytes, bytes]:
    """Key and value of a commit."""
    key = r.encode_key(r.OffsetCommitKey(group=group, topic=topic, partition=partition))
    value = r.encode_value(r.OffsetCommitValue(offset=offset, **more), version)  # type: ignore[arg-type]
    assert value is not None
    return key, value


def batch(
    base: int, records: Iterable[tuple[bytes, bytes | None]], timestamp_ms: int = 1000, **more: object
) -> bytes:
    """One batch at `base`."""
    made: Sequence[LogRecord] = [LogRecord(k, v, timestamp_ms=timestamp_ms) for k, v in records]
    return encode_batch(made, base_offset=base, **more)  # type: ignore[arg-type]


def moved(fold: Fold) -> None:
    """Let each group of a fold leave it, be stored, and go on in it."""
    codec = kept()
    for name in list(fold.groups):
        group, block = fold.leave(name)
        stored = codec.decode(codec.encode(Kept(fold.log_partition, block, 0, 0, group)))
        assert stored.group is not None
        fold.go_on(stored.group, stored.block, {})
