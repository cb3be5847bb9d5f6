"""Lag at looks: what is stored of it, put together again, is what each look saw."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from kgroup.admin.models import GroupDescription, ItemError
from kgroup.admin.read.lag import behind, total
from kgroup.admin.read.lag_report import GroupLag, PartitionLag, of_rows
from kgroup.admin.recording import observed
from kgroup.admin.recording.lags import lines_of, without_times
from kgroup.admin.recording.lines import (
    Began,
    Commits,
    Ends,
    Judged,
    Lags,
    Line,
    Looked,
    NotJudged,
)
from kgroup.admin.recording.look import Known
from kgroup.admin.recording.observed import Observed, files_of
from kgroup.admin.recording.then import at
from kgroup.admin.statuses import READING
from kgroup.domain import place_of
from kgroup.history.sources.folders import LocalFolder

T = 20_000 * 86_400_000


def row(number: int, offset: int | None, end: int | None, written_ms: int, at_ms: int) -> PartitionLag:
    """A row as `lag --time` has it: without a commit, without a known end, beyond the end, or plain."""
    lag, reason = (None, "it is not known") if offset is None or end is None else behind(offset, end)
    stable, age_ms = (end if lag else None), (None if lag is None else at_ms - written_ms if lag else 0)
    blank = PartitionLag("t", number, offset, end, lag, age_ms, None, None, "i", "m", None, status=READING)
    return replace(blank, reason=reason, last_stable_offset=stable, unreadable=None if lag is None else 0)


def group(name: str, rows: list[PartitionLag], errors: tuple[ItemError, ...] = ()) -> GroupLag:
    sums = total(rows)
    made = GroupDescription(name, "classic", "", "Stable", errors=errors, total_lag=sums.lag)
    known = {"lag_at_least": sums.at_least, "unknown_partitions": sums.unknown}
    return of_rows(replace(made, unreadable_lag=sums.unreadable, **known), tuple(rows))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("least_bytes", [1, 1 << 20])
def test_each_look_is_read_as_it_was(
    seed: int, least_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "LEAST_BYTES", least_bytes)
    monkeypatch.setattr(observed, "TIMES", 2)
    by = random.Random(seed)
    days, known = Observed(LocalFolder(tmp_path)), Known()
    days.append([Began(T, "0", None, False, 0)], T)
    ends: dict[int, int | None] = dict.fromkeys(range(4), 10)
    names = ("a", 'b"\\')
    commits = {(name, number): (10, T + 5_000) for name in names for number in range(4)}
    saw = {}
    for look in range(1, 30):
        at_ms = T + look * 10_000
        for number in range(4):
            ends[number] = by.choice([None, 10 + look, 10 + look, *[ends[number]] * 3])
        for key in commits:
            if by.random() < 0.3:
                offset = by.randrange(10 + look)
                commits[key] = offset, T + 500 * offset
        there = [name for name in names if by.random() < 0.9]
        own = {name: [key for key in commits if key[0] == name and by.random() < 0.95] for name in there}
        unseen = by.choice([(), (), (), (ItemError("offsets", "UNREACHABLE", "it does not answer"),)])
        seen = {
            name: group(
                name, [row(key[1], *_of(commits[key], ends[key[1]], by), at_ms) for key in keys], unseen
            )
            for name, keys in own.items()
        }
        ended = {place_of("t", number): end for number, end in ends.items()}
        lines: list[Line] = [Judged(at_ms, name, "classic", "Stable", (), (), ()) for name in there]
        lines += [NotJudged(at_ms, name, None) for name in names if name not in there]
        lines.append(Ends(at_ms, "t", tuple(ends), (0,) * 4, tuple(ends.values())))
        lines += (line for lag in seen.values() for line in lines_of(at_ms, lag, ended))
        first: list[Line] = []
        if begin := days.begin_at(at_ms):
            first, known = [Began(at_ms, "0", None, True, 0)], Known()
        days.append([*first, *known.new(lines), Looked(at_ms, at_ms, 10_000)], at_ms, begin=begin)
        saw[at_ms] = seen
    for at_ms, seen in saw.items():
        found = at(LocalFolder(tmp_path), at_ms, with_lag=True)
        assert found.unknown is None
        assert {name: found.lag(name) for name in names} == {name: seen.get(name) for name in names}
        assert all(without_times(lag).max_time_lag_ms is None for lag in seen.values())
        assert at(LocalFolder(tmp_path), at_ms).lag("a") is None  # it was not asked for


def _of(commit: tuple[int, int], end: int | None, by: random.Random) -> tuple[int | None, int | None, int]:
    return (None if by.random() < 0.1 else commit[0]), end, commit[1]


def test_a_line_of_lag_that_cannot_be_read_makes_lag_unknown_and_no_check_up(tmp_path: Path) -> None:
    days = Observed(LocalFolder(tmp_path))
    ends = {place_of("t", 0): 9}
    seen = [line for name in "ab" for line in lines_of(T, group(name, [row(0, 3, 9, T - 5, T)]), ends)]
    days.append([Began(T, "0", None, False, 0), Ends(T, "t", (0,), (0,), (9,)), *seen], T)
    (file,) = files_of(LocalFolder(tmp_path))
    with (tmp_path / file.name).open("ab") as opened:
        opened.write(f'["Commits",[{T},"a","t",[0],[4],["x"]]]\n'.encode())
    Observed(LocalFolder(tmp_path)).append([Looked(T, T, 10_000)], T)
    found = at(LocalFolder(tmp_path), T, with_lag=True)
    assert "line 7 cannot be read" in (found.unknown or "")
    assert at(LocalFolder(tmp_path), T).unknown is None


def test_rows_that_only_move_are_stored_as_numbers(tmp_path: Path) -> None:
    known = Known()

    def new(at_ms: int, offset: int, written_ms: int, end: int | None = 9) -> list[Line]:
        seen = group("g", [row(0, offset, end, written_ms, at_ms)])
        return [*known.new(lines_of(at_ms, seen, {place_of("t", 0): end}))]

    assert {type(line) for line in new(T, 3, T - 5)} == {Lags, Commits}
    assert new(T + 1, 4, T - 3) == [Commits(T + 1, "g", "t", (0,), (4,), (T - 3,))]
    assert new(T + 2, 4, T - 2) == [], "of one record, times differ by how long the looks took"
    lags, commits = new(T + 3, 4, T - 3, None)
    assert isinstance(lags, Lags) and lags.rows[0].reason
    assert commits == Commits(T + 3, "g", "t", (), (), ())
