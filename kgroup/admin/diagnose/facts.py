"""The facts of a check-up, gathered for many groups at once: each offsets partition is read once for all.

A poll that fails is noted with its reason for every group it was for, and the verdict accounts for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from kgroup.admin.diagnose.group_records import Recorded
from kgroup.admin.discovery import ClusterView, or_error
from kgroup.admin.models import CLASSIC, REBALANCING, SHARE, Finding, GroupDescription, Node, OffsetRow
from kgroup.admin.read.broker_clock import Clock
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.group_facts import ENDS
from kgroup.admin.read.open_transactions import OpenTransaction, seen_transactions, unstable
from kgroup.admin.refusals import code_name
from kgroup.admin.settings import OFFSETS_RETENTION, asked_once, group_settings, number_of
from kgroup.admin.statuses import (
    ASSIGNMENTS,
    HISTORY,
    LAG,
    SETTINGS,
    TRANSACTIONS,
    PartitionStatus,
    Status,
    Unseen,
)
from kgroup.domain import OFFSETS_TOPIC, MemberStatus, TopicPartition, count_of, grouped, value
from kgroup.durations import utc
from kgroup.errors import ErrorCode, KgroupError
from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.view import RecordedMember, View
from kgroup.history.log_items import Committed

if TYPE_CHECKING:
    from kgroup.admin.diagnose.handled import DeliveryLog
    from kgroup.admin.diagnose.held_open import HeldOpen

AskBroker: TypeAlias = "Callable[[int, str], str | KgroupError | None]"
"""The setting of a broker, by node and name."""
Placed: TypeAlias = tuple[TopicPartition, OffsetRow]
ByStatus: TypeAlias = "Mapping[PartitionStatus | None, Sequence[Placed]]"
SESSION_TIMEOUT = "consumer.session.timeout.ms"
DESCRIBED = ("offsets", ENDS, "stable offset")
"""Looks whose failures a description reports among its errors."""
SECOND_LOOK, INTERVAL_S = "a second look", 1.0
HELD_OPEN = "open transactions"
OPEN_S = 10
"""The age in the log from which a transaction that holds offsets open counts as one that does not end."""

_NOTHING = Recorded()


@dataclass(frozen=True, slots=True)
class Going:
    """The retention of records, and when the oldest unread one was written (ms); None if unreadable."""

    retention_ms: int
    written_ms: int | None


@value
class Facts:
    """The facts about one group, a field for each look; None is what could not be polled, or was excluded.

    A look makes a value, and the facts with it are new ones (`also`); `unseen` is why looks failed. All
    groups of a check-up leave out the same looks. `recorded` is what the group's log says, `delivered` the
    deliveries in that of a share group. `pending` are offsets that a transaction holds open. `seen_for_s` is
    the time between the first and last poll that saw the group rebalancing, `open_for_s` the same for those
    offsets; failed polls add nothing to either. `held_open` are the transactions that did so of late,
    `holding` those that hold readers back, `going` the partitions whose unread records are about to be
    deleted. `one_leader` leads all partitions that stand still, and none that is read; `untransacted` is that
    no transaction can be stored. `fruitless` are the partitions of which none of so many members that came
    and went committed anything, `delivery_limit` is how often a share group may deliver a record, and
    `lock_ms` how long a member has it.
    """

    group: GroupDescription
    now_ms: int
    since_ms: int
    patience_s: float
    left_out: frozenset[str] = frozenset()
    unseen: tuple[Unseen, ...] = ()
    recorded: Recorded | None = None
    delivered: DeliveryLog | None = None
    session_ms: int | None = None
    retention_ms: int | None = None
    max_size: int | KgroupError | None = None
    delivery_limit: int | None = None
    lock_ms: int | Unseen = 0
    holding: Mapping[TopicPartition, tuple[OpenTransaction, ...]] = field(default_factory=dict)
    going: Mapping[TopicPartition, Going] = field(default_factory=dict)
    gone_topics: frozenset[str] = frozenset()
    pending: frozenset[TopicPartition] = frozenset()
    transactions: tuple[OpenTransaction, ...] = ()
    held_open: HeldOpen | None = None
    seen_for_s: float = 0.0
    open_for_s: float = 0.0
    clock: Clock | None = None
    one_leader: Node | None = None
    untransacted: Finding | None = None
    fruitless: Mapping[TopicPartition, int] = field(default_factory=dict)
    _by_status: dict[PartitionStatus | None, list[Placed]] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )

    def also(self, *unseen: Unseen, **looks: object) -> Facts:
        """Return these facts with the values of other looks, and with why others failed."""
        if unseen:
            looks["unseen"] = (*self.unseen, *unseen)
        return replace(self, **looks) if looks else self  # type: ignore[arg-type]

    @property
    def log(self) -> Recorded:
        """What its records say; empty where they could not be read."""
        return self.recorded or _NOTHING

    @property
    def history(self) -> Sequence[Event] | None:
        """The events that the log still holds."""
        return None if self.recorded is None else self.recorded.events

    @property
    def state(self) -> View | None:
        """The group in its records."""
        return self.log.state

    @property
    def recorded_members(self) -> Mapping[str, RecordedMember]:
        """The members in its records, by id."""
        return {} if self.state is None else self.state.members

    def last_commit_ms(self, partition: TopicPartition) -> int:
        """Return when a partition of a member was last committed, with whatever offset; -1 for never."""
        return self.log.repeated.get(partition, (-1, self.log.committed_ms.get(partition, -1)))[1]

    @property
    def rows(self) -> Iterator[Placed]:
        """The group's partitions, each with its row, in order."""
        return ((row.place, row) for row in self.group.offsets)

    @property
    def by_status(self) -> ByStatus:
        """The same by status; those without one, of groups whose lag was not judged, under None."""
        if not self._by_status:
            last: object = self
            those: list[Placed] = []
            for placed in self.rows:
                status = placed[1].status
                if status is not last:  # rows of a group share few statuses
                    name = None if status is None else status.name
                    last, those = status, self._by_status.setdefault(name, [])
                those.append(placed)
        return self._by_status

    def placed(self, name: PartitionStatus) -> Sequence[Placed]:
        """Return the partitions with this status; rows are made if there may be any."""
        rows = self.group.to_make
        return self.by_status.get(name, ()) if rows is None or name in rows.statuses else ()

    def with_status(self, *names: PartitionStatus) -> Iterator[tuple[TopicPartition, OffsetRow, Status]]:
        """Yield the partitions with one of these statuses, by status."""
        for name in names:
            for partition, row in self.placed(name):
                assert row.status is not None
                yield partition, row, row.status

    @property
    def alike(self) -> Iterator[tuple[Status, Sequence[TopicPartition]]]:
        """The partitions with the same status that matter as much, with that of the first of them."""
        if (rows := self.group.to_make) is not None:
            yield from rows.by_status.items()
            return
        for name in (name for name in self.by_status if name is not None):
            by_weight = grouped(
                (status.weight, (partition, status)) for partition, _, status in self.with_status(name)
            )
            for those in by_weight.values():
                yield those[0][1], [partition for partition, _ in those]

    @property
    def best_clock(self) -> Clock:
        """The brokers' clock where that is known, else this machine's."""
        return self.clock or Clock(self.now_ms)

    def age_ms(self, written_ms: int) -> int:
        """Return the minimum age of a coordinator's record."""
        return self.best_clock.age_ms(written_ms)

    def is_older(self, written_ms: int, bound_ms: int) -> bool | None:
        """Return whether a coordinator's record is this old; None where no clock shows that."""
        return self.best_clock.is_older(written_ms, bound_ms)

    @property
    def clock_words(self) -> tuple[str, ...]:
        """What is wrong, or may be, with the clocks by which ages were measured."""
        words = self.best_clock.off
        return () if words is None else (words,)

    def is_whole(self, since_ms: int) -> bool:
        """Return whether compaction took nothing of what happened since then."""
        return self.log.whole_from_ms <= max(since_ms, -1)

    def lost(self, since_ms: int, what: str) -> Unseen | None:
        """Return that the log may have lost what happened since then, which would show `what`."""
        if self.is_whole(since_ms):
            return None
        left = f"compaction left only a part of the records before {utc(self.log.whole_from_ms)}"
        return Unseen(HISTORY, "COMPACTED", f"{what} is not known: {left}")

    @property
    def recent(self) -> list[Event]:
        return [event for event in self.history or () if event.timestamp_ms >= self.since_ms]

    @property
    def completed_ms(self) -> int:
        """When the newest rebalance in the history was complete; -1 where it has none."""
        ended = (e.timestamp_ms for e in self.history or () if e.kind is Kind.REBALANCE_COMPLETED)
        return max(ended, default=-1)

    @property
    def starts(self) -> list[Event]:
        """The rebalances that began, oldest first; none of a classic group: no record shows them."""
        # Where compaction left one record of an epoch, it is that of the newest.
        kinds = (Kind.REBALANCE_STARTED, Kind.GROUP_CREATED)
        return [e for e in self.history or () if e.kind in kinds and self.group.type != CLASSIC]

    @property
    def open_commits(self) -> Mapping[int, Sequence[Committed]]:
        """The offsets that are held open, by the producer of their transaction, by the log."""
        by_producer = {
            producer: [commit for partition, commit in those.items() if partition in self.pending]
            for producer, those in self.log.pending.items()
        }
        return {producer: those for producer, those in by_producer.items() if those}

    @property
    def open_since_ms(self) -> int | None:
        """When the first of them was written."""
        commits = (commit for those in self.open_commits.values() for commit in those)
        return min((commit.timestamp_ms for commit in commits), default=None)

    @property
    def rebalanced_throughout(self) -> bool:
        """Whether it was seen rebalancing until patience ran out."""
        return self.rebalances and 0 < self.patience_s <= self.seen_for_s

    @property
    def unsettled(self) -> bool:
        """Whether a second poll may show what one cannot."""
        return self.rebalances or bool(self.pending)

    @property
    def rebalances(self) -> bool:
        """Whether a classic group waits for its members; a consumer group keeps reading meanwhile."""
        return self.group.type == CLASSIC and self.group.state in REBALANCING


def missed(look: str, error: KgroupError) -> Unseen:
    """Return that a look failed, and why."""
    return Unseen(look, code_name(error), error.message)


def seen_once(what: str) -> Unseen:
    """Return what one look cannot tell."""
    return Unseen(SECOND_LOOK, "SEEN_ONCE", what)


def gather(
    cluster: ClusterView,
    facts: list[Facts],
    add_history: Callable[[Sequence[Facts]], list[Facts]],
    held: Mapping[str, frozenset[TopicPartition]],
) -> list[Facts]:
    """Return the facts with every poll that is not excluded, for all of these groups together.

    `held` are the offsets that were seen held open as all committed ones were read.
    """
    looks = (
        (SETTINGS, partial(_settings, cluster)),
        (HISTORY, add_history),
        (TRANSACTIONS, partial(_pending, cluster, held)),
    )
    for look, take in looks:
        if facts and look not in facts[0].left_out:
            facts = take(facts)
    return facts


def settle(
    cluster: ClusterView, facts: Sequence[Facts], patience_s: float
) -> tuple[list[Facts], frozenset[str]]:
    """Poll all groups again where time shows more; then note what remains unknown.

    Return the groups that finished rebalancing meanwhile, too: who owns what, and reads on, was not seen of
    them.
    """
    settled = _look_again(cluster, facts, patience_s)
    moved = frozenset(
        before.group.group_id
        for before, now in zip(facts, settled, strict=True)
        if before.rebalances and not now.rebalances
    )
    held = {
        f.group.group_id: TopicPartition(OFFSETS_TOPIC, f.group.offsets_partition)
        for f in settled
        if f.pending and f.group.offsets_partition is not None
    }
    # Owners of offsets held open support a finding, and decide nothing.
    transactions = seen_transactions(cluster, held.values())
    known = []
    for group_facts in settled:
        group_facts = group_facts.also(*_opaque(group_facts))
        by_id = held.get(group_facts.group.group_id)
        owners = {} if by_id is None else {"transactions": transactions.get(by_id, ())}
        known.append(
            group_facts.also(*(_undecided(group_facts) if LAG not in group_facts.left_out else ()), **owners)
        )
    return known, moved


def _opaque(facts: Facts) -> Iterator[Unseen]:
    """Yield that some members' work is not reported in a known form.

    The description's errors already name bytes that were not understood, and ends that could not be read,
    with their codes.
    """
    members = facts.group.known_members
    opaque = [member for member in members if not member.work_known and not member.undecoded]
    if opaque and not facts.rebalances and ASSIGNMENTS not in facts.left_out:
        what = f"what {len(opaque)} of {count_of(len(members), 'member')} run is not reported in a known form"
        yield Unseen(ASSIGNMENTS, "NOT_READABLE", what)


def _undecided(facts: Facts) -> Iterator[Unseen]:
    """Yield what is not known of partitions, the same reason once; a look that failed has said so itself.

    What was left out is not missed.
    """
    failed = {(unseen.look, unseen.code) for unseen in facts.unseen}
    unknown = grouped(
        ((status.unseen.look, status.unseen.code), (partition, status.unseen.message))
        for partition, _, status in facts.with_status(PartitionStatus.UNLEADERED, PartitionStatus.UNKNOWN)
        if status.unseen is not None
    )
    ends = any(error.item == "offsets" for error in facts.group.errors)
    for (look, code), said in unknown.items():
        if look in facts.left_out or (look, code) in failed or (ends and look in DESCRIBED):
            continue
        more = f" and {len(said) - 1} more" if len(said) > 1 else ""
        yield Unseen(LAG, code, f"the status of {said[0][0]}{more} is unknown: {said[0][1]}")


def _settings(cluster: ClusterView, facts: Sequence[Facts]) -> list[Facts]:
    """Read when offsets of empty groups, and sessions of absent members, expire, where that matters."""
    setting = asked_once(cluster)
    return [_with_retention(_with_session(cluster, f, setting), setting) for f in facts]


def _with_session(cluster: ClusterView, facts: Facts, setting: AskBroker) -> Facts:
    group = facts.group
    if all(member.state != MemberStatus.LEFT for member in group.known_members):
        return facts
    timeout: str | KgroupError | None
    try:
        timeout = {own.name: own.value for own in group_settings(cluster, group.group_id)}.get(
            SESSION_TIMEOUT
        )
    except KgroupError as error:
        timeout = error
        # Before 4.0 groups have no settings of their own.
        if code_name(error) == ErrorCode.UNSUPPORTED_VERSION.name and group.coordinator is not None:
            timeout = setting(group.coordinator.id, f"group.{SESSION_TIMEOUT}")
    if isinstance(timeout, KgroupError):
        return facts.also(missed(SESSION_TIMEOUT, timeout))
    return facts.also(session_ms=number_of(timeout) or None)


def _with_retention(facts: Facts, setting: AskBroker) -> Facts:
    group = facts.group
    if group.coordinator is None or group.type == SHARE or group.member_count != 0 or not group.row_count:
        return facts
    node = group.coordinator.id
    minutes = setting(node, OFFSETS_RETENTION)
    if isinstance(minutes, KgroupError):
        return facts.also(missed(OFFSETS_RETENTION, minutes))
    if (number := number_of(minutes)) is None:
        return facts.also(Unseen(OFFSETS_RETENTION, "NOT_TOLD", f"broker {node} does not report it"))
    return facts.also(retention_ms=number * 60_000)


def _pending(
    cluster: ClusterView, held: Mapping[str, frozenset[TopicPartition]], facts: Sequence[Facts]
) -> list[Facts]:
    """Read the offsets held open, from the coordinator, or from the log where the broker is too old.

    The log also names offsets that were never committed before, for which no coordinator would be asked.
    """
    asked: dict[str, Collection[TopicPartition] | None] = {}
    for group_facts in facts:
        group, logged = group_facts.group, _pending_in_log(group_facts)
        requested: Collection[TopicPartition] | None = logged
        if group.type != SHARE:
            # Unless partitions are named, a broker silently omits those the caller may not describe: request
            # all committed ones (None) only where there are no others.
            others = logged or not group.row_count == group.committed_count > 0
            requested = {*group.places, *logged} if others else None
        if requested or (requested is None and group.group_id not in held):
            asked[group.group_id] = requested
    reported = {**held, **unstable(cluster, asked)}
    return [_with_pending(f, reported.get(f.group.group_id, frozenset())) for f in facts]


def _with_pending(facts: Facts, reported: frozenset[TopicPartition] | KgroupError) -> Facts:
    if not isinstance(reported, KgroupError):
        return facts.also(pending=reported) if reported else facts
    logged = facts.also(pending=_pending_in_log(facts))
    told = facts.state is not None and _too_old(reported)
    return logged if told else logged.also(missed(HELD_OPEN, reported))


def _pending_in_log(facts: Facts) -> frozenset[TopicPartition]:
    return frozenset(partition for partitions in facts.log.pending.values() for partition in partitions)


def _look_again(cluster: ClusterView, facts: Sequence[Facts], patience_s: float) -> list[Facts]:
    """Poll again: one poll cannot distinguish a rebalance or transaction that just began from a stuck one."""
    clock = cluster.retry.clock
    start = clock()
    newest = {f.group.group_id: f for f in facts}
    waiting = [f for f in facts if f.unsettled]
    failed: dict[str, list[KgroupError]] = {}
    # The first poll is done already.
    for _ in islice(cluster.retry.looks(INTERVAL_S, patience_s) if waiting else (), 1, None):
        names = [f.group.group_id for f in waiting if f.rebalances]
        held = {f.group.group_id: f.pending for f in waiting if f.pending}
        now = or_error(names, partial(groups_only, cluster, names))
        open_now = or_error(held, partial(unstable, cluster, held))
        passed_s = clock() - start
        for group_facts in waiting:
            name = group_facts.group.group_id
            polled = now.get(name), open_now.get(name)
            newest[name] = _again(group_facts, *polled, passed_s)
            failed[name] = [error for error in polled if isinstance(error, KgroupError)]
        waiting = [newest[f.group.group_id] for f in waiting]
        waiting = [f for f in waiting if f.unsettled]
        untellable = {name for name, errors in failed.items() if any(map(_too_old, errors))}
        if all(not f.rebalances and f.group.group_id in untellable for f in waiting):
            # Waiting for these would be in vain: their broker never reports what is held open.
            break
    for group_facts in waiting:
        name = group_facts.group.group_id
        newest[name] = group_facts.also(*_never_told(group_facts, failed.get(name, ())))
    return list(newest.values())


def _never_told(facts: Facts, failed: Iterable[KgroupError]) -> Iterator[Unseen]:
    """Yield where nothing showed whether a rebalance, or a transaction, makes progress."""
    if facts.patience_s <= 0 and facts.rebalances:
        yield seen_once(
            f"it is {facts.group.state}: observed once; cannot tell whether it is making progress"
        )
    if facts.patience_s <= 0 and facts.pending and not _is_aged(facts):
        yield seen_once(f"{_held(facts)}: observed once; cannot tell for how long")
    for error in failed:
        if facts.state is not None and _too_old(error):
            yield seen_once(f"{_held(facts)} in the log: seen once, {error.message}")
        else:
            yield missed(SECOND_LOOK, error)


def _is_aged(facts: Facts) -> bool:
    """Return whether the log shows that offsets are held open for long, or that they are not."""
    if (since_ms := facts.open_since_ms) is None:
        return facts.state is not None  # it began after the log was read
    return facts.is_older(since_ms, OPEN_S * 1000) is not None


def _again(
    facts: Facts,
    group: GroupDescription | KgroupError | None,
    still_open: frozenset[TopicPartition] | KgroupError | None,
    passed_s: float,
) -> Facts:
    """Return what another poll shows, and for how long by now."""
    looks: dict[str, object] = {}
    if isinstance(group, GroupDescription):
        looks["seen_for_s"] = passed_s
        if group.state not in REBALANCING:
            looks["group"] = replace(facts.group, state=group.state)
    if isinstance(still_open, frozenset):
        looks |= {"open_for_s": passed_s, "pending": facts.pending & still_open}
    return facts.also(**looks)


def _held(facts: Facts) -> str:
    return f"a transaction holds offsets of {count_of(len(facts.pending), 'partition')} open"


def _too_old(error: KgroupError) -> bool:
    return code_name(error) == ErrorCode.UNSUPPORTED_VERSION.name
