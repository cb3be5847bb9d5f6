"""What members of every protocol do alike: one request at a time, one moment to be woken at."""

from kgroup.errors import ErrorCode
from kgroup.members.effects import Effect, Send, WakeAt
from kgroup.protocol.codec import Message

MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Refusals after which the coordinator has to be looked up."""
AGAIN = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT})
"""Refusals of a coordinator that can be asked again in a while."""


class Asking:
    """Sends a request of its protocol only once the one before has been answered; commits go beside."""

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
        """Whether the moment has come and nothing is on its way; it is used up then."""
        if self._wake_ms is None or now_ms < self._wake_ms or self._in_flight is not None:
            return False
        self._wake_ms = None
        return True
