"""Several copies of one partition: whatever one of them holds is in the answer, or is named as not read."""

import random
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.history.decode.records import raw_records
from kgroup.history.decode.scan import Scanner
from kgroup.history.log_items import Problem
from kgroup.history.sources.logs import Look, SegmentLog, logs_of, segments_of
from kgroup.history.sources.splits import SplitReader, plan_splits
from kgroup.protocol.batches import Batch, LogRecord, encode_batch, rebuild_batch
from kgroup.protocol.compression import Compression

Stamp = tuple[int, bytes]
"""A record by its offset and value."""
PLACE = "__consumer_offsets-7"


def written(rng: random.Random, count: int, start: int, epoch: int) -> list[bytes]:
    """Return batches as a leader of that epoch appends them, from an offset on."""
    made = []
    for _ in range(count):
        size = rng.randint(1, 4)
        records = [
            LogRecord(b"k%d" % rng.randrange(9), b"%d/%d" % (epoch, start + i), (), 1_000 + start)
            for i in range(size)
        ]
        packed = rng.choice([Compression.NONE, Compression.ZSTD])
        made.append(encode_batch(records, base_offset=start, leader_epoch=epoch, compression=packed))
        start += size
    return made


def compacted(rng: random.Random, batches: Iterable[bytes], share: float) -> list[bytes]:
    """Return the batches without some of their records, and without those of which none is left."""
    found = []
    for raw in batches:
        batch = Batch(raw)
        kept = [record for record in batch.records if rng.random() > share]
        if kept:
            found.append(raw if len(kept) == len(batch.records) else rebuild_batch(batch, kept))
    return found


def captured(batches: Iterable[bytes]) -> list[bytes]:
    """Return the batches as a capture packs them."""
    return [
        encode_batch(
            batch.records,
            base_offset=batch.base_offset,
            leader_epoch=batch.partition_leader_epoch,
            compression=Compression.ZSTD,
        )
        if len(batch.records) == batch.last_offset - batch.base_offset + 1
        else raw
        for raw, batch in ((raw, Batch(raw)) for raw in batches)
    ]


def stored(rng: random.Random, folder: Path, batches: list[bytes]) -> list[Path]:
    """Write a copy as one segment or two."""
    folder.mkdir(parents=True)
    cut = rng.randint(1, len(batches))
    found = []
    for part in (batches[:cut], batches[cut:]):
        if part:
            found.append(folder / f"{Batch(part[0]).base_offset:020d}.log")
            found[-1].write_bytes(b"".join(part))
    return found


def stamps(batches: Iterable[bytes]) -> set[Stamp]:
    return {(r.offset, r.value or b"") for raw in batches for r in records_in(raw)}


def records_in(raw: bytes) -> list[object]:
    return [r for h in Scanner("x").headers(raw, True) for r in raw_records(raw, h)]


def read(log: SegmentLog) -> list[Stamp]:
    return [
        (r.offset, r.value or b"")
        for chunk, headers in log.batches()
        for header in headers
        for r in raw_records(chunk, header)
    ]


def read_in_splits(log: SegmentLog, size: int) -> list[Stamp]:
    return [
        (r.offset, r.value or b"")
        for split in plan_splits([log], size)
        for chunk, headers in SplitReader(split, chunk_bytes=1 << 12).chunks()
        for header in headers
        for r in raw_records(chunk, header)
    ]


def named(log: SegmentLog) -> list[range]:
    """Return the offsets that the log names as not read."""
    spans = (re.search(r"in offsets (\d+) to (\d+)", bad.reason) for bad in log.bad)
    return [range(int(s[1]), int(s[2]) + 1) for s in spans if s]


@given(st.integers(0, 100_000))
def test_no_record_of_any_copy_is_missing_without_a_word(seed: int) -> None:
    rng = random.Random(seed)
    whole = written(rng, rng.randint(3, 12), start=rng.randint(0, 5), epoch=1)
    copies = []
    for number in range(rng.randint(2, 4)):
        first = rng.randrange(len(whole) - 1)
        own = whole[first : rng.randint(first + 1, len(whole))]
        if rng.random() < 0.3:  # its leader was replaced without what follows
            cut = rng.randint(1, len(own))
            end = Batch(own[cut - 1]).last_offset + 1
            own = own[:cut] + written(rng, rng.randint(1, 4), end, epoch=2 + number)
        if rng.random() < 0.5:
            own = compacted(rng, own, rng.choice([0.1, 0.5, 0.9])) or own
        copies.append(captured(own) if rng.random() < 0.3 else own)
    with TemporaryDirectory() as root:
        for number, own in enumerate(copies):
            stored(rng, Path(root, f"broker-{number}", PLACE), own)
            Path(root, f"broker-{number}", "meta.properties").write_text("cluster.id=one\n")
        (log,) = logs_of(segments_of([Path(root)]))
        left = named(log)
        found = read(log)
        assert [offset for offset, _ in found] == sorted({offset for offset, _ in found})
        assert read_in_splits(log, rng.choice([64, 200, 1 << 20])) == found
        for own in copies:
            for offset, value in stamps(own) - set(found):
                assert any(offset in span for span in left), (offset, value)


def look_at(root: Path, **copies: bytes) -> Look:
    for name, data in copies.items():
        folder = root / name / PLACE
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.log").write_bytes(data)
    return segments_of([root])


def test_the_fuller_copy_is_read_and_the_longer_one_beyond_it(tmp_path: Path) -> None:
    """A capture, and the broker's folder a week later: compacted, and one record longer."""
    rng = random.Random(1)
    whole = written(rng, 40, 0, epoch=1)
    week, broker = whole[:-1], [*compacted(rng, whole[:-1], 0.95), whole[-1]]
    look = look_at(tmp_path, a_week_before=b"".join(captured(week)), broker=b"".join(broker))
    (log,) = logs_of(look)
    assert set(read(log)) == stamps(whole)
    assert log.bad == [] and look.notes == ()
    assert [(each.file.parts[-3], each.end is None) for each in log.stretches] == [
        ("a_week_before", False),
        ("broker", True),
    ]


def test_what_only_a_replaced_leader_has_is_named(tmp_path: Path) -> None:
    rng = random.Random(2)
    common = written(rng, 5, 0, epoch=1)
    end = Batch(common[-1]).last_offset + 1
    old, new = written(rng, 6, end, epoch=1), written(rng, 2, end, epoch=4)
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text("cluster.id=one\n")
    look = look_at(tmp_path, old=b"".join(common + old), new=b"".join(common + new))
    (log,) = logs_of(look)
    assert set(read(log)) == stamps(common + new)
    last, count = Batch(old[-1]).last_offset, len(stamps(old))
    readers = [SplitReader(split) for split in plan_splits([log], 64)]
    assert sum(len(headers) for reader in readers for _, headers in reader.chunks()) == len(common + new)
    assert [bad for reader in readers for bad in reader.bad] == log.bad, "a pipeline finds it, and once"
    (bad,) = log.bad
    why = "their leader, of epoch 1, was replaced without them"
    assert (bad.code, bad.problem) == ("NOT_SEEN", Problem.NOT_READ)
    assert replace(bad, reason="in other words").code == "NOT_SEEN"
    assert bad.reason == f"not read: {count} records in offsets {end} to {last}: {why}"


def test_damage_that_another_copy_makes_up_for_is_a_note_else_an_error(tmp_path: Path) -> None:
    rng = random.Random(3)
    whole = written(rng, 9, 0, epoch=1)
    hurt = b"".join((*whole[:4], b"\xff" * len(whole[4]), *whole[5:]))
    look = look_at(tmp_path, hurt=hurt, short=b"".join(whole[:6]))
    (log,) = logs_of(look)
    assert set(read(log)) == stamps(whole) and log.bad == []
    assert len(look.notes) == 1 and "bytes" in look.notes[0] and "short" in look.notes[0]
    for file in (tmp_path / "short").rglob("*.log"):
        file.write_bytes(b"".join((*whole[:4], *whole[5:6])))
    look = segments_of([tmp_path])
    (log,) = logs_of(look)
    assert set(read(log)) == stamps([*whole[:4], *whole[5:]])
    assert [bad.code for bad in log.bad] == ["CORRUPT_MESSAGE"]


def test_files_of_one_folder_with_the_same_offsets_are_copies(tmp_path: Path) -> None:
    rng = random.Random(4)
    whole = written(rng, 20, 0, epoch=1)
    files = [tmp_path / "week-1.log", tmp_path / "week-2.log"]
    files[0].write_bytes(b"".join(compacted(rng, whole[:12], 0.9)))
    files[1].write_bytes(b"".join(whole))
    (log,) = logs_of(segments_of(files))
    assert sorted(read(log)) == sorted(stamps(whole))


@pytest.mark.parametrize("size", [64, 1 << 20])
def test_a_run_continues_in_merged_copies(tmp_path: Path, size: int) -> None:
    rng = random.Random(5)
    whole = written(rng, 30, 0, epoch=1)
    fuller, longer = whole[:20], [*compacted(rng, whole[:20], 0.9), *whole[20:]]
    (log,) = logs_of(look_at(tmp_path, a=b"".join(fuller), b=b"".join(longer)))
    seen = Batch(whole[24]).last_offset
    offsets = [
        header.base_offset
        for split in plan_splits([log], size, {7: seen})
        for _, headers in SplitReader(split).chunks()
        for header in headers
    ]
    assert offsets == [Batch(raw).base_offset for raw in whole[25:]]
