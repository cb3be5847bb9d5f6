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
from kgroup.admin.recording import observed
from kgroup.admin.recording.lines import (
    CODEC,
    Began,
    Ended,
    Ends,
    Incident,
    Judged,
    Line,
    Looked,
    Members,
    NotJudged,
    Person,
    Removed,
)
from kgroup.admin.recording.observed import Observed, Unreadable, begun, files_of, read
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
    Removed(NOW, "__consumer_offsets-7/0.log"),
    Incident(NOW, 4, "opened", "1-a", "group g", 1, "error", ("KG104",), ("g",), "t", "c", ("e",), "run"),
]


@pytest.fixture(params=["folder", "url"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return LocalFolder(tmp_path) if request.param == "folder" else opened(monkeypatch, MemoryStore())


def lines_in(folder: Folder) -> list[Line | Unreadable]:
    return list(read(files_of(folder)))


def names_in(folder: Folder) -> list[str]:
    return [file.name.removeprefix("observed/") for file in files_of(folder)]


@pytest.mark.parametrize("line", EVERY, ids=lambda line: type(line).__name__)
def test_every_line_is_read_as_it_was_written(line: Line, folder: Folder) -> None:
    Observed(folder).append([line], NOW)
    assert lines_in(folder) == [line]
    assert CODEC.encode(line).count(b"\n") == 0


def test_wherever_a_write_was_cut_the_lines_before_are_kept(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    Observed(folder).append(EVERY, NOW)
    (path,) = tmp_path.glob("observed/*")
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        count = sum(end <= size for end in ends)
        assert lines_in(folder) == EVERY[:count], size
        Observed(folder).append([Ended(NOW + 1)], NOW + 1)
        assert lines_in(folder) == [*EVERY[:count], Ended(NOW + 1)], size
        folder.delete("observed/2024-10-04T000000-00001.ndjson")


def test_a_look_of_another_day_begins_a_file_and_a_clock_that_goes_back_opens_none_again(
    folder: Folder,
) -> None:
    days = Observed(folder)
    assert days.begin_at(NOW)
    days.append([Ended(NOW)], NOW)
    assert not days.begin_at(NOW + 1) and days.begin_at(NOW + DAY_MS)
    days.append([Ended(NOW + DAY_MS)], NOW + DAY_MS)
    days.append([Ended(NOW + DAY_MS)], NOW + DAY_MS, begin=True)
    assert not days.begin_at(NOW)
    days.append([Ended(NOW + DAY_MS)], NOW)
    assert names_in(folder) == ["2024-10-04T000000.ndjson", "2024-10-05T000000.ndjson"]
    assert [len(list(read(files))) for files in begun(folder)] == [2, 2]


def test_a_file_begins_again_after_so_many_bytes_or_times_what_it_began_with(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "LEAST_BYTES", 100)
    days, line = Observed(folder), Ended(NOW)
    size = len(CODEC.encode(line)) + 1
    counts = []
    for first in (1, 3, 1):
        days.append([line] * first, NOW, begin=True)
        counts.append(first)
        while not days.begin_at(NOW):
            days.append([line], NOW)
            counts[-1] += 1
    least = -(-100 // size)
    assert counts == [max(least, 8), max(least, 24), max(least, 8)] and least < 8


def test_each_run_has_files_of_its_own_in_the_order_of_the_runs(folder: Folder) -> None:
    for number in range(12):
        days = Observed(folder)
        days.append([Ended(NOW + number)], NOW + number)
        days.append([Ended(NOW + number)], NOW + number)
    first = "2024-10-04T000000"
    assert names_in(folder) == [f"{first}.ndjson", *(f"{first}-{n:05d}.ndjson" for n in range(1, 12))]
    assert lines_in(folder) == [Ended(NOW + number) for number in range(12) for _ in range(2)]
    Observed(folder).append([Ended(NOW + 12)], NOW - DAY_MS)
    assert names_in(folder)[-1] == f"{first}-00012.ndjson"
    Observed(folder).append([Ended(NOW + 1000)], NOW + 1000)
    assert names_in(folder)[-1] == "2024-10-04T000001.ndjson"


def test_a_large_object_goes_on_in_another_and_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    folder = opened(monkeypatch, store)
    monkeypatch.setattr(type(folder), "best_bytes", 40)
    days = Observed(folder)
    for number in range(7):
        days.append([Ended(NOW + number)], NOW + number * 1000)
    assert lines_in(folder) == [Ended(NOW + number) for number in range(7)]
    assert len(files_of(folder)) == 4 and len(begun(folder)) == 1
    Observed(folder)
    store.requests.clear()
    days.append([Ended(NOW)], NOW)
    assert store.requests == [("write", "recording/observed/2024-10-04T000000-00003.ndjson")]


def full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_a_full_disk_refused_is_not_there_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = Observed(LocalFolder(tmp_path))
    for number in (0, 2):
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(StorageError, match="No space left"):
                days.append([Ended(NOW + number + 9)], NOW)
        days.append([Ended(NOW + number)], NOW)
    assert lines_in(LocalFolder(tmp_path)) == [Ended(NOW), Ended(NOW + 2)]


def test_a_beginning_that_was_refused_is_written_over_whenever_there_is_room(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what needs no beginning goes on in the file before."""
    days, write = Observed(folder), MemoryStore.write
    days.append([Ended(NOW)], NOW)

    def late(*given: Any) -> None:
        write(*given)
        raise StorageError("it answered too late")

    with monkeypatch.context() as patched:
        patched.setattr(MemoryStore, "write", late)
        patched.setattr(os, "fsync", full)
        for second in (1, 2):
            with pytest.raises(StorageError, match="too late|No space left"):
                days.append([Ended(NOW + second)], NOW + second * 1000, begin=True)
    days.append([Ended(NOW + 3)], NOW + 3000)
    days.append([Ended(NOW + 4)], NOW + 4000, begin=True)
    days.append([Ended(NOW + 5)], NOW + 5000, begin=True)
    assert names_in(folder) == [f"2024-10-04T00000{second}.ndjson" for second in (0, 1, 5)]
    assert lines_in(folder) == [Ended(NOW + number) for number in (0, 3, 4, 5)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_a_store_did_not_take_is_not_there_later(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers too late: whether the object was put is unknown, and the next one replaces it."""
    store = MemoryStore()
    folder = opened(monkeypatch, store)
    days = Observed(folder)
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
    days = Observed(folder)
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
    Observed(folder).append([Ended(NOW)], NOW)
    with next(tmp_path.glob("observed/*")).open("ab") as file:
        file.write(b'["Ended",[1,"more"]]\n')
    Observed(folder).append([Ended(NOW + 1)], NOW + 1)
    first, odd, last = lines_in(folder)
    assert (first, last) == (Ended(NOW), Ended(NOW + 1))
    assert isinstance(odd, Unreadable) and odd.number == 2 and "line 2 cannot be read" in odd.text
