"""What a recording lacks of the log is kept beside it, and is never taken for nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kgroup.admin.recording.gaps import Gap, add_gap, gaps_in
from kgroup.errors import StorageError, StorageUnreachable
from kgroup.history.sources.folders import Folder, LocalFolder
from tests.memory_store import MemoryStore, opened

ONE = Gap(1, "__consumer_offsets-7", "offsets 5 to 6 were gone")
TWO = Gap(2, "__consumer_offsets-7", "offsets 9 to 12 were gone, too")


@pytest.fixture(params=["folder", "url"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return LocalFolder(tmp_path) if request.param == "folder" else opened(monkeypatch, MemoryStore())


def test_gaps_are_added_to_those_before(folder: Folder) -> None:
    assert gaps_in(folder) == ()
    assert add_gap(folder, ONE) and add_gap(folder, TWO)
    assert not add_gap(folder, replace(ONE, at_ms=3)), "who was killed behind it meets it again"
    assert gaps_in(folder) == (ONE, TWO)


def test_gaps_that_cannot_be_read_are_not_none(folder: Folder) -> None:
    folder.write("gaps.json", b"[[1]]")
    for act in (gaps_in, lambda place: add_gap(place, ONE)):
        with pytest.raises(StorageError, match="gaps.json cannot be read"):
            act(folder)


def test_gaps_that_a_store_did_not_take_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    folder = opened(monkeypatch, store)
    add_gap(folder, ONE)
    store.down()
    with pytest.raises(StorageUnreachable):
        add_gap(folder, TWO)
    assert gaps_in(folder) == (ONE,)
