"""What an active coordinator knows of consumers and groups (era 3.10); none of it outlives its term."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator.subscription import Subscription
from kgroup.zookeeper.coordinator.timers import Timer
from kgroup.zookeeper.wire.messages import Partition, RegisterConsumerRequest, RequestKey

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.rebalancers import Rebalancer, Run
    from kgroup.zookeeper.coordinator.requests import Watcher


class Stage(Enum):
    """How much of a group's past is known: nothing yet, who is still to come back, or enough (8)."""

    LOADING = "loading"
    RECOVERING = "recovering"
    NORMAL = "normal"


@dataclass(slots=True, eq=False)
class RegisteredConsumer:
    """A registered consumer: its registration, its connection, and what it has answered.

    `holds` are the partitions of its last Start that it has not given back; `answered_at_ms` is when its
    newest ping answer came in time, or its registration.
    """

    registration: RegisterConsumerRequest
    subscription: Subscription
    conn: int
    registered_at_ms: int
    answered_at_ms: int
    failed: int = 0
    started: bool = False
    start_serial: int = 0
    start_answered: bool = False
    serial: int = 0
    pings: int = 0
    ping_timer: Timer | None = None
    unanswered: dict[RequestKey, deque[Watcher]] = field(default_factory=dict)
    holds: dict[Partition, None] = field(default_factory=dict)
    gone: bool = False

    @property
    def consumer_id(self) -> str:
        return self.registration.consumer_id

    @property
    def session_ms(self) -> int:
        return self.registration.session_timeout_ms

    @property
    def answer_ms(self) -> int:
        """How long it may take to answer."""
        return 2 * self.session_ms // 3

    @property
    def lease_end_ms(self) -> int:
        """From here on it delivers nothing, whatever has become of it (era 5.6, 9.6)."""
        return self.answered_at_ms + self.session_ms


@dataclass(slots=True, eq=False)
class Job:
    """Writes of one group that wait for their turn; what they are is decided when it has come."""

    puts: Callable[[], dict[str, bytes]]
    done: Callable[[bool], None]
    deletes: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Group:
    """A group: its members, in the order they came, and what is known of its partitions.

    `changed` are the partitions whose offset ZooKeeper does not have yet (the draft's offsetUpdated),
    `there` the nodes known to exist, `departed` the members that left with what others may not have yet.
    """

    group_id: str
    members: dict[str, RegisteredConsumer] = field(default_factory=dict)
    offsets: dict[Partition, int] = field(default_factory=dict)
    changed: dict[Partition, None] = field(default_factory=dict)
    rebalance_initiated: bool = False
    rebalancer: Rebalancer | None = None
    rebalance_failed: bool = False
    given_up: bool = False
    run: Run | None = None
    holders: dict[Partition, RegisteredConsumer] = field(default_factory=dict)
    departed: dict[str, RegisteredConsumer] = field(default_factory=dict)
    stage: Stage = Stage.LOADING
    awaited: set[str] = field(default_factory=set)
    all_awaited: bool = True
    topics: dict[str, None] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)
    jobs: deque[Job] = field(default_factory=deque)
    idle_timer: Timer | None = None
    dropped: bool = False

    def give(self, partition: Partition, member: RegisteredConsumer) -> None:
        """The member is the holder from now on."""
        before = self.holders.get(partition)
        if before is not None:
            before.holds.pop(partition, None)
            self._forget_if_empty(before)
        self.holders[partition] = member
        member.holds[partition] = None

    def release(self, member: RegisteredConsumer) -> None:
        """Whatever the member held is free."""
        for partition in member.holds:
            self.holders.pop(partition, None)
        member.holds.clear()
        self._forget_if_empty(member)

    def blockers(
        self, partitions: Iterator[Partition], now_ms: int, snapshot: list[RegisteredConsumer]
    ) -> list[RegisteredConsumer]:
        """The members outside the snapshot that may still deliver some of these partitions (era 5.6)."""
        inside = set(map(id, snapshot))
        found: dict[int, RegisteredConsumer] = {}
        for partition in partitions:
            holder = self.holders.get(partition)
            if holder is not None and id(holder) not in inside and not has_let_go(holder, now_ms):
                found[id(holder)] = holder
        return list(found.values())

    def _forget_if_empty(self, member: RegisteredConsumer) -> None:
        if member.gone and not member.holds and self.departed.get(member.consumer_id) is member:
            del self.departed[member.consumer_id]


def has_let_go(holder: RegisteredConsumer, now_ms: int) -> bool:
    """Whether others may have what this member held: gone, it delivers nothing by its own clock (era 5.6)."""
    return holder.gone and now_ms >= holder.lease_end_ms
