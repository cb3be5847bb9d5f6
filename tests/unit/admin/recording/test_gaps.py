"""What a recording lacks of the log is kept beside it, and is never taken for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgroup.admin.recording.gaps import Gap, add_gaps, gaps_in
from kgroup.errors import StorageError, StorageUnreachable
from kgroup.history.sources.folders import Folder, LocalFolder
from tests.memory_store import MemoryStore, opened

ONE = Gap(1, "__consumer_offsets", 7, 5, -1, "it was gone")
TWO = Gap(2, "__consumer_offsets", 7, 9, 12, "it was gone, too")


@pytest.fixture(params=["folder", "url"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return LocalFolder(tmp_path) if request.param == "folder" else opened(monkeypatch, MemoryStore())


def test_gaps_are_added_to_those_before(folder: Folder) -> None:
    assert gaps_in(folder) == ()
    add_gaps(folder, [ONE])
    add_gaps(folder, [TWO])
    assert gaps_in(folder) == (ONE, TWO)
    assert TWO.text == "offsets 9 to 12 are not recorded: it was gone, too" and "from 5 on" in ONE.text


def test_gaps_that_cannot_be_read_are_not_none(folder: Folder) -> None:
    folder.write("gaps.json", b"[[1]]")
    for act in (gaps_in, lambda place: add_gaps(place, [ONE])):
        with pytest.raises(StorageError, match="gaps.json cannot be read"):
            act(folder)


def test_gaps_that_a_store_did_not_take_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    folder = opened(monkeypatch, store)
    add_gaps(folder, [ONE])
    store.down()
    with pytest.raises(StorageUnreachable):
        add_gaps(folder, [TWO])
    assert gaps_in(folder) == (ONE,)
