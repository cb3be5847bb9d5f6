"""What members of every protocol share: one request at a time, one time to be woken at."""

from kgroup.errors import ErrorCode
from kgroup.members.effects import Effect, Send, WakeAt
from kgroup.protocol.codec import Message

MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Errors after which the coordinator has to be looked up."""
AGAIN = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT})
"""Errors of a coordinator that may be asked again after a while."""


class Asking:
    """Sends a request of its protocol only after the previous one is answered; commits are independent."""

    def __init__(self) -> None:
        self._in_flight: Message | None = None
        self._wake_ms: int | None = None

    def _send(self, request: Message, min_version: int = 0) -> Send:
        self._in_flight = request
        return Send(request, min_version)

    def _wake_at(self, ms: int) -> list[Effect]:
        self._wake_ms = ms
        return [WakeAt(ms)]

    def _is_woken(self, now_ms: int) -> bool:
        """Return whether the time has come and no request is in flight; this uses the wake-up."""
        if self._wake_ms is None or now_ms < self._wake_ms or self._in_flight is not None:
            return False
        self._wake_ms = None
        return True
