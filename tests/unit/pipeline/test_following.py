"""Runs that repeat: what passes by itself is waited for, what stays ends them."""

from collections.abc import Iterable

import pytest

pytest.importorskip("pyspark")

from kgroup.errors import ConfigError, SafetyRefused, StorageUnreachable, Unreachable
from kgroup.pipeline.spark.following import LONGEST_S, follow, passes_by_itself


class Runs:
    """Runs that end as they are told; Ctrl-C comes after the last. Notes, tales and pauses are kept."""

    def __init__(self, outcomes: Iterable[object]) -> None:
        self.outcomes = iter(outcomes)
        self.told: list[object] = []
        self.notes: list[str] = []
        self.pauses: list[float] = []

    def once(self) -> object:
        outcome = next(self.outcomes, KeyboardInterrupt())
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def follow(self, pause_s: float = 10.0) -> None:
        follow(
            self.once,
            pause_s=pause_s,
            report=self.told.append,
            note=self.notes.append,
            sleep=self.pauses.append,
            passes=passes_by_itself(None, SafetyRefused),  # type: ignore[arg-type]
        )


def test_it_goes_on_until_it_is_interrupted():
    runs = Runs([1, 2, 3])
    with pytest.raises(KeyboardInterrupt):
        runs.follow()
    assert (runs.told, runs.notes, runs.pauses) == ([1, 2, 3], [], [10.0] * 3)


def test_who_does_not_answer_is_asked_again_ever_later():
    away = [Unreachable("no broker answers"), StorageUnreachable("no store answers"), Unreachable("still")]
    runs = Runs([1, *away, *away, 2, 3])
    with pytest.raises(KeyboardInterrupt):
        runs.follow()
    assert runs.told == [1, 2, 3]
    assert runs.notes[0] == "no broker answers; nothing was written, the next run tries again"
    assert len(runs.notes) == 6
    assert runs.pauses == [10.0, 20.0, 40.0, LONGEST_S, LONGEST_S, LONGEST_S, LONGEST_S, 10.0, 10.0]


def test_kinds_of_failures_may_be_named_that_pass_too():
    runs = Runs([1, SafetyRefused("somebody else writes"), 2])
    with pytest.raises(KeyboardInterrupt):
        runs.follow()
    assert (runs.told, len(runs.notes)) == ([1, 2], 1)


def test_a_pause_is_never_shorter_for_a_failure():
    runs = Runs([1, Unreachable("away"), 2])
    with pytest.raises(KeyboardInterrupt):
        runs.follow(pause_s=3_600.0)
    assert runs.pauses == [3_600.0] * 3


def test_the_first_run_has_to_go_well():
    runs = Runs([Unreachable("no broker answers")])
    with pytest.raises(Unreachable):
        runs.follow()
    assert runs.notes == []


@pytest.mark.parametrize("error", [ConfigError("another cluster"), ValueError("ours")])
def test_what_stays_wrong_ends_it(error):
    runs = Runs([1, error, 2])
    with pytest.raises(type(error)):
        runs.follow()
    assert runs.told == [1]
