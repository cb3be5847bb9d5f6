"""A moment in a recording: what was seen of it, and that what was not seen is unknown and never healthy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from kgroup.admin.models import ItemError
from kgroup.admin.recording import observed
from kgroup.admin.recording.lines import Began, Ended, Judged, Line, Looked, NotJudged, World
from kgroup.admin.recording.observed import Observed, begun, read
from kgroup.admin.recording.then import at, not_found, today_in
from kgroup.errors import StorageError
from kgroup.history.fold.removals import Today
from kgroup.history.sources.folders import LocalFolder

DAY_MS = 86_400_000
T = 20_000 * DAY_MS
DOWN = ItemError("cluster", "UNREACHABLE", "no broker answers")


def began(s: int, goes_on: bool = False) -> Began:
    return Began(T + s * 1000, "0.1.0", None, goes_on, 0)


def looked(s: int, failed: bool = False) -> Looked:
    return Looked(T + s * 1000, T + s * 1000, 10_000, failed, (DOWN,) if failed else ())


def judged(s: int, state: str) -> Judged:
    return Judged(T + s * 1000, "g", "classic", state, (), (), ())


def recorded(path: Path, lines: Iterable[Line]) -> LocalFolder:
    folder = LocalFolder(path)
    days = Observed(folder)
    for line in lines:
        days.append([line], line.at_ms)
    return folder


LIFE = [
    began(0),
    judged(10, "Stable"),
    looked(10),
    looked(20),
    judged(30, "Empty"),
    looked(30),
    Ended(T + 35_000),
    began(100),
    judged(105, "Stable"),
    looked(105),
    looked(115, failed=True),
    looked(125),
    began(200),
    judged(205, "Dead"),
    looked(205),
]


@pytest.mark.parametrize(
    ("second", "state", "why"),
    [
        (-1, None, "the recording begins at"),
        (5, None, "had not looked at any group"),
        (10, "Stable", None),
        (29, "Stable", None),
        (30, "Empty", None),
        (34, "Empty", None),
        (36, None, "it ended at 2024-10-04T00:00:35Z, and it began again at 2024-10-04T00:01:40Z"),
        (99, None, "did not run"),
        (101, None, "had not looked at any group"),
        (110, "Stable", None),
        (116, None, "no broker answers"),
        # A crash: nothing says how long it still ran.
        (126, None, "may not have run at 2024-10-04T00:02:06Z: its last look was at 2024-10-04T00:02:05Z"),
        (205, "Dead", None),
        (235, "Dead", None),
        (236, None, "no later one is recorded"),
    ],
)
def test_a_moment(second: int, state: str | None, why: str | None, tmp_path: Path) -> None:
    found = at(recorded(tmp_path, LIFE), T + second * 1000)
    line = found.judged.get("g")
    assert (found.unknown is None) == (why is None), found.unknown
    if why is None:
        assert isinstance(line, Judged) and line.state == state
        assert "seen every 10 s" in found.text
    else:
        assert why in (found.unknown or "")


def test_the_look_after_bounds_what_is_unknown(tmp_path: Path) -> None:
    found = at(recorded(tmp_path, LIFE), T + 15_000)
    assert found.looked == looked(10) and found.next_ms == T + 20_000
    assert "seen at 2024-10-04T00:00:10Z, 5 s before, and again at 2024-10-04T00:00:20Z" in found.text


def test_a_day_begins_with_what_the_day_before_ended_with(tmp_path: Path) -> None:
    end = 86_390
    life = [began(0), judged(end, "Stable"), looked(end), began(86_401, True), judged(86_402, "Empty")]
    folder = recorded(tmp_path, [*life, looked(86_402)])
    before, after = (at(folder, T + second * 1000).judged["g"] for second in (86_401, 86_403))
    assert isinstance(before, Judged) and before.state == "Stable"
    assert isinstance(after, Judged) and after.state == "Empty"


def test_a_long_silence_of_a_running_recorder_is_unknown(tmp_path: Path) -> None:
    """As with a full disk: it ran, and could not store what it saw."""
    folder = recorded(tmp_path, [began(0), judged(1, "Stable"), looked(1), looked(100)])
    assert at(folder, T + 31_000).unknown is None
    assert "the last look was at 2024-10-04T00:00:01Z" in (at(folder, T + 32_000).unknown or "")


def test_why_a_group_is_not_there(tmp_path: Path) -> None:
    hidden = ItemError("broker 2", "UNREACHABLE", "it does not answer")
    lines = [began(0), NotJudged(T, "gone", None), NotJudged(T, "dark", DOWN), looked(1)]
    found = at(recorded(tmp_path, lines), T + 2000)
    assert not_found(found, "gone").code == not_found(found, "never").code == "GROUP_ID_NOT_FOUND"
    assert not_found(found, "dark") == DOWN
    part = recorded(tmp_path / "part", [began(0), Looked(T, T, 10_000, False, (hidden,))])
    assert not_found(at(part, T + 1), "never").code == "NOT_SEEN"


def test_a_line_that_cannot_be_read_makes_the_moment_unknown(tmp_path: Path) -> None:
    folder = recorded(tmp_path, [began(0), judged(1, "Stable"), looked(1)])
    with next(tmp_path.glob("observed/*")).open("ab") as file:
        file.write(b'["Judged",[1]]\n')
    recorded(tmp_path, [began(11, goes_on=True), looked(11)])
    assert "line 4 cannot be read" in (at(folder, T + 2_000).unknown or "")
    assert at(folder, T + 12_000).unknown is None


def test_a_capture_has_no_observations(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="has no observations"):
        at(LocalFolder(tmp_path), T)


def grown(path: Path, days: int) -> LocalFolder:
    """A run of some days, a look every ten minutes, each with another state."""
    folder = LocalFolder(path)
    stored = Observed(folder)
    for second in range(0, days * 86_400, 600):
        first = [began(second, second > 0)] if (begin := stored.begin_at(T + second * 1000)) else []
        stored.append([*first, judged(second, str(second)), looked(second)], T + second * 1000, begin=begin)
    return folder


def test_a_moment_is_read_from_the_file_that_begins_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "LEAST_BYTES", 2000)
    folder = grown(tmp_path, 2)
    starts = [files[0].began for files in begun(folder)]
    assert len(starts) > 10
    opened: list[str] = []
    real = LocalFolder.open
    monkeypatch.setattr(LocalFolder, "open", lambda self, name: (opened.append(name), real(self, name))[1])
    for second in range(0, 2 * 86_400, 600):
        for later in (0, 5):
            opened.clear()
            found = at(folder, T + (second + later) * 1000)
            line = found.judged["g"]
            assert isinstance(line, Judged) and line.state == str(second) and len(opened) <= 2
            assert found.next_ms in (T + (second + 600) * 1000, None)


def test_what_was_removed_is_unknown_and_said_to_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "LEAST_BYTES", 2000)
    folder = grown(tmp_path, 1)
    first, second, *_ = begun(folder)
    folder.delete(first[0].name)
    found = at(folder, T + 10_000)
    assert found.looked is None and found.next_ms is None
    assert "and so at 2024-10-04T00:00:10Z, is removed" in (found.unknown or "")
    (left,) = (line for line in read(second, Began) if isinstance(line, Began))
    assert at(folder, left.at_ms).unknown is None


def test_a_look_that_a_crash_tore_where_it_begins_a_file_is_none(tmp_path: Path) -> None:
    folder = recorded(tmp_path, [began(0), judged(1, "Stable"), looked(1)])
    torn = [began(11, goes_on=True), judged(11, "Empty")]
    Observed(folder).append(torn, T + 11_000)
    found = at(folder, T + 12_000)
    assert found.looked == looked(1) and found.judged == {"g": judged(1, "Stable")}
    recorded(tmp_path, [began(40), looked(41)])
    assert "may not have run at 2024-10-04T00:00:12Z" in (at(folder, T + 12_000).unknown or "")
    assert at(folder, T + 41_000).judged == {}


def test_topics_are_those_of_the_last_look_that_saw_them(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    for second, topics in ((0, "a"), (100, "b"), (200, None)):
        stored = Observed(folder)
        world = [] if topics is None else [World(T + second * 1000, ((topics, "id"),), 5)]
        end = looked(second, failed=topics is None)
        stored.append([began(second), *world, end], T + second * 1000)
    assert today_in(folder, None) == today_in(folder, T + 150_000) == Today({"b": "id"}, 5, T + 100_000)
    assert today_in(folder, T + 99_999) == Today({"a": "id"}, 5, T)
    assert today_in(folder, T - 1) == Today()


def test_a_group_that_went_as_a_file_began_is_not_there(tmp_path: Path) -> None:
    """And where a clock that went back names two beginnings alike, they are read in turn."""
    stored = Observed(LocalFolder(tmp_path))
    stored.append([began(10), judged(10, "Stable"), looked(10)], T + 10_000, begin=True)
    stored.append([began(20, goes_on=True), looked(20)], T + 5_000, begin=True)
    assert len(begun(LocalFolder(tmp_path))) == 1
    there = [at(LocalFolder(tmp_path), T + second * 1000).judged for second in (19, 20)]
    assert there == [{"g": judged(10, "Stable")}, {}]
