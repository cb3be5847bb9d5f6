"""Segments that are cut short, grow, are compacted or removed between runs: nothing is lost in silence."""

import tempfile
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgroup.history.log_items import BadRange
from kgroup.pipeline.ask.story import story_in
from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.spark.workers import InProcess
from kgroup.pipeline.tables.ingest import RunReport, fill
from kgroup.pipeline.tables.store import Store
from tests.pipeline.made_logs import made_batches
from tests.pipeline.stored_rows import rows
from tests.ran import Ran
from tests.sampled import FULL

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
PART = 7


class Segmented:
    """A partition in several segments, each of which is there to some byte, or gone."""

    def __init__(self, root: Path, seed: int, segments: int = 4, batches: int = 32) -> None:
        made = made_batches(seed, batches)
        size = batches // segments
        self.folder = root / f"__consumer_offsets-{PART}"
        self.folder.mkdir(parents=True)
        self.parts = [made[start : start + size] for start in range(0, batches, size)]
        self.names = [f"{int.from_bytes(part[0][:8], 'big'):020d}.log" for part in self.parts]
        self.only_grew = True
        self.passed = False
        self.there = [0] * segments

    def put(self, at: int, share: float, on_a_bound: bool) -> None:
        """Let a segment be there as far as this, if it was not before: whatever copies it goes forward."""
        batches = self.parts[at]
        length = int(share * sum(map(len, batches)))
        if on_a_bound:
            length = sum(map(len, batches[: int(share * len(batches))]))
        if length > self.there[at]:
            self.there[at] = length
            self._write(at)

    def compact(self, at: int, keep: int) -> None:
        """Take every batch but each `keep`th out of a segment that is whole and not the last."""
        if at < len(self.parts) - 1 and self.there[at] == sum(map(len, self.parts[at])):
            self.parts[at] = self.parts[at][::keep]
            self.there[at] = sum(map(len, self.parts[at]))
            self.only_grew = False
            self._write(at)

    def remove(self, at: int) -> None:
        if self.there[at]:
            self.only_grew = False
            (self.folder / self.names[at]).unlink()
            self.there[at] = 0

    def _write(self, at: int) -> None:
        (self.folder / self.names[at]).write_bytes(b"".join(self.parts[at])[: self.there[at]])

    @property
    def readable(self) -> bool:
        return any(self.there)

    def read(self, out: Path, split_bytes: int = 1 << 20) -> RunReport:
        """A run over the files; `passed` if one of them lacks records without a sign of it in its bytes."""
        last = max(at for at, length in enumerate(self.there) if length)
        for length, part in zip(self.there[:last], self.parts, strict=False):
            bounds = list(accumulate(map(len, part), initial=0))
            self.passed |= length in bounds[:-1]
        return filled(self, out, split_bytes)


def filled(log: Segmented, out: Path, split_bytes: int = 1 << 20) -> RunReport:
    return fill(InProcess(2), Segments.of([log.folder.parent]), Store(out), split_bytes, 2)


def offsets(store: Store) -> set[object]:
    return {row["log_offset"] for table in ("commits", "control", "markers") for row in rows(store, table)}


def without_runs(store: Store, table: str) -> list[dict[str, object]]:
    return [{name: value for name, value in row.items() if name != "run"} for row in rows(store, table)]


STEPS = st.tuples(
    st.sampled_from(["put", "put", "put", "put", "compact", "remove"]),
    st.integers(0, 3),
    st.floats(0.01, 1) | st.just(1.0),
    st.booleans(),
    st.booleans(),
)


@given(
    seed=st.integers(0, 1000),
    split_bytes=st.sampled_from([600, 3_000, 1 << 20]),
    steps=st.lists(STEPS, min_size=1, max_size=9),
    ends_whole=st.booleans(),
)
@example(
    seed=1,
    split_bytes=1 << 20,
    steps=[("put", 0, 0.7, False, False), ("put", 1, 1.0, False, False), ("put", 2, 0.5, False, True)],
    ends_whole=True,
)
@example(
    seed=1,
    split_bytes=600,
    steps=[("put", 0, 1.0, False, True), ("put", 1, 0.55, False, False), ("put", 2, 1.0, False, True)],
    ends_whole=True,
)
@example(
    seed=23,
    split_bytes=600,
    steps=[("put", 3, 1.0, False, True), ("put", 0, 0.01, False, False)],
    ends_whole=False,
)
@settings(max_examples=500 if FULL else 10, deadline=None)
def test_the_tables_are_those_of_the_final_files_or_the_run_says_what_is_missing(
    seed: int, split_bytes: int, steps: list[tuple[str, int, float, bool, bool]], ends_whole: bool
) -> None:
    with tempfile.TemporaryDirectory() as root:
        log, out, at_once = Segmented(Path(root) / "in", seed), Path(root) / "out", Path(root) / "once"
        for action, at, share, flag, runs in steps:
            if action == "put":
                log.put(at, share, flag)
            elif action == "compact":
                log.compact(at, 2 + flag)
            else:
                log.remove(at)
            if runs and log.readable:
                log.read(out, split_bytes)
        if ends_whole:
            for at in range(len(log.parts)):
                log.put(at, 1.0, False)
        if not log.readable:
            return
        report, expected = log.read(out, split_bytes), filled(log, at_once)
        store, final = Store(out), Store(at_once)
        assert ends_whole <= (not report.waiting)
        covered = {c.partition: c for c in store.manifest.coverage()}
        lost = offsets(final) - offsets(store)
        waits_behind = min((waiting.last_offset for waiting in report.waiting), default=1 << 60)
        for offset in lost:
            assert offset > waits_behind or offset < covered[PART].complete_from, (offset, covered)
        if PART in covered:
            between = [offset for offset in lost if covered[PART].first_offset <= offset <= waits_behind]
            assert covered[PART].missing >= len(between)
        assert not (ends_whole and log.only_grew and not log.passed and lost)
        more = offsets(store) - offsets(final)
        # An older file that came later, and is cut short, holds up only those who have not read behind it.
        held = min((waiting.last_offset for waiting in expected.waiting), default=1 << 60)
        assert not log.only_grew or all(offset > held for offset in more)
        if log.only_grew and not lost and not more:
            assert [w.last_offset for w in report.waiting] == [w.last_offset for w in expected.waiting]
            for table in ("commits", "control", "markers", "batches"):
                assert without_runs(store, table) == without_runs(final, table), table
            assert story_in(store).events == story_in(final).events


def test_a_cut_segment_is_said_until_it_is_whole_and_no_record_is_lost(
    tmp_path: Path, kgroup: Callable[..., Ran]
) -> None:
    log, out = Segmented(tmp_path / "in", 5), tmp_path / "out"
    for at in range(4):
        log.put(at, 0.6 if at == 1 else 1.0, False)
    words = ["pipeline", "run", str(tmp_path / "in"), "--out", str(out), "--master", "local[1]"]
    for _ in range(2):
        said = kgroup(*words)
        assert said.code == 5
        assert f"partition {PART} is read up to offset" in said.err
        assert f"{log.names[1]} is cut short, and what follows it waits" in said.err
    cut = int(log.names[2].removesuffix(".log"))
    assert max(offsets(Store(out))) < cut
    log.put(1, 1.0, False)
    assert kgroup(*words).code == 0
    once = filled(log, tmp_path / "once")
    assert not once.waiting and Store(out).bad_ranges() == list[tuple[int, BadRange]]()
    assert without_runs(Store(out), "commits") == without_runs(Store(tmp_path / "once"), "commits")


def test_a_cut_segment_that_is_taken_away_is_passed(tmp_path: Path) -> None:
    log, out = Segmented(tmp_path / "in", 6), tmp_path / "out"
    for at in range(4):
        log.put(at, 0.6 if at == 1 else 1.0, False)
    assert filled(log, out).waiting
    log.remove(1)
    assert not filled(log, out).waiting
    (covered,) = Store(out).manifest.coverage()
    assert covered.missing and covered.last_offset == max(offsets(Store(out)))
