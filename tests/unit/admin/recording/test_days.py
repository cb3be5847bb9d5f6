"""Observations on disk: what is acknowledged is read back, a torn line was never acknowledged."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kgroup.admin.diagnose.checks import Diagnosis
from kgroup.admin.diagnose.doctor import Alike
from kgroup.admin.models import ItemError
from kgroup.admin.recording.days import Days, Unreadable, files_of, read
from kgroup.admin.recording.lines import (
    CODEC,
    Began,
    Ended,
    Ends,
    Gap,
    Incident,
    Judged,
    Line,
    Looked,
    Members,
    NotJudged,
    Person,
    Removed,
)
from kgroup.admin.statuses import PartitionStatus, Unseen
from kgroup.errors import StorageError

DAY_MS = 86_400_000
NOW = 20_000 * DAY_MS
EVERY: list[Line] = [
    Began(NOW, "0.1.0", None, False, 3),
    Ended(NOW),
    Looked(NOW, NOW - 9, 10_000, False, (ItemError("2", "UNREACHABLE", "it does not answer"),), "no right"),
    Judged(
        NOW,
        "orders\u2028\n",
        "classic",
        "Stable",
        (Diagnosis("KG104", "error", "nobody reads it", None, ("because",)),),
        (Alike(PartitionStatus.UNREAD, "error", ("orders-0",), "no owner"),),
        (Unseen("history", "TOPIC_AUTHORIZATION_FAILED", "no right"),),
    ),
    NotJudged(NOW, "gone", None),
    NotJudged(NOW, "dark", ItemError("dark", "UNREACHABLE", "no answer", "try again")),
    Ends(NOW, "orders", (0, 2), (0, None), (None, 1 << 62)),
    Members(NOW, "orders", (Person("m-1", None, "c", "/10.0.0.1"),)),
    Members(NOW, "orders", None),
    Gap(NOW, "__consumer_offsets", 7, 5, -1, "it was gone"),
    Removed(NOW, "__consumer_offsets-7/0.log", 10, 5, 0, 12),
    Incident(NOW, 4, "opened", "1-a", "group g", 1, "error", ("KG104",), ("g",), "t", "c", ("e",), "run"),
]


@pytest.mark.parametrize("line", EVERY, ids=lambda line: type(line).__name__)
def test_every_line_is_read_as_it_was_written(line: Line, tmp_path: Path) -> None:
    Days(tmp_path).append([line], NOW)
    assert list(read(files_of(tmp_path)[0])) == [line]
    assert CODEC.encode(line).count(b"\n") == 0


def test_wherever_a_write_was_cut_the_lines_before_are_kept(tmp_path: Path) -> None:
    days = Days(tmp_path)
    days.append(EVERY, NOW)
    assert days.path is not None
    whole = days.path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    for size in range(0, len(whole), 97):
        days.path.write_bytes(whole[:size])
        again = Days(tmp_path)
        count = sum(end <= size for end in ends)
        assert list(read(days.path)) == EVERY[:count], size
        again.append([Ended(NOW + 1)], NOW + 1)
        assert list(read(days.path)) == [*EVERY[:count], Ended(NOW + 1)], size


def test_a_long_torn_line_is_replaced(tmp_path: Path) -> None:
    days = Days(tmp_path)
    days.append([Ended(NOW)], NOW)
    assert days.path is not None
    with days.path.open("ab") as file:
        file.write(b"x" * 200_000)
    Days(tmp_path).append([Ended(NOW + 1)], NOW + 1)
    assert list(read(days.path)) == [Ended(NOW), Ended(NOW + 1)]


def test_a_day_has_a_file_and_a_clock_that_goes_back_opens_none_again(tmp_path: Path) -> None:
    days = Days(tmp_path)
    days.append([Ended(NOW)], NOW)
    assert not days.begins_file(NOW + 1) and days.begins_file(NOW + DAY_MS)
    days.append([Ended(NOW + DAY_MS)], NOW + DAY_MS)
    days.append([Ended(NOW + DAY_MS)], NOW)
    assert [file.name for file in files_of(tmp_path)] == ["2024-10-04.ndjson", "2024-10-05.ndjson"]
    assert len(list(read(files_of(tmp_path)[1]))) == 2


def test_what_a_full_disk_refused_is_not_there_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = Days(tmp_path)
    days.append([Ended(NOW)], NOW)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left"):
            days.append([Ended(NOW + 1)], NOW + 1)
    days.append([Ended(NOW + 2)], NOW + 2)
    assert list(read(files_of(tmp_path)[0])) == [Ended(NOW), Ended(NOW + 2)]


def test_a_line_of_another_release_is_named_and_hides_no_other(tmp_path: Path) -> None:
    days = Days(tmp_path)
    days.append([Ended(NOW)], NOW)
    assert days.path is not None
    with days.path.open("ab") as file:
        file.write(b'["Ended",[1,"more"]]\n')
    Days(tmp_path).append([Ended(NOW + 1)], NOW + 1)
    first, odd, last = read(days.path)
    assert (first, last) == (Ended(NOW), Ended(NOW + 1))
    assert isinstance(odd, Unreadable) and odd.number == 2 and "line 2 cannot be read" in odd.text
