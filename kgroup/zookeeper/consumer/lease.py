"""Until when a consumer may deliver: by its own clock, and by nothing it cannot know (era 9.6)."""

from __future__ import annotations


class Lease:
    """Good for one session after the consumer SENT its newest answer that is known to have arrived."""

    def __init__(self, session_ms: int) -> None:
        self._session_ms = session_ms
        self.end_ms = 0
        self._answered_ms: int | None = None

    def registered(self, sent_ms: int) -> None:
        """A registration that was sent then is accepted, on a new connection."""
        self.end_ms = sent_ms + self._session_ms
        self._answered_ms = None

    def pinged(self, num_retries: int) -> None:
        """A ping without retries says that the answer before it arrived in time (era 5.2)."""
        if num_retries == 0 and self._answered_ms is not None:
            self.end_ms = max(self.end_ms, self._answered_ms + self._session_ms)

    def answered(self, now_ms: int) -> None:
        """A ping is being answered."""
        self._answered_ms = now_ms

    def ended(self) -> None:
        """There is no connection any more that it was for."""
        self.end_ms = 0
        self._answered_ms = None

    def good(self, now_ms: int) -> bool:
        """Whether anything may be delivered at this moment."""
        return now_ms < self.end_ms
