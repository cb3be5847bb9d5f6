"""What the offsets topic consists of: counts by group and type, what is superseded, open or unreadable."""

from __future__ import annotations

from collections import Counter

import pytest

from kgroup.errors import Unreachable
from kgroup.history.decode.records import group_of, raw_records
from kgroup.history.decode.scan import CONTROL
from kgroup.history.stats import OpenTransaction, Tally, scan
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import end_marker_record
from kgroup.protocol.compression import Compression

from .incidents import NAMES, log_of
from .logs import MemoryLog, batch, commit, sealed

Pair = tuple[bytes, bytes | None]


def size(*pairs: Pair) -> int:
    return sum(len(key) + len(value or b"") for key, value in pairs)


def group_record(group: str) -> Pair:
    return r.encode_key(r.GroupMetadataKey(group=group)), None


def ends(base: int, producer: int, committed: bool = True) -> bytes:
    marker = end_marker_record(committed)
    record = [(marker.key or b"", marker.value)]
    return batch(base, record, transactional=True, control=True, producer_id=producer)


def test_records_are_counted_by_group_and_type() -> None:
    pays: list[Pair] = [commit("t", 0, 1), commit("t", 1, 1)]
    others: list[Pair] = [commit("t", 0, 1, group="ship"), group_record("ship")]
    told = scan([MemoryLog(batch(0, pays, timestamp_ms=1_000) + batch(2, others, timestamp_ms=9_000))])
    assert told.by_group() == {
        "pay": Tally(2, size(*pays), 0, 1_000, 1_000),
        "ship": Tally(2, size(*others), 1, 9_000, 9_000),
    }
    assert {kind: tally.records for kind, tally in told.by_type().items()} == {1: 3, 2: 1}
    assert told.commits("ship") == Tally(1, size(others[0]), 0, 9_000, 9_000)
    assert told.commits("nobody") == Tally()
    assert told.total() == Tally(4, size(*pays, *others), 1, 1_000, 9_000)


def test_what_compaction_may_take_is_the_older_record_of_each_key() -> None:
    older, newer = commit("t", 0, 1), commit("t", 0, 2, metadata="longer")
    other = commit("t", 1, 1)
    data = batch(0, [older, other]) + batch(2, [newer]) + batch(3, [(older[0], None)])
    told = scan([MemoryLog(data)])
    assert (told.superseded, told.superseded_bytes) == (2, size(older, newer))
    again = scan([MemoryLog(data, partition=0), MemoryLog(batch(0, [older]), partition=1)])
    assert again.superseded == 2, "partitions are logs of their own"


def test_bytes_and_batches_by_partition() -> None:
    plain, packed = (
        batch(0, [commit("t", 0, 1)]),
        batch(1, [commit("t", 0, 2)] * 9, compression=Compression.ZSTD),
    )
    told = scan([MemoryLog(plain + packed, partition=3), MemoryLog(plain, partition=5)])
    assert told.partitions == {3: len(plain) + len(packed), 5: len(plain)}
    assert (told.batches, told.compressed_batches) == (3, 1)


def test_a_transaction_without_its_end_is_open_from_its_first_batch() -> None:
    begun = {"transactional": True, "producer_id": 7}
    data = (
        batch(0, [commit("t", 0, 1)], timestamp_ms=5_000, **begun)
        + batch(1, [commit("t", 1, 1)] * 2, timestamp_ms=6_000, **begun)
        + batch(3, [commit("t", 2, 1)], timestamp_ms=7_000, transactional=True, producer_id=8)
        + ends(4, 8)
    )
    told = scan([MemoryLog(data, partition=2)])
    assert told.open_transactions == [OpenTransaction(7, 2, 0, 5_000, 3)] and told.markers == 1
    assert scan([MemoryLog(data + ends(5, 7, committed=False))]).open_transactions == []


def test_a_rate_needs_more_than_a_moment() -> None:
    def told(*times: int) -> float | None:
        data = b"".join(batch(n, [commit("t", 0, n)], timestamp_ms=ms) for n, ms in enumerate(times))
        return scan([MemoryLog(data)]).commits("pay").per_minute

    assert told(0, 30_000, 60_000) == pytest.approx(3.0)
    assert told(1_000) is None and told(1_000, 1_500) is None


def test_what_cannot_be_read_is_counted_and_named() -> None:
    short = bytearray(batch(0, [commit("t", 0, 1)]))
    short[57:61], short[23:27] = (2).to_bytes(4, "big"), (1).to_bytes(4, "big")  # says two records, holds one
    torn = batch(3, [commit("t", 0, 3)])[:-9]
    mute = MemoryLog(b"", source="__consumer_offsets-9", failure=Unreachable("broker 1 did not answer"))
    told = scan([MemoryLog(sealed(short) + batch(2, [commit("t", 0, 2)]) + torn), mute])
    assert told.unreadable == 1 and len(told.bad) == 1
    assert told.failures == {"__consumer_offsets-9": mute.failure}
    assert told.total().records == 2, "what came before the damage, and what came behind it"


@pytest.mark.parametrize("name", NAMES)
def test_what_is_counted_is_what_the_records_are(name: str) -> None:
    """Beside a plain walk over the records, one by one."""
    log, records = log_of(name), Counter[str]()
    newest: dict[bytes, int] = {}
    for chunk, headers in log.batches():
        for header in headers:
            for record in raw_records(chunk, header) if not header.attributes & CONTROL else ():
                assert record.key is not None
                records[group_of(record.key) or ""] += 1
                newest[record.key] = len(record.key) + len(record.value or b"")
    told = scan([log_of(name)])
    assert {group: tally.records for group, tally in told.by_group().items()} == records
    assert told.superseded == records.total() - len(newest)
    assert told.superseded_bytes == told.total().size - sum(newest.values())


def test_keys_that_name_no_group_count_under_no_name() -> None:
    told = scan([MemoryLog(batch(0, [(b"\0", b"v"), commit("t", 0, 1)]))])
    assert {key: tally.records for key, tally in told.groups.items()} == {("", -1): 1, ("pay", 1): 1}
