"""What every log promises, on both implementations."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgroup.errors import DecodeError
from kgroup.log.interface import Log, OffsetOutOfRange
from kgroup.log.memory import MemoryLog
from kgroup.protocol.batches import LogRecord, batches_in, encode_batch, records_in
from kgroup.protocol.compression import Compression


def records(*values: str, at: int = 1000) -> list[LogRecord]:
    return [LogRecord(b"key", value.encode(), (), at + i) for i, value in enumerate(values)]


def values(log: Log, start: int = 0) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in records_in(log.batches(start))]


def test_an_empty_log(log: Log) -> None:
    assert (log.start_offset, log.end_offset) == (0, 0)
    assert log.read(0, 1000) == b""
    assert list(log.batches()) == []
    assert log.offset_for_timestamp(0) is None


def test_an_append_is_one_batch_at_the_end(log: Log) -> None:
    assert log.append(records("a", "b")) == 0
    assert log.append(records("c"), transactional=True, producer_id=4, producer_epoch=1, leader_epoch=6) == 2
    assert log.end_offset == 3
    first, second = log.batches()
    assert [(r.offset, r.value) for r in first.records] == [(0, b"a"), (1, b"b")]
    assert (second.base_offset, second.producer_id, second.partition_leader_epoch) == (2, 4, 6)
    assert second.transactional


def test_records_without_a_time_take_the_appends(log: Log) -> None:
    log.append([LogRecord(b"k", b"v")], timestamp_ms=77)
    assert next(log.batches()).records[0].timestamp_ms == 77


def test_produced_batches_get_offsets(log: Log) -> None:
    log.append(records("x"))
    raw = encode_batch(records("a", "b"), compression=Compression.ZSTD) + encode_batch(records("c"))
    assert log.append_batches(raw, leader_epoch=3) == (1, 3)
    assert values(log) == [(0, b"x"), (1, b"a"), (2, b"b"), (3, b"c")]
    assert [batch.partition_leader_epoch for batch in log.batches()] == [0, 3, 3]


def test_produced_batches_can_take_the_brokers_time(log: Log) -> None:
    log.append_batches(encode_batch(records("a", "b")), append_time_ms=9000)
    batch = next(log.batches())
    assert batch.log_append_time
    assert [record.timestamp_ms for record in batch.records] == [9000, 9000]
    assert log.offset_for_timestamp(9000) == (0, 9000)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "trailing"])
def test_damaged_produced_data_is_refused_whole(log: Log, damage: str) -> None:
    raw = encode_batch(records("a")) + encode_batch(records("b"))
    flipped = raw[:-1] + bytes([raw[-1] ^ 1])
    bad = {"empty": b"", "cut": raw[:-1], "flipped": flipped, "trailing": raw + b"x"}[damage]
    with pytest.raises(DecodeError):
        log.append_batches(bad)
    assert log.end_offset == 0
    assert list(log.batches()) == []


def test_read_returns_whole_batches_at_least_one(log: Log) -> None:
    for value in ("a", "b", "c", "d"):
        log.append(records(value * 30, value))
    size = len(next(log.batches()).raw)
    assert [b.base_offset for b in batches_in(log.read(3, 1))] == [2]
    assert [b.base_offset for b in batches_in(log.read(2, size + 40))] == [2]
    got = list(batches_in(log.read(0, 2 * size)))
    assert got[0].base_offset == 0
    assert sum(batch.size for batch in got) <= 2 * size
    assert log.read(8, 1000) == b""


@pytest.mark.parametrize("offset", [-1, 0, 1, 5])
def test_read_out_of_range(log: Log, offset: int) -> None:
    log.append(records("a", "b", "c", "d"))
    log.delete_before(2)
    with pytest.raises(OffsetOutOfRange, match=f"offset {offset} is outside the log's 2 to 4"):
        log.read(offset, 1000)


def test_batches_start_with_the_one_that_holds_the_offset(log: Log) -> None:
    log.append(records("a", "b"))
    log.append(records("c"))
    assert [batch.base_offset for batch in log.batches(1)] == [0, 2]
    assert [batch.base_offset for batch in log.batches(2)] == [2]
    assert list(log.batches(3)) == []


def test_offset_for_timestamp_finds_the_first_not_older(log: Log) -> None:
    for at in (100, 300, 200, 400):
        log.append(records("a", "b", at=at))
    found = [log.offset_for_timestamp(at) for at in (0, 101, 102, 301, 302, 401, 402)]
    assert found == [(0, 100), (1, 101), (2, 300), (3, 301), (6, 400), (7, 401), None]
    log.delete_before(7)
    assert log.offset_for_timestamp(0) == (7, 401)


def test_delete_before_moves_the_start_inside_a_batch(log: Log) -> None:
    for value in ("a", "b", "c"):
        log.append(records(value, value * 200))
    log.delete_before(3)
    assert (log.start_offset, log.end_offset) == (3, 6)
    assert [batch.base_offset for batch in log.batches()] == [2, 4]
    log.delete_before(1)
    assert log.start_offset == 3
    with pytest.raises(OffsetOutOfRange):
        log.delete_before(7)


def test_deleting_everything_keeps_the_end(log: Log) -> None:
    log.append(records("a", "b"))
    log.delete_before(2)
    assert (log.start_offset, log.end_offset, list(log.batches())) == (2, 2, [])
    assert log.append(records("c")) == 2
    assert values(log) == [(2, b"c")]


def test_a_closed_log_can_be_closed_again(log: Log) -> None:
    log.append(records("a"))
    log.close()
    log.close()


def test_a_fault_injected_before_an_append_changes_nothing() -> None:
    def full(raw: bytes) -> None:
        raise OSError(28, "No space left on device")

    log = MemoryLog(before_append=full)
    with pytest.raises(OSError, match="No space"):
        log.append(records("a"))
    assert (log.end_offset, list(log.batches())) == (0, [])


APPENDS = st.lists(
    st.tuples(st.lists(st.binary(max_size=120), min_size=1, max_size=4), st.integers(0, 1000)), max_size=25
)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(appends=APPENDS, data=st.data())
def test_a_log_behaves_as_a_list(
    new_log: Callable[[], Log], appends: Sequence[tuple[list[bytes], int]], data: st.DataObject
) -> None:
    """Whatever is appended is what is read, from any offset, by any size and by any timestamp."""
    log = new_log()
    model: list[LogRecord] = []
    for contents, at in appends:
        batch = [LogRecord(b"k", value, (), at + i) for i, value in enumerate(contents)]
        assert log.append(batch) == len(model)
        model += [record._replace(offset=len(model) + i) for i, record in enumerate(batch)]
    assert log.end_offset == len(model)
    assert list(records_in(log.batches())) == model
    cut = data.draw(st.integers(0, len(model)))
    log.delete_before(cut)
    offset = data.draw(st.integers(cut, len(model)))
    read: list[LogRecord] = []
    position = offset
    while raw := log.read(position, data.draw(st.integers(0, 500))):
        read += records_in(batches_in(raw))
        position = read[-1].offset + 1
    assert [record for record in read if record.offset >= offset] == model[offset:]
    at = data.draw(st.integers(0, 1005))
    expected = next(((r.offset, r.timestamp_ms) for r in model[cut:] if r.timestamp_ms >= at), None)
    assert log.offset_for_timestamp(at) == expected
