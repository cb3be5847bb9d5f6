"""What members that use only heartbeats share: those of consumer groups and of streams groups.

A heartbeat joins, stays and leaves; its content and its answer's meaning belong to the protocol (`consumer`,
`streams`). When it may be sent, and what follows an error or a lost answer, is here (KIP-848, KIP-1071).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Generic, Protocol, TypeVar

from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.members.asking import AGAIN, MOVED, Asking
from kgroup.members.commits import NAMES_UNTIL, all_failed, commit_errors, commit_request
from kgroup.members.effects import (
    Committed,
    CoordinatorMoved,
    Effect,
    Failed,
    Left,
    Lost,
    Revoke,
    Send,
    sorted_partitions,
)
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
COMMITS_FROM = 9
RETRY_BACKOFF_MS = 100
E = ErrorCode
_FENCED = {E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID}


class Phase(Enum):
    """A member's phase; `REVOKING` waits for the host, `ACKNOWLEDGING` has news for the coordinator."""

    IDLE = "idle"
    JOINING = "joining"
    REVOKING = "revoking"
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    LEAVING = "leaving"
    DONE = "done"


class Heartbeat(Protocol):
    """The answer to a heartbeat, as far as both protocols share it."""

    @property
    def error_code(self) -> int: ...
    @property
    def error_message(self) -> str | None: ...


R = TypeVar("R", bound=Heartbeat)


class BeatingMember(Asking, ABC, Generic[R]):
    """See `GroupMember`. R is the answer to this protocol's heartbeat."""

    def __init__(
        self, answer: type[R], group_id: str, member_id: str, instance_id: str | None = None
    ) -> None:
        super().__init__()
        self._answer = answer
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = JOIN_EPOCH
        self.phase = Phase.IDLE

    @property
    @abstractmethod
    def owned(self) -> frozenset[TopicPartition]:
        """See `GroupMember.owned`."""

    @abstractmethod
    def _heartbeat(self) -> list[Effect]:
        """Report what the coordinator does not know yet."""

    @abstractmethod
    def _request(self, epoch: int) -> Message:
        """Return a heartbeat without news."""

    @abstractmethod
    def _on_heartbeat(self, response: R, now_ms: int) -> list[Effect]:
        """Return what follows from an answer without an error."""

    @abstractmethod
    def _report_all_again(self) -> None:
        """Assume that the coordinator knows nothing: the answer was lost, or an error."""

    @abstractmethod
    def _drop_all(self) -> None:
        """Own nothing, and have no target."""

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
        if not isinstance(response, self._answer):
            raise TypeError(f"{type(response).__name__} is no answer to a {type(self).__name__}")
        if self.phase is Phase.LEAVING:
            return self._gone()
        if response.error_code:
            return self._on_error(response.error_code, response.error_message, now_ms)
        return self._on_heartbeat(response, now_ms)

    def unanswered(self, request: Message, now_ms: int) -> list[Effect]:
        """See `GroupMember.unanswered`. The next heartbeat repeats everything, so either outcome is fine."""
        if isinstance(request, OffsetCommitRequest):
            return [Committed(all_failed(request, E.REQUEST_TIMED_OUT))]
        if request is not self._in_flight:
            return []
        self._in_flight = None
        if self.phase is Phase.LEAVING:
            return self._gone()
        self._report_all_again()
        return [CoordinatorMoved(), *self._wake_at(now_ms + RETRY_BACKOFF_MS)]

    def wake(self, now_ms: int) -> list[Effect]:
        """See `GroupMember.wake`."""
        if not self._is_woken(now_ms):
            return []
        return self._heartbeat()

    def commit(self, offsets: Mapping[TopicPartition, int], now_ms: int) -> list[Effect]:
        """See `GroupMember.commit`."""
        request = commit_request(self.group_id, self.epoch, self.member_id, self.instance_id, offsets)
        return [Send(request, min_version=COMMITS_FROM, max_version=NAMES_UNTIL)]

    def leave(self, now_ms: int, for_good: bool = False) -> list[Effect]:
        """See `GroupMember.leave`. A static member that does not leave for good sends epoch -2."""
        given_up = sorted_partitions(self.owned)
        self._drop_all()
        effects: list[Effect] = [Revoke(given_up)] if given_up else []
        if self.phase in (Phase.IDLE, Phase.DONE):
            return [*effects, *self._gone()]
        self.phase = Phase.LEAVING
        self._wake_ms = None
        returning = self.instance_id is not None and not for_good
        return [*effects, self._send(self._request(STATIC_LEAVE_EPOCH if returning else LEAVE_EPOCH))]

    def _on_error(self, code: int, message: str | None, now_ms: int) -> list[Effect]:
        """Return what an error leads to: rejoin, retry, or give up."""
        self._report_all_again()
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
