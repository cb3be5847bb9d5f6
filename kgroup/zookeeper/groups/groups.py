"""An operator's commands on the groups of a tree: list, describe, measure, export offsets, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from kgroup.admin.journal import Journal
from kgroup.admin.models import (
    ZOOKEEPER,
    ChangeStatus,
    Deletion,
    Description,
    GroupListing,
    GroupResult,
    ItemError,
    Listing,
)
from kgroup.admin.read.lag_report import LagReport, sampled
from kgroup.admin.refusals import code_name, is_absent, item_error
from kgroup.domain import OFFSETS_TOPIC, count_of
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.patterns import LONGEST_QUOTE, fault_of
from kgroup.zookeeper.groups import nodes as tree
from kgroup.zookeeper.groups.brokers import Logs, OldCluster, none_registered
from kgroup.zookeeper.groups.coordinator import AskRegistered, ask, with_coordinator
from kgroup.zookeeper.groups.describing import (
    EMPTY,
    UNKNOWN,
    CommittedOffsets,
    Seen,
    describe,
    listed,
    offsets,
    reads,
)
from kgroup.zookeeper.groups.nodes import CONSUMERS, IDS, OFFSETS, OWNERS, Ask, GroupNodes
from kgroup.zookeeper.groups.records import Broker, Registration
from kgroup.zookeeper.store.names import path_of
from kgroup.zookeeper.store.operations import Children, Delete, Failure, Result

if TYPE_CHECKING:
    from kgroup.admin.change.offset_plans import GroupNow


Connect = Callable[[Sequence[Broker]], "OldCluster"]
Answers = dict[str, Seen | KgroupError]


class Groups:
    """The groups of one tree; `connect` reaches the brokers that the tree names, if one is needed.

    `registered` asks an elected coordinator of the design of 0.9, if there is one, for its members.

    Reads raise BrokerRefused if ACLs hide everything, and ConfigError for a tree without Kafka.
    """

    def __init__(self, ask: Ask, connect: Connect, registered: AskRegistered) -> None:
        self._ask = ask
        self._connect = connect
        self._registered = registered
        self._logs: Logs | None = None
        self._broker_errors: tuple[ItemError, ...] = ()

    def list_groups(self, topic: str | None = None) -> Listing:
        """Return the groups of the tree, by id; with `topic`, those that read it."""
        listings: list[GroupListing] = []
        errors: list[ItemError] = []
        for group_id, seen in self._read(tree.group_ids(self._ask)).items():
            if isinstance(seen, Seen):
                if topic is None or reads(seen, topic):
                    listings.append(listed(seen))
                errors += seen.nodes.errors
            elif not is_absent(seen):
                errors.append(item_error(group_id, seen))
        return Listing(tuple(sorted(listings, key=lambda group: group.group_id)), tuple(errors))

    def describe(self, group_ids: Iterable[str]) -> Description:
        """Return groups in full; those that cannot be described are among the errors."""
        groups = self._read(group_ids)
        seen = [group for group in groups.values() if isinstance(group, Seen)]
        described = describe(seen, self._logs_of_brokers()) if seen else ()
        described, unseen = with_coordinator(
            self._ask, described, {one.nodes.group_id: one.nodes for one in seen}
        )
        errors = tuple(
            item_error(group_id, error)
            for group_id, error in groups.items()
            if isinstance(error, KgroupError)
        )
        return Description(described, (*errors, *unseen, *self._broker_errors))

    def lag(self, group_ids: Iterable[str], interval_s: float | None = None) -> LagReport:
        """Return how far each group is behind, with `interval_s` at which rate."""
        return sampled(self.describe, group_ids, interval_s)

    def look(self, group_ids: Iterable[str]) -> tuple[dict[str, GroupNow], tuple[ItemError, ...]]:
        """Return the groups' committed offsets; an error for groups that are read, or may be.

        Mere owners, which may be stale, hide no offset: `unseen` says that the group may be read. `unseen`
        also holds offsets that could not be read, and those that differ between the two places.
        """
        from kgroup.admin.change.offset_plans import ABSENT, UNREAD, GroupNow

        groups = self._read(group_ids, all_topics=True)
        quiet = [
            seen
            for seen in groups.values()
            if isinstance(seen, Seen) and (refusal_of(seen) is None or may_be_left_over(seen))
        ]
        stored = offsets(quiet, self._logs_of_brokers(), anywhere=True) if quiet else {}
        now = {}
        for group_id, seen in groups.items():
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
        """Return when each group without readers last wrote an offset; None where it never did."""
        return {
            group_id: max((stored.modified_ms for stored in seen.nodes.offsets.values()), default=None)
            for group_id, seen in self._read(group_ids).items()
            if isinstance(seen, Seen) and refusal_of(seen) is None
        }

    def plan_delete(self, group_ids: Iterable[str]) -> tuple[GroupResult, ...]:
        """Return what deleting these groups would do."""
        return tuple(planned(group_id, seen) for group_id, seen in self._read(group_ids).items())

    def delete(
        self, group_ids: Sequence[str], transact: Transact, journal: Journal, reason: str | None
    ) -> Deletion:
        """Delete groups from the tree, item by item, and keep their committed offsets in the journal."""
        from kgroup.admin.journal import actor

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
        """Return the cluster's id; None before Kafka 0.10.1."""
        return tree.cluster_id(self._ask)

    def _read(self, group_ids: Iterable[str], *, all_topics: bool = False) -> Answers:
        nodes = tree.groups(self._ask, group_ids)
        known = [group for group in nodes.values() if isinstance(group, GroupNodes)]
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
            for name, group in nodes.items()
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


Transact = Callable[..., tuple[Result, ...]]
MOST = 4000
"""Deletions per multi: ZooKeeper rejects requests over 1 MiB, and a name has at most 249 bytes."""
MOST_BYTES = 512 * 1024


def refusal_of(seen: Seen) -> KgroupError | None:
    """Return why a group may not be moved or deleted now; None when it has no readers."""
    name, nodes = seen.nodes.group_id, seen.nodes
    if seen.state == EMPTY:
        return None
    if nodes.described is not None and not nodes.registered:
        message = f"{name} is {seen.state} at its coordinator: its earlier consumers may go on"
        hint = "ask again in a moment: no longer than their session timeout"
        return BrokerRefused(ErrorCode.NON_EMPTY_GROUP, message, hint=hint)
    if seen.state != UNKNOWN:
        count = len(nodes.registered)
        consumers = count_of(count, "live consumer")
        where = "in ZooKeeper" if nodes.described is None else "with its coordinator"
        message = f"{name} has {consumers} registered {where}: they go on committing"
        hint = "stop its consumers first; their registrations end with their sessions"
        return BrokerRefused(ErrorCode.NON_EMPTY_GROUP, message, hint=hint)
    if nodes.owners:
        lasting = any(owner.lasting for owner in nodes.owners.values())
        how = "by nodes that outlive their consumers" if lasting else "by consumers that are not registered"
        message = (
            f"{name}: whether it is read is unknown: {count_of(len(nodes.owners), 'partition')} owned {how}"
        )
        hint = "ask again in a moment"
        if lasting and not nodes.errors:
            hint = "only a coordinator knows: ask again while kgroup serve --legacy runs on this tree"
        return BrokerRefused(ErrorCode.NON_EMPTY_GROUP, message, hint=hint)
    first = nodes.errors[0]
    code = ErrorCode.__members__.get(first.code, ErrorCode.NON_EMPTY_GROUP)
    return BrokerRefused(code, f"{name}: whether it is read is unknown: {first.message}", hint=first.hint)


def may_be_left_over(seen: Seen) -> bool:
    """Return whether owners are the only sign of readers: the offsets may still be read."""
    return seen.state == UNKNOWN and bool(seen.nodes.owners) and seen.nodes.described is None


def planned(group_id: str, seen: Seen | KgroupError) -> GroupResult:
    """Return what deleting a group would do."""
    error = seen if isinstance(seen, KgroupError) else refusal_of(seen)
    if error is None:
        return GroupResult(
            group_id, ChangeStatus.PLANNED, None, "deleted from ZooKeeper with all its offsets"
        )
    missing = isinstance(error, BrokerRefused) and error.code == ErrorCode.GROUP_ID_NOT_FOUND
    effect = error.message.removeprefix(f"{group_id}: ").removeprefix(f"{group_id} ")
    return GroupResult(
        group_id, ChangeStatus.NOT_FOUND if missing else ChangeStatus.FAILED, code_name(error), effect
    )


def delete(ask: Ask, transact: Transact, group_id: str) -> GroupResult:
    """Delete a group's nodes, the registrations' parent first: if a consumer registered meanwhile, all stays.

    In one multi if it fits; otherwise the result says what is left.
    """
    paths = list(_bottom_up(ask, path_of(CONSUMERS, group_id)))
    registered = path_of(CONSUMERS, group_id, IDS) + "/"
    if any(path is not None and path.startswith(registered) for path in paths):
        return _failed(
            group_id, "NON_EMPTY_GROUP", "a consumer has registered meanwhile: nothing was deleted"
        )
    if None in paths:
        return _failed(
            group_id, "GROUP_AUTHORIZATION_FAILED", "not authorised to read its nodes: none deleted"
        )
    order = {path_of(CONSUMERS, group_id, part): rank for rank, part in enumerate((IDS, OWNERS, OFFSETS))}
    known = [path for path in paths if path is not None]
    known.sort(key=lambda path: next((r for p, r in order.items() if (path + "/").startswith(p + "/")), 9))
    done = 0
    for batch in _batches(known):
        answers = transact(*(Delete(path) for path in batch))
        failed = ((p, a) for p, a in zip(batch, answers, strict=True) if isinstance(a, Failure))
        wrong = next(((p, a) for p, a in failed if a is not Failure.ROLLED_BACK), None)
        if wrong is not None:
            return _not_deleted(group_id, wrong, done, len(known))
        done += len(batch)
    return GroupResult(group_id, ChangeStatus.DELETED, None, "deleted from ZooKeeper with all its offsets")


def _bottom_up(ask: Ask, path: str) -> Iterator[str | None]:
    """Yield a node and all below it, children first; None for one that may not be read."""
    levels: list[list[str]] = [[path]]
    hidden = False
    while levels[-1]:
        below = []
        for parent, names in zip(levels[-1], ask(*map(Children, levels[-1])), strict=True):
            if isinstance(names, tuple):
                below += [f"{parent}/{name}" for name in names]
            else:
                hidden = hidden or names is not Failure.NO_NODE
        levels.append(below)
    if hidden:
        yield None
    for level in reversed(levels):
        yield from level


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        # Header and version of an operation, without its path.
        size += len(path.encode()) + 32
        if batch and (len(batch) >= MOST or size > MOST_BYTES):
            yield batch
            batch, size = [], len(path.encode()) + 32
        batch.append(path)
    if batch:
        yield batch


def _not_deleted(group_id: str, wrong: tuple[str, Result], done: int, of: int) -> GroupResult:
    path, failure = wrong
    rest = f"; {done} of {of} nodes were deleted before" if done else "; nothing of it was deleted"
    if failure is Failure.NOT_EMPTY or failure is Failure.NO_NODE:
        return _failed(group_id, "NON_EMPTY_GROUP", f"it changed meanwhile ({path}){rest}: ask again")
    if failure is Failure.NO_AUTH:
        return _failed(group_id, "GROUP_AUTHORIZATION_FAILED", f"not authorised to delete {path}{rest}")
    message = (
        f"whether it was deleted is unknown: {failure.value if isinstance(failure, Failure) else failure}"
    )
    return _failed(group_id, "UNREACHABLE", message)


def _failed(group_id: str, code: str, effect: str) -> GroupResult:
    return GroupResult(group_id, ChangeStatus.FAILED, code, effect)
