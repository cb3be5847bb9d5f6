"""The results of the admin layer. Field names are the JSON names fixed for the command line.

Frozen values of plain Python types, so that `dataclasses.asdict` is the JSON document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from kgroup.admin.statuses import READ, PartitionStatus, Status
from kgroup.domain import (
    GROUP_TYPES,
    MemberStatus,
    OffsetAndMetadata,
    TopicPartition,
    of_client,
    place_of,
    value,
)

if TYPE_CHECKING:
    from kgroup.protocol.embedded.connect import ConnectWorker
    from kgroup.protocol.embedded.member import Application
    from kgroup.protocol.embedded.schema_registry import RegistryInstance
    from kgroup.protocol.embedded.streams import StreamsThread
    from kgroup.protocol.embedded.undecoded import Undecoded

Severity = Annotated[str, ("info", "warn", "error")]
CLASSIC, CONSUMER, SHARE, STREAMS = GROUP_TYPES
STABLE, EMPTY, DEAD = "Stable", "Empty", "Dead"
NOT_READY = "NotReady"
REBALANCING = PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
"""The states in which a classic group waits for its members, which read nothing meanwhile."""
CONVERGING = ASSIGNING, RECONCILING = "Assigning", "Reconciling"
"""The states in which a group of the newer protocols moves towards its target."""
STATES = (STABLE, EMPTY, *REBALANCING, *CONVERGING, NOT_READY, DEAD)
"""Of groups of every type."""
RANGE, COOPERATIVE_STICKY = "range", "cooperative-sticky"
STREAM_ASSIGNOR = "stream"
"""The assignor of a Kafka Streams group in the classic protocol, and of no other group."""
ZOOKEEPER = "zookeeper"
"""The type of a group of Kafka 0.8 to 1.1 whose members, owners and offsets are nodes in ZooKeeper."""
GroupType = Annotated[str, (*GROUP_TYPES, ZOOKEEPER, "unknown")]
LEFT_FOR_NOW = -2
"""The epoch of a static consumer-protocol member that shut down and may come back (KIP-848)."""


@value
class Node:
    """A broker by id and address."""

    id: int
    host: str
    port: int


@value
class ItemError:
    """Why one item of a larger answer is missing, or wrong; `item` is "" where no single one is meant.

    `code` is a stable name: a Kafka error name, UNREACHABLE or one of kgroup's own.
    """

    item: str
    code: str
    message: str
    hint: str | None = None


@value
class GroupListing:
    """One group as ListGroups reports it."""

    group_id: str
    type: Annotated[GroupType | None, "null where an old broker does not report it and nothing was described"]
    protocol_type: str
    state: Annotated[str | None, "null alike"]
    members: Annotated[int | None, "a count; null when not counted or unknown"]
    coordinator: Annotated[Node | None, "null for a group in ZooKeeper"]


@value
class Listing:
    """The groups that could be seen, by id; `errors` says where there may be more (visibility.py)."""

    groups: tuple[GroupListing, ...]
    errors: tuple[ItemError, ...] = ()


@value
class TopicAssignment:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


Assignment = tuple[TopicAssignment, ...]


@value
class SubtopologyTasks:
    """Tasks of one subtopology of a Streams application, by partition number."""

    subtopology_id: str
    partitions: tuple[int, ...]


@value
class Tasks:
    """The tasks of a streams group's member (KIP-1071): active, standby replicas, warm-up replicas."""

    active: tuple[SubtopologyTasks, ...]
    standby: tuple[SubtopologyTasks, ...]
    warmup: tuple[SubtopologyTasks, ...]


@value
class ClientTag:
    """One tag of a Streams client."""

    key: str
    value: str


@value
class StreamsProcess:
    """The process of a streams group's member: several threads may share one.

    `endpoint` is `host:port` for interactive queries, None where the application names none.
    """

    process_id: str
    topology_epoch: int
    endpoint: Annotated[str | None, "host:port, null without one"]
    client_tags: tuple[ClientTag, ...]


@value
class SubtopologyTopics:
    """The topics of a part of a topology, by name: those it reads, and those that keep its state."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_topics: tuple[str, ...]
    changelog_topics: tuple[str, ...]

    @property
    def by_role(self) -> tuple[tuple[str, str], ...]:
        """The role of each topic, and its name."""
        roles = ("source", self.source_topics), ("repartition", self.repartition_topics)
        return tuple(
            (role, name) for role, names in (*roles, ("changelog", self.changelog_topics)) for name in names
        )


@value
class TopologyNode:
    """A node of a topology: a source reads topics, a processor uses stores, a sink writes to a topic."""

    name: str
    type: Annotated[str, "source, processor or sink; a number that is none of them as it came"]
    source_topics: tuple[str, ...]
    sink_topic: Annotated[str | None, "null of a sink whose records choose their topic, and of other nodes"]
    stores: tuple[str, ...]
    successors: tuple[str, ...]


@value
class SubtopologyNodes:
    """The nodes of a part of a topology, in the order in which the application names them."""

    subtopology_id: str
    nodes: tuple[TopologyNode, ...]


@value
class GlobalStore:
    """A store that every process fills with all of a topic."""

    source: TopologyNode
    processor: TopologyNode


@value
class TopologyDescription:
    """An application's description of its topology (KIP-1331)."""

    subtopologies: tuple[SubtopologyNodes, ...]
    global_stores: tuple[GlobalStore, ...]


class Described(StrEnum):
    """The availability of an application's own description of its topology (KIP-1331)."""

    AVAILABLE = "available"
    STORED = "stored"
    """By the broker's plugin, according to records, which do not contain it."""
    NOT_STORED = "not_stored"
    REFUSED = "refused"
    """By the plugin for good, according to records."""
    ERROR = "error"
    """The broker could not read it."""
    UNKNOWN = "unknown"
    """The broker is older than Kafka 4.4, or an update of it was interrupted."""


@value
class StreamsTopology:
    """The topology of a streams group."""

    epoch: int
    subtopologies: tuple[SubtopologyTopics, ...]
    description: Annotated[TopologyDescription | None, "null unless it is available"]
    described: Annotated[Described, "stored and refused: from `replay-log --at` only"]


@value
class Member:
    """One member of a group; None means that the protocol or the broker does not report it.

    `member_epoch` is -2 for a static member that left for now. A classic member's epoch is on no wire
    message. `assignment` is None while a classic group rebalances and for tasks without a topology; `()` is
    an assignment of nothing, and in streams groups the source partitions of the active tasks. Raw bytes are
    base64. `user_data_bytes` is what a custom assignor put into the assignment.
    """

    member_id: str
    instance_id: str | None
    client_id: Annotated[str | None, "null where ZooKeeper has none, as host"]
    host: str | None
    rack_id: str | None
    protocol: str
    member_epoch: int | None
    state: MemberStatus
    subscribed_topics: Annotated[
        tuple[str, ...] | None,
        "null where unknown, or not the consumer protocol's: raw_metadata, raw_assignment; assignment alike",
    ] = None
    subscribed_regex: str | None = None
    assignment: Assignment | None = None
    target_assignment: Assignment | None = None
    is_leader: Annotated[bool | None, "null where unknown"] = None
    user_data_bytes: int | None = None
    raw_metadata: str | None = None
    raw_assignment: str | None = None
    instance_id_known: Annotated[bool, "false where the broker reports no instance ids"] = True
    tasks: Annotated[Tasks | None, "of streams members, as target_tasks and process"] = None
    target_tasks: Tasks | None = None
    process: StreamsProcess | None = None
    session_timeout_ms: Annotated[int | None, "of a coordinator elected in ZooKeeper, as failed_pings"] = None
    failed_pings: int | None = None
    connect: Annotated[
        ConnectWorker | None, "of members of [applications](applications.md), as the fields below"
    ] = None
    streams: StreamsThread | None = None
    schema_registry: RegistryInstance | None = None
    undecoded: tuple[Undecoded, ...] = ()

    @property
    def name(self) -> str:
        """The instance id, or the member id of a dynamic member."""
        return self.instance_id or self.member_id

    @property
    def called(self) -> str:
        """The name for people: with the client where it is a bare UUID."""
        return self.name + of_client(self.member_id, self.instance_id, self.client_id)

    @property
    def partition_count(self) -> int | None:
        """The number of the member's partitions; None when unknown."""
        if self.assignment is None:
            return None
        return sum(len(entry.partitions) for entry in self.assignment)

    @property
    def work_known(self) -> bool:
        """Whether the member's work is known: partitions, or the tasks of a known application."""
        worker, instance = self.connect, self.schema_registry
        if worker is not None or instance is not None:
            elected = instance is not None and instance.election is not None
            return elected or (worker is not None and worker.running is not None)
        return self.assignment is not None


Committed = Mapping[TopicPartition, OffsetAndMetadata]


@value
class Commits:
    """A group's committed offsets by column, in order; groups with the same partitions share `places`."""

    places: tuple[TopicPartition, ...] = ()
    offsets: Sequence[int] = ()
    epochs: Sequence[int] = ()
    metadata: Sequence[str] = ()

    @classmethod
    def of(cls, stored: Committed) -> Commits:
        """Return the columns of offsets by partition."""
        cells = [(p, at.offset, at.leader_epoch, at.metadata) for p, at in sorted(stored.items())]
        return cls(*zip(*cells, strict=True))

    @property
    def by_place(self) -> Committed:
        """The same by partition."""
        return {partition: OffsetAndMetadata(at, epoch, text) for partition, at, epoch, text in self.cells}

    @property
    def cells(self) -> Iterator[tuple[TopicPartition, int, int, str]]:
        """The same, one partition after the other."""
        return zip(self.places, self.offsets, self.epochs, self.metadata, strict=True)


@value
class OpenProducer:
    """A producer whose transaction is open on a partition, from `start_offset` on.

    `last_timestamp_ms` is of the last record it wrote there, -1 where the broker does not know it.
    """

    producer_id: int
    producer_epoch: int
    start_offset: int
    last_timestamp_ms: int


class PartitionRow:
    """The common part of a partition's rows."""

    __slots__ = ()
    topic: str
    partition: int
    committed_offset: int | None
    commit_known: bool
    error_code: str | None
    reason: str | None
    lag: int | None
    unreadable: int | None

    @property
    def place(self) -> TopicPartition:
        """The partition."""
        return place_of(self.topic, self.partition)

    @property
    def gone(self) -> bool:
        """Whether the partition is known not to exist any more: nothing is left to read."""
        return self.error_code == "UNKNOWN_TOPIC_OR_PARTITION"

    @property
    def work(self) -> int | None:
        """The lag that conditions count: without the offsets that are shown to hold no record."""
        return None if self.lag is None else self.lag - (self.unreadable or 0)


@value
class StoredDelivery:
    """Neighbouring delivered records of a share group, with the outcome that its coordinator stores."""

    first_offset: int
    last_offset: int
    state: Annotated[str, "Available, Acknowledged, Archiving or Archived"]
    deliveries: int


@value
class OffsetRow(PartitionRow):
    """A partition's committed offset and its current owner.

    `lag` is None when either side is unknown or the offset lies beyond the end. `error_code` names `error`.
    `log_start_offset` is where a reader may begin, as its auto.offset.reset has it. Only the log shows
    `assigned_epoch`. `last_stable_offset` is requested only where records may be unread.
    """

    topic: str
    partition: int
    committed_offset: Annotated[int | None, "of a share group the start offset"]
    log_end_offset: int | None
    lag: int | None
    leader_epoch: int | None
    metadata: str | None
    member_id: str | None
    instance_id: str | None
    error: Annotated[str | None, "why the end is not known"] = None
    assigned_epoch: Annotated[
        int | None, "the least epoch the owner may commit at, KIP-1251; from `replay-log --at` only"
    ] = None
    log_start_offset: Annotated[int | None, "where nothing is committed"] = None
    reason: Annotated[str | None, "why the lag is not known"] = None
    error_code: str | None = None
    owner_thread: Annotated[str | None, "where ZooKeeper names it"] = None
    last_stable_offset: Annotated[
        int | None, "where readers of committed records stop; null: nothing is unread, or it is unknown"
    ] = None
    held_open_by: Annotated[
        tuple[OpenProducer, ...] | None,
        "the producers of the transactions open there; null: none is, or unknown",
    ] = None
    deliveries: Annotated[
        tuple[StoredDelivery, ...] | None,
        "of share groups, from the start offset on; from `replay-log --at` only",
    ] = None
    status: Annotated[
        Status | None, "null where it was not judged: in ZooKeeper, by REST, `replay-log --at`"
    ] = None
    unreadable: Annotated[
        int | None, "how many of the lag are shown to hold no record: markers, aborted, compacted, deleted"
    ] = None
    commit_known: Annotated[bool, "false: whether an offset is committed could not be read"] = True


@value
class Finding:
    """A fact that the data proves about a group; `code` is stable (findings.py), severity info|warn|error."""

    code: Annotated[str, {"pattern": "^KG[0-9]{3}$"}, "KGnnn, see `kgroup explain KG103`"]
    severity: Severity
    message: str
    hint: str | None = None


@value
class Registration:
    """The members a group expects (docs/registered-ids-and-standbys.md), and which of them are present.

    `missing` and `held` are None without registered ids or where unknown; `active` and `standby`, names of
    members, without a `target_size`. `wait_ms` None is the rebalance timeout.
    """

    instance_ids: tuple[str, ...] | None
    missing: tuple[str, ...] | None
    held: Annotated[tuple[str, ...] | None, "members whose joins wait"]
    wait_ms: Annotated[int | None, "null where not set or unknown, as the others"]
    target_size: int | None
    active: tuple[str, ...] | None
    standby: tuple[str, ...] | None


Row = TypeVar("Row", bound=PartitionRow)


@value
class RowsToMake:
    """The rows of a group in which all is read or waits without members; a row takes long to make.

    `lags` are how far the committed `offsets` are behind. What is behind has the status `waits`.
    """

    places: tuple[TopicPartition, ...]
    offsets: Sequence[int]
    lags: Sequence[int]
    waits: Status
    make: Callable[[Any], tuple[PartitionRow, ...]]
    """From the value that has the rows."""

    @property
    def statuses(self) -> tuple[PartitionStatus, PartitionStatus]:
        """The statuses that they may have."""
        return READ.name, self.waits.name

    @property
    def behind(self) -> dict[TopicPartition, int]:
        """The partitions that are behind, with their committed offsets."""
        columns = zip(self.places, self.offsets, self.lags, strict=True)
        return {partition: offset for partition, offset, lag in columns if lag}

    @property
    def by_status(self) -> dict[Status, Sequence[TopicPartition]]:
        """The partitions by their status."""
        if not any(self.lags) or all(self.lags):
            return {self.waits if self.lags[0] else READ: self.places}
        pairs = [*zip(self.places, self.lags, strict=True)]
        read, late = [p for p, lag in pairs if not lag], [p for p, lag in pairs if lag]
        return {READ: read, self.waits: late}


class RowsWhenUsed(Generic[Row]):
    """The rows of a group that it may not have yet."""

    __slots__ = ("_to_make",)
    _to_make: RowsToMake
    if TYPE_CHECKING:
        offsets: tuple[Row, ...]
        total_lag: int | None
        unreadable_lag: int

    @property
    def work(self) -> int | None:
        """The total lag without the offsets that are shown to hold no record; None when unknown."""
        return None if self.total_lag is None else self.total_lag - self.unreadable_lag

    def make_later(self, rows: RowsToMake) -> None:
        """Have these rows, and make them when `offsets` is first used."""
        del self.offsets
        self._to_make = rows

    @property
    def to_make(self) -> RowsToMake | None:
        """What is known of the rows, if they are not yet made."""
        return getattr(self, "_to_make", None)

    @property
    def notable(self) -> tuple[Row, ...]:
        """The rows that may show that something is wrong."""
        return self.offsets if self.to_make is None else ()

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self.offsets if (rows := self.to_make) is None else rows.places)

    def __getstate__(self) -> object:
        _ = self.offsets  # what makes them does not go to another process
        return super().__getstate__()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name != "offsets" or self.to_make is None:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            self.offsets = made = self._to_make.make(self)
            del self._to_make
            return made


@value
class GroupDescription(RowsWhenUsed[OffsetRow]):
    """One group in full, of any protocol.

    `generation` is None for classic groups seen over the wire: DescribeGroups does not carry it.
    `offsets_partition` is the partition of `__consumer_offsets` that holds the group. `unknown_partitions`
    counts the rows that say why `total_lag` is None. `errors` names parts that could not be read. `topology`
    is None before the first member sent one.
    """

    group_id: str
    type: GroupType
    protocol_type: str
    state: str
    assignor: Annotated[str | None, "of a streams group null where unknown: before Kafka 4.4"] = None
    generation: int | None = None
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    coordinator: Node | None = None
    offsets_partition: int | None = None
    members: Annotated[tuple[Member, ...] | None, "null where unknown"] = None
    offsets: tuple[OffsetRow, ...] = ()
    total_lag: Annotated[int | None, "null when any part of it is unknown"] = None
    findings: tuple[Finding, ...] = ()
    errors: tuple[ItemError, ...] = ()
    lag_at_least: Annotated[int | None, "the sum of the parts known, null when none is"] = None
    unknown_partitions: int = 0
    coordinator_epoch: Annotated[int | None, "of a coordinator elected in ZooKeeper"] = None
    application: Annotated[Application | None, "null for plain consumers"] = None
    no_offsets: Annotated[str | None, "why a group of its kind has none"] = None
    topology: Annotated[StreamsTopology | None, "of a streams group"] = None
    registration: Annotated[Registration | None, "the expected members, null without any"] = None
    unreadable_lag: Annotated[int, "how many of the lag are shown to hold no record"] = 0
    registration_known: Annotated[
        bool, "false where the settings could not be read: then a null registration proves nothing"
    ] = False

    @property
    def known_members(self) -> tuple[Member, ...]:
        """The visible members: none for an empty group, and none when they are unknown."""
        return self.members or ()

    def add(self, **parts: object) -> GroupDescription:
        """Set these fields of a group just created, which nobody shares: a copy takes a while."""
        for name, part in parts.items():
            setattr(self, name, part)
        return self

    @property
    def places(self) -> Sequence[TopicPartition]:
        """The partition of each row."""
        if (rows := self.to_make) is not None:
            return rows.places
        return [row.place for row in self.offsets]

    @property
    def committed_count(self) -> int:
        """The number of partitions with a committed offset."""
        if (rows := self.to_make) is not None:
            return len(rows.places)
        return sum([row.committed_offset is not None for row in self.offsets])

    @property
    def coordinated_by(self) -> int | None:
        """The broker that coordinates the group; None when unknown."""
        return None if self.coordinator is None else self.coordinator.id

    @property
    def restores(self) -> bool:
        """Whether its members may restore state before they read: of Kafka Streams, unless it keeps none."""
        if self.type != STREAMS:
            return self.application is not None and self.no_offsets is None
        return self.topology is None or any(part.changelog_topics for part in self.topology.subtopologies)

    @property
    def member_count(self) -> int | None:
        """The number of members; None when unknown."""
        return None if self.members is None else len(self.members)

    @property
    def instance_ids_known(self) -> bool:
        """Whether the broker reports which of the members that are known are static."""
        return all(member.instance_id_known for member in self.known_members)

    @property
    def has_static_members(self) -> bool | None:
        """Whether one of the members is static; None when unknown."""
        if any(member.instance_id is not None for member in self.known_members):
            return True
        return False if self.members is not None and self.instance_ids_known else None


@value
class Description:
    """The result of `describe`; `errors` names the groups that could not be described, and why.

    `held` are the partitions whose offset a transaction holds open, where they were asked for.
    """

    groups: tuple[GroupDescription, ...]
    errors: tuple[ItemError, ...] = ()
    held: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)


class ChangeStatus(StrEnum):
    """The planned change of an item, or its outcome."""

    PLANNED = "planned"
    DONE = "done"
    REMOVED = "removed"
    DELETED = "deleted"
    UNCHANGED = "unchanged"
    """The item already was as wanted."""
    NOT_FOUND = "not_found"
    REFUSED = "refused"
    """By a check, before or by the coordinator: the item did not change."""
    FAILED = "failed"

    @property
    def made(self) -> bool:
        """Whether the change of the item was made."""
        return self in (ChangeStatus.DONE, ChangeStatus.REMOVED, ChangeStatus.DELETED)

    @property
    def wrong(self) -> bool:
        """Whether the item is not as wanted."""
        return self in (ChangeStatus.NOT_FOUND, ChangeStatus.REFUSED, ChangeStatus.FAILED)


class PlannedItem:
    """An item of a plan: a part of a change, which is done or not."""

    __slots__ = ()
    result: ChangeStatus

    @property
    def planned(self) -> bool:
        """Whether it is still to be done."""
        return self.result == ChangeStatus.PLANNED


@value
class ItemResult(PlannedItem):
    """One member of a removal: result is planned, removed, not_found or failed."""

    instance_id: str | None
    member_id: str | None
    result: Annotated[ChangeStatus, ("planned", "removed", "not_found", "failed")]
    error_code: str | None = None
    effect: str = ""


@value
class UnreadOffset:
    """A committed offset that a deletion forgets, and its lag; None for an unknown one, for the reason."""

    topic: str
    partition: int
    committed_offset: int
    lag: Annotated[int | None, "null: unknown, or the topic does not exist"]
    reason: str | None = None
    error_code: str | None = None


@value
class GroupResult(PlannedItem):
    """One group of a deletion: result is planned, deleted, not_found or failed.

    `unread` has the committed offsets that a planned deletion forgets.
    """

    group_id: str
    result: Annotated[ChangeStatus, ("planned", "deleted", "not_found", "failed")]
    error_code: str | None = None
    effect: str = ""
    unread: tuple[UnreadOffset, ...] = ()


@value
class Plan:
    """A removal planned and not yet done.

    `valid_while` is what must still hold when it is executed: {"group_epoch": n}, {"generation": n}, or,
    where the broker reports neither, {"membership": fingerprint}. `before` is the group as it was seen.
    `unsure` says why it is not known whether its coordinator can store anything.
    """

    id: str
    group_id: str
    type: str
    state: str
    valid_while: Mapping[str, int | str]
    items: tuple[ItemResult, ...]
    reason: str | None
    created_ms: int
    before: Mapping[str, object]
    unsure: ItemError | None = None


@value
class Execution:
    """The results of an executed plan, item by item, and its journal entry's id."""

    plan: Plan
    items: tuple[ItemResult, ...]
    journal_id: str | None = None


@value
class Deletion:
    """The results of deleting groups, and the journal entry's id."""

    items: tuple[GroupResult, ...]
    journal_id: str | None = None


@value
class GroupLocation:
    """The coordinator of a group; `offsets_partition` is None while `__consumer_offsets` does not exist."""

    group_id: str
    coordinator: Annotated[Node | None, "null with `--partitions`"]
    offsets_partition: int | None


@value
class Partition:
    """A partition's leader (-1: none) and replicas."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@value
class TopicDescription:
    """A topic; `topic_id` in Kafka's text form, "" from brokers before 2.8."""

    name: str
    topic_id: str
    internal: bool
    partitions: tuple[Partition, ...]
