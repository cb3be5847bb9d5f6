"""One look at all groups: their check-ups, and what these are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgroup.admin.diagnose.doctor import PATIENCE_S, Checkup, examine_all
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import Description, ItemError, Node
from kgroup.admin.read.lag_report import GroupLag, in_time, report_of
from kgroup.admin.read.offsets import EARLIEST, ListedOffset, list_offsets
from kgroup.admin.read.today import today
from kgroup.admin.recording.growing_past import GrowingPast
from kgroup.admin.recording.lags import lines_of
from kgroup.admin.recording.lines import (
    Ends,
    Judged,
    Line,
    Looked,
    Members,
    NotJudged,
    Person,
    World,
    about,
    content,
)
from kgroup.admin.refusals import item_error
from kgroup.admin.statuses import LAG
from kgroup.domain import TopicPartition, grouped, uuid_bytes
from kgroup.errors import ErrorCode, KgroupError
from kgroup.history.fold.explain import CAUSES
from kgroup.history.fold.removals import Today

Find = Callable[[ClusterView], tuple[Sequence[str], Sequence[ItemError]]]
"""The selected groups now, and why there may be more of them."""
ABSENT = ErrorCode.GROUP_ID_NOT_FOUND.name


@dataclass(frozen=True, slots=True)
class Terms:
    """How to look: as the options of `doctor`, and at which interval."""

    interval_ms: int = 10_000
    window_ms: int = 3_600_000
    left_out: tuple[str, ...] = ()
    patience_s: float = PATIENCE_S


@dataclass(frozen=True, slots=True)
class Look:
    """What one look showed. `errors` are the groups that could not be described, `unseen` why there may be
    more, and `hidden` those that were there before. `starts` are where the logs begin, `rebalanced` are the
    offsets of the groups' last rebalances; `failed` is why nothing was seen at all. `world` has the topics.
    """

    at_ms: int
    checkups: Mapping[str, Checkup] = field(default_factory=dict)
    facts: Mapping[str, Facts] = field(default_factory=dict)
    errors: Mapping[str, ItemError] = field(default_factory=dict)
    unseen: tuple[ItemError, ...] = ()
    hidden: tuple[str, ...] = ()
    lags: Mapping[str, GroupLag] = field(default_factory=dict)
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    rebalanced: Mapping[str, int] = field(default_factory=dict)
    brokers: tuple[Node, ...] = ()
    world: Today = field(default_factory=Today)
    failed: ItemError | None = None


def look(cluster: ClusterView, find: Find, terms: Terms, past: GrowingPast) -> Look:
    """Examine all groups that `find` returns, now."""
    facts: dict[str, Facts] = {}
    began_ms = cluster.now_ms()

    def keep(group_facts: Facts) -> None:
        facts[group_facts.group.group_id] = group_facts

    try:
        names, unseen = find(cluster)
        alive = cluster.brokers()
        # A cluster may have very many topics: they are requested once a look.
        world = today(cluster, alive[0].id if alive else None)
        past.look_for(names, began_ms - terms.window_ms, ids_of(world))
        examined = examine_all(
            cluster,
            names,
            window_ms=terms.window_ms,
            left_out=terms.left_out,
            patience_s=terms.patience_s,
            past=past,
            seen=keep,
        )
        brokers = cluster.brokers()
        lags = {} if LAG in terms.left_out else _lags(cluster, facts, began_ms)
        starts = _starts(cluster, facts)
    except KgroupError as error:
        return Look(cluster.now_ms(), failed=item_error("cluster", error))
    return Look(
        cluster.now_ms(),
        {checkup.group.group_id: checkup for checkup in examined.checkups},
        facts,
        {error.item: error for error in examined.errors},
        tuple(unseen),
        lags=lags,
        starts=starts,
        rebalanced={name: rebalanced(group_facts) for name, group_facts in facts.items()},
        brokers=brokers,
        world=replace(world, seen_ms=began_ms),
    )


def ids_of(world: Today) -> dict[bytes, str] | None:
    """Return the names of all topics by id; None where they are not known, or have no ids."""
    if world.topics is None or not all(world.topics.values()):
        return None
    return {uuid_bytes(id_): name for name, id_ in world.topics.items()}


def rebalanced(facts: Facts) -> int:
    """Return the offset of the record of a group's last rebalance; -1 if none is known."""
    return max((e.offset for e in facts.history or () if e.kind in CAUSES["rebalance"]), default=-1)


def _lags(cluster: ClusterView, facts: Mapping[str, Facts], asked_ms: int) -> dict[str, GroupLag]:
    described = Description(tuple(group_facts.group for group_facts in facts.values()))
    try:
        report = in_time(cluster, described, asked_ms)
    except KgroupError:
        report = report_of(described)  # no record could be read: only the times are unknown
    return {lag.group_id: lag for lag in report.groups}


def _starts(cluster: ClusterView, facts: Mapping[str, Facts]) -> dict[TopicPartition, int]:
    places = {partition for group_facts in facts.values() for partition, _ in group_facts.rows}
    try:
        starts = list_offsets(cluster, dict.fromkeys(places, EARLIEST))
    except KgroupError:
        return {}  # unknown, as where a partition's own answer fails
    return {partition: at.offset for partition, at in starts.items() if isinstance(at, ListedOffset)}


def after(before: Look | None, now: Look) -> Look:
    """Return a look with the groups that it hides: they were there at the look before."""
    if before is None or not (now.unseen or now.failed):
        return now
    names = (before.checkups.keys() | set(before.hidden)) - now.checkups.keys() - now.errors.keys()
    return replace(now, hidden=tuple(sorted(names)))


class Known:
    """What the lines of a file say already; `lines` returns what a look adds."""

    def __init__(self) -> None:
        self._said: dict[tuple[object, ...], object] = {}

    def lines(self, now: Look, terms: Terms, unread: str | None) -> list[Line]:
        """Return the lines of a look, the one that ends it last."""
        if now.failed is not None:
            return [Looked(now.at_ms, now.at_ms, terms.interval_ms, True, (now.failed,), unread)]
        began_ms = now.at_ms if now.world.seen_ms is None else now.world.seen_ms
        ended = Looked(now.at_ms, began_ms, terms.interval_ms, False, now.unseen, unread)
        return [*self.new(self._judged(now)), *self.new(_seen(now)), ended]

    def new(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines that say something else than the last ones about the same."""
        for line in lines:
            key, said = about(line), content(line)
            if self._said.get(key) != said:
                self._said[key] = said
                yield line

    def _judged(self, now: Look) -> list[Judged | NotJudged]:
        lines: dict[str, Judged | NotJudged] = {
            name: Judged.of(checkup, now.at_ms) for name, checkup in now.checkups.items()
        }
        for name, error in now.errors.items():
            lines[name] = NotJudged(now.at_ms, name, None if error.code == ABSENT else error)
        for before in self._said.values():
            if isinstance(before, Judged | NotJudged) and (name := before.group_id) not in lines:
                gone = isinstance(before, NotJudged) and before.error is None
                lines[name] = NotJudged(now.at_ms, name, None if gone else _not_listed(name, now.unseen))
        return [*lines.values()]


def _seen(now: Look) -> Iterator[Line]:
    """Yield all that a look saw besides the check-ups."""
    for name, facts in now.facts.items():
        yield Members(now.at_ms, name, _people(facts))
    ends = {partition: row.log_end_offset for facts in now.facts.values() for partition, row in facts.rows}
    logs = ((p.topic, (p.partition, now.starts.get(p), ends[p])) for p in sorted(ends))
    for topic, rows in grouped(logs).items():
        yield Ends(now.at_ms, topic, *zip(*rows, strict=True))
    for lag in now.lags.values():
        yield from lines_of(now.at_ms, lag, ends)
    topics = None if now.world.topics is None else tuple(sorted(now.world.topics.items()))
    yield World(now.at_ms, topics, now.world.retention_ms)


def _not_listed(name: str, unseen: Sequence[ItemError]) -> ItemError | None:
    """Return why it is unknown whether a group that is not listed exists; None where all groups are seen."""
    if not unseen:
        return None
    return ItemError(name, "NOT_SEEN", f"{name} is not listed, and not all groups are: {unseen[0].message}")


def _people(facts: Facts) -> tuple[Person, ...] | None:
    if facts.group.members is None:
        return None
    return tuple(
        sorted(
            (Person(m.member_id, m.instance_id, m.client_id, m.host) for m in facts.group.members),
            key=lambda person: person.member_id,
        )
    )
