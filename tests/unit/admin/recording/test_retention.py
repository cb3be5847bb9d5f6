"""What goes when a recording is too old or too large: whole files, oldest first, each named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from kgroup.admin.recording.retention import remove_old
from kgroup.errors import StorageUnreachable
from kgroup.history.sources.folders import LocalFolder
from tests.memory_store import MemoryStore, opened

DAY_MS = 86_400_000
NOW = 20_000 * DAY_MS


def recording(folder: Path, files: Sequence[str], size: int = 100) -> None:
    """Files of these names, each a day younger than the one before; the last is of today."""
    for number, name in enumerate(files):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
        at = (NOW - (len(files) - 1 - number) * DAY_MS) / 1000
        os.utime(path, (at, at))


def left(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


A = [f"__consumer_offsets-0/{n:020d}.log" for n in (0, 40, 90)]


def test_old_segments_go_and_are_named(tmp_path: Path) -> None:
    recording(tmp_path, A)
    (gone,) = remove_old(LocalFolder(tmp_path), NOW, int(1.5 * DAY_MS), None)
    assert left(tmp_path) == set(A[1:])
    assert (gone.at_ms, gone.file) == (NOW, A[0])


def test_the_newest_segment_and_beginning_stay_however_old_and_large(tmp_path: Path) -> None:
    observed = ["observed/2024-10-03T000000.ndjson", "observed/2024-10-03T000917.ndjson"]
    recording(tmp_path, [*A, *observed])
    removed = list(remove_old(LocalFolder(tmp_path), NOW + 1000 * DAY_MS, DAY_MS, 1))
    assert left(tmp_path) == {A[2], observed[1]}
    assert [each.file for each in removed] == [*A[:2], observed[0]]


def test_the_size_is_that_of_all_and_no_more_goes_than_must(tmp_path: Path) -> None:
    other = [f"__consumer_offsets-1/{n:020d}.log" for n in (0, 7)]
    recording(tmp_path, [A[0], other[0], A[1], A[2], other[1]])
    (tmp_path / "topics.json").write_bytes(bytes(50))
    assert list(remove_old(LocalFolder(tmp_path), NOW, None, 550)) == []
    assert [each.file for each in remove_old(LocalFolder(tmp_path), NOW, None, 400)] == [A[0], other[0]]


def test_of_a_log_that_was_set_aside_nothing_stays(tmp_path: Path) -> None:
    former = "former-2024-10-04T000000Z/__consumer_offsets-0/" + "0" * 20 + ".log"
    recording(tmp_path, [former, A[0]])
    list(remove_old(LocalFolder(tmp_path), NOW, DAY_MS // 2, None))
    assert left(tmp_path) == {A[0]} and not (tmp_path / "former-2024-10-04T000000Z").exists()


def test_at_a_url_files_go_with_those_that_go_on_from_them_and_what_an_interruption_leaves_is_their_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [NOW - 9 * DAY_MS]
    store = MemoryStore(lambda: now[0])
    folder = opened(monkeypatch, store)
    observed = [
        f"observed/2024-10-03T{name}.ndjson"
        for name in ("000000", "000000-00001", "000000-00002", "000917", "000917-00001")
    ]
    for name in (*observed, *A):
        store.write(folder.place / name, bytes(100))
        now[0] += DAY_MS
    store.write(folder.place / "topics.json", b"")
    store.before = lambda path: store.down() if path.endswith("000000-00001.ndjson") else None
    removing = remove_old(folder, NOW, 1, None)
    assert [next(removing).file for _ in range(2)] == [observed[2], observed[1]]
    with pytest.raises(StorageUnreachable):
        next(removing)
    assert set(store.names) == {observed[0], *observed[3:], *A, "topics.json"}
    store.up()
    assert [each.file for each in remove_old(folder, NOW, 1, None)] == [observed[0], *A[:2]]
    assert set(store.names) == {*observed[3:], A[2], "topics.json"}
