"""Groups in ZooKeeper as descriptions: members, owners, committed offsets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kgroup.admin.models import (
    ZOOKEEPER,
    Commits,
    Committed,
    GroupDescription,
    GroupListing,
    ItemError,
    Member,
    OffsetRow,
)
from kgroup.admin.read import lag
from kgroup.admin.read.describe import unread_ends
from kgroup.admin.read.members import assignment_of
from kgroup.admin.read.offsets import EARLIEST, ListedOffset
from kgroup.admin.refusals import code_name, is_gone
from kgroup.domain import OFFSETS_TOPIC, MemberStatus, OffsetAndMetadata, TopicPartition
from kgroup.errors import KgroupError
from kgroup.protocol.subscription import PROTOCOL_TYPE
from kgroup.zookeeper.groups import findings
from kgroup.zookeeper.groups.brokers import Logs
from kgroup.zookeeper.groups.nodes import IDS, OFFSETS, OWNERS, GroupNodes
from kgroup.zookeeper.groups.records import Registration, host_of

STABLE, UNSETTLED, LIVE, EMPTY, UNKNOWN = "Stable", "Unsettled", "Live", "Empty", "Unknown"
RECOVERING = "Recovering"
"""State while an elected coordinator waits for members to rejoin: more may read than are registered."""
Topics = Mapping[str, tuple[int, ...] | KgroupError]


@dataclass(frozen=True)
class Seen:
    """A group's nodes and the topics of the tree; `there` are those whose partitions are known."""

    nodes: GroupNodes
    topics: Topics
    there: Mapping[str, tuple[int, ...]]

    @cached_property
    def subscribed(self) -> frozenset[TopicPartition] | None:
        """The partitions of everything the members subscribe to; None if unknown."""
        partitions: set[TopicPartition] = set()
        for registration in self.nodes.registered.values():
            topics = registration.wanted(self.there) if isinstance(registration, Registration) else None
            if topics is None or any(self.hidden(topic) for topic in topics):
                return None
            partitions |= {TopicPartition(topic, n) for topic in topics for n in self.there.get(topic, ())}
        return frozenset(partitions)

    @cached_property
    def state(self) -> str:
        """Empty; Stable if everything the members subscribe to has owners among them, Unsettled if not.

        A rebalance in progress and a failed one look alike. Live: whether everything has owners is unknown.
        Unknown: no member is registered, but there are owners or unreadable registrations. If an elected
        coordinator has reported the group's state, that.
        """
        nodes = self.nodes
        if nodes.described is not None:
            return nodes.described.state
        if not nodes.registered:
            hidden = nodes.unread & {IDS, OWNERS}
            return UNKNOWN if hidden or nodes.owners else EMPTY
        if any(owner.consumer not in nodes.registered for owner in nodes.owners.values()):
            return UNSETTLED
        subscribed = self.subscribed
        if subscribed is None or nodes.unread & {IDS, OWNERS}:
            return LIVE
        return UNSETTLED if subscribed - nodes.owners.keys() else STABLE

    @property
    def members(self) -> tuple[Member, ...] | None:
        """The registered members; None if none is visible but there may be some."""
        return None if self._hidden_members else tuple(map(self._member, sorted(self.nodes.registered)))

    @property
    def member_count(self) -> int | None:
        """The number of registered consumers, None as in `members`."""
        return None if self._hidden_members else len(self.nodes.registered)

    @property
    def _hidden_members(self) -> bool:
        return self.state == UNKNOWN or (self.state == RECOVERING and not self.nodes.registered)

    def hidden(self, topic: str) -> bool:
        """Return whether a topic's partitions could not be read though it may exist."""
        topic_answer = self.topics.get(topic)
        return isinstance(topic_answer, KgroupError) and not is_gone(topic_answer)

    def _member(self, name: str) -> Member:
        registration = self.nodes.registered[name]
        known = registration if isinstance(registration, Registration) else None
        owned = [p for p, owner in self.nodes.owners.items() if owner.consumer == name]
        members = self.nodes.described.members if self.nodes.described is not None else ()
        at_coordinator = next((member for member in members if member.consumer_id == name), None)
        return Member(
            member_id=name,
            instance_id=None,
            client_id=None,
            host=host_of(self.nodes.group_id, name),
            rack_id=None,
            protocol=ZOOKEEPER,
            member_epoch=None,
            state=MemberStatus.REGISTERED
            if at_coordinator is None
            else MemberStatus.FETCHING
            if at_coordinator.started
            else MemberStatus.WAITING,
            subscribed_topics=known.topics if known else None,
            subscribed_regex=known.regex if known else None,
            assignment=None if OWNERS in self.nodes.unread else assignment_of(owned),
            target_assignment=None,
            session_timeout_ms=at_coordinator.session_timeout_ms if at_coordinator is not None else None,
            failed_pings=at_coordinator.failed if at_coordinator is not None else None,
        )


def listed(seen: Seen) -> GroupListing:
    """Return the group's row in a list."""
    return GroupListing(seen.nodes.group_id, ZOOKEEPER, PROTOCOL_TYPE, seen.state, seen.member_count, None)


def reads(seen: Seen, topic: str) -> bool:
    """Return whether the group subscribes to a topic, or has had an owner or a committed offset in it."""
    registered = (
        registration.wanted(seen.there)
        for registration in seen.nodes.registered.values()
        if isinstance(registration, Registration)
    )
    return topic in seen.nodes.topics or any(topic in (names or ()) for names in registered)


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """What a group has committed: `all` by partition, `kafka` those kept there, `differing` those in both.

    `error` says why Kafka could not be asked; it stays None where nothing can be in Kafka.
    """

    all: Committed
    kafka: Committed
    differing: tuple[TopicPartition, ...] = ()
    error: KgroupError | None = None


def offsets(groups: Sequence[Seen], logs: Logs, *, anywhere: bool = False) -> dict[str, CommittedOffsets]:
    """Return each group's committed offsets; of those in both places Kafka's, as in Kafka's own tools.

    Kafka is asked for the topics that the group's nodes name; with `anywhere` for all known topics, in case
    an operator has removed some from the tree.
    """
    requested = {
        seen.nodes.group_id: sorted(partitions)
        for seen in groups
        if (OFFSETS_TOPIC in seen.there or seen.hidden(OFFSETS_TOPIC))
        and (partitions := _relevant(seen, seen.there if anywhere else ()))
    }
    in_kafka = logs.committed(requested) if requested else {}
    return {
        seen.nodes.group_id: _committed(seen.nodes, in_kafka.get(seen.nodes.group_id, {})) for seen in groups
    }


def _relevant(seen: Seen, more: Iterable[str]) -> frozenset[TopicPartition]:
    """Return the partitions a group may have offsets in: of its topics and of `more`, where known."""
    nodes = seen.nodes
    named = {*nodes.owners, *nodes.offsets, *nodes.undecodable, *(seen.subscribed or ())}
    topics = {p.topic for p in named} | nodes.topics | set(more)
    return frozenset(named) | {
        TopicPartition(topic, n) for topic in topics for n in seen.there.get(topic, ())
    }


def _committed(nodes: GroupNodes, in_kafka: Committed | KgroupError) -> CommittedOffsets:
    own = {p: OffsetAndMetadata(stored.offset) for p, stored in nodes.offsets.items()}
    if isinstance(in_kafka, KgroupError):
        return CommittedOffsets(own, {}, error=in_kafka)
    differing = tuple(sorted(p for p, at in in_kafka.items() if p in own and own[p].offset != at.offset))
    return CommittedOffsets({**own, **in_kafka}, in_kafka, differing)


def describe(groups: Sequence[Seen], logs: Logs) -> tuple[GroupDescription, ...]:
    """Return each group in full, with the ends of its logs from the brokers."""
    stored = offsets(groups, logs)
    rows = {seen.nodes.group_id: _rows_of(seen, stored[seen.nodes.group_id]) for seen in groups}
    ends = logs.at({p for partitions in rows.values() for p in partitions})
    never = {p for name, partitions in rows.items() for p in partitions if p not in stored[name].all}
    begun = {p for p in never if isinstance(end := ends.get(p), ListedOffset) and end.offset > 0}
    starts = logs.at(begun, EARLIEST) if begun else {}
    return tuple(_described(seen, stored[seen.nodes.group_id], ends, starts) for seen in groups)


def _rows_of(seen: Seen, stored: CommittedOffsets) -> frozenset[TopicPartition]:
    owned = {*seen.nodes.owners, *(seen.subscribed or ())}
    return frozenset({*stored.all, *seen.nodes.undecodable, *owned})


def _described(seen: Seen, stored: CommittedOffsets, ends: lag.Ends, starts: lag.Ends) -> GroupDescription:
    nodes, members = seen.nodes, seen.members
    rows = tuple(_rows(seen, stored, ends, starts))
    errors = list(nodes.errors)
    if stored.error is not None:
        said = "whether committed offsets are in Kafka (offsets.storage=kafka) is not known"
        said = f"{nodes.group_id}: {said}: {stored.error.message}"
        errors.append(ItemError(nodes.group_id, code_name(stored.error), said, stored.error.hint))
    errors += unread_ends(nodes.group_id, rows, nodes.group_id)
    complete = seen.state not in (LIVE, UNKNOWN, RECOVERING) and seen.subscribed is not None
    total = lag.total(rows, all_rows=complete and OFFSETS not in nodes.unread and stored.error is None)
    group = GroupDescription(
        nodes.group_id,
        ZOOKEEPER,
        PROTOCOL_TYPE,
        seen.state,
        members=members,
        offsets=rows,
        total_lag=total.lag,
        errors=tuple(errors),
        lag_at_least=total.at_least,
        unknown_partitions=total.unknown,
    )
    return replace(group, findings=findings.find(group, seen.topics, nodes, stored.kafka, stored.differing))


def _rows(seen: Seen, stored: CommittedOffsets, ends: lag.Ends, starts: lag.Ends) -> Iterator[OffsetRow]:
    """Yield a row for every partition with a committed offset, an owner or a subscriber."""
    owned = seen.nodes.owners
    unknown = Member(
        "", None, None, None, None, ZOOKEEPER, None, MemberStatus.UNKNOWN, None, None, None, None
    )
    owner_of_all = replace(unknown, assignment=assignment_of(_rows_of(seen, stored)))
    group = GroupDescription(
        seen.nodes.group_id, ZOOKEEPER, PROTOCOL_TYPE, seen.state, members=(owner_of_all,)
    )
    for row in lag.rows(group, Commits.of(stored.all), lag.Sight(ends, starts)):
        row = replace(row, status=None, unreadable=None)  # statuses are of Kafka's groups
        partition = row.place
        if (owner := owned.get(partition)) is not None:
            row = replace(row, member_id=owner.consumer, owner_thread=owner.thread)
        else:
            row = replace(row, member_id=None)
        if partition in seen.nodes.undecodable and partition not in stored.kafka:
            why = seen.nodes.undecodable[partition]
            why = f"its committed offset is unknown: {why}"
            row = replace(row, lag=None, reason=why, commit_known=False)
        elif stored.error is not None:
            # An offset in Kafka would take precedence over this one.
            where = "nothing" if row.committed_offset is None else str(row.committed_offset)
            why = f"{where} in ZooKeeper, the one in Kafka is unknown: {stored.error.message}"
            row = replace(row, lag=None, reason=why)
        elif row.committed_offset is None and OFFSETS in seen.nodes.unread:
            why = "its committed offset could not be read"
            row = replace(row, lag=None, reason=why, commit_known=False)
        yield row
