"""Message formats 0 and 1: what Kafka 2.4 wrote under log.message.format.version 0.10.2 is read whole.

tests/data/old-formats was recorded from Kafka 2.4.1, plain and with lz4; beside it stands what that version's
kafka-dump-log says of each record: offset, time, bytes of key and value, key, and the offset of a commit.
"""

import re
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.history.decode.scan import COMPRESSED, PACKED
from kgroup.history.legacy import LEGACY
from kgroup.history.log_items import CommitRun
from kgroup.history.raw import raw_rows
from kgroup.history.replay import replay
from kgroup.history.sources.capture import PartitionCapture
from kgroup.history.sources.logs import SegmentLog, segment_logs
from kgroup.history.sources.splits import plan_splits

from .incidents import text_of
from .logs import MemoryLog, batch, commit, items

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # how kafka-python reads its own schemas
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

RECORDED = Path(__file__).resolve().parents[2] / "data" / "old-formats"
KINDS = ("uncompressed", "compressed")


def log_of(kind: str) -> SegmentLog:
    (log,) = segment_logs([RECORDED / kind])
    return log


DATA = {kind: log_of(kind).files[0].read_bytes() for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_each_record_is_what_kafka_says_it_is(kind: str) -> None:
    found = []
    for row in raw_rows(log_of(kind)):
        key, value = row["key"], row["value"]
        if row["type_name"] == "OffsetCommit":
            place = f"{key['topic']}-{key['partition']}"
            found.append(f"offset_commit::group={key['group']},partition={place} offset={value['offset']}")
        else:
            found.append(f"group_metadata::group={key['group']}")
        found[-1] = f"{row['offset']} {row['timestamp_ms']} {found[-1]}"
    says = (RECORDED / kind / "kafka-2.4.1-says.txt").read_text().splitlines()
    theirs = [re.sub(r"^(\d+ \d+) \d+ -?\d+ ", r"\1 ", line) for line in says]
    assert found == [re.sub(r",metadata=.*|,leaderEpoch.*", "", line) for line in theirs]


@pytest.mark.parametrize("kind", KINDS)
def test_the_story_is_whole_and_does_not_depend_on_where_the_input_is_cut(kind: str) -> None:
    story = replay([MemoryLog(DATA[kind])])
    (covered,) = story.coverage
    assert covered.from_the_start and covered.last_offset + 1 == covered.records > 80
    assert not [event for event in story.events if event.suspicious]
    for chunk in (70, 1000, 4096):
        assert text_of(replay([MemoryLog(DATA[kind], chunk)])) == text_of(story)


@pytest.mark.parametrize("kind", KINDS)
def test_a_capture_keeps_them(kind: str, tmp_path: Path) -> None:
    part = PartitionCapture.resume(tmp_path / "__consumer_offsets-0")
    assert part.append(DATA[kind]) == part.batches > 80
    assert PartitionCapture.resume(tmp_path / "__consumer_offsets-0").next_offset == part.next_offset
    assert text_of(replay(segment_logs([tmp_path]))) == text_of(replay([MemoryLog(DATA[kind])]))


@pytest.mark.parametrize("kind", KINDS)
def test_shares_of_a_file_hold_each_record_once(kind: str) -> None:
    splits = plan_splits([log_of(kind)], split_bytes=1000)
    offsets = [
        offset
        for split in splits
        for _, headers in split.reader().chunks()
        for header in headers
        for offset in range(header.base_offset, header.last_offset + 1)
    ]
    assert offsets == list(range(log_of_last(kind) + 1))


def log_of_last(kind: str) -> int:
    return replay([MemoryLog(DATA[kind])]).coverage[0].last_offset


@given(st.sampled_from(KINDS), st.integers(0, 5000), st.integers(0, 7), st.integers(100, 3000))
def test_a_flipped_bit_costs_at_most_the_message_it_is_in(kind: str, at: int, bit: int, chunk: int) -> None:
    """An offset is not under the checksum; everything else is."""
    changed = bytearray(DATA[kind])
    changed[at] ^= 1 << bit
    log = MemoryLog(bytes(changed), chunk)
    found = sum(header.records for _, headers in log.batches() for header in headers)
    whole = log_of_last(kind) + 1
    assert found >= whole - 1
    assert log.bad or found == whole


def wrapped(magic: int, codec: int, first: int, count: int) -> bytes:
    """A message set as a producer makes it; compressed, the offset is that of the last, as brokers set it."""
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for n in range(count):
        offset = n if codec and magic else first + n
        builder.append(offset, 1000 + n if magic else None, *commit("t", 0, n))
    data = bytearray(builder.build())
    if codec:
        data[:8] = (first + count - 1).to_bytes(8, "big")
    return bytes(data)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
def test_either_format_may_stand_before_batches_of_today(magic: int, codec: int) -> None:
    data = wrapped(magic, codec, 0, 4) + wrapped(magic, codec, 4, 3) + batch(7, [commit("t", 0, 99)])
    (run,) = items(data)
    assert isinstance(run, CommitRun) and (run.first_offset, run.last_offset) == (0, 7)
    assert (run.parts[0].commits, run.parts[0].last.offset) == (8, 99)
    assert run.parts[0].first_timestamp_ms == (1000 if magic else -1)
    (back,) = run.rewinds
    assert (back.log_offset, back.before, back.after) == (4, 3, 0)


def test_reading_goes_on_behind_garbage_between_messages() -> None:
    log = MemoryLog(wrapped(1, 0, 0, 2) + b"garbage" * 30 + wrapped(1, 1, 2, 3))
    assert [h.base_offset for _, headers in log.batches() for h in headers] == [0, 1, 2]
    assert len(log.bad) == 1


def test_the_scanners_mark_is_the_one_that_bodies_are_made_for() -> None:
    assert PACKED == COMPRESSED | LEGACY
