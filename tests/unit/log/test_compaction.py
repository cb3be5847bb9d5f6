"""Compaction: Kafka's rules for keys, tombstones and transactions; safe at every step of a crash."""

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgroup.errors import StorageError
from kgroup.log import files
from kgroup.log.compaction import compact, dirty_ratio, is_dirty
from kgroup.log.partition import PartitionLog
from kgroup.log.transactions import transactions_in
from kgroup.protocol.batches import Batch, LogRecord, end_marker_record, records_in

RETENTION = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "__consumer_offsets-0"


def put(log: PartitionLog, *pairs: tuple[str, str | None], producer: int | None = None) -> int:
    batch = [LogRecord(k.encode(), None if v is None else v.encode(), (), 500) for k, v in pairs]
    if producer is None:
        return log.append(batch)
    return log.append(batch, producer_id=producer, producer_epoch=0, transactional=True)


def end(log: PartitionLog, producer: int, committed: bool) -> int:
    return log.append(
        [end_marker_record(committed)],
        timestamp_ms=600,
        producer_id=producer,
        producer_epoch=0,
        transactional=True,
        control=True,
    )


def kept(log: PartitionLog) -> list[tuple[int, str, str | None]]:
    return [
        (r.offset, (r.key or b"").decode(), None if r.value is None else r.value.decode())
        for r in records_in(log.batches())
    ]


def markers(log: PartitionLog) -> list[int]:
    return [batch.base_offset for batch in log.batches() if batch.control]


def run(log: PartitionLog, now_ms: int) -> None:
    """Roll, so that everything so far is sealed, and compact."""
    log.roll()
    compact(log, now_ms=now_ms, delete_retention_ms=RETENTION)


def test_the_last_record_of_each_key_stays_at_its_offset(folder: Path) -> None:
    log = PartitionLog(folder)
    put(log, ("a", "1"), ("b", "1"), ("a", "2"))
    put(log, ("c", "1"))
    put(log, ("b", "2"))
    log.roll()
    put(log, ("c", "2"))
    before = sum(segment.size for segment in log.segments[:-1])
    assert compact(log, now_ms=0) == 5
    assert sum(segment.size for segment in log.segments[:-1]) < before
    # The active segment neither hides nor loses anything.
    assert kept(log) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2"), (5, "c", "2")]
    assert log.read(0, 10)[:8] == bytes(8)
    log.close()


def test_nothing_sealed_nothing_done(folder: Path) -> None:
    log = PartitionLog(folder)
    put(log, ("a", "1"))
    assert compact(log, now_ms=0) is None
    assert dirty_ratio(log) == 0
    log.close()


def test_records_without_a_key_go(folder: Path) -> None:
    log = PartitionLog(folder)
    log.append([LogRecord(None, b"x", (), 1), LogRecord(b"a", b"1", (), 1)])
    run(log, 0)
    assert kept(log) == [(1, "a", "1")]
    log.close()


def test_tombstones_go_on_a_later_pass_after_the_retention(folder: Path) -> None:
    log = PartitionLog(folder)
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", None), ("c", "1"))
    run(log, 5000)
    assert kept(log) == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
    assert [batch.delete_horizon_ms for batch in log.batches()] == [None, 5000 + RETENTION]
    assert [r.timestamp_ms for r in records_in(log.batches())] == [500, 500, 500]
    run(log, 5000 + RETENTION - 1)
    assert len(kept(log)) == 3
    run(log, 5000 + RETENTION)
    assert kept(log) == [(1, "b", "1"), (3, "c", "1")]
    log.close()


def test_aborted_records_go_and_hide_nothing(folder: Path) -> None:
    log = PartitionLog(folder)
    put(log, ("a", "old"))
    put(log, ("a", "void"), ("b", "void"), producer=7)
    put(log, ("c", "good"), producer=8)
    end(log, 7, committed=False)
    end(log, 8, committed=True)
    run(log, 0)
    assert kept(log) == [(0, "a", "old"), (3, "c", "good")]
    assert markers(log) == [4, 5]
    log.close()


def test_markers_stay_until_their_data_and_then_their_horizon_are_gone(folder: Path) -> None:
    log = PartitionLog(folder)
    put(log, ("a", "1"), producer=7)
    end(log, 7, committed=True)
    put(log, ("b", "void"), producer=8)
    end(log, 8, committed=False)
    run(log, 0)  # aborted data goes; both markers stay: their transactions had data
    assert (kept(log), markers(log)) == ([(0, "a", "1")], [1, 3])
    put(log, ("a", "2"))
    run(log, 10)  # data of 7 goes; the marker of 8 has none: it gets a horizon
    assert (kept(log), markers(log)) == ([(4, "a", "2")], [1, 3])
    run(log, 10 + RETENTION)  # the marker of 8 goes, that of 7 gets a horizon
    assert markers(log) == [1]
    run(log, 10 + 2 * RETENTION)
    assert (kept(log), markers(log)) == ([(4, "a", "2")], [])
    log.close()


def test_nothing_from_the_first_open_transaction_on_is_touched(folder: Path) -> None:
    log = PartitionLog(folder)
    put(log, ("a", "1"), ("a", "2"))
    put(log, ("b", "pending"), producer=7)
    put(log, ("a", "3"), ("a", "4"), ("c", None))
    log.append([LogRecord(None, b"no key", (), 500)])
    after = log.read(2, 1000)
    run(log, 0)
    assert kept(log)[:2] == [(1, "a", "2"), (2, "b", "pending")]
    assert log.read(2, 1000) == after
    end(log, 7, committed=False)
    run(log, 0)
    assert kept(log) == [(4, "a", "4"), (5, "c", None)]
    log.close()


def test_an_abort_whose_marker_is_in_the_active_segment_counts(folder: Path) -> None:
    log = PartitionLog(folder)
    put(log, ("a", "1"))
    put(log, ("a", "void"), producer=7)
    log.roll()
    end(log, 7, committed=False)
    compact(log, now_ms=0)
    assert kept(log) == [(0, "a", "1")]
    log.close()


def test_dirty_ratio_and_a_second_pass_start_where_the_last_ended(folder: Path) -> None:
    log = PartitionLog(folder, segment_bytes=1000)
    for i in range(40):
        put(log, (f"k{i % 3}", str(i) * 20))
    assert dirty_ratio(log) == 1
    run(log, 0)
    assert dirty_ratio(log) == 0
    assert kept(log) == [(n, f"k{n % 3}", str(n) * 20) for n in (37, 38, 39)]
    put(log, ("k0", "x" * 2000))
    log.roll()
    assert 0.5 < dirty_ratio(log) < 1
    log.close()
    again = PartitionLog(folder, segment_bytes=1000)
    assert 0.5 < dirty_ratio(again) < 1
    compact(again, now_ms=0)
    assert [offset for offset, _, _ in kept(again)] == [37, 38, 40]
    again.close()


def test_what_an_open_transaction_holds_back_is_no_dirt(folder: Path) -> None:
    """The log was rewritten again and again, for as long as the transaction was open."""
    log = PartitionLog(folder, segment_bytes=1000)
    for i in range(20):
        put(log, (f"k{i % 3}", str(i) * 20))
    put(log, ("k0", "pending"), producer=7)
    for i in range(20, 60):
        put(log, (f"k{i % 3}", str(i) * 20))
    log.roll()
    assert is_dirty(log, 0.5)
    compact(log, now_ms=0)
    assert dirty_ratio(log) > 0.5
    assert not is_dirty(log, 0)
    end(log, 7, committed=True)
    assert is_dirty(log, 0.5)
    run(log, 0)
    assert kept(log) == [(n, f"k{(n - 1) % 3}", str(n - 1) * 20) for n in (58, 59, 60)]
    assert not is_dirty(log, 0)
    log.close()


def test_small_segments_are_joined(folder: Path) -> None:
    log = PartitionLog(folder, segment_bytes=1000)
    for i in range(60):
        put(log, (f"k{i % 3}", str(i) * 20))
    run(log, 0)
    many = len(log.segments)
    run(log, 0)
    assert len(log.segments) == 2 < many
    assert (log.start_offset, log.end_offset) == (0, 60)
    assert log.offset_for_timestamp(0) == (57, 500)
    log.close()


def test_a_damaged_segment_stops_compaction_and_nothing_changes(folder: Path) -> None:
    log = PartitionLog(folder)
    put(log, ("a", "1"), ("a", "2"))
    log.roll()
    path = log.segments[0].path
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(StorageError, match="is damaged at byte 0"):
        compact(log, now_ms=0)
    assert path.read_bytes() == raw
    log.close()


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 4), st.none() | st.integers(0, 99)),
        st.tuples(st.just("txn"), st.integers(0, 4), st.integers(7, 9)),
        st.tuples(st.just("end"), st.booleans(), st.integers(7, 9)),
        st.tuples(st.just("compact"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


def read_committed(batches: Sequence[Batch]) -> dict[bytes, bytes | None]:
    """The last committed value of each key before the first open transaction; tombstones as absence."""
    transactions = transactions_in(batches)
    stable = transactions.first_unstable_offset(1 << 60)
    state: dict[bytes, bytes | None] = {}
    for batch in batches:
        void = batch.transactional and transactions.is_aborted(batch.producer_id, batch.base_offset)
        if not batch.control and not void and batch.base_offset < stable:
            for record in batch.records:
                assert record.key is not None
                state[record.key] = record.value
    return {key: value for key, value in state.items() if value is not None}


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=OPERATIONS)
def test_compaction_keeps_what_a_reader_of_committed_records_sees(
    tmp_path: Path, operations: Sequence[tuple[str, int, int | None]]
) -> None:
    """Compacted as often as may be, with tombstones expiring at once, against the log never compacted."""
    shutil.rmtree(tmp_path, ignore_errors=True)
    log, plain = (PartitionLog(tmp_path / name, segment_bytes=400) for name in ("a", "b"))
    for name, first, second in operations:
        for each in (log, plain):
            if name == "put":
                put(each, (f"k{first}", None if second is None else str(second)))
            elif name == "txn":
                put(each, (f"k{first}", f"by {second}"), producer=second)
            elif name == "end":
                end(each, second or 0, bool(first))
        if name == "compact":
            log.roll()
            compact(log, now_ms=log.end_offset, delete_retention_ms=0)
        assert log.end_offset == plain.end_offset
        assert read_committed(list(log.batches())) == read_committed(list(plain.batches()))
    log.close()
    again = PartitionLog(tmp_path / "a", segment_bytes=400)
    assert read_committed(list(again.batches())) == read_committed(list(plain.batches()))
    again.close()
    plain.close()


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("call", ["unlink", "replace"])
def test_a_kill_at_any_step_of_a_swap_loses_nothing(
    folder: Path, tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every rename and every deletion of a pass is once the last thing the process does."""
    log = PartitionLog(folder, segment_bytes=600)
    chance = random.Random(5)
    for i in range(60):
        put(log, (f"k{chance.randrange(4)}", None if i % 7 == 3 else str(i) * 9))
    expected = read_committed(list(log.batches()))
    log.close()
    steps = 0
    while True:
        copy = tmp_path / f"copy-{steps}" / folder.name
        shutil.copytree(folder, copy)
        if not _killed_after(copy, call, steps, monkeypatch):
            break
        steps += 1
        again = PartitionLog(copy, segment_bytes=600)
        assert again.torn_tail is None
        assert read_committed(list(again.batches())) == expected
        assert again.end_offset == 60
        offsets = [offset for offset, _, _ in kept(again)]
        assert offsets == sorted(set(offsets))
        left = {path.suffix for path in copy.iterdir()}
        assert not left & {".cleaned", ".swap", ".tmp"}
        run(again, 10)
        assert read_committed(list(again.batches())) == expected
        again.close()
    assert steps > 6


def _killed_after(folder: Path, call: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Compact the folder, ending at the given call; whether it came that far."""
    calls = 0
    original = getattr(os, call)

    def counted(*args: object, **options: object) -> None:
        nonlocal calls
        if calls == steps:
            raise Killed
        calls += 1
        original(*args, **options)

    log = PartitionLog(folder, segment_bytes=2000)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, counted)
        try:
            run(log, 0)
        except Killed:
            return True
        finally:
            for segment in log.segments:
                segment.close()
    return False


def test_half_written_files_are_removed_at_open(folder: Path) -> None:
    log = PartitionLog(folder)
    put(log, ("a", "1"))
    log.close()
    for suffix in (".log.cleaned", ".index.cleaned", ".index.swap", ".log.deleted"):
        files.segment_file(folder, 0, suffix).write_bytes(b"half")
    again = PartitionLog(folder)
    assert kept(again) == [(0, "a", "1")]
    assert {path.suffix for path in folder.iterdir()} == {".log", ".index", ".timeindex", ""}
    again.close()


def test_a_cut_swap_file_is_reported(folder: Path) -> None:
    log = PartitionLog(folder)
    put(log, ("a", "1"))
    log.close()
    path = files.segment_file(folder, 0, ".log.swap")
    path.write_bytes((folder / f"{0:020d}.log").read_bytes()[:-1])
    with pytest.raises(StorageError, match=f"{path} is damaged at byte 0: the batch at byte 0 is cut"):
        PartitionLog(folder)


def test_compaction_leaves_no_file_open_but_the_active_one(folder: Path) -> None:
    log = PartitionLog(folder, segment_bytes=1000)
    for i in range(60):
        put(log, (f"k{i % 3}", str(i) * 20))
    run(log, 0)
    links = [Path(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    mine = [
        path for path in (os.readlink(link) for link in links if link.is_symlink()) if str(folder) in path
    ]
    assert mine == [str(log.segments[-1].path)]
    log.close()
