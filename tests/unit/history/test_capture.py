"""Recording the live topic: what is kept is what was sent, and each failure costs its own partition only."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from kgroup.errors import BrokerRefused, DecodeError, ErrorCode, KgroupError, StorageError
from kgroup.history.decode.scan import COMPRESSED, Scanner
from kgroup.history.raw import raw_rows
from kgroup.history.replay import replay
from kgroup.history.sources import capture as capture_module
from kgroup.history.sources.capture import DAY_MS, Capture, Gone, PartitionCapture
from kgroup.history.sources.folders import LocalFolder
from kgroup.history.sources.logs import segment_logs, topic_names_near, write_topics_file
from kgroup.protocol.batches import Batch, end_marker_record, with_base_offset

from .incidents import KAFKA, log_of, text_of
from .logs import MemoryLog, batch, commit, sealed

ID = bytes(range(16))
NOW = 20_000 * DAY_MS + 5


def one(base: int, timestamp_ms: int = NOW) -> bytes:
    """A batch of one commit."""
    return batch(base, [commit("t", 0, base)], timestamp_ms=timestamp_ms)


def many(base: int, **more: object) -> bytes:
    """A batch that compression makes smaller."""
    return batch(base, [commit("topic" * 20, n, n) for n in range(40)], timestamp_ms=NOW, **more)


def kept_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for log in segment_logs([folder]) for file in log.files)


class Topic:
    """The live topic as a capture asks for it: batches by partition, `first` offsets that are still there."""

    name = "__consumer_offsets"

    def __init__(self, logs: dict[int, list[bytes]]) -> None:
        self.logs = logs
        self.first = dict.fromkeys(logs, 0)
        self.topic_names: dict[bytes, str] = {}
        self.learned: dict[bytes, str] = {}
        self.failing: dict[int, KgroupError] = {}
        self.at_once = 1

    @property
    def partitions(self) -> list[int]:
        return sorted(self.logs)

    def try_again(self) -> None: ...

    def refresh(self, names: object = None) -> None:
        self.topic_names = self.topic_names | self.learned

    def bounds(self, partition: int) -> tuple[int, int]:
        if partition in self.failing:
            raise self.failing[partition]
        log = self.logs[partition]
        return self.first[partition], Batch(log[-1]).last_offset + 1 if log else 0

    def fetch(self, partition: int, offset: int) -> tuple[bytes, int]:
        left = [data for data in self.logs[partition] if Batch(data).last_offset >= offset]
        return b"".join(left[: self.at_once]), self.bounds(partition)[1]


def captured(topic: Topic, out: Path, gaps: list[tuple[str, Gone]] | None = None) -> Capture:
    noticed = [] if gaps is None else gaps
    return Capture(topic, LocalFolder(out), lambda *gap: noticed.append(gap))  # type: ignore[arg-type]


def test_each_poll_keeps_what_has_come(tmp_path: Path) -> None:
    topic = Topic({0: [one(0), one(1)], 3: [one(0)]})
    capture = captured(topic, tmp_path)
    assert (capture.poll(), capture.poll()) == (3, 0)
    topic.logs[3].append(one(1))
    assert capture.poll() == 1 and capture.failures == {}
    assert captured(topic, tmp_path).poll() == 0, "what is on disk says where to go on"
    assert kept_in(tmp_path) == one(0) + one(1) + one(0) + one(1)


@pytest.mark.parametrize("replaced", [[one(0)], [one(0), one(1, NOW), with_base_offset(one(2), 2, 9)]])
def test_a_log_that_lost_what_is_recorded_is_not_continued(tmp_path: Path, replaced: list[bytes]) -> None:
    """After an unclean election the broker has fewer records, or other ones of a later leader."""
    captured(Topic({0: [one(0), one(1), one(2)], 1: [one(0)]}), tmp_path).poll()
    topic = Topic({0: replaced, 1: [one(0), one(1)]})
    capture = captured(topic, tmp_path)
    assert (capture.poll(), capture.poll()) == (1, 0)
    assert "__consumer_offsets-0 does not continue what was recorded" in capture.failures[0].message
    assert capture.failures.keys() == {0}
    assert kept_in(tmp_path) == one(0) + one(1) + one(2) + one(0) + one(1)


@pytest.mark.parametrize("name", KAFKA)
def test_what_was_recorded_tells_the_same_story(name: str, tmp_path: Path) -> None:
    data = b"".join(file.read_bytes() for file in log_of(name).files)
    PartitionCapture.resume(tmp_path / "__consumer_offsets-0").append(data)
    assert text_of(replay(segment_logs([tmp_path]))) == text_of(replay([MemoryLog(data)]))
    before, after = raw_rows(MemoryLog(data)), raw_rows(segment_logs([tmp_path])[0])
    assert list(after) == list(before)


def test_a_batch_is_compressed_where_that_loses_nothing(tmp_path: Path) -> None:
    part = PartitionCapture.resume(tmp_path / "__consumer_offsets-0")
    part.append(many(0))
    (header,) = Scanner("kept").headers(kept_in(tmp_path), True)
    assert header.attributes & COMPRESSED and part.bytes_kept < part.bytes_in == len(many(0))
    assert list(raw_rows(segment_logs([tmp_path])[0])) == list(raw_rows(MemoryLog(many(0))))


def test_the_brokers_time_a_gap_and_a_marker_are_kept_as_they_came(tmp_path: Path) -> None:
    """Encoded anew they would be lost: a stamp in the header, compacted offsets, a control batch."""
    stamped = bytearray(many(0))
    stamped[22] |= 0x08
    compacted = bytearray(many(40))
    compacted[23:27] = (59).to_bytes(4, "big")
    marker = end_marker_record(True)
    ends = batch(
        100, [(marker.key or b"", marker.value)], NOW, transactional=True, control=True, producer_id=1
    )
    data = sealed(stamped) + sealed(compacted) + ends
    PartitionCapture.resume(tmp_path / "__consumer_offsets-0").append(data)
    assert kept_in(tmp_path) == data


def test_a_partition_that_cannot_be_read_costs_itself_only(tmp_path: Path) -> None:
    topic = Topic({0: [one(0)], 1: [one(0)]})
    topic.failing[0] = BrokerRefused(ErrorCode.LEADER_NOT_AVAILABLE, "no broker leads it")
    capture = captured(topic, tmp_path)
    assert capture.poll() == 1 and capture.failures == {0: topic.failing[0]}
    topic.failing.clear()
    assert capture.poll() == 1 and capture.failures == {}


def test_unsound_batches_are_not_kept_and_not_passed_over(tmp_path: Path) -> None:
    broken = bytearray(one(1))
    broken[-1] ^= 1
    topic = Topic({0: [one(0), bytes(broken), one(2)]})
    capture = captured(topic, tmp_path)
    assert capture.poll() == 1
    assert isinstance(capture.failures[0], DecodeError) and "from offset 1 on" in capture.failures[0].message
    assert kept_in(tmp_path) == one(0)


@pytest.mark.parametrize(("at_once", "found"), [(1, [(1, 4, 4), (6, 8, 3)]), (2, [(1, 8, 7)])])
def test_offsets_that_were_gone_already_are_a_gap(
    at_once: int, found: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    """One gap for each answer of the broker: after a long pause compaction leaves very many holes."""
    gaps: list[tuple[str, Gone]] = []
    topic = Topic({0: [one(0)]})
    captured(topic, tmp_path, gaps).poll()
    topic.logs[0], topic.first[0], topic.at_once = [one(5), one(9)], 5, at_once
    captured(topic, tmp_path, gaps).poll()
    assert gaps == [("__consumer_offsets-0", gap) for gap in found]


def test_what_compaction_took_before_a_recording_began_is_no_gap_of_it(tmp_path: Path) -> None:
    gaps: list[tuple[str, Gone]] = []
    topic = Topic({0: [one(3), one(7), one(9)]})
    topic.first[0] = 3
    capture = captured(topic, tmp_path, gaps)
    assert capture.poll() == 3 and gaps == []
    topic.logs[0].append(one(12))
    capture.poll()
    assert gaps == [("__consumer_offsets-0", (10, 11, 2))]


def test_a_disk_that_fails_ends_the_capture(tmp_path: Path) -> None:
    capture = captured(Topic({0: [one(0)]}), tmp_path)
    capture.parts[0].folder.rmdir()
    with pytest.raises(StorageError, match="cannot record into"):
        capture.poll()


def test_topics_are_named_by_the_poll_after_their_names_are_known_or_at_the_end(tmp_path: Path) -> None:
    topic = Topic({0: []})
    topic.topic_names = {ID: "orders"}
    capture = captured(topic, tmp_path)
    capture.poll()
    assert topic_names_near([tmp_path]) == {ID: "orders"}
    topic.learned = {ID[::-1]: "pay"}
    topic.logs[0].append(one(0))
    capture.poll()
    capture.flush()
    assert topic_names_near([tmp_path]) == {ID: "orders", ID[::-1]: "pay"}


def test_names_that_are_dear_to_look_up_are_not_looked_up_at_each_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster of 10,000 topics would be asked for all of them every second."""
    monkeypatch.setattr(capture_module, "CHEAP_S", -1.0)
    monkeypatch.setattr(capture_module, "NAMES_SHARE", 1e12)
    topic = Topic({0: [one(0)]})
    capture = captured(topic, tmp_path)
    capture.poll()
    topic.learned = {ID: "orders"}
    topic.logs[0].append(one(1))
    assert capture.poll() == 1
    capture.poll()
    assert topic_names_near([tmp_path]) == {}
    capture.flush()
    assert topic_names_near([tmp_path]) == {ID: "orders"}


def test_times_that_go_back_open_no_segment_of_the_day_before(tmp_path: Path) -> None:
    part = PartitionCapture.resume(tmp_path / "__consumer_offsets-0")
    part.append(one(0, NOW) + one(1, NOW - DAY_MS) + one(2, NOW + DAY_MS))
    assert [file.name for file in segment_logs([tmp_path])[0].files] == [f"{n:020d}.log" for n in (0, 2)]


def test_a_newest_segment_without_a_whole_batch_is_begun_again(tmp_path: Path) -> None:
    part = PartitionCapture.resume(tmp_path / "__consumer_offsets-0")
    part.append(one(0, NOW) + one(1, NOW + DAY_MS))
    assert part.path is not None
    part.path.write_bytes(one(1)[:20])
    again = PartitionCapture.resume(tmp_path / "__consumer_offsets-0")
    assert again.next_offset == 1 and not part.path.exists()
    again.append(one(1, NOW + DAY_MS))
    assert kept_in(tmp_path) == one(0, NOW) + one(1, NOW + DAY_MS)


def test_damage_inside_the_newest_segment_is_not_recorded_over(tmp_path: Path) -> None:
    part = PartitionCapture.resume(tmp_path / "__consumer_offsets-0")
    part.append(one(0) + one(1))
    assert part.path is not None
    data = bytearray(part.path.read_bytes())
    data[len(one(0)) - 1] ^= 1
    part.path.write_bytes(data)
    with pytest.raises(StorageError) as refused:
        PartitionCapture.resume(tmp_path / "__consumer_offsets-0")
    assert "move this file away" in (refused.value.hint or "") and part.path.read_bytes() == data


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StorageError, match="cannot record into"):
        PartitionCapture.resume(tmp_path / "taken" / "__consumer_offsets-0")


def test_names_that_cannot_be_kept_leave_the_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_topics_file(LocalFolder(tmp_path), {ID: "orders"})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"topics\.json: No space left"):
        write_topics_file(LocalFolder(tmp_path), {ID: "payments"})
    assert "orders" in (tmp_path / "topics.json").read_text()


def test_a_segment_that_cannot_be_continued_is_named(tmp_path: Path) -> None:
    taken = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    taken.mkdir(parents=True)
    with pytest.raises(StorageError, match=re.escape(f"cannot record into {taken}: Is a directory")):
        PartitionCapture.resume(taken.parent)
