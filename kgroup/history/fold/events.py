"""The vocabulary of a group's history, one for all protocols. `docs/replay-log.md` says what proves each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, get_args, get_origin, get_type_hints

from kgroup.domain import OFFSETS_TOPIC, TopicPartition, value_by_name

SHOWN = 8
"""The number of members, or partitions, that the text of an event names."""


class Kind(StrEnum):
    """The kind of an event. The values are an interface: JSON, `--events`, the Spark tables."""

    GROUP_CREATED = "group-created"
    GROUP_EMPTIED = "group-emptied"
    GROUP_DELETED = "group-deleted"
    MEMBER_JOINED = "member-joined"
    MEMBER_LEFT_FOR_NOW = "member-left-for-now"
    MEMBER_LEFT_OR_EXPIRED = "member-left-or-expired"
    MEMBER_REPLACED = "member-replaced"
    MEMBER_UPDATED = "member-updated"
    LEADER_CHANGED = "leader-changed"
    ASSIGNOR_CHANGED = "assignor-changed"
    SUBSCRIPTION_CHANGED = "subscription-changed"
    TOPICS_CHANGED = "topics-changed"
    TOPOLOGY_SET = "topology-set"
    TOPOLOGY_READY = "topology-ready"
    TOPOLOGY_NOT_READY = "topology-not-ready"
    DESCRIPTION_CHANGED = "description-changed"
    SETTINGS_CHANGED = "settings-changed"
    REGEX_RESOLVED = "regex-resolved"
    REGEX_REMOVED = "regex-removed"
    REBALANCE_STARTED = "rebalance-started"
    TARGET_COMPUTED = "target-computed"
    MEMBER_REVOKING = "member-revoking"
    MEMBER_WAITING = "member-waiting"
    MEMBER_RECONCILED = "member-reconciled"
    REBALANCE_COMPLETED = "rebalance-completed"
    UPGRADED = "upgraded"
    DOWNGRADED = "downgraded"
    COMMITTED = "committed"
    COMMITTED_OUTSIDE = "committed-outside"
    COMMITTED_UNOWNED = "committed-unowned"
    REWOUND = "rewound"
    OFFSETS_DELETED = "offsets-deleted"
    OFFSETS_EXPIRED_OR_DELETED = "offsets-expired-or-deleted"
    TRANSACTION_COMMITTED = "transaction-committed"
    TRANSACTION_ABORTED = "transaction-aborted"
    DELIVERY_STATE_INITIALIZING = "delivery-state-initializing"
    DELIVERY_STATE_INITIALIZED = "delivery-state-initialized"
    DELIVERY_STATE_DELETING = "delivery-state-deleting"
    DELIVERY_STATE_CREATED = "delivery-state-created"
    DELIVERY_STATE_DELETED = "delivery-state-deleted"
    START_OFFSET_SET = "start-offset-set"
    START_OFFSET_MOVED = "start-offset-moved"
    RECORDS_ACKNOWLEDGED = "records-acknowledged"
    RECORDS_RELEASED = "records-released"
    RECORDS_ARCHIVING = "records-archiving"
    RECORDS_ARCHIVED = "records-archived"
    RECORDS_SKIPPED = "records-skipped"
    PARTITION_LEADER_CHANGED = "partition-leader-changed"
    EPOCH_REGRESSED = "epoch-regressed"
    RECORD_UNREADABLE = "record-unreadable"
    LOG_COMPACTED = "log-compacted"


OF_COMMITS = frozenset({Kind.COMMITTED, Kind.COMMITTED_OUTSIDE, Kind.COMMITTED_UNOWNED})
OF_OFFSETS = OF_COMMITS | frozenset(
    {
        Kind.REWOUND,
        Kind.OFFSETS_DELETED,
        Kind.OFFSETS_EXPIRED_OR_DELETED,
        Kind.TRANSACTION_COMMITTED,
        Kind.TRANSACTION_ABORTED,
    }
)
"""The kinds that say nothing about members."""


class Unowned(NamedTuple):
    """A partition that got an owner after `ms` milliseconds without one (from record to record)."""

    topic: str
    partition: int
    ms: int


class Delivered(NamedTuple):
    """Records of a topic, first to last offset, delivered to a share group `deliveries` times so far."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    deliveries: int

    @property
    def records(self) -> int:
        """The number of these offsets."""
        return self.last_offset - self.first_offset + 1

    def overlaps(self, other: Delivered) -> bool:
        """Return whether both have a record in common."""
        same = (self.topic, self.partition) == (other.topic, other.partition)
        return same and self.first_offset <= other.last_offset and other.first_offset <= self.last_offset


class Stored(NamedTuple):
    """How the pipeline's table `events` has a field: the column, what it means, and what a number is.

    The columns come in the order of the fields. `wide` ones are shown by `-o wide` only.
    """

    column: str
    meaning: str = ""
    """Empty for the columns that all tables have."""
    number: Literal["int32", "int64", "moment"] = "int64"
    wide: bool = False


@value_by_name
class Event:
    """One thing that happened to a group, from the records `offset` to `end_offset` of one partition.

    `log_partition` is the partition of `log_topic`; `epoch` is the generation (classic) or group epoch
    (consumer, streams, share) after the event, `previous_epoch` the one before, -1 if there is none. `proven`
    is False if the records allow more than one reading; `detail` or `cause` then says which. `suspicious`
    marks what a KIP-1251 audit should look at: the log alone cannot settle it. Times are ms since 1970, UTC,
    as the broker stamped the records: they need not grow with the offset.
    """

    log_partition: Annotated[int, Stored("part", number="int32")]
    offset: Annotated[int, Stored("log_offset")]
    timestamp_ms: Annotated[int, Stored("ts", number="moment")]
    group: Annotated[str, Stored("group_id")]
    kind: Annotated[Kind, Stored("event", "Kind of the event; null: nothing of the group is open")]
    protocol: Annotated[
        str, Stored("protocol", "Kind of the group then: classic, consumer, streams, share or simple")
    ]
    end_offset: Annotated[int, Stored("end_offset", "Offset of the last record of the event", wide=True)] = -1
    end_timestamp_ms: Annotated[
        int, Stored("end_ts", "Time of the last record of the event; UTC, ms", number="moment", wide=True)
    ] = -1
    epoch: Annotated[
        int,
        Stored(
            "epoch", "Generation or epoch of the group after the event; -1 where it has none", number="int32"
        ),
    ] = -1
    previous_epoch: Annotated[
        int,
        Stored(
            "previous_epoch",
            "Generation or epoch of the group before the event; -1 where it had none",
            number="int32",
            wide=True,
        ),
    ] = -1
    member_epoch: Annotated[
        int | None,
        Stored(
            "member_epoch",
            "Epoch of the member; null where the event is about none",
            number="int32",
            wide=True,
        ),
    ] = None
    member_id: Annotated[str | None, Stored("member_id", "Member that the event is about")] = None
    instance_id: Annotated[str | None, Stored("instance_id", "Instance id of a static member")] = None
    detail: Annotated[str, Stored("detail", "The event in words")]
    cause: Annotated[str | None, Stored("cause", "Why it happened, as far as records say")] = None
    proven: Annotated[bool, Stored("proven", "Whether records prove the event", wide=True)] = True
    suspicious: Annotated[bool, Stored("suspicious", "Whether an audit should look at it", wide=True)] = False
    partitions: Annotated[
        tuple[TopicPartition, ...], Stored("partitions", "Partitions that the event is about", wide=True)
    ] = ()
    unowned: Annotated[
        tuple[Unowned, ...], Stored("unowned", "How long each partition had no owner, in ms", wide=True)
    ] = ()
    count: Annotated[
        int, Stored("count", "How many commits, offsets or records the event stands for", wide=True)
    ] = 1
    log_topic: str = OFFSETS_TOPIC
    records: tuple[Delivered, ...] = ()
    """The records of a topic that it is about; only for share groups."""
    client: str = field(default="", compare=False)
    """Of a member that came or went: what another process in its place has, too (`RecordedMember.client`)."""
    before: tuple[tuple[int, bytes], ...] = field(default=(), compare=False)
    """The offsets of `partitions` before they were set back or removed, and the ids of their topics.

    Empty if a former topic's; an id that is not known is ZERO_UUID.
    """

    @property
    def last_ms(self) -> int:
        """When it ended; below 0 for an event without a time: message format 0 has none."""
        return max(self.timestamp_ms, self.end_timestamp_ms)

    @property
    def unowned_ms(self) -> int | None:
        """The longest time that one of the event's partitions had no owner; None if that does not apply."""
        return max((u.ms for u in self.unowned), default=None)


def duration_text(ms: int) -> str:
    """Return a duration for people: `12 ms`, `3.47 s`, `4m 10s`, `2h 05m`."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.2f}".rstrip("0").rstrip(".") + " s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02d}s"
    return f"{minutes // 60}h {minutes % 60:02d}m"


def stored_fields() -> Mapping[str, tuple[object, Stored]]:
    """Return the type of each field of an event that the pipeline stores, and how it is stored."""
    hints = get_type_hints(Event, include_extras=True)
    annotated = {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Annotated}
    return {name: (kind, stored) for name, (kind, stored) in annotated.items()}
