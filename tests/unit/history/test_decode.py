"""The decoder: equal to protocol.group_records, whatever the versions, the compression and the chunks."""

import sys
from heapq import heapify
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.errors import DecodeError
from kgroup.history.decode.decoder import Decoder, _next
from kgroup.history.decode.records import decode_commit, decode_commit_key, raw_records
from kgroup.history.decode.scan import Scanner
from kgroup.history.log_items import CommitRun, Gap, Marker, PendingCommit, Undecodable
from kgroup.history.stats import scan
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import encode_batch, end_marker_record
from kgroup.protocol.compression import Compression

from .logs import MemoryLog, batch, commit, items, sealed

NAMES = st.text(min_size=1, max_size=40)
COMMITS = st.lists(
    st.tuples(
        st.sampled_from(["pay", "orders-service", "ü"]),
        NAMES,
        st.integers(0, 3),
        st.integers(-1, 2**63 - 1),
        st.integers(0, 4),
        st.text(max_size=200),
    ),
    min_size=1,
    max_size=40,
)


def made(entries: list[tuple[Any, ...]]) -> list[tuple[bytes, bytes]]:
    return [
        commit(topic, partition, offset, group=group, version=version, metadata=text, commit_timestamp=7)
        for group, topic, partition, offset, version, text in entries
    ]


@given(COMMITS, st.sampled_from(Compression), st.integers(1, 10))
def test_commits_come_out_as_group_records_has_them(
    entries: list[tuple[Any, ...]], compression: Compression, per_batch: int
) -> None:
    """Last commit, number, first and rewinds of each partition, against the general decoder."""
    records = made(entries)
    batches = [
        batch(i, records[i : i + per_batch], 1000 + i, compression=compression)
        for i in range(0, len(records), per_batch)
    ]
    expected: dict[tuple[str, str, int], list[int]] = {}
    for key, value in records:
        k, v = r.decode_key(key), r.decode_value(r.decode_key(key), value)  # type: ignore[arg-type]
        expected.setdefault((k.group, k.topic, k.partition), []).append(v.offset)  # type: ignore[union-attr]
    runs = [item for item in items(b"".join(batches)) if isinstance(item, CommitRun)]
    got = {(run.group, *p.place): (p.commits, p.first, p.last.offset) for run in runs for p in run.parts}
    assert got == {k: (len(v), v[0], v[-1]) for k, v in expected.items()}
    rewinds = sum(len(run.rewinds) for run in runs)
    assert rewinds == sum(b < a for v in expected.values() for a, b in zip(v, v[1:], strict=False))


@given(
    st.integers(0, 4), st.text(max_size=300), st.integers(-1, 2**31 - 1), st.binary(min_size=16, max_size=16)
)
def test_a_commit_value_of_each_version_decodes_as_group_records_has_it(
    version: int, metadata: str, epoch: int, topic_id: bytes
) -> None:
    fields = {
        "leader_epoch": epoch if version > 2 else -1,
        "topic_id": topic_id if version > 3 else bytes(16),
    }
    expire = 99 if version == 1 else -1
    key, value = commit(
        "t", 3, 42, version=version, metadata=metadata, commit_timestamp=7, expire_timestamp=expire, **fields
    )
    told: Any = r.decode_value(r.decode_key(key), value)  # type: ignore[arg-type]
    found = decode_commit(value, 5, 6)
    assert (found.offset, found.leader_epoch, found.metadata) == (
        told.offset,
        told.leader_epoch,
        told.metadata,
    )
    assert (found.commit_timestamp_ms, found.expire_timestamp_ms) == (
        told.commit_timestamp,
        told.expire_timestamp,
    )
    assert found.topic_id == told.topic_id
    assert decode_commit_key(key) == ("pay", "t", 3)


LONG = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
"""A varint of 63 bits: what is added to it is beyond 64, where compiled numbers begin anew below zero."""


@pytest.mark.parametrize(
    "rest",
    [
        LONG,
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x01" + bytes(8) + LONG,
        b"\x01" + bytes(8) + b"\x01" + LONG,
        b"\x01" + bytes(8) + b"\x02\x00" + LONG + bytes(9),
    ],
    ids=["metadata", "longer", "tags", "tag", "tag-size"],
)
def test_a_length_that_fits_no_value_is_refused(rest: bytes) -> None:
    value = b"\0\4" + bytes(8) + bytes(4) + rest
    with pytest.raises(DecodeError):
        decode_commit(value, 7, 1)


@pytest.mark.parametrize("at", ["record", "key", "value", "offset"])
def test_a_record_with_a_length_that_fits_nothing_ends_its_batch(at: str) -> None:
    made = batch(0, [commit("t", 0, 1)] * 2)
    body = {
        "record": LONG,
        "offset": b"\x40\0\0" + LONG,
        "key": b"\x40\0\0\0" + LONG,
        "value": b"\x40\0\0\0\x02k" + LONG,
    }[at]
    data = bytearray(made[:61] + body.ljust(80, b"\0"))
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    (item,) = items(sealed(data))
    assert isinstance(item, Undecodable)
    counted = scan([MemoryLog(sealed(data))])
    assert (counted.total().records, counted.unreadable) == (0, 1)


@given(COMMITS, st.integers(70, 400))
def test_chunks_may_end_anywhere(entries: list[tuple[Any, ...]], chunk: int) -> None:
    data = b"".join(batch(i, [record]) for i, record in enumerate(made(entries)))
    assert items(data, chunk) == items(data)


def test_a_marker_is_never_taken_for_a_legacy_commit() -> None:
    """The key of a control record begins like type 0."""
    pending = encode_batch(
        [_log_record(*commit("t", 0, 5))],
        producer_id=9,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    marker = encode_batch(
        [end_marker_record(True)],
        base_offset=1,
        producer_id=9,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    first, second = items(pending + marker)
    assert isinstance(first, PendingCommit) and first.producer_id == 9 and first.commit.offset == 5
    assert second == Marker(9, True, 1, second.timestamp_ms)  # type: ignore[union-attr]


def _log_record(key: bytes, value: bytes) -> Any:
    from kgroup.protocol.batches import LogRecord

    return LogRecord(key, value, timestamp_ms=1)


@pytest.mark.parametrize("number", [9, 18])
def test_a_record_type_that_is_not_in_use_is_named(number: int) -> None:
    key = number.to_bytes(2, "big") + b"\x00\x03pay"
    (found,) = items(batch(0, [(key, b"\x00\x00")]))
    assert isinstance(found, Undecodable) and (found.type, found.group) == (number, "pay")


def test_a_value_of_an_unknown_version_is_reported_and_does_not_end_the_story() -> None:
    key, value = commit("t", 0, 1)
    found = items(batch(0, [(key, b"\x00\x09" + value[2:]), commit("t", 1, 4)]))
    assert [type(item) for item in found] == [Undecodable, CommitRun]


def test_a_gap_between_and_inside_batches_is_counted() -> None:
    decoder = Decoder()
    data = batch(10, [commit("t", 0, 1)]) + batch(15, [commit("t", 0, 2)])
    found = items(data, decoder=decoder)
    assert [item for item in found if isinstance(item, Gap)] == [Gap(11, 14, 1000, 4)]
    assert (decoder.first_offset, decoder.complete_from, decoder.missing) == (10, 15, 4)


def test_nothing_is_kept_of_what_was_read_while_a_run_is_open() -> None:
    """A recorder's fifty decoders held eight megabytes each."""
    entries: list[tuple[Any, ...]] = [("pay", "orders", 0, offset, 3, "") for offset in (7, 8, 9)]
    first, second = batch(0, made(entries[:2])), batch(2, made(entries[2:]))
    held, decoder = sys.getrefcount(first), Decoder()
    assert [*decoder.feed(first, Scanner("log").headers(first, True))] == []
    assert sys.getrefcount(first) == held
    assert [*decoder.feed(second, Scanner("log").headers(second, True))] == []
    (run,) = decoder.flush()
    assert [(p.commits, p.first, p.last.offset) for p in run.parts] == [(3, 7, 9)]  # type: ignore[union-attr]


def test_only_the_groups_asked_for_are_decoded() -> None:
    data = batch(0, [commit("t", 0, 1, group="a"), commit("t", 0, 1, group="b")])
    runs = items(data, decoder=Decoder(names=["b"]))
    assert [run.group for run in runs if isinstance(run, CommitRun)] == ["b"]
    assert items(data, decoder=Decoder(wanted=lambda group: group == "c")) == []


def test_a_batch_seen_twice_counts_once() -> None:
    one = batch(0, [commit("t", 0, 1)])
    (run,) = items(one + one)
    assert isinstance(run, CommitRun) and run.parts[0].commits == 1


def test_raw_records_keep_offsets_times_and_headers_out() -> None:
    data = batch(7, [commit("t", 0, 1), commit("t", 1, 2)], 1234, compression=Compression.LZ4)
    (header,) = Scanner("x").headers(data, True)
    assert [(record.offset, record.timestamp_ms, record.batch) for record in raw_records(data, header)] == [
        (7, 1234, 7),
        (8, 1234, 7),
    ]


class Searched(bytes):
    """A chunk that counts how often it is searched."""

    searches = 0

    def find(self, *asked: object) -> int:  # type: ignore[override]
        self.searches += 1
        return super().find(*asked)  # type: ignore[call-overload, no-any-return]


def test_a_name_that_is_nowhere_in_a_chunk_is_searched_for_once() -> None:
    """Of ten groups nine live in other partitions: each batch searched the rest of the chunk for all nine."""
    chunk = Searched(b"..a." * 1000)
    found = [(-1, name) for name in (b"a", b"b", b"c")]
    heapify(found)
    assert [_next(chunk, found, at) for at in range(0, 4000, 4)] == list(range(2, 4000, 4))
    assert _next(chunk, found, 3999) == 4000
    assert chunk.searches == 1000 + 1 + 2


def test_without_names_nothing_is_found() -> None:
    assert _next(b"abc", [], 0) == 3
