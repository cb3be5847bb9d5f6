"""The state of the coordinator of one `__consumer_offsets` partition, and one step on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from kgroup.coordinator.assignors import SERVER_ASSIGNORS
from kgroup.coordinator.assignors.interface import Assignor
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.ids import Ids
from kgroup.coordinator.metrics import Counters
from kgroup.coordinator.offset_store import OffsetStore
from kgroup.coordinator.outcome import Parked, Producer, Record, Reply, Ticket
from kgroup.coordinator.roster import Hold, Roster
from kgroup.coordinator.tasks.sticky import AssignTasks
from kgroup.coordinator.tasks.sticky import assign as assign_tasks
from kgroup.domain import EndMarker, Topic, TopicImage
from kgroup.protocol.codec import Message
from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.streams_records import TopicInfo
from kgroup.timers import TimerKey, Timers

if TYPE_CHECKING:
    from kgroup.coordinator.classic.group import ClassicGroup
    from kgroup.coordinator.classic.roster import Expected
    from kgroup.coordinator.consumer.group import ConsumerGroup
    from kgroup.coordinator.share.group import Initialize, ShareGroup
    from kgroup.coordinator.streams.group import StreamsGroup

Group: TypeAlias = "ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup"


@dataclass(slots=True)
class Computation:
    """The computing member, its deadline, and what was handed out; soft state."""

    member_id: str
    deadline_ms: int
    epoch: int | None = None
    instances: Mapping[str, str] = field(default_factory=dict)
    """Instance id → member id, as handed out."""
    subscribed: Mapping[str, frozenset[bytes]] = field(default_factory=dict)
    partitions: Mapping[bytes, int] = field(default_factory=dict)


@dataclass(slots=True)
class State:
    """Groups and offsets (hard, except what a group calls soft), timers, and the host's fixed values.

    `group_configs` has the settings of groups that have some of their own.
    `computations` and `refused_epochs` belong to client-side assignors, by group; soft.
    `converted` has the soft half of groups that a step turns classic, until their record is replayed.
    `expected` is what classic groups with a roster do otherwise than Kafka's; `holds` are targets of consumer
    groups that wait for members; both by group, and soft.
    `missing_topics` are internal topics of streams groups that are yet to be created, by group; soft.
    `to_initialize` is what the share coordinator is to initialize, `initializing_since_ms` when record 15 was
    last written, by share group; soft.
    """

    config: GroupConfig
    ids: Ids
    image: TopicImage
    groups: dict[str, Group] = field(default_factory=dict)
    offsets: OffsetStore = field(default_factory=OffsetStore)
    timers: Timers = field(default_factory=Timers)
    counters: Counters = field(default_factory=Counters)
    group_configs: dict[str, GroupConfig] = field(default_factory=dict)
    topic_hashes: dict[str, tuple[Topic, int]] = field(default_factory=dict)
    assignors: Mapping[str, Assignor] = field(default_factory=lambda: SERVER_ASSIGNORS)
    assign_tasks: AssignTasks = assign_tasks
    computations: dict[str, Computation] = field(default_factory=dict)
    refused_epochs: dict[str, int] = field(default_factory=dict)
    converted: dict[str, ClassicGroup] = field(default_factory=dict)
    expected: dict[str, Expected] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    missing_topics: dict[str, tuple[TopicInfo, ...]] = field(default_factory=dict)
    to_initialize: dict[str, Initialize] = field(default_factory=dict)
    initializing_since_ms: dict[str, int] = field(default_factory=dict)

    def config_of(self, group_id: str) -> GroupConfig:
        """Return the settings in force for a group; nearly all groups have none of their own."""
        return self.group_configs.get(group_id, self.config)

    def configure(self, group_id: str, own: Mapping[str, str]) -> None:
        """Replace what a group has set for itself."""
        if own:
            self.group_configs[group_id] = self.config.of_group(own)
        else:
            self.group_configs.pop(group_id, None)

    def roster_of(self, group_id: str) -> Roster | None:
        """Return the group's roster; None if no setting of one is made, as for nearly all groups."""
        return self.config_of(group_id).roster


class Step:
    """One operation under way: what it reads, and what it has decided so far.

    Records, replies, timers and deferred effects are collected and take effect together in `commit`;
    after `drop` none of them ever existed. So a refusal may come at any moment, even after a conversion,
    and nothing has happened.
    """

    # Made for every request: a dataclass with as many fields takes twice as long.
    __slots__ = (
        "client_host",
        "client_id",
        "committed",
        "describable",
        "effects",
        "marker",
        "now_ms",
        "producer",
        "records",
        "replies",
        "state",
        "ticket",
        "timer_edits",
        "version",
    )

    def __init__(
        self,
        state: State,
        now_ms: int,
        ticket: Ticket = -1,
        version: int = 0,
        client_id: str = "",
        client_host: str = "",
        describable: Callable[[str], bool] | None = None,
    ) -> None:
        self.state = state
        self.now_ms = now_ms
        self.ticket = ticket
        self.version = version
        self.client_id = client_id
        self.client_host = client_host
        self.describable = describable
        self.records: list[Record] = []
        self.committed: Sequence[Record] = ()
        self.replies: list[Reply] = []
        self.producer: Producer | None = None
        self.marker: EndMarker | None = None
        self.timer_edits: list[tuple[TimerKey, int | None, object]] = []
        self.effects: list[Callable[[], object]] | None = None

    def is_due(self, last_ms: int, interval_ms: int) -> bool:
        """Return whether an interval since `last_ms` (0: never) is over."""
        return last_ms == 0 or interval_ms == 0 or self.now_ms >= last_ms + interval_ms

    @property
    def config(self) -> GroupConfig:
        return self.state.config

    def write(self, key: RecordKey, value: RecordValue | None) -> None:
        """Add a record to the batch; a value of None makes it a tombstone."""
        self.records.append(Record(key, value))

    def answer(self, parked: Parked, response: Message) -> None:
        """Release the answer of a parked request."""
        self.replies.append(Reply(parked.ticket, response))

    def park(self) -> Parked:
        """Return the request under way, to be answered by a later step."""
        return Parked(self.ticket, self.version)

    def arm(self, key: TimerKey, after_ms: int, what: object = None) -> None:
        """Schedule `key` to fall due `after_ms` from now."""
        self.timer_edits.append((key, self.now_ms + after_ms, what))

    def cancel(self, key: TimerKey) -> None:
        """Cancel `key`, if it is armed: a cancelled timer never fires.

        A removed member has its timers cancelled. If that would be laborious, as in a place taken over, the
        old one fires, finds no member of its id, and does nothing (`Coordinator.wake`).
        """
        self.timer_edits.append((key, None, None))

    def is_armed(self, key: TimerKey) -> bool:
        """Return whether `key` will fall due, with what this step has decided so far."""
        # The latest edit counts, as it will in `commit`.
        for edited, deadline_ms, _ in reversed(self.timer_edits):
            if edited == key:
                return deadline_ms is not None
        return key in self.state.timers

    def postpone_timers(self, earliest_ms: int) -> None:
        """Arm no timer for an earlier time than this.

        A rebalance timeout of 0 ends the moment it begins, and the next one with it. Kafka's threads read
        requests in between; a host with one thread would fire timers for ever.
        """
        self.timer_edits = [
            (key, deadline_ms if deadline_ms is None else max(deadline_ms, earliest_ms), what)
            for key, deadline_ms, what in self.timer_edits
        ]

    def defer(self, effect: Callable[[], object]) -> None:
        """Change soft state only if the step is carried out: for use while a refusal may still follow."""
        if self.effects is None:
            self.effects = []
        self.effects.append(effect)

    def drop(self) -> None:
        """Drop everything decided so far."""
        self.records.clear()
        self.committed = ()
        self.replies.clear()
        self.timer_edits.clear()
        self.effects = self.producer = self.marker = None

    def commit(self) -> None:
        """Apply timers and deferred effects, in the order in which they were decided; once."""
        timers = self.state.timers
        for key, deadline_ms, what in self.timer_edits:
            if deadline_ms is None:
                timers.cancel(key)
            else:
                timers.arm(key, deadline_ms, what)
        if self.effects is not None:
            for effect in self.effects:
                effect()
