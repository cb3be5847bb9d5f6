"""The facts of a check-up, gathered for many groups at once: each offsets partition is read once for all.

A poll that fails is noted with its reason for every group it was for, and the verdict accounts for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import CLASSIC, REBALANCING, SHARE, Finding, GroupDescription, Node, OffsetRow
from kgroup.admin.read.broker_clock import Clock
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.open_transactions import OpenTransaction, open_transactions, unstable
from kgroup.admin.refusals import code_name
from kgroup.admin.settings import OFFSETS_RETENTION, asked_once, group_settings, number_of
from kgroup.admin.statuses import PartitionStatus, Status, Unseen
from kgroup.domain import OFFSETS_TOPIC, MemberStatus, TopicPartition, count_of, grouped, place_of
from kgroup.errors import ErrorCode, KgroupError

if TYPE_CHECKING:
    from kgroup.history.fold.events import Event
    from kgroup.history.fold.restarts import Restart
    from kgroup.history.fold.state import GroupState

T = TypeVar("T")
Placed: TypeAlias = tuple[TopicPartition, OffsetRow]
ByStatus: TypeAlias = "Mapping[PartitionStatus | None, Sequence[Placed]]"
HISTORY, SETTINGS, TRANSACTIONS = "history", "settings", "transactions"
LAG, ASSIGNMENTS = "lag", "assignments"
LOOKS = (HISTORY, SETTINGS, TRANSACTIONS, LAG, ASSIGNMENTS)
"""The polls that may be excluded: then nothing is reported about what they show."""
SESSION_TIMEOUT = "consumer.session.timeout.ms"
DESCRIBED = ("offsets", "log ends", "stable offset")
"""Looks whose failures a description reports among its errors."""
SECOND_LOOK, INTERVAL_S = "a second look", 1.0


@dataclass(frozen=True, slots=True)
class Going:
    """The retention of records, and when the oldest unread one was written (ms); None if unreadable."""

    retention_ms: int
    written_ms: int | None


@dataclass(frozen=True, slots=True)
class Still:
    """For how long members of a share group finished no record, and the partitions whose records wait.

    `lags` are those at the first poll and at the last.
    """

    seconds: float
    lags: Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Grown:
    """The growth of a share group's lag while its members finished records, and the time it took."""

    seconds: float
    first: int
    last: int


@dataclass(slots=True)
class DeliveryLog:
    """A share group's released or given-up deliveries in the log.

    `complete_from_ms` is the time from which nothing is missing; -1 if nothing ever was.
    """

    events: list[Event] = field(default_factory=list)
    complete_from_ms: int = -1
    damaged: str | None = None


@dataclass(slots=True)
class Facts:
    """The facts about one group; None is what could not be polled, or was excluded.

    `history` are the events the log still holds, `state` the group in its records without committed offsets,
    `committed_ms` when the partitions of its members were last committed, `gone` those of deleted topics,
    `restarts` its static members that rejoined after their session. `pending` are offsets that a transaction
    holds open. `seen_for_s` is the time between the first and last poll that saw the group rebalancing,
    `open_for_s` the same for those offsets; failed polls add nothing to either. `holding` are the open
    transactions that hold readers back, `going` the partitions whose unread records are about to be deleted,
    `rebuilt` those committed for a former topic of the same name. `one_leader` leads all partitions that
    stand still, and none that is read; `untransacted` is that no transaction can be stored. `still` are
    records that members of a share group did not finish, `fruitless` the partitions of which none of so many
    members that came and went committed anything, `grown` its lag's growth although they finished some,
    `delivered` the deliveries in its log, and `delivery_limit` how often it may deliver a record.
    """

    group: GroupDescription
    now_ms: int
    since_ms: int
    patience_s: float
    left_out: frozenset[str] = frozenset()
    unseen: list[Unseen] = field(default_factory=list)
    history: Sequence[Event] | None = None
    state: GroupState | None = None
    committed_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    gone: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    restarts: Sequence[Restart] = ()
    session_ms: int | None = None
    retention_ms: int | None = None
    max_size: int | KgroupError | None = None
    rebuilt: frozenset[TopicPartition] = frozenset()
    holding: Mapping[TopicPartition, tuple[OpenTransaction, ...]] = field(default_factory=dict)
    going: Mapping[TopicPartition, Going] = field(default_factory=dict)
    gone_topics: frozenset[str] = frozenset()
    pending: frozenset[TopicPartition] = frozenset()
    transactions: tuple[OpenTransaction, ...] = ()
    seen_for_s: float = 0.0
    open_for_s: float = 0.0
    clock: Clock | None = None
    one_leader: Node | None = None
    untransacted: Finding | None = None
    still: Still | None = None
    fruitless: Mapping[TopicPartition, int] = field(default_factory=dict)
    grown: Grown | None = None
    delivered: DeliveryLog | None = None
    delivery_limit: int | None = None
    _placed: tuple[Sequence[OffsetRow], ByStatus] | None = None

    @property
    def rows(self) -> Iterator[Placed]:
        """The group's partitions, each with its row, in order."""
        return ((place_of(row.topic, row.partition), row) for row in self.group.offsets)

    @property
    def by_status(self) -> ByStatus:
        """The same by status; those without one, of groups whose lag was not judged, under None."""
        rows = self.group.offsets  # another poll has others
        if self._placed is None or self._placed[0] is not rows:
            by_name: dict[PartitionStatus | None, list[Placed]] = {}
            last: object = self
            those: list[Placed] = []
            for placed in self.rows:
                status = placed[1].status
                if status is not last:  # rows of a group share few statuses
                    last, those = status, by_name.setdefault(None if status is None else status.name, [])
                those.append(placed)
            self._placed = rows, by_name
        return self._placed[1]

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
    def alike(self) -> Iterator[tuple[Status, list[TopicPartition]]]:
        """The partitions with the same status that matter as much, with that of the first of them."""
        if (rows := self.group.to_make) is not None:
            yield from rows.by_status.items()
            return
        for name in (name for name in self.by_status if name is not None):
            by_weight = grouped(
                (status.weight, (place, status)) for place, _, status in self.with_status(name)
            )
            for those in by_weight.values():
                yield those[0][1], [place for place, _ in those]

    def age_ms(self, written_ms: int) -> int:
        """Return the minimum age of a coordinator's record, by the brokers' clock where that is known."""
        return (self.clock or Clock(self.now_ms)).age_ms(written_ms)

    @property
    def clock_words(self) -> tuple[str, ...]:
        """What is wrong, or may be, with the clocks by which ages were measured."""
        words = self.clock.off if self.clock is not None else None
        return () if words is None else (words,)

    @property
    def recent(self) -> list[Event]:
        return [event for event in self.history or () if event.timestamp_ms >= self.since_ms]

    @property
    def completed_ms(self) -> int:
        """When the newest rebalance in the history was complete; -1 where it has none."""
        from kgroup.history.fold.events import Kind

        done = (e.timestamp_ms for e in self.history or () if e.kind == Kind.REBALANCE_COMPLETED)
        return max(done, default=-1)

    @property
    def rebalanced_throughout(self) -> bool:
        """Whether it was seen rebalancing until patience ran out."""
        return self.rebalances and 0 < self.patience_s <= self.seen_for_s

    @property
    def open_throughout(self) -> bool:
        """Whether its offsets were seen held open until patience ran out."""
        return bool(self.pending) and 0 < self.patience_s <= self.open_for_s

    @property
    def unsettled(self) -> bool:
        """Whether a second poll may show what one cannot."""
        return self.rebalances or bool(self.pending)

    @property
    def rebalances(self) -> bool:
        """Whether a classic group waits for its members; a consumer group keeps reading meanwhile."""
        return self.group.type == CLASSIC and self.group.state in REBALANCING

    def miss(self, look: str, error: KgroupError) -> None:
        self.unseen.append(Unseen(look, code_name(error), error.message))

    def seen_once(self, what: str) -> None:
        self.unseen.append(Unseen(SECOND_LOOK, "SEEN_ONCE", what))


def gather(
    cluster: ClusterView, facts: Sequence[Facts], add_history: Callable[[Sequence[Facts]], None]
) -> None:
    """Add the facts of every poll that is not excluded, for all of these groups together."""
    for look, take in _LOOKS:
        chosen = [each for each in facts if look not in each.left_out]
        if not chosen:
            continue
        if take is None:
            add_history(chosen)
        else:
            take(cluster, chosen)


def settle(cluster: ClusterView, facts: Sequence[Facts], patience_s: float) -> list[Facts]:
    """Poll all groups again where time shows more; then note what remains unknown.

    Return the groups that finished rebalancing meanwhile: who owns what, and reads on, was not seen of them.
    """
    settled = _look_again(cluster, facts, patience_s)
    for group_facts in facts:
        group = group_facts.group
        # The description's errors already name bytes that were not understood, and ends that could not be
        # read, with their codes.
        opaque = [m for m in group.known_members if not m.work_known and not m.undecoded]
        if opaque and not group_facts.rebalances and ASSIGNMENTS not in group_facts.left_out:
            what = (
                f"what {len(opaque)} of {count_of(len(group.known_members), 'member')} run is not "
                f"reported in a known form"
            )
            group_facts.unseen.append(Unseen(ASSIGNMENTS, "NOT_READABLE", what))
        if LAG not in group_facts.left_out:
            group_facts.unseen += _undecided(group_facts)
    held = {
        each.group.group_id: TopicPartition(OFFSETS_TOPIC, each.group.offsets_partition)
        for each in facts
        if each.pending and each.group.offsets_partition is not None
    }
    try:
        transactions = open_transactions(cluster, held.values()) if held else {}
    except KgroupError:
        transactions = {}  # owners of offsets held open support a finding, and decide nothing
    for group_facts in facts:
        if group_facts.group.group_id in held:
            group_facts.transactions = transactions.get(held[group_facts.group.group_id], ())
    return settled


def _undecided(facts: Facts) -> Iterator[Unseen]:
    """Yield what is not known of partitions, the same reason once; a look that failed has said so itself."""
    failed = {(each.look, each.code) for each in facts.unseen}
    unknown = grouped(
        ((status.unseen.look, status.unseen.code), (partition, status.unseen.message))
        for partition, _, status in facts.with_status(PartitionStatus.UNLEADERED, PartitionStatus.UNKNOWN)
        if status.unseen is not None
    )
    ends = any(error.item == "offsets" for error in facts.group.errors)
    for (look, code), said in unknown.items():
        if (look, code) in failed or (ends and look in DESCRIBED):
            continue
        more = f" and {len(said) - 1} more" if len(said) > 1 else ""
        yield Unseen(LAG, code, f"the status of {said[0][0]}{more} is unknown: {said[0][1]}")


def _settings(cluster: ClusterView, facts: Sequence[Facts]) -> None:
    """Read when offsets of empty groups, and sessions of absent members, expire, where that matters."""
    setting = asked_once(cluster)
    for group_facts in facts:
        group = group_facts.group
        if any(member.state == MemberStatus.LEFT for member in group.known_members):
            try:
                values = {setting.name: setting.value for setting in group_settings(cluster, group.group_id)}
                group_facts.session_ms = number_of(values.get(SESSION_TIMEOUT)) or None
            except KgroupError as error:
                group_facts.miss(SESSION_TIMEOUT, error)
        if group.coordinator is None or group.type == SHARE or group.member_count != 0 or not group.row_count:
            continue
        node = group.coordinator.id
        minutes = setting(node, OFFSETS_RETENTION)
        if isinstance(minutes, KgroupError):
            group_facts.miss(OFFSETS_RETENTION, minutes)
        elif not minutes:
            group_facts.unseen.append(
                Unseen(OFFSETS_RETENTION, "NOT_TOLD", f"broker {node} does not report it")
            )
        else:
            group_facts.retention_ms = int(minutes) * 60_000


def _transactions(cluster: ClusterView, facts: Sequence[Facts]) -> None:
    """Read the offsets held open, from the coordinator, or from the log where the broker is too old.

    The log also names offsets that were never committed before, for which no coordinator would be asked.
    """
    asked: dict[str, Collection[TopicPartition] | None] = {}
    for group_facts in facts:
        if group_facts.state is not None:
            group_facts.pending = frozenset(
                p for partitions in group_facts.state.pending.values() for p in partitions
            )
        group = group_facts.group
        requested: Collection[TopicPartition] | None = group_facts.pending
        if group.type != SHARE:
            # Unless partitions are named, a broker silently omits those the caller may not describe: request
            # all committed ones (None) only where there are no others.
            others = group_facts.pending or not group.row_count == group.committed_count > 0
            requested = {*group.places, *group_facts.pending} if others else None
        if requested is None or requested:
            asked[group.group_id] = requested
    unstable_offsets = unstable(cluster, asked)
    for group_facts in facts:
        pending = unstable_offsets.get(group_facts.group.group_id, frozenset())
        if not isinstance(pending, KgroupError):
            group_facts.pending = pending
        elif group_facts.state is None or not _too_old(pending):
            group_facts.miss("open transactions", pending)


_LOOKS = ((SETTINGS, _settings), (HISTORY, None), (TRANSACTIONS, _transactions))


def _look_again(cluster: ClusterView, facts: Sequence[Facts], patience_s: float) -> list[Facts]:
    """Poll again: one poll cannot distinguish a rebalance or transaction that just began from a stuck one.

    Return the groups that finished rebalancing.
    """
    clock = cluster.retry.clock
    start = clock()
    waiting = [each for each in facts if each.unsettled]
    rebalanced = [each for each in waiting if each.rebalances]
    failed: dict[str, list[KgroupError]] = {}
    # The first poll is done already.
    for _ in islice(cluster.retry.looks(INTERVAL_S, patience_s) if waiting else (), 1, None):
        names = [each.group.group_id for each in waiting if each.rebalances]
        held = {each.group.group_id: each.pending for each in waiting if each.pending}
        now = _or_error(names, partial(groups_only, cluster, names))
        open_now = _or_error(held, partial(unstable, cluster, held)) if held else {}
        for group_facts in waiting:
            name = group_facts.group.group_id
            failed[name] = _again(group_facts, now.get(name), open_now.get(name), clock() - start)
        waiting = [each for each in waiting if each.unsettled]
        untellable = {name for name, errors in failed.items() if any(map(_too_old, errors))}
        if all(not each.rebalances and each.group.group_id in untellable for each in waiting):
            # Waiting for these would be in vain: their broker never reports what is held open.
            break
    for group_facts in waiting:
        # Note where nothing showed whether a rebalance, or a transaction, makes progress.
        if group_facts.patience_s <= 0 and group_facts.rebalances:
            group_facts.seen_once(
                f"it is {group_facts.group.state}: observed once; cannot tell whether it is making progress"
            )
        if group_facts.patience_s <= 0 and group_facts.pending and group_facts.state is None:
            group_facts.seen_once(f"{_held(group_facts)}: observed once; cannot tell for how long")
        for error in failed.get(group_facts.group.group_id, ()):
            if group_facts.state is not None and _too_old(error):
                group_facts.seen_once(f"{_held(group_facts)} in the log: seen once, {error.message}")
            else:
                group_facts.miss(SECOND_LOOK, error)
    return [each for each in rebalanced if not each.rebalances]


def _or_error(names: Iterable[str], ask: Callable[[], Answers[T]]) -> Answers[T]:
    """Return the answers, or the one reason for all of them why there are none."""
    try:
        return ask()
    except KgroupError as error:
        return dict.fromkeys(names, error)


def _again(
    facts: Facts,
    group: GroupDescription | KgroupError | None,
    still_open: frozenset[TopicPartition] | KgroupError | None,
    passed_s: float,
) -> list[KgroupError]:
    """Note what another poll shows and for how long by now, or why it failed."""
    if isinstance(group, GroupDescription):
        facts.seen_for_s = passed_s
        if group.state not in REBALANCING:
            facts.group = replace(facts.group, state=group.state)
    if isinstance(still_open, frozenset):
        facts.open_for_s = passed_s
        facts.pending &= still_open
    return [error for error in (group, still_open) if isinstance(error, KgroupError)]


def _held(facts: Facts) -> str:
    return f"a transaction holds offsets of {count_of(len(facts.pending), 'partition')} open"


def _too_old(error: KgroupError) -> bool:
    return code_name(error) == ErrorCode.UNSUPPORTED_VERSION.name
