"""Rate-limited logging: a repeated failure is logged once, and then now and again with its count."""

import logging

from kgroup.errors import KgroupError
from kgroup.runtime.clock import Clock

EVERY_MS = 10_000
SUBJECTS_KEPT = 1000


class Complaints:
    """Errors for the log: for each subject at most one line in EVERY_MS, with the number of omitted ones."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[str, tuple[int, int]] = {}  # subject → when, and how many were omitted since

    def say(self, log: logging.Logger, subject: str, text: str) -> None:
        """Log `subject: text`, unless the subject had its line a moment ago."""
        now_ms = self._clock.now_ms()
        at_ms, left_out = self._said.get(subject, (now_ms - EVERY_MS, 0))
        if now_ms < at_ms + EVERY_MS:
            self._said[subject] = at_ms, left_out + 1
            return
        if len(self._said) >= SUBJECTS_KEPT:
            self._said.clear()
        self._said[subject] = now_ms, 0
        log.error("%s: %s%s", subject, text, f" ({left_out} more since the last line)" if left_out else "")


def line_of(error: Exception) -> str:
    """Return one line about a failure, with what to do about it."""
    if not isinstance(error, KgroupError):
        return repr(error)
    return f"{error.message} ({error.hint})" if error.hint else error.message
