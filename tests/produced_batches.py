"""Batches no proper client would send, and what Kafka 4.3.1 answers to each: one table for both brokers.

`make` is given the time; `code` is Kafka's error code. A batch that is accepted moves the end offset by
`stored` records, any other by none.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from dataclasses import dataclass

from google_crc32c import value as crc32c

from kgroup.errors import ErrorCode
from kgroup.protocol.compression import Compression, compress
from kgroup.protocol.primitives import append_varint

INT64_MAX = (1 << 63) - 1
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "past": {"message.timestamp.before.max.ms": str(DAY_MS)},
    "small": {"max.message.bytes": "200"},
}


def varint(number: int) -> bytes:
    out = bytearray()
    append_varint(out, number)
    return bytes(out)


def record(
    delta: int = 0,
    since: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: bytes = b"\0",
    longer: int = 0,
) -> bytes:
    """One record; its length field says `longer` bytes more than it has."""
    fields = b"".join(varint(-1) if x is None else varint(len(x)) + x for x in (key, value))
    body = b"\0" + varint(since) + varint(delta) + fields + headers
    return varint(len(body) + longer) + body


def batch(
    body: bytes = record(),  # noqa: B008 - bytes do not change
    *,
    at: int,
    base: int = 0,
    length: int | None = None,
    magic: int = 2,
    crc: int | None = None,
    attributes: int = 0,
    last_delta: int = 0,
    newest: int | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    count: int = 1,
) -> bytes:
    """A batch whose header says what it is told to, whatever the records are."""
    latest = at if newest is None else newest
    checked = struct.pack(">hiqqqhii", attributes, last_delta, at, latest, *producer, count) + body
    crc = crc32c(checked) if crc is None else crc
    length = len(checked) + 9 if length is None else length
    return struct.pack(">qiibI", base, length, -1, magic, crc) + checked


@dataclass(frozen=True)
class Case:
    """`transactional_id` is the request's; `why` a difference from Kafka that is meant, with our code."""

    name: str
    code: int
    make: Callable[[int], bytes]
    stored: int = 0
    topic: str = "plain"
    version: int = 9
    transactional_id: str | None = None
    ours: int | None = None
    why: str = ""

    def __str__(self) -> str:
        return self.name


OK = 0
UNEXPECTED = "Kafka meets an exception it does not expect, at a length that is no number"
CORRUPT, INVALID, TIMESTAMP = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP
SERVER, TOO_LARGE = ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.MESSAGE_TOO_LARGE
TWO = record(0) + record(1)
ZSTD_CODE = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
NOT_AUTHORIZED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
OLD_EPOCH, OUT_OF_ORDER = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def packed(body: bytes, codec: Compression, at: int, **fields: int) -> bytes:
    return batch(compress(body, codec), at=at, attributes=int(codec), **fields)  # type: ignore[arg-type]


HEADERS = [
    Case("good", OK, lambda now: batch(at=now), 1),
    Case("nothing", INVALID, lambda now: b""),
    Case("eleven bytes", INVALID, lambda now: batch(at=now)[:11]),
    Case("cut in the header", INVALID, lambda now: batch(at=now)[:40]),
    Case("cut in the records", INVALID, lambda now: batch(at=now)[:-1]),
    Case("length of nothing", CORRUPT, lambda now: batch(at=now, length=13)),
    Case("negative length", CORRUPT, lambda now: batch(at=now, length=-1)),
    Case("length past the end", INVALID, lambda now: batch(at=now, length=4096)),
    Case("length before the end", CORRUPT, lambda now: batch(TWO, at=now, length=60, count=2, last_delta=1)),
    Case("shorter than a header", CORRUPT, lambda now: batch(b"", at=now, length=40)[:52]),
    Case("magic 3", CORRUPT, lambda now: batch(at=now, magic=3)),
    Case("magic -1", CORRUPT, lambda now: batch(at=now, magic=-1)),
    Case("magic 0", INVALID, lambda now: batch(at=now, magic=0)),
    Case("magic 1", INVALID, lambda now: batch(at=now, magic=1), version=3),
    Case("two batches", INVALID, lambda now: batch(at=now) * 2),
    Case("a cut batch behind", OK, lambda now: batch(at=now) + batch(at=now)[:30], 1),
    Case("eleven bytes behind", OK, lambda now: batch(at=now) + b"\xff" * 11, 1),
    Case("rubbish behind", CORRUPT, lambda now: batch(at=now) + b"\xff" * 40),
    Case("checksum", CORRUPT, lambda now: batch(at=now, crc=1)),
    Case("base offset 7", INVALID, lambda now: batch(at=now, base=7)),
    Case("base offset -1", INVALID, lambda now: batch(at=now, base=-1)),
    Case("too large", TOO_LARGE, lambda now: batch(record(value=bytes(200)), at=now), topic="small"),
    Case("larger than a broker takes", TOO_LARGE, lambda now: batch(record(value=bytes(1 << 20)), at=now)),
    Case("larger and damaged", TOO_LARGE, lambda now: batch(bytes(200), at=now, crc=1), topic="small"),
    Case("control batch", INVALID, lambda now: batch(at=now, attributes=0x20)),
    Case("delete horizon", OK, lambda now: batch(at=now, attributes=0x40), 1),
    Case("attributes nobody knows", OK, lambda now: batch(at=now, attributes=0x4380), 1),
]
COUNTS = [
    Case("no record claimed", INVALID, lambda now: batch(at=now, count=0)),
    Case("no record at all", INVALID, lambda now: batch(b"", at=now, count=0, last_delta=-1)),
    Case("negative count", INVALID, lambda now: batch(at=now, count=-1)),
    Case("largest count", INVALID, lambda now: batch(at=now, count=(1 << 31) - 1, last_delta=(1 << 31) - 2)),
    Case("largest last delta", INVALID, lambda now: batch(at=now, last_delta=(1 << 31) - 1)),
    Case("last delta too large", INVALID, lambda now: batch(at=now, last_delta=1)),
    Case("last delta too small", INVALID, lambda now: batch(TWO, at=now, count=2)),
    Case("negative last delta", INVALID, lambda now: batch(at=now, last_delta=-1)),
    Case("one record too few", INVALID, lambda now: batch(at=now, count=2, last_delta=1)),
    Case("one record too many", INVALID, lambda now: batch(TWO, at=now)),
]
RECORDS = [
    Case("rubbish as records", SERVER, lambda now: batch(b"\xff" * 9, at=now), ours=INVALID, why=UNEXPECTED),
    Case("nothing for a record", INVALID, lambda now: batch(b"", at=now)),
    Case("zeros for a record", INVALID, lambda now: batch(bytes(9), at=now)),
    Case("record too long", INVALID, lambda now: batch(record(longer=1), at=now)),
    Case("record too short", INVALID, lambda now: batch(record(longer=-1), at=now)),
    Case("key past the record", INVALID, lambda now: batch(b"\x0c\0\0\0\x7ek\1\0", at=now)),
    Case("negative length of a key", OK, lambda now: batch(b"\x0c\0\0\0\3\1\0", at=now), 1),
    Case("negative count of headers", INVALID, lambda now: batch(record(headers=b"\1"), at=now)),
    Case("many headers claimed", INVALID, lambda now: batch(record(headers=b"\xfe\x7f"), at=now)),
    Case("header without a name", INVALID, lambda now: batch(record(headers=b"\2\1\1"), at=now)),
    Case("header name not UTF-8", OK, lambda now: batch(record(headers=b"\2\2\xff\1"), at=now), 1),
    Case("endless varint", SERVER, lambda now: batch(b"\xff" * 30, at=now), ours=INVALID, why=UNEXPECTED),
    Case("offsets that stay", OK, lambda now: batch(record() * 2, at=now, count=2, last_delta=1), 2),
    Case("offsets that jump", OK, lambda now: batch(record(0) + record(9), at=now, count=2, last_delta=1), 2),
    Case("negative offset", OK, lambda now: batch(record(-5), at=now), 1),
    Case(
        "offsets that jump, compressed",
        SERVER,
        lambda now: packed(record(3) + record(1), Compression.GZIP, now, count=2, last_delta=1),
    ),
    Case("no key", OK, lambda now: batch(record(key=None), at=now), 1),
    Case(
        "no key in a compacted topic", INVALID, lambda now: batch(record(key=None), at=now), topic="compacted"
    ),
    Case("empty key in a compacted topic", OK, lambda now: batch(record(key=b""), at=now), 1, "compacted"),
    Case(
        "no key, compressed",
        INVALID,
        lambda now: packed(record(key=None), Compression.LZ4, now),
        topic="compacted",
    ),
]
TIMES = [
    Case("in an hour and more", TIMESTAMP, lambda now: batch(at=now + HOUR_MS + 60_000)),
    Case("within the hour", OK, lambda now: batch(at=now + HOUR_MS - 60_000), 1),
    Case("the end of time", TIMESTAMP, lambda now: batch(at=INT64_MAX)),
    Case("past the end of time", TIMESTAMP, lambda now: batch(record(since=INT64_MAX), at=now)),
    Case("before all time", TIMESTAMP, lambda now: batch(at=-INT64_MAX - 1)),
    Case("1970", OK, lambda now: batch(at=0), 1),
    Case("before 1970", OK, lambda now: batch(at=-DAY_MS), 1),
    Case("without a time", OK, lambda now: batch(at=-1), 1),
    Case("two days ago", TIMESTAMP, lambda now: batch(at=now - 2 * DAY_MS), topic="past"),
    Case("an hour ago", OK, lambda now: batch(at=now - HOUR_MS), 1, "past"),
    Case("newest too large", OK, lambda now: batch(at=now, newest=INT64_MAX), 1),
    Case("newest too small", OK, lambda now: batch(at=now, newest=-1), 1),
    Case(
        "one record late",
        TIMESTAMP,
        lambda now: batch(record() + record(1, since=-2 * DAY_MS), at=now, count=2, last_delta=1),
        topic="past",
    ),
    Case("type set by the client", OK, lambda now: batch(at=now, attributes=8), 1),
    Case("type and a time to come", TIMESTAMP, lambda now: batch(at=now, attributes=8, newest=INT64_MAX)),
    Case("type without a time", TIMESTAMP, lambda now: batch(at=now, attributes=8, newest=-1)),
    Case(
        "type in a topic that sets it",
        TIMESTAMP,
        lambda now: batch(at=now, attributes=8),
        topic="append-time",
    ),
    Case("any time where the broker sets it", OK, lambda now: batch(at=INT64_MAX), 1, "append-time"),
]
CODECS = [
    *(
        Case(f"{codec.name.lower()}", OK, lambda now, c=codec: packed(TWO, c, now, count=2, last_delta=1), 2)  # type: ignore[misc]
        for codec in Compression
    ),
    *(
        Case(f"codec {n}", SERVER, lambda now, n=n: batch(at=now, attributes=n))  # type: ignore[misc]
        for n in (5, 6, 7)
    ),
    *(
        Case(f"rubbish as {c.name}", SERVER, lambda now, c=c: batch(b"\x55" * 40, at=now, attributes=c))  # type: ignore[misc]
        for c in (Compression.GZIP, Compression.LZ4, Compression.ZSTD)
    ),
    Case("rubbish as snappy", SERVER, lambda now: batch(b"\x55" * 40, at=now, attributes=2)),
    Case("cut gzip", SERVER, lambda now: batch(gzip.compress(record())[:-12], at=now, attributes=1)),
    Case("zstd in version 6", ZSTD_CODE, lambda now: packed(record(), Compression.ZSTD, now), version=6),
    Case("zstd in version 7", OK, lambda now: packed(record(), Compression.ZSTD, now), 1, version=7),
    Case("too many records, compressed", INVALID, lambda now: packed(TWO, Compression.GZIP, now)),
    Case(
        "too few records, compressed",
        INVALID,
        lambda now: packed(record(), Compression.GZIP, now, count=2, last_delta=1),
    ),
    Case("nothing, compressed", INVALID, lambda now: packed(b"", Compression.GZIP, now)),
    Case(
        "record too long, compressed",
        OK,
        lambda now: packed(record(longer=1), Compression.GZIP, now),
        1,
        ours=INVALID,
        why="Kafka skips through compressed records without looking at their lengths, and"
        " stores what no consumer can read",
    ),
]
PRODUCERS = [
    Case("no sequence", INVALID, lambda now: batch(at=now, producer=(70_001, 0, -1))),
    Case("no epoch", OK, lambda now: batch(at=now, producer=(70_002, -1, 0)), 1),
    Case("no epoch, any sequence after", OK, lambda now: batch(at=now, producer=(70_002, -1, 9)), 1),
    Case("epoch -2", OLD_EPOCH, lambda now: batch(at=now, producer=(70_003, -2, 0))),
    Case("sequence without a producer", OK, lambda now: batch(at=now, producer=(-1, 0, 5)), 1),
    Case("producer -2", OK, lambda now: batch(at=now, producer=(-2, 0, 5)), 1),
    Case("first sequence of a producer", OK, lambda now: batch(at=now, producer=(70_004, 3, 8)), 1),
    Case("gap in the sequence", OUT_OF_ORDER, lambda now: batch(at=now, producer=(70_004, 3, 10))),
    Case("older epoch", OLD_EPOCH, lambda now: batch(at=now, producer=(70_004, 2, 0))),
    Case(
        "transactional without an id",
        NOT_AUTHORIZED,
        lambda now: batch(at=now, attributes=0x10, producer=(70_005, 0, 0)),
    ),
    Case(
        "transactional and damaged, without an id",
        NOT_AUTHORIZED,
        lambda now: batch(at=now, attributes=0x10, crc=1),
    ),
    Case(
        "transactional without a producer",
        OK,
        lambda now: batch(at=now, attributes=0x10),
        1,
        transactional_id="no-such",
    ),
    Case("not transactional with an id", OK, lambda now: batch(at=now), 1, transactional_id="no-such"),
    Case("transactional control batch", NOT_AUTHORIZED, lambda now: batch(at=now, attributes=0x30)),
]
CASES = [*HEADERS, *COUNTS, *RECORDS, *TIMES, *CODECS, *PRODUCERS]
