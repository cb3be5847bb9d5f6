"""Damaged input: what is sound is read, what is not is named with its place."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.errors import DecodeError, StorageError
from kgroup.history.decode.scan import Scanner
from kgroup.history.log_items import Problem, Undecodable
from kgroup.history.replay import replay
from kgroup.history.sources.logs import SegmentLog, segment_logs

from .incidents import INCIDENTS, log_of, text_of
from .logs import MemoryLog, batch, commit, items, sealed

DATA = log_of("upgrade-and-back").files[0].read_bytes()


def bases(data: bytes, chunk: int = 1 << 30) -> tuple[list[int], MemoryLog]:
    log = MemoryLog(data, chunk)
    return [header.base_offset for _, headers in log.batches() for header in headers], log


def test_a_tail_torn_at_any_byte_costs_the_last_batch_only() -> None:
    whole, _ = bases(DATA)
    ends = {h.end: n + 1 for n, h in enumerate(Scanner("x").headers(DATA, True))}
    done = 0
    for cut in range(0, len(DATA), 7):
        done = max([n for end, n in ends.items() if end <= cut], default=0)
        found, log = bases(DATA[:cut])
        assert found == whole[:done]
        rest = DATA[max([0, *(end for end in ends if end <= cut)]) : cut]
        assert [bad.problem for bad in log.bad] == [Problem.CUT_SHORT] * bool(rest.strip(b"\0"))
    assert done


@given(st.integers(0, len(DATA) - 1), st.integers(0, 7), st.integers(100, 5000))
def test_a_flipped_bit_costs_at_most_the_batch_it_is_in(position: int, bit: int, chunk: int) -> None:
    """Offset and leader epoch of a batch are not under its checksum; everything else is."""
    changed = bytearray(DATA)
    changed[position] ^= 1 << bit
    whole, _ = bases(DATA)
    found, log = bases(bytes(changed), chunk)
    assert len(found) >= len(whole) - 1
    assert log.bad or len(found) == len(whole)


@given(st.binary(max_size=3000), st.integers(64, 700))
def test_garbage_never_raises_and_never_hangs(data: bytes, chunk: int) -> None:
    found, log = bases(data, chunk)
    assert found == []
    assert log.bad or not data.strip(b"\0")


def test_reading_goes_on_behind_garbage_between_batches() -> None:
    one, two = batch(0, [commit("t", 0, 1)]), batch(1, [commit("t", 0, 2)])
    found, log = bases(one + b"garbage" * 30 + two)
    assert found == [0, 1]
    assert [(bad.start, bad.end) for bad in log.bad] == [(len(one), len(one) + 210)]


def test_zeros_behind_the_last_batch_are_a_preallocated_file_not_damage() -> None:
    found, log = bases(DATA + bytes(5000))
    assert found and not log.bad


def test_records_that_make_no_sense_are_reported_with_their_offset() -> None:
    """A batch whose checksum holds and whose records do not."""
    data = bytearray(batch(0, [commit("t", 0, 1)]))
    data[61] = 0x7F
    (item,) = items(sealed(data))
    assert "offset 0" in item.reason  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("at", "number"), [(0, 2**63 - 2), (0, -5), (27, 2**63 - 1), (35, 2**53), (27, -(2**63))]
)
def test_offsets_and_times_that_cannot_be_are_damage(at: int, number: int) -> None:
    """A batch whose checksum holds; sums with such numbers would fit no table and no client."""
    data = bytearray(batch(1, [commit("t", 0, 1)]))
    data[at : at + 8] = number.to_bytes(8, "big", signed=True)
    before, behind = batch(0, [commit("t", 0, 1)]), batch(2, [commit("t", 0, 3)])
    found, log = bases(before + sealed(data) + behind)
    assert found == [0, 2]
    (bad,) = log.bad
    assert (bad.start, bad.end) == (len(before), len(before) + len(data))
    assert "no such offset or time" in bad.reason


@pytest.mark.parametrize("since", [2**53, -(2**62)])
def test_a_record_at_no_possible_time_is_reported(since: int) -> None:
    from kgroup.history.decode.records import raw_records
    from kgroup.protocol.primitives import append_varint

    made = batch(7, [commit("t", 0, 1)])
    size, delta = made[61], bytearray()
    append_varint(delta, since)
    record = bytes([made[62]]) + bytes(delta) + made[64:]
    body, length = bytearray(), bytearray()
    append_varint(length, len(record))
    body += made[:61] + length + record
    body[8:12] = (len(body) - 12).to_bytes(4, "big")
    data = sealed(body)
    assert size == 2 * len(made[62:])
    (item,) = items(data)
    assert isinstance(item, Undecodable)
    assert "no possible time" in item.reason and "offset 7" in item.reason
    (header,) = Scanner("made").headers(data, True)
    with pytest.raises(DecodeError, match="no possible time"):
        list(raw_records(data, header))


def test_a_foreign_file_is_called_one(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(b"2026-01-01 12:00:00 INFO a log of another sort\n" * 100)
    story = replay(segment_logs([tmp_path]))
    assert [str(bad) for bad in story.bad] == [f"{path}: bytes 0 to 4700: not a segment of Kafka's log"]


@pytest.mark.parametrize("what", ["missing", "empty folder"])
def test_nothing_to_read_is_an_error(tmp_path: Path, what: str) -> None:
    with pytest.raises(StorageError):
        segment_logs([tmp_path / "no" if what == "missing" else tmp_path])


def test_a_missing_first_segment_is_a_log_that_starts_later() -> None:
    headers = list(Scanner("x").headers(DATA, True))
    story = replay([MemoryLog(DATA[headers[3].position :])])
    (covered,) = story.coverage
    assert covered.first_offset == headers[3].base_offset and not covered.from_the_start
    assert story.events[0].kind == "group-created" and not story.events[0].proven


def test_files_and_folders_name_their_partitions() -> None:
    logs = segment_logs([INCIDENTS / "deletion", INCIDENTS / "upgrade-and-back"])
    assert len({log.partition for log in logs}) == len(logs)
    named = logs[0].files[0]
    assert segment_logs([named])[0] == SegmentLog(logs[0].partition, (named,))
    assert text_of(replay([logs[0]]))
