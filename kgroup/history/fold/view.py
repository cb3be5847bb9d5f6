"""A group and its members at one moment, of whatever kind, as the records up to it make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kgroup.domain import GROUP_TYPES, MemberStatus, TopicPartition, of_client, value
from kgroup.history.fold.tasks import StreamsClient
from kgroup.protocol.streams_records import StreamsGroupTopologyValue
from kgroup.protocol.subscription import Subscription

KINDS = CLASSIC, CONSUMER, SHARE, STREAMS = GROUP_TYPES
SIMPLE = "simple"
LEFT_FOR_NOW = -2
INTERRUPTED = -2
"""In place of the topology epoch whose description is stored."""


@dataclass(frozen=True, slots=True)
class RecordedMember:
    """A member as records describe it. Partitions are by topic name, or by topic id if no name is known.

    `protocol` is the member's; `epoch` is its generation in a classic group. `assigned` excludes `revoking`
    (still owned, to be given up); `target` is None if the group has none (classic). `assignment_epochs` are
    KIP-1251's, by partition. `metadata` is what a classic member joined with and `assignment` what it was
    assigned, unchanged; `joined_with` is the metadata decoded: None if it is not the consumer protocol's.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    protocol: str
    epoch: int
    state: MemberStatus
    topics: tuple[str, ...] = ()
    regex: str | None = None
    rack_id: str | None = None
    assignor: str | None = None
    previous_epoch: int = -1
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = -1
    assigned: frozenset[TopicPartition] = frozenset()
    revoking: frozenset[TopicPartition] = frozenset()
    target: frozenset[TopicPartition] | None = None
    assignment_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    user_data: int = 0
    """Bytes of user data in a classic assignment; an upgrade is rejected when there are any."""
    given: bytes | None = None
    """A classic assignment that is not the consumer protocol's, unchanged: then `assigned` is unknown."""
    metadata: bytes = b""
    joined_with: Subscription | None = None
    assignment: bytes = b""
    streams: StreamsClient | None = None
    """For a member of a streams group; its partitions are then what its active tasks read, if known."""

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """What a classic member still owned when it joined the generation; nothing for an eager member."""
        return frozenset(self.joined_with.owned) if self.joined_with is not None else frozenset()

    @property
    def label(self) -> str:
        """Its name for people: the instance id, else a member id short enough to read."""
        if self.instance_id:
            return self.instance_id
        short = self.member_id
        return short if len(short) <= 24 else f"{short[:23]}…"

    @property
    def of_client(self) -> str:
        """` of client ID` if the member is known only by a UUID; else ""."""
        return of_client(self.member_id, self.instance_id, self.client_id)

    @property
    def client(self) -> str:
        """What another process in its place has, too: the instance id, else the client's id and host."""
        return self.instance_id or f"{self.client_id} on {self.host.lstrip('/')}"

    @property
    def holds(self) -> frozenset[TopicPartition]:
        """What no other member may own: assigned, or not yet given up."""
        return self.assigned | self.revoking


@dataclass(frozen=True, slots=True)
class StreamsView:
    """What a streams group has besides epochs and members.

    `validated_epoch` is the topology epoch whose topics were all found as they must be, -1 for none;
    `configs` are the settings that targets are made with; `has_target`: one was computed. A plugin of the
    broker stores the application's own description of topology epoch `stored_description` (-1: none,
    INTERRUPTED: an update left that open), and rejected that of `refused_description` for good (KIP-1331).
    """

    topology: StreamsGroupTopologyValue | None = None
    validated_epoch: int = 0
    configs: tuple[tuple[str, str], ...] = ()
    has_target: bool = False
    stored_description: int = -1
    refused_description: int = -1

    @property
    def is_ready(self) -> bool:
        """Whether all topics of the topology were found as they must be."""
        return self.topology is not None and self.topology.epoch == self.validated_epoch


@dataclass(frozen=True, slots=True)
class ShareView:
    """What a share group has besides epochs and members: the partitions with delivery state.

    `initializing` are those whose state is being made, `deleting` the topics whose state is being deleted;
    `has_target`: a target was computed.
    """

    initializing: frozenset[TopicPartition] = frozenset()
    initialized: frozenset[TopicPartition] = frozenset()
    deleting: tuple[str, ...] = ()
    has_target: bool = False


@value
class View:
    """A group at one moment. `epoch` is the generation or group epoch, -1 before there was one."""

    kind: str
    epoch: int
    assignment_epoch: int
    metadata_hash: int
    assignor: str | None
    leader: str | None
    state_timestamp_ms: int
    members: Mapping[str, RecordedMember]
    regexes: Mapping[str, tuple[str, ...]]
    protocol_type: str
    streams: StreamsView | None = None
    share: ShareView | None = None

    @property
    def state(self) -> str:
        """The group's state as Kafka names it, if on record: a classic rebalance is not."""
        if not self.kind:
            return "Dead"
        if not self.members:
            return "Empty"
        # A share group with members is Stable while they are still on their way to the target.
        if self.kind in (CLASSIC, SHARE):
            return "Stable"
        if self.streams is not None and not self.streams.is_ready:
            return "NotReady"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        return "Stable" if self.converged else "Reconciling"

    @property
    def converged(self) -> bool:
        """Whether every member has reached the target of the newest group epoch."""
        done = self.assignment_epoch
        return self.epoch == done and all(
            m.state == MemberStatus.STABLE and m.epoch == done for m in self.members.values()
        )


def renamed(view: View, names: Mapping[str, str]) -> View:
    """Return the same moment with topic names for ids, as far as `names` (by the id's text) has them."""

    def of(partition: TopicPartition) -> TopicPartition:
        return TopicPartition(names.get(partition.topic, partition.topic), partition.partition)

    members = {
        member_id: replace(
            member,
            assigned=frozenset(map(of, member.assigned)),
            revoking=frozenset(map(of, member.revoking)),
            target=None if member.target is None else frozenset(map(of, member.target)),
            assignment_epochs={of(partition): epoch for partition, epoch in member.assignment_epochs.items()},
        )
        for member_id, member in view.members.items()
    }
    return replace(view, members=members)
