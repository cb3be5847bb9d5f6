"""The operator's log: each subject now and again, with how often it was left out."""

from __future__ import annotations

import logging

import pytest

from kgroup.errors import StorageError
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.complaints import EVERY_MS, SUBJECTS_KEPT, Complaints, line_of

log = logging.getLogger(__name__)


def test_a_subject_has_one_line_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    complaints = Complaints(clock)
    for _ in range(5):
        complaints.say(log, "disk", "full")
    clock.advance(EVERY_MS - 1)
    complaints.say(log, "disk", "still full")
    complaints.say(log, "network", "gone")
    clock.advance(1)
    complaints.say(log, "disk", "full again")
    complaints.say(log, "disk", "and again")
    assert caplog.messages == [
        "disk: full",
        "network: gone",
        "disk: full again (5 more since the last line)",
    ]


def test_more_subjects_than_are_kept_are_said_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(ManualClock())
    for number in range(SUBJECTS_KEPT + 1):
        complaints.say(log, f"subject {number}", "wrong")
    assert len(caplog.messages) == SUBJECTS_KEPT + 1
    assert len(complaints._said) <= SUBJECTS_KEPT


def test_a_failure_is_told_with_what_to_do_about_it() -> None:
    assert line_of(StorageError("it is full", hint="empty it")) == "it is full (empty it)"
    assert line_of(StorageError("it is full")) == "it is full"
    assert line_of(KeyError("k")) == "KeyError('k')"
