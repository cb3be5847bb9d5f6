"""Observations on disk: what is acknowledged is read back, a torn line was never acknowledged."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

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
from kgroup.history.sources.folders import Folder, LocalFolder
from tests.memory_store import MemoryStore, opened

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


@pytest.fixture(params=["folder", "url"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return LocalFolder(tmp_path) if request.param == "folder" else opened(monkeypatch, MemoryStore())


def lines_in(folder: Folder) -> list[Line | Unreadable]:
    return [line for file in files_of(folder) for line in read(file)]


def names_in(folder: Folder) -> list[str]:
    return [file.name.removeprefix("observed/") for file in files_of(folder)]


@pytest.mark.parametrize("line", EVERY, ids=lambda line: type(line).__name__)
def test_every_line_is_read_as_it_was_written(line: Line, folder: Folder) -> None:
    Days(folder).append([line], NOW)
    assert lines_in(folder) == [line]
    assert CODEC.encode(line).count(b"\n") == 0


def test_wherever_a_write_was_cut_the_lines_before_are_kept(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    Days(folder).append(EVERY, NOW)
    (path,) = tmp_path.glob("observed/*")
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        count = sum(end <= size for end in ends)
        assert lines_in(folder) == EVERY[:count], size
        Days(folder).append([Ended(NOW + 1)], NOW + 1)
        assert lines_in(folder) == [*EVERY[:count], Ended(NOW + 1)], size
        folder.delete("observed/2024-10-04-00001.ndjson")


def test_a_day_has_a_file_and_a_clock_that_goes_back_opens_none_again(folder: Folder) -> None:
    days = Days(folder)
    assert days.begins_day(NOW)
    days.append([Ended(NOW)], NOW)
    assert not days.begins_file(NOW + 1) and days.begins_file(NOW + DAY_MS) and days.begins_day(NOW + DAY_MS)
    days.append([Ended(NOW + DAY_MS)], NOW + DAY_MS)
    days.append([Ended(NOW + DAY_MS)], NOW)
    assert names_in(folder) == ["2024-10-04.ndjson", "2024-10-05.ndjson"]
    assert len(list(read(files_of(folder)[1]))) == 2


def test_each_run_has_files_of_its_own_in_the_order_of_the_runs(folder: Folder) -> None:
    for number in range(12):
        days = Days(folder)
        days.append([Ended(NOW + number)], NOW + number)
        days.append([Ended(NOW + number)], NOW + number)
    assert names_in(folder) == ["2024-10-04.ndjson", *(f"2024-10-04-{n:05d}.ndjson" for n in range(1, 12))]
    assert lines_in(folder) == [Ended(NOW + number) for number in range(12) for _ in range(2)]
    Days(folder).append([Ended(NOW + 12)], NOW - DAY_MS)
    assert names_in(folder)[-1] == "2024-10-04-00012.ndjson"


def test_a_large_object_goes_on_in_another_and_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    folder = opened(monkeypatch, store)
    monkeypatch.setattr(type(folder), "best_bytes", 40)
    days = Days(folder)
    begun = []
    for number in range(7):
        begun.append(days.begins_file(NOW))
        days.append([Ended(NOW + number)], NOW)
    assert begun == [True, False, True, False, True, False, True] and not days.begins_day(NOW)
    assert lines_in(folder) == [Ended(NOW + number) for number in range(7)]
    assert len(files_of(folder)) == 4
    Days(folder)
    store.requests.clear()
    days.append([Ended(NOW)], NOW)
    assert store.requests == [("write", "recording/observed/2024-10-04-00003.ndjson")]


def full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_a_full_disk_refused_is_not_there_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = Days(LocalFolder(tmp_path))
    for number in (0, 2):
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(StorageError, match="No space left"):
                days.append([Ended(NOW + number + 9)], NOW)
        days.append([Ended(NOW + number)], NOW)
    assert lines_in(LocalFolder(tmp_path)) == [Ended(NOW), Ended(NOW + 2)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_a_store_did_not_take_is_not_there_later(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers too late: whether the object was put is unknown, and the next one replaces it."""
    store = MemoryStore()
    folder = opened(monkeypatch, store)
    days = Days(folder)
    for number in (0, 2):
        with monkeypatch.context() as patched:
            patched.setattr(store, when, store._unreachable)
            with pytest.raises(StorageError, match="could not be reached"):
                days.append([Ended(NOW + number + 9)], NOW)
        days.append([Ended(NOW + number)], NOW)
    assert lines_in(folder) == [Ended(NOW), Ended(NOW + 2)]


def test_a_file_that_grows_while_it_is_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    folder = opened(monkeypatch, store)
    days = Days(folder)
    days.append([Ended(NOW)], NOW)
    seen, look = [], store.look

    def grown(location: Any) -> Any:
        seen.append(look(location))
        if len(seen) == 1:
            days.append([Ended(NOW + 1)], NOW)
        return seen[-1]

    monkeypatch.setattr(store, "look", grown)
    assert lines_in(folder) == [Ended(NOW), Ended(NOW + 1)] and len(seen) == 2


def test_a_line_of_another_release_is_named_and_hides_no_other(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    Days(folder).append([Ended(NOW)], NOW)
    with next(tmp_path.glob("observed/*")).open("ab") as file:
        file.write(b'["Ended",[1,"more"]]\n')
    Days(folder).append([Ended(NOW + 1)], NOW + 1)
    first, odd, last = lines_in(folder)
    assert (first, last) == (Ended(NOW), Ended(NOW + 1))
    assert isinstance(odd, Unreadable) and odd.number == 2 and "line 2 cannot be read" in odd.text
