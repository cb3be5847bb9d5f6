"""The log in a folder: reopening, torn tails, damage, failing disks, index files."""

import errno
import os
import random
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgroup.errors import StorageError
from kgroup.log.interface import DamagedLog, OffsetOutOfRange
from kgroup.log.partition import PartitionLog
from kgroup.protocol.batches import LogRecord, encode_batch

FIRST = "00000000000000000000"


def fill(log: PartitionLog, appends: int, seed: int = 1, size: int = 60) -> None:
    chance = random.Random(seed)
    for i in range(appends):
        count = chance.randrange(1, 4)
        batch = [
            LogRecord(b"k%d" % (i % 5), chance.randbytes(size), (), 1000 + 10 * i + n) for n in range(count)
        ]
        log.append(batch)


def contents(log: PartitionLog) -> list[LogRecord]:
    return [record for batch in log.batches() for record in batch.records]


def logs_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "__consumer_offsets-0"


def test_reopening_gives_the_same_log(folder: Path) -> None:
    log = PartitionLog(folder, segment_bytes=2000)
    fill(log, 100)
    before, times = contents(log), [log.offset_for_timestamp(at) for at in range(990, 2010, 7)]
    log.delete_before(20)
    log.close()
    again = PartitionLog(folder, segment_bytes=2000)
    assert again.torn_tail is None
    assert (again.start_offset, again.end_offset) == (20, before[-1].offset + 1)
    assert [r for r in contents(again) if r.offset >= 20] == before[20:]
    assert [again.offset_for_timestamp(at) for at in range(1200, 2010, 7)] == times[30:]
    again.close()


def test_segments_roll_by_size_and_are_named_by_offset(folder: Path) -> None:
    log = PartitionLog(folder, segment_bytes=1000)
    fill(log, 30)
    log.close()
    paths = logs_of(folder)
    assert len(paths) > 3
    assert all(path.stat().st_size <= 1000 for path in paths)
    for path in paths:
        raw = path.read_bytes()
        assert int.from_bytes(raw[:8], "big") == int(path.stem)


def test_a_batch_larger_than_a_segment_gets_one_of_its_own(folder: Path) -> None:
    log = PartitionLog(folder, segment_bytes=100)
    log.append([LogRecord(b"k", b"v" * 500)])
    log.append([LogRecord(b"k", b"w" * 500)])
    assert [record.offset for record in contents(log)] == [0, 1]
    assert len(log.segments) == 2
    log.close()


def test_every_truncation_point_loads_to_a_prefix(folder: Path, tmp_path: Path) -> None:
    log = PartitionLog(folder)
    ends = [0]
    for i in range(6):
        log.append([LogRecord(b"k", b"v" * (7 * i), (), i)] * (i % 2 + 1))
        ends.append(log.segments[-1].size)
    whole = contents(log)
    raw = (folder / f"{FIRST}.log").read_bytes()
    for cut in range(len(raw) + 1):
        copy = tmp_path / "copy" / folder.name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)  # as a kill leaves it
        os.truncate(copy / f"{FIRST}.log", cut)
        short = PartitionLog(copy)
        kept = max(end for end in ends if end <= cut)
        found = contents(short)
        assert found == whole[: len(found)]
        assert short.end_offset == len(found)
        if cut == kept:
            assert short.torn_tail is None
        else:
            assert short.torn_tail is not None
            assert short.torn_tail[:3] == (copy / f"{FIRST}.log", kept, cut - kept)
            assert short.torn_tail.kept.read_bytes() == raw[kept:cut]
        assert short.append([LogRecord(b"k", b"next")]) == len(found)
        short.close()
    log.close()


@pytest.mark.parametrize("tail", [b"\x00" * 500, b"\xff" * 3, b"\x02" * 200])
def test_a_tail_of_rubbish_is_cut(folder: Path, tail: bytes) -> None:
    log = PartitionLog(folder)
    fill(log, 5)
    before, size = contents(log), log.segments[-1].size
    log.close()
    with (folder / f"{FIRST}.log").open("ab") as file:
        file.write(tail)
    again = PartitionLog(folder)
    assert again.torn_tail is not None
    assert (again.torn_tail.position, again.torn_tail.bytes_cut) == (size, len(tail))
    assert contents(again) == before
    again.close()
    assert (folder / f"{FIRST}.log").stat().st_size == size


@pytest.mark.parametrize("field", ["length", "crc", "magic", "record"])
def test_damage_before_good_batches_is_reported_not_cut(folder: Path, field: str) -> None:
    log = PartitionLog(folder)
    fill(log, 3)
    position = log.segments[-1].size
    fill(log, 3, seed=2)
    log.close()
    path = folder / f"{FIRST}.log"
    raw = bytearray(path.read_bytes())
    raw[position + {"length": 9, "crc": 18, "magic": 16, "record": 70}[field]] ^= 0x55
    path.write_bytes(raw)
    with pytest.raises(StorageError, match=f"{path} is damaged at byte {position}: ") as caught:
        PartitionLog(folder)
    assert "restore the file from a backup" in (caught.value.hint or "")
    assert path.read_bytes() == raw


def test_offsets_that_go_back_are_damage(folder: Path) -> None:
    log = PartitionLog(folder)
    fill(log, 3)
    log.close()
    path = folder / f"{FIRST}.log"
    raw = path.read_bytes()
    path.write_bytes(raw * 2)
    with pytest.raises(StorageError, match=f"damaged at byte {len(raw)}: offset 0 where . is due"):
        PartitionLog(folder)


def test_damage_in_a_sealed_segment_is_reported_when_read(folder: Path) -> None:
    log = PartitionLog(folder, segment_bytes=1000)
    fill(log, 30)
    log.close()
    path = logs_of(folder)[1]
    raw = bytearray(path.read_bytes())
    raw[70] ^= 1
    path.write_bytes(raw)
    again = PartitionLog(folder, segment_bytes=1000)
    with pytest.raises(StorageError, match=f"{path} is damaged at byte 0: .*checksum"):
        contents(again)
    again.close()


def test_a_missing_middle_of_a_sealed_segment_is_reported(folder: Path) -> None:
    log = PartitionLog(folder, segment_bytes=1000)
    fill(log, 30)
    log.close()
    path = logs_of(folder)[1]
    os.truncate(path, path.stat().st_size - 5)
    with pytest.raises(StorageError, match=f"{path} is damaged .* 5 bytes that were stored are gone"):
        PartitionLog(folder, segment_bytes=1000)


@contextmanager
def file_size_limit(limit: int) -> Iterator[None]:
    """The kernel refuses writes past the limit, after a partial one: as a full disk does."""
    import resource

    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_a_full_disk_leaves_the_log_as_before(folder: Path) -> None:
    log = PartitionLog(folder)
    fill(log, 4)
    before, size = contents(log), log.segments[-1].size
    with (
        file_size_limit(size + 50),
        pytest.raises(StorageError, match="cannot be appended to: File too large"),
    ):
        log.append([LogRecord(b"k", b"v" * 100)])
    assert (folder / f"{FIRST}.log").stat().st_size == size
    assert contents(log) == before
    assert log.append([LogRecord(b"k", b"after")]) == len(before)
    log.close()
    again = PartitionLog(folder)
    assert again.torn_tail is None
    assert len(contents(again)) == len(before) + 1
    again.close()


def test_a_failed_append_that_cannot_be_undone_ends_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(fd: int, data: bytes) -> int:
        os.write(fd, data[: len(data) // 2])
        raise OSError(errno.EIO, "Input/output error")

    log = PartitionLog(folder)
    fill(log, 4)
    log.close()
    log = PartitionLog(folder, write=half)
    before = contents(log)
    with monkeypatch.context() as patch:
        patch.setattr(log.segments[-1], "cut_to_size", lambda: half(-1, b""))
        with pytest.raises(StorageError, match="Bad file descriptor|Input/output error"):
            log.append([LogRecord(b"k", b"v")])
    with pytest.raises(StorageError, match="takes no more appends: an append failed"):
        log.append([LogRecord(b"k", b"v")])
    assert contents(log) == before
    log.close()
    again = PartitionLog(folder)
    assert again.torn_tail is not None
    assert contents(again) == before
    again.close()


def test_a_failed_fsync_ends_the_log(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = PartitionLog(folder, fsync=True)
    fill(log, 2)
    end = log.end_offset

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="cannot be synced"):
        log.append([LogRecord(b"k", b"v")])
    with pytest.raises(StorageError, match="takes no more appends: fsync failed"):
        log.append([LogRecord(b"k", b"v")])
    assert log.end_offset == end
    log.close()


def test_a_log_takes_no_appends_after_close(folder: Path) -> None:
    log = PartitionLog(folder)
    fill(log, 1)
    log.close()
    with pytest.raises(StorageError, match="it is closed"):
        log.append([LogRecord(b"k", b"v")])
    assert contents(log)


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be created: Not a directory"):
        PartitionLog(tmp_path / "file" / "t-0").create()
    (tmp_path / "t-0").write_text("")
    with pytest.raises(StorageError, match="cannot be opened: Not a directory"):
        PartitionLog(tmp_path / "t-0")


def test_a_log_without_records_has_no_file(folder: Path) -> None:
    log = PartitionLog(folder)
    assert (log.start_offset, log.end_offset) == (0, 0)
    assert (log.read(0, 100), list(log.batches()), log.offset_for_timestamp(0)) == (b"", [], None)
    assert not log.transactions().open
    with pytest.raises(OffsetOutOfRange):
        log.read(1, 100)
    with pytest.raises(OffsetOutOfRange):
        log.delete_before(1)
    log.delete_before(0)
    log.roll()
    log.configure(segment_bytes=1, fsync=True)
    log.close()
    assert not folder.exists()
    with pytest.raises(StorageError, match="it is closed"):
        log.append([LogRecord(b"k", b"v")])
    assert not folder.exists()


def test_a_folder_that_appeared_meanwhile_is_not_appended_to(folder: Path) -> None:
    """Such as one that was restored from a backup."""
    late = PartitionLog(folder)
    log = PartitionLog(folder)
    fill(log, 1)
    log.close()
    with pytest.raises(StorageError, match="cannot be created: File exists"):
        fill(late, 1)
    assert contents(PartitionLog(folder)) == contents(log)


def test_indexes_point_at_batches(folder: Path) -> None:
    """Kafka's formats: (relative last offset, position) and (largest timestamp so far, relative offset)."""
    log = PartitionLog(folder)
    fill(log, 300)
    starts = {}
    position, newest = 0, {}
    for batch in log.batches():
        starts[position] = batch.last_offset
        newest[batch.last_offset] = batch.max_timestamp
        position += batch.size
    log.close()
    index = list(struct.iter_unpack(">ii", (folder / f"{FIRST}.index").read_bytes()))
    times = list(struct.iter_unpack(">qi", (folder / f"{FIRST}.timeindex").read_bytes()))
    assert len(index) > 5
    assert all(starts[position] == offset for offset, position in index)
    assert all(b[1] - a[1] > 4096 for a, b in zip(index, index[1:], strict=False))
    assert all(newest[offset] == timestamp for timestamp, offset in times)
    assert times[-1][0] == max(newest.values())


def test_more_than_4096_bytes_go_before_an_index_entry(folder: Path) -> None:
    """As in Kafka: a batch that begins 4,096 bytes after the last entry, or after the start, gets none."""
    base = PartitionLog(folder / "measured")
    base.append([LogRecord(b"k", b"x" * 3000, (), 1)])
    head = base.segments[0].size - 3000
    base.close()
    for size, entries in ((4096, 0), (4097, 1)):
        log = PartitionLog(folder / str(size))
        log.append([LogRecord(b"k", b"x" * (size - head), (), 1)])
        assert log.segments[0].size == size
        log.append([LogRecord(b"k", b"y", (), 1)])
        log.close()
        assert len((folder / str(size) / f"{FIRST}.index").read_bytes()) == 8 * entries


@pytest.mark.parametrize("damage", ["missing", "cut", "zeros", "foreign", "past the end"])
def test_indexes_are_made_anew_when_they_cannot_be_trusted(folder: Path, damage: str) -> None:
    log = PartitionLog(folder, segment_bytes=20_000)
    fill(log, 400)
    before = contents(log)
    lookups = [log.offset_for_timestamp(at) for at in range(1000, 6000, 111)]
    log.close()
    for suffix in ("index", "timeindex"):
        path = folder / f"{FIRST}.{suffix}"
        good = path.read_bytes()
        if damage == "missing":
            path.unlink()
        else:
            bad = {
                "cut": good[:-3],
                "zeros": good + bytes(24 * 10),
                "foreign": bytes(reversed(good)),
                "past the end": good + b"\x7f" * 24,
            }
            path.write_bytes(bad[damage])
    again = PartitionLog(folder, segment_bytes=20_000)
    assert contents(again) == before
    assert [again.offset_for_timestamp(at) for at in range(1000, 6000, 111)] == lookups
    assert again.read(150, 1)[:8] <= (150).to_bytes(8, "big")
    again.close()


def test_an_index_without_its_log_is_removed(folder: Path) -> None:
    log = PartitionLog(folder)
    fill(log, 3)
    log.close()
    (folder / "00000000000000000099.index").write_bytes(b"12345678")
    PartitionLog(folder).close()
    assert not (folder / "00000000000000000099.index").exists()


def test_kafkas_other_files_are_left_alone(folder: Path) -> None:
    folder.mkdir()
    for name in ("leader-epoch-checkpoint", "partition.metadata", f"{FIRST}.snapshot"):
        (folder / name).write_text("kept")
    log = PartitionLog(folder)
    fill(log, 2)
    log.close()
    assert (folder / "partition.metadata").read_text() == "kept"
    assert (folder / f"{FIRST}.snapshot").exists()


def test_an_unreadable_checkpoint_says_what_to_do(folder: Path) -> None:
    folder.mkdir()
    (folder / "log-start-offset").write_text("soon")
    with pytest.raises(StorageError, match="holds 'soon', not an offset"):
        PartitionLog(folder)


def test_large_batches_span_read_chunks(folder: Path) -> None:
    log = PartitionLog(folder)
    log.append([LogRecord(b"a", b"x" * 3_000_000)])
    log.append_batches(encode_batch([LogRecord(b"b", b"y")]))
    assert [(r.key, len(r.value or b"")) for r in contents(log)] == [(b"a", 3_000_000), (b"b", 1)]
    assert len(log.read(0, 10)) > 3_000_000
    log.close()


def killed(log: PartitionLog) -> None:
    """The process ends without a chance to write anything."""
    for segment in log.segments:
        segment.close()


def test_what_is_cut_is_kept_and_never_overwritten(folder: Path) -> None:
    for tail in (b"first", b"second"):
        log = PartitionLog(folder)
        if not log.end_offset:
            fill(log, 3)
        before = contents(log)
        size = log.segments[-1].size
        killed(log)
        with log.segments[-1].path.open("ab") as file:
            file.write(tail)
        again = PartitionLog(folder)
        assert again.torn_tail is not None
        assert again.torn_tail.kept.read_bytes() == tail
        assert f"{len(tail)} bytes" in str(again.torn_tail)
        assert (contents(again), again.segments[-1].size) == (before, size)
        killed(again)
    kept = sorted(path.name for path in folder.glob("cut-from-*"))
    assert len(kept) == 2
    assert not [name for name in kept if name.endswith(".log") or name[:20].isdigit()]


@pytest.mark.parametrize("damage", ["bit", "zeros", "cut", "gone"])
def test_after_a_clean_stop_damage_is_no_torn_tail(folder: Path, damage: str) -> None:
    log = PartitionLog(folder)
    fill(log, 200)
    log.close()
    path = folder / f"{FIRST}.log"
    raw = path.read_bytes()
    changed = {"bit": raw[:-5] + bytes([raw[-5] ^ 1]) + raw[-4:], "zeros": bytes(len(raw)), "cut": raw[:-40]}
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(changed[damage])
    with pytest.raises(DamagedLog, match=str(path)) as caught:
        PartitionLog(folder)
    assert "restore" in (caught.value.hint or "")
    if damage != "gone":
        assert path.read_bytes() == changed[damage], "the evidence stays"
        path.write_bytes(raw)
        again = PartitionLog(folder)
        assert again.end_offset == log.end_offset
        again.close()


def test_damage_in_what_an_earlier_stop_stored_is_no_torn_tail_after_a_kill(folder: Path) -> None:
    log = PartitionLog(folder)
    fill(log, 3)
    size = log.segments[-1].size
    log.close()
    killed(PartitionLog(folder))
    path = folder / f"{FIRST}.log"
    os.truncate(path, size - 1)
    with pytest.raises(DamagedLog, match="1 bytes that were stored are gone"):
        PartitionLog(folder)


def test_a_batch_that_moved_behind_the_end_is_damage(folder: Path) -> None:
    """A batch's own checksum does not cover its offset: a whole batch after a gap is no torn write."""
    log = PartitionLog(folder)
    fill(log, 3)
    position = log.segments[-1].size
    fill(log, 1)
    killed(log)
    path = folder / f"{FIRST}.log"
    raw = bytearray(path.read_bytes())
    raw[position + 6] ^= 1
    path.write_bytes(raw)
    with pytest.raises(DamagedLog, match=f"damaged at byte {position}: offset"):
        PartitionLog(folder)


@pytest.mark.parametrize("bit", range(64))
def test_a_flipped_base_offset_in_a_sealed_segment_without_indexes(folder: Path, bit: int) -> None:
    """As a copy of another broker's folder may be: nothing lists its segments."""
    log = PartitionLog(folder, segment_bytes=1000)
    fill(log, 30)
    log.close()
    first = logs_of(folder)[1]
    for path in [folder / "segments", first.with_suffix(".index"), first.with_suffix(".timeindex")]:
        path.unlink()
    raw = bytearray(first.read_bytes())
    last = max(i for i in range(len(raw)) if raw[i : i + 6] == bytes(6) and raw[i + 16 : i + 17] == b"\2")
    raw[last + bit // 8] ^= 1 << bit % 8
    first.write_bytes(raw)
    with pytest.raises(DamagedLog, match=f"{first} is damaged"):
        contents(PartitionLog(folder, segment_bytes=1000))


def test_segments_listed_but_gone_are_missed(folder: Path) -> None:
    log = PartitionLog(folder, segment_bytes=1000)
    fill(log, 30)
    log.close()
    path = logs_of(folder)[2]
    path.unlink()
    with pytest.raises(DamagedLog, match=f"{path} is missing"):
        PartitionLog(folder, segment_bytes=1000)


def test_an_index_of_another_segment_is_made_anew(folder: Path) -> None:
    log = PartitionLog(folder, segment_bytes=20_000)
    fill(log, 400)
    log.close()
    one, two = (path.with_suffix(".index") for path in logs_of(folder)[:2])
    right = one.read_bytes()
    one.write_bytes(two.read_bytes())
    again = PartitionLog(folder, segment_bytes=20_000)
    assert one.read_bytes() == right
    again.close()


@pytest.mark.parametrize("content", [b"", bytes(100)])
def test_a_list_of_segments_that_a_power_loss_left_empty_says_nothing(folder: Path, content: bytes) -> None:
    log = PartitionLog(folder)
    fill(log, 3)
    before = contents(log)
    log.close()
    (folder / "segments").write_bytes(content)
    again = PartitionLog(folder)
    assert contents(again) == before
    again.close()


def test_a_log_that_did_not_change_writes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command with --local opens and closes every log of groups."""
    log = PartitionLog(folder)
    fill(log, 3)
    log.close()

    def fail(fd: int) -> None:
        raise AssertionError

    monkeypatch.setattr(os, "fsync", fail)
    PartitionLog(folder).close()


def test_a_copy_of_a_kafka_that_was_stopped_cleanly_has_no_torn_tail(folder: Path) -> None:
    log = PartitionLog(folder)
    fill(log, 3)
    log.close()
    (folder / "segments").unlink()
    (folder.parent / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    with (folder / f"{FIRST}.log").open("ab") as file:
        file.write(b"rubbish")
    with pytest.raises(DamagedLog, match="is damaged at byte"):
        PartitionLog(folder)
    (folder.parent / ".kafka_cleanshutdown").unlink()
    again = PartitionLog(folder)
    assert again.torn_tail is not None
    again.close()
