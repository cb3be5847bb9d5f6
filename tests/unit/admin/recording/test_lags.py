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
from kgroup.admin.recording.lags import Seen, without_times
from kgroup.admin.recording.lines import Began, Ends, LagsMoved, Looked
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
    days, before = Observed(LocalFolder(tmp_path)), Seen()
    days.append([Began(T, "0", None, False, 0)], T)
    ends: dict[int, int | None] = dict.fromkeys(range(4), 10)
    commits = {(name, number): (10, T + 5_000) for name in ("a", 'b"\\') for number in range(4)}
    saw = {}
    for look in range(1, 30):
        at_ms = T + look * 10_000
        for number in range(4):
            ends[number] = by.choice([None, 10 + look, 10 + look, *[ends[number]] * 3])
        for key in commits:
            if by.random() < 0.3:
                offset = by.randrange(10 + look)
                commits[key] = offset, T + 500 * offset
        there = [name for name in ("a", 'b"\\') if by.random() < 0.9]
        own = {name: [key for key in commits if key[0] == name and by.random() < 0.95] for name in there}
        unseen = by.choice([(), (), (), (ItemError("offsets", "UNREACHABLE", "it does not answer"),)])
        seen = Seen(
            at_ms,
            {
                name: group(
                    name, [row(key[1], *_of(commits[key], ends[key[1]], by), at_ms) for key in keys], unseen
                )
                for name, keys in own.items()
            },
            {place_of("t", number): end for number, end in ends.items()},
        )
        stored = [Ends(at_ms, "t", tuple(ends), (0,) * 4, tuple(ends.values()))]
        if begin := days.begin_at(at_ms):
            stored, before = [Began(at_ms, "0", None, True, 0), *stored], Seen()
        days.append([*stored, *seen.since(before), Looked(at_ms, at_ms, 10_000)], at_ms, begin=begin)
        before = seen
        saw[at_ms] = seen
    for at_ms, seen in saw.items():
        found = at(LocalFolder(tmp_path), at_ms, with_lag=True)
        assert found.unknown is None
        for name, lag in seen.lags.items():
            assert found.lag(name) == lag
            assert found.lag(name) is not None and without_times(lag).max_time_lag_ms is None
        assert at(LocalFolder(tmp_path), at_ms).lag("a") is None  # it was not asked for


def _of(commit: tuple[int, int], end: int | None, by: random.Random) -> tuple[int | None, int | None, int]:
    return (None if by.random() < 0.1 else commit[0]), end, commit[1]


def test_a_line_of_lag_that_cannot_be_read_makes_lag_unknown_and_no_check_up(tmp_path: Path) -> None:
    days = Observed(LocalFolder(tmp_path))
    ends = {place_of("t", 0): 9}
    seen = Seen(T, {name: group(name, [row(0, 3, 9, T - 5, T)]) for name in ("a", "b")}, ends)
    days.append([Began(T, "0", None, False, 0), Ends(T, "t", (0,), (0,), (9,)), *seen.since(Seen())], T)
    (file,) = files_of(LocalFolder(tmp_path))
    with (tmp_path / file.name).open("ab") as opened:
        opened.write(f'["LagsMoved",[{T},"a",null,[],[["t",[0],[4],["x"]]]]]\n'.encode())
    Observed(LocalFolder(tmp_path)).append([Looked(T, T, 10_000)], T)
    found = at(LocalFolder(tmp_path), T, with_lag=True)
    assert "line 5 cannot be read" in (found.unknown or "")
    assert at(LocalFolder(tmp_path), T).unknown is None


def test_rows_that_only_move_are_stored_as_numbers(tmp_path: Path) -> None:
    places = {place_of("t", 0): 9}
    first, second, third = (
        Seen(at_ms, {"g": group("g", [row(0, offset, 9, written_ms, at_ms)])}, places)
        for at_ms, offset, written_ms in ((T, 3, T - 5), (T + 1, 4, T - 3), (T + 2, 4, T - 3))
    )
    (line,) = second.since(first)
    assert isinstance(line, LagsMoved) and (line.head, line.rows) == (None, ())
    assert line.commits == (("t", (0,), (4,), (T - 3,)),)
    assert list(third.since(second)) == []
    ended = {place_of("t", 0): None}
    (line,) = Seen(T + 3, {"g": group("g", [row(0, 4, None, T - 3, T + 3)])}, ended).since(third)
    assert isinstance(line, LagsMoved) and line.rows[0].reason
