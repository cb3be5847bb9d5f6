"""What members have in common that speak by heartbeats alone: of consumer groups, and of streams groups.

A heartbeat joins, goes on and leaves; what it says and what its answer means is the protocol's own
(`consumer`, `streams`). When it may be sent, and what a refusal or a lost answer is followed by, is here
(KIP-848, KIP-1071).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Generic, Protocol, TypeVar

from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.members.asking import AGAIN, MOVED, Asking
from kgroup.members.commits import all_failed, commit_errors
from kgroup.members.effects import (
    Committed,
    CoordinatorMoved,
    Effect,
    Failed,
    Left,
    Lost,
    sorted_partitions,
)
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
COMMITS_FROM = 9
RETRY_BACKOFF_MS = 100
E = ErrorCode
_FENCED = {E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID}


class Phase(Enum):
    """Where a member is; `REVOKING` waits for the host, `ACKNOWLEDGING` has news for the coordinator."""

    IDLE = "idle"
    JOINING = "joining"
    REVOKING = "revoking"
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    LEAVING = "leaving"
    DONE = "done"


class Heartbeat(Protocol):
    """The answer to a heartbeat, as far as both protocols have it."""

    @property
    def error_code(self) -> int: ...
    @property
    def error_message(self) -> str | None: ...


R = TypeVar("R", bound=Heartbeat)


class BeatingMember(Asking, ABC, Generic[R]):
    """See `GroupMember`. R is the answer to this protocol's heartbeat."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = JOIN_EPOCH
        self.phase = Phase.IDLE

    @property
    @abstractmethod
    def owned(self) -> frozenset[TopicPartition]:
        """See `GroupMember.owned`."""

    @abstractmethod
    def _heartbeat(self) -> list[Effect]:
        """Tell what the coordinator does not know yet."""

    @abstractmethod
    def _understood(self, response: Message) -> R:
        """An answer to a heartbeat as such; TypeError for any other."""

    @abstractmethod
    def _on_heartbeat(self, response: R, now_ms: int) -> list[Effect]:
        """What follows from an answer that is no refusal."""

    @abstractmethod
    def _tell_all_again(self) -> None:
        """Take nothing for known to the coordinator: the answer was lost, or it refused."""

    @abstractmethod
    def _drop_all(self) -> None:
        """Have nothing, and no target."""

    def start(self, now_ms: int) -> list[Effect]:
        """See `GroupMember.start`."""
        self.phase = Phase.JOINING
        return self._heartbeat()

    def receive(self, request: Message, response: Message, now_ms: int) -> list[Effect]:
        """See `GroupMember.receive`."""
        if isinstance(response, OffsetCommitResponse):
            return [Committed(commit_errors(response))]
        if request is not self._in_flight:
            return []
        self._in_flight = None
        answer = self._understood(response)
        if self.phase is Phase.LEAVING:
            return self._gone()
        if answer.error_code:
            return self._on_error(answer.error_code, answer.error_message, now_ms)
        return self._on_heartbeat(answer, now_ms)

    def unanswered(self, request: Message, now_ms: int) -> list[Effect]:
        """See `GroupMember.unanswered`. The next heartbeat repeats everything: either outcome is fine."""
        if isinstance(request, OffsetCommitRequest):
            return [Committed(all_failed(request, E.REQUEST_TIMED_OUT))]
        if request is not self._in_flight:
            return []
        self._in_flight = None
        if self.phase is Phase.LEAVING:
            return self._gone()
        self._tell_all_again()
        return [CoordinatorMoved(), *self._wake_at(now_ms + RETRY_BACKOFF_MS)]

    def wake(self, now_ms: int) -> list[Effect]:
        """See `GroupMember.wake`."""
        if not self._is_woken(now_ms):
            return []
        return self._heartbeat()

    def _on_error(self, code: int, message: str | None, now_ms: int) -> list[Effect]:
        """What a refusal means: join again, ask again, or give up."""
        self._tell_all_again()
        if code in _FENCED:
            lost = self._lose_all()
            self.phase = Phase.JOINING
            return [*lost, *self._heartbeat()]
        if code in MOVED:
            return [CoordinatorMoved(), *self._wake_at(now_ms + RETRY_BACKOFF_MS)]
        if code in AGAIN:
            return self._wake_at(now_ms + RETRY_BACKOFF_MS)
        lost = self._lose_all()
        self.phase = Phase.DONE
        self._wake_ms = None
        return [*lost, Failed(code, message or E.name_of(code))]

    def _lose_all(self) -> list[Effect]:
        lost = sorted_partitions(self.owned)
        self.epoch = JOIN_EPOCH
        self._drop_all()
        return [Lost(lost)] if lost else []

    def _gone(self) -> list[Effect]:
        self.phase = Phase.DONE
        return [Left()]
