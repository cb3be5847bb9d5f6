"""What a group member asks of its host, and the interface both kinds of member share.

A member does no I/O and has no clock: the host passes in the time and the answers, and executes the returned
effects in order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kgroup.domain import Topic, TopicPartition
from kgroup.protocol.codec import Message


@dataclass(frozen=True, slots=True)
class Send:
    """Send this to the group's coordinator, in the newest version within the limits.

    Pass the answer to `receive`, or its absence to `unanswered`.
    """

    request: Message
    min_version: int = 0
    max_version: int | None = None


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Call `wake` at this time; replaces any earlier one."""

    ms: int


@dataclass(frozen=True, slots=True)
class NeedTopics:
    """Look these topics up and call `update_topics`; None asks for all topics, ids for unnamed ones."""

    names: frozenset[str] | None
    ids: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class CoordinatorMoved:
    """The broker asked is not the coordinator: find it again before the next request."""


@dataclass(frozen=True, slots=True)
class Revoke:
    """Stop reading these, commit, then call `revoked`: unless it is leaving, the member waits."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Assigned:
    """These partitions are the member's from now on, in addition to those it has."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """These partitions are no longer the member's: it was removed, and may not commit them."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome of a commit: a Kafka error code for each partition, 0 for success."""

    errors: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Failed:
    """The member has given up: the broker rejected it with this code."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Left:
    """The member has left the group, or as a static member gone silent; nothing follows."""


Effect: TypeAlias = (
    Send | WakeAt | NeedTopics | CoordinatorMoved | Revoke | Assigned | Lost | Committed | Failed | Left
)


class GroupMember(Protocol):
    """A member of one group, from `start` to `Left` or `Failed`. Times are in milliseconds."""

    @property
    def group_id(self) -> str: ...

    @property
    def member_id(self) -> str: ...

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions the member may read and commit now."""
        ...

    def start(self, now_ms: int) -> list[Effect]:
        """Join the group."""
        ...

    def receive(self, request: Message, response: Message, now_ms: int) -> list[Effect]:
        """Handle the answer to a request sent earlier."""
        ...

    def unanswered(self, request: Message, now_ms: int) -> list[Effect]:
        """Note that a request will get no answer; whether it was executed is unknown."""
        ...

    def wake(self, now_ms: int) -> list[Effect]:
        """Note that time has passed; does nothing before the time asked for."""
        ...

    def update_topics(self, topics: Mapping[str, Topic], now_ms: int) -> list[Effect]:
        """Note all topics known now, by name."""
        ...

    def revoked(self, now_ms: int) -> list[Effect]:
        """Note that the partitions of the last `Revoke` are given up."""
        ...

    def commit(self, offsets: Mapping[TopicPartition, int], now_ms: int) -> list[Effect]:
        """Commit positions as this member."""
        ...

    def leave(self, now_ms: int, for_good: bool = False) -> list[Effect]:
        """Stop; a static member keeps its place until its session expires unless it leaves `for_good`."""
        ...


def sorted_partitions(
    partitions: Sequence[TopicPartition] | frozenset[TopicPartition],
) -> tuple[TopicPartition, ...]:
    """Return them in topic and partition order, so that effects are the same in every run."""
    return tuple(sorted(partitions))
