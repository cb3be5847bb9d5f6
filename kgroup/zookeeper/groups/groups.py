"""What an operator does with the groups of a tree: list, describe, measure, export offsets, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from kgroup.admin.models import (
    ZOOKEEPER,
    Deletion,
    Description,
    GroupListing,
    GroupResult,
    ItemError,
    Listing,
)
from kgroup.admin.read.lag_report import sampled
from kgroup.admin.refusals import code_name, is_absent, item_error
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode, KgroupError
from kgroup.patterns import LONGEST_QUOTE, fault_of
from kgroup.zookeeper.groups import nodes as tree
from kgroup.zookeeper.groups.brokers import Logs, none_registered
from kgroup.zookeeper.groups.coordinator import Registered, ask, with_coordinator
from kgroup.zookeeper.groups.deleting import delete, may_be_left_over, planned, refusal_of
from kgroup.zookeeper.groups.describing import CommittedOffsets, Seen, describe, listed, offsets, reads
from kgroup.zookeeper.groups.nodes import Ask, GroupNodes
from kgroup.zookeeper.groups.records import Broker, Registration

if TYPE_CHECKING:
    from kgroup.admin.change.journal import Journal
    from kgroup.admin.change.offset_plans import GroupNow
    from kgroup.admin.read.lag_report import LagReport
    from kgroup.zookeeper.groups.brokers import OldCluster
    from kgroup.zookeeper.groups.deleting import Transact

Connect = Callable[[Sequence[Broker]], "OldCluster"]
Answers = dict[str, Seen | KgroupError]


class Groups:
    """The groups of one tree; `connect` reaches the brokers that the tree names, if one is needed.

    `registered` asks an elected coordinator of the design of 0.9, where there is one, for its members.

    Reads raise BrokerRefused where rights hide everything, and ConfigError for a tree that is no Kafka's.
    """

    def __init__(self, ask: Ask, connect: Connect, registered: Registered) -> None:
        self._ask = ask
        self._connect = connect
        self._registered = registered
        self._logs: Logs | None = None
        self._broker_errors: tuple[ItemError, ...] = ()

    def list_groups(self, topic: str | None = None) -> Listing:
        """The groups of the tree, by id, those that have to do with a topic where one is named."""
        found: list[GroupListing] = []
        errors: list[ItemError] = []
        for group_id, seen in self._read(tree.group_ids(self._ask)).items():
            if isinstance(seen, Seen):
                if topic is None or reads(seen, topic):
                    found.append(listed(seen))
                errors += seen.nodes.errors
            elif not is_absent(seen):
                errors.append(item_error(group_id, seen))
        return Listing(tuple(sorted(found, key=lambda group: group.group_id)), tuple(errors))

    def describe(self, group_ids: Iterable[str]) -> Description:
        """Groups in full; those that cannot be described are among the errors."""
        found = self._read(group_ids)
        seen = [group for group in found.values() if isinstance(group, Seen)]
        told = describe(seen, self._logs_of_brokers()) if seen else ()
        told, unseen = with_coordinator(self._ask, told, {one.nodes.group_id: one.nodes for one in seen})
        errors = tuple(
            item_error(group_id, error) for group_id, error in found.items() if isinstance(error, KgroupError)
        )
        return Description(told, (*errors, *unseen, *self._broker_errors))

    def lag(self, group_ids: Iterable[str], interval_s: float | None = None) -> LagReport:
        """How far each group is behind, with `interval_s` at which rate."""
        return sampled(self.describe, group_ids, interval_s)

    def look(self, group_ids: Iterable[str]) -> tuple[dict[str, GroupNow], tuple[ItemError, ...]]:
        """The committed offsets of groups; an error in those that are read, or of which that is not told.

        Owners alone, which may be left over, hide no offset: `unseen` says that the group may be read. And
        what of the committed offsets could not be read, or is told in two places, each time otherwise.
        """
        from kgroup.admin.change.offset_plans import ABSENT, UNREAD, GroupNow

        found = self._read(group_ids, all_topics=True)
        quiet = [
            seen
            for seen in found.values()
            if isinstance(seen, Seen) and (refusal_of(seen) is None or may_be_left_over(seen))
        ]
        stored = offsets(quiet, self._logs_of_brokers(), anywhere=True) if quiet else {}
        now = {}
        for group_id, seen in found.items():
            if isinstance(seen, KgroupError):
                absent = is_absent(seen)
                error = None if absent else seen
                now[group_id] = GroupNow(
                    group_id, None, ABSENT if absent else UNREAD, None, {}, 0, error, None
                )
            else:
                now[group_id] = _now(seen, refusal_of(seen), stored.get(group_id))
        return now, tuple(doubt for seen in quiet for doubt in _doubts(seen, stored[seen.nodes.group_id]))

    def silent_since_ms(self, group_ids: Iterable[str]) -> dict[str, int | None]:
        """When each group that nobody reads with last wrote an offset; None where it never did."""
        return {
            group_id: max((stored.modified_ms for stored in seen.nodes.offsets.values()), default=None)
            for group_id, seen in self._read(group_ids).items()
            if isinstance(seen, Seen) and refusal_of(seen) is None
        }

    def plan_delete(self, group_ids: Iterable[str]) -> tuple[GroupResult, ...]:
        """What deleting these groups would do."""
        return tuple(planned(group_id, seen) for group_id, seen in self._read(group_ids).items())

    def delete(
        self, group_ids: Sequence[str], transact: Transact, journal: Journal, reason: str | None
    ) -> Deletion:
        """Delete groups from the tree, item by item, with what they had committed in the journal."""
        from kgroup.admin.change.offset_plans import actor

        before = {
            name: [[p.topic, p.partition, at.offset, at.leader_epoch, at.metadata] for p, at in known.items()]
            for name, known in ((name, now.committed) for name, now in self.look(group_ids)[0].items())
        }
        plan = {"groups": list(group_ids), "actor": actor(), "reason": reason}
        named = [{"group_id": group_id} for group_id in group_ids]
        items = []
        image = {"offsets": before}
        with journal.change("delete --zookeeper", self.cluster_id(), plan, image, named) as entry:
            for group_id, seen in self._read(group_ids).items():
                item = planned(group_id, seen)
                items.append(delete(self._ask, transact, group_id) if item.planned else item)
                entry.results.append(asdict(items[-1]))
        return Deletion(tuple(items), entry.id)

    def cluster_id(self) -> str | None:
        """The cluster's id; None before Kafka 0.10.1."""
        return tree.cluster_id(self._ask)

    def _read(self, group_ids: Iterable[str], *, all_topics: bool = False) -> Answers:
        found = tree.groups(self._ask, group_ids)
        known = [group for group in found.values() if isinstance(group, GroupNodes)]
        ask(self._ask, self._registered, known)
        for group in known:
            group.errors += _unreadable_patterns(group)
        named = {OFFSETS_TOPIC, *(topic for group in known for topic in _topics_of(group))}
        topics = tree.topics(self._ask, named)
        registrations = (registration for g in known for registration in g.registered.values())
        by_pattern = any(isinstance(r, Registration) and r.topics is None for r in registrations)
        if by_pattern or (all_topics and OFFSETS_TOPIC in tree.existing(topics)):
            topics = {**tree.topics(self._ask), **topics}
        there = tree.existing(topics)
        return {
            name: Seen(group, topics, there) if isinstance(group, GroupNodes) else group
            for name, group in found.items()
        }

    def _logs_of_brokers(self) -> Logs:
        if self._logs is None:
            alive, self._broker_errors = tree.brokers(self._ask)
            try:
                self._logs = Logs(self._connect(alive) if alive else none_registered())
            except KgroupError as error:
                self._logs = Logs(error)
        return self._logs


def _topics_of(group: GroupNodes) -> Iterable[str]:
    for registration in group.registered.values():
        if isinstance(registration, Registration):
            yield from registration.topics or ()
    yield from group.topics


def _unreadable_patterns(group: GroupNodes) -> Iterable[ItemError]:
    for name, registration in group.registered.items():
        pattern = registration.pattern if isinstance(registration, Registration) else None
        if pattern is not None and (fault := fault_of(pattern)) is not None:
            what = f"what {name} subscribes to is unknown: {fault.reason[:LONGEST_QUOTE]}"
            hint = "kgroup reads patterns as RE2, the consumer as Java's"
            code = ErrorCode.INVALID_REGULAR_EXPRESSION.name
            yield ItemError(group.group_id, code, f"{group.group_id}: {what}", hint)


def _now(seen: Seen, refusal: KgroupError | None, stored: CommittedOffsets | None) -> GroupNow:
    from kgroup.admin.change.offset_plans import CommittedOffset, GroupNow

    known = {p: CommittedOffset(at.offset, -1, at.metadata) for p, at in stored.all.items()} if stored else {}
    name = seen.nodes.group_id
    unseen = None
    if refusal is not None and may_be_left_over(seen):
        unseen, refusal = item_error(name, refusal), None
    return GroupNow(name, ZOOKEEPER, seen.state, seen.member_count, known, 0, refusal, unseen)


def _doubts(seen: Seen, stored: CommittedOffsets) -> Iterable[ItemError]:
    name = seen.nodes.group_id
    yield from seen.nodes.errors
    if stored.error is not None:
        message = f"{name}: whether committed offsets are in Kafka (offsets.storage=kafka) is not known: "
        yield ItemError(name, code_name(stored.error), message + stored.error.message, stored.error.hint)
    for partition in stored.differing:
        own, theirs = seen.nodes.offsets[partition].offset, stored.kafka[partition].offset
        message = f"{name}: {partition} is at {own} in ZooKeeper and at {theirs} in Kafka; taken is {theirs}"
        hint = "offsets.storage of its consumers says which holds; change the file where it is zookeeper"
        yield ItemError(name, "TWO_POSITIONS", message, hint)
