"""Reading segments into columns: equal to the history's own decoder, for every cut of the files."""

import random
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import numpy as np
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from kgroup.domain import ZERO_UUID, uuid_bytes
from kgroup.errors import DecodeError
from kgroup.history.decode.records import decode_commit, decode_commit_key, group_of, raw_records
from kgroup.history.decode.scan import CONTROL, Scanner
from kgroup.history.sources.logs import segment_logs
from kgroup.history.sources.splits import SplitReader, plan_splits
from kgroup.pipeline.read.rows import SplitRows
from kgroup.pipeline.read.values import commit_columns
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord, encode_batch
from tests.pipeline.made_logs import made_batches, write_log

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
ROWS = frozenset({"commits", "control", "markers", "batches", "bad_ranges"})


def commit_values() -> st.SearchStrategy[bytes]:
    numbers, text = st.integers(-(2**63), 2**63 - 1), st.text(max_size=140)

    def make(offset: int, metadata: str, ts: int, version: int, topic_id: bytes) -> bytes:
        more: dict[str, object] = {"topic_id": topic_id} if version == 4 else {}
        value = r.OffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp=ts, **more)  # type: ignore[arg-type]
        encoded = r.encode_value(value, version)
        assert encoded is not None
        return encoded

    ids = st.one_of(st.just(ZERO_UUID), st.binary(min_size=16, max_size=16))
    whole = st.builds(make, numbers, st.one_of(st.just(""), text), numbers, st.integers(0, 4), ids)
    cut = st.builds(lambda value, size: value[:size], whole, st.integers(0, 40))
    longer = st.builds(lambda value, more: value + more, whole, st.binary(max_size=4))
    return st.one_of(whole, cut, longer, st.binary(max_size=50))


@given(st.lists(commit_values(), min_size=1, max_size=30))
def test_columns_are_what_the_decoder_says(values: list[bytes]) -> None:
    sizes = np.array([len(v) for v in values])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    found = commit_columns(values, starts, sizes)
    for row, value in enumerate(values):
        try:
            expected = decode_commit(value, -1, -1)
        except DecodeError as error:
            assert found.errors[row] == error.message
            continue
        assert row not in found.errors
        assert (found.version[row], found.offset[row]) == (expected.version, expected.offset)
        assert found.leader_epoch[row] == expected.leader_epoch
        assert found.commit_ms[row] == expected.commit_timestamp_ms
        assert found.expire_ms[row] == expected.expire_timestamp_ms
        assert found.topic_id[row].tobytes() == expected.topic_id
        assert found.metadata.get(row, "") == expected.metadata


def read_rows(folder: Path, split_bytes: int) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {name: [] for name in ROWS}
    for split in plan_splits(segment_logs([folder]), split_bytes):
        for name, table in SplitRows(split, ROWS).tables():
            found[name] += table.to_pylist()
    return found


def test_every_record_is_a_row_of_one_table(made: Path) -> None:
    found = read_rows(made, 1 << 20)
    commits, others, markers = {}, {}, 0
    for log in segment_logs([made]):
        for chunk, headers in log.batches():
            for header in headers:
                for record in raw_records(chunk, header):
                    key = record.key or b""
                    place = (log.partition, record.offset)
                    if header.attributes & CONTROL:
                        markers += 1
                    elif key[:2] in (b"\0\0", b"\0\1"):
                        commits[place] = (record, decode_commit_key(key))
                    else:
                        others[place] = (key, record.value, group_of(key))
    rows = {(row["part"], row["log_offset"]): row for row in found["commits"]}
    assert rows.keys() == commits.keys() and len(rows) == len(found["commits"])
    for place, (record, (group, topic, partition)) in commits.items():
        row = rows[place]
        assert (row["group_id"], row["topic"], row["partition"]) == (group, topic, partition)
        assert row["ts"].timestamp() * 1000 == pytest.approx(record.timestamp_ms)  # type: ignore[attr-defined]
        assert row["producer_id"] == (None if record.producer_id < 0 else record.producer_id)
        assert row["is_tombstone"] == (record.value is None)
        assert row["bytes"] == len(record.key) + len(record.value or b"")
        if record.value is not None:
            value = decode_commit(record.value, -1, -1)
            assert (row["offset"], row["value_version"]) == (value.offset, value.version)
            topic_id = row["topic_id"]
            assert value.topic_id == (ZERO_UUID if topic_id is None else uuid_bytes(str(topic_id)))
    control = {(row["part"], row["log_offset"]): row for row in found["control"]}
    assert {p: (row["key"], row["value"], row["group_id"]) for p, row in control.items()} == others
    assert len(found["markers"]) == markers
    assert found["bad_ranges"] == []


def test_keys_that_are_forgotten_change_no_row(made: Path) -> None:
    """A decoder that keeps few keys numbers them, groups and topics anew every so often."""
    (split, *_) = plan_splits(segment_logs([made]), 1 << 30)
    whole, short = [], []
    for rows, options in ((whole, {}), (short, {"max_keys": 20})):
        split_rows = SplitRows(split, ROWS, **options)
        split_rows.reader.chunk_bytes = 4_000
        for name, table in split_rows.tables():
            rows += [(name, row) for row in table.to_pylist()]
    assert len(split_rows.decoder._slots) < 60 and short == whole


def log_of(folder: Path, data: bytes) -> Path:
    """The folder, with a partition's log in it."""
    log = folder / "__consumer_offsets-3" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(data)
    return folder


def test_what_does_not_decode_is_bad_once_and_no_row(tmp_path: Path) -> None:
    sound = r.encode_key(r.OffsetCommitKey(group="g", topic="t", partition=0))
    value = r.encode_value(r.OffsetCommitValue(offset=5), 3)
    assert value is not None
    pairs = [
        (sound, value),
        (sound, value[:14]),
        (sound, b"\0\x09" + value[2:]),
        (sound[:-2], value),
        (sound[:4] + b"\xff" + sound[5:], value),
        (b"\0", value),
        (None, value),
        (sound, value),
        (b"\0\x63", value),
    ]
    records = [LogRecord(key, value, timestamp_ms=1_760_000_000_000) for key, value in pairs]
    found = read_rows(log_of(tmp_path, encode_batch(records, base_offset=0)), 1 << 20)
    assert [row["log_offset"] for row in found["commits"]] == [0, 7]
    assert [(row["log_offset"], row["key_type"]) for row in found["control"]] == [(8, 0x63)]
    reasons = [str(row["reason"]) for row in found["bad_ranges"]]
    assert sorted(int(reason.split()[2].rstrip(":")) for reason in reasons) == [1, 2, 3, 4, 5, 6]
    assert {row["start"] for row in found["bad_ranges"]} == {-1}


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=30), st.integers(0, 400))
def test_garbage_inside_a_batch_costs_no_other_batch(seed: int, garbage: bytes, at: int) -> None:
    """Its checksum holds, its records make no sense: rows of it are those before the break, if any."""
    import tempfile

    chunk = b"".join(made_batches(seed, 12))
    headers = [h for h in Scanner("made").headers(chunk, True) if not h.attributes & CONTROL]
    victim = headers[seed % len(headers)]
    start = victim.position + 61 + at % max(1, victim.end - victim.position - 61)
    garbage = garbage[: victim.end - start]
    damaged = bytearray(chunk)
    damaged[start : start + len(garbage)] = garbage
    crc = crc32c(bytes(damaged[victim.position + 21 : victim.end]))
    damaged[victim.position + 17 : victim.position + 21] = crc.to_bytes(4, "big")
    with tempfile.TemporaryDirectory() as folder:
        (split,) = plan_splits(segment_logs([log_of(Path(folder), damaged)]))
        tables = [table for _, table in SplitRows(split, frozenset({"commits", "control"})).tables()]
    rows = {offset for table in tables for offset in table["log_offset"].to_pylist()}
    others = {e.offset for h in headers if h is not victim for e in raw_records(chunk, h)}
    assert others <= rows
    assert len(rows - others) <= victim.records


@pytest.mark.parametrize("split_bytes", [150, 5_000, 60_000, 1 << 20])
def test_rows_do_not_depend_on_the_splits(made: Path, split_bytes: int) -> None:
    whole = read_rows(made, 1 << 30)
    assert read_rows(made, split_bytes) == whole


@given(st.integers(0, 10_000), st.integers(200, 6_000), st.integers(100, 3_000))
def test_damage_is_found_once_however_a_file_is_cut(seed: int, split_bytes: int, chunk_bytes: int) -> None:
    """Same sound batches, same damaged bytes, for one reader of the whole file and for many of its parts."""
    import tempfile

    rng = random.Random(seed)
    data = bytearray(b"".join(made_batches(seed, 30)))
    for _ in range(rng.randint(0, 3)):
        at, size = rng.randrange(len(data)), rng.randint(1, 900)
        data[at : at + size] = rng.randbytes(len(data[at : at + size]))
    if rng.random() < 0.5:
        del data[-rng.randint(1, 50) :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{0:020d}.log"
        path.write_bytes(data)
        logs = segment_logs([path])

        def read(size: int) -> tuple[list[int], set[int]]:
            offsets, bad = [], set()
            for split in plan_splits(logs, size):
                reader = SplitReader(split, chunk_bytes=1 << 20)
                offsets += [h.base_offset for _, headers in reader.chunks() for h in headers]
                for damage in reader.bad:
                    span = set(range(damage.start, damage.end))
                    assert not span & bad
                    bad |= span
            return offsets, bad

        assert read(split_bytes) == read(1 << 30)


def test_a_segment_that_was_read_is_left_out(tmp_path: Path) -> None:
    write_log(tmp_path / "__consumer_offsets-4", seed=1, batches=90)
    (log,) = segment_logs([tmp_path])
    second = int(log.files[1].stem)
    splits = plan_splits([log], after={4: second - 1})
    assert [piece.path for split in splits for piece in split.pieces] == [str(f) for f in log.files[1:]]
    headers = [h for _, hs in log.batches() for h in hs]
    seen = next(h.last_offset for h in headers if h.base_offset > second)
    splits = plan_splits([log], after={4: seen})
    offsets = [h.base_offset for s in splits for _, hs in SplitReader(s).chunks() for h in hs]
    assert offsets == [h.base_offset for h in headers if h.base_offset > seen]
