"""A check-up of groups: findings of their descriptions, settings, history and a second poll.

The verdict is healthy only when every poll succeeded and found no error. A failed poll makes it unknown; one
that the operator excludes does not (docs/decisions/0025-what-healthy-means.md).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from kgroup.admin.diagnose.brokers_side import look_at_the_brokers
from kgroup.admin.diagnose.checks import Diagnosis, diagnoses, unshown
from kgroup.admin.diagnose.deleted_offsets import look_for_their_topics
from kgroup.admin.diagnose.deliveries import look_at_deliveries, undelivered
from kgroup.admin.diagnose.facts import Facts, gather, settle
from kgroup.admin.diagnose.given_up import look_at_delivery_limits
from kgroup.admin.diagnose.group_size import look_at_the_limits
from kgroup.admin.diagnose.held_open import look_at_what_is_held_open
from kgroup.admin.diagnose.histories import Past
from kgroup.admin.diagnose.pace import judge_pace
from kgroup.admin.diagnose.reading import judge
from kgroup.admin.diagnose.sharing import course_of
from kgroup.admin.diagnose.unread import look_at_the_unread
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import CONVERGING, GroupDescription, ItemError
from kgroup.admin.read.broker_clock import clocks_of
from kgroup.admin.read.describe import describe_each
from kgroup.admin.refusals import item_error
from kgroup.admin.statuses import (
    ERROR,
    HISTORY,
    LAG,
    SETTINGS,
    TRANSACTIONS,
    WEIGHTS,
    PartitionStatus,
    Unseen,
    Weight,
)
from kgroup.domain import TopicPartition
from kgroup.errors import KgroupError

__all__ = ["Checkup", "Diagnosis", "Examined", "Unseen", "examine_all"]
VERDICTS = HEALTHY, SICK, UNKNOWN = "healthy", "sick", "unknown"
PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Alike:
    """The partitions with the same status, how much it matters, and why for the first of them."""

    status: PartitionStatus
    weight: Weight
    partitions: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Checkup:
    """The findings, worst first, the statuses of the partitions, worst first, and what could not be seen."""

    group: GroupDescription
    findings: tuple[Diagnosis, ...]
    unseen: tuple[Unseen, ...]
    statuses: tuple[Alike, ...] = ()

    @cached_property
    def verdict(self) -> str:
        """sick with an error found or as a status; else unknown when a poll failed; else healthy."""
        severities = (*(finding.severity for finding in self.findings), *(s.weight for s in self.statuses))
        if ERROR in severities:
            return SICK
        return UNKNOWN if self.unseen else HEALTHY

    @property
    def healthy(self) -> bool | None:
        """The verdict as yes or no; None for unknown."""
        return None if self.verdict == UNKNOWN else self.verdict == HEALTHY


@dataclass(frozen=True, slots=True)
class Examined:
    """The check-ups in the order requested; `errors` are the groups that could not be described at all."""

    checkups: tuple[Checkup, ...]
    errors: tuple[ItemError, ...] = ()


def examine_all(
    cluster: ClusterView,
    group_ids: Iterable[str],
    *,
    window_ms: int = 3_600_000,
    now_ms: int | None = None,
    left_out: Iterable[str] = (),
    patience_s: float = PATIENCE_S,
    past: Past | None = None,
    seen: Callable[[Facts], None] = lambda facts: None,
) -> Examined:
    """Return a check-up of all these groups together: each offsets partition is read once.

    `window_ms` is how far back history counts. `left_out` are the LOOKS to exclude. A group that is seen
    rebalancing, or with offsets held open, is polled again for up to `patience_s`, and so is a share group
    whose records wait, where its log was not read. One that finished rebalancing by then is examined anew,
    once. `past` is a history that goes on from one check-up to the next, and `seen` gets each group's facts,
    whose rows are not kept.
    """
    names = list(dict.fromkeys(group_ids))
    asked_ms = now_ms
    now_ms = cluster.now_ms() if now_ms is None else now_ms
    without = frozenset(left_out)
    done: dict[str, Checkup] = {}
    waiting: list[Facts] = []
    errors: list[ItemError] = []
    with past or Past(cluster, names) as past:
        ordered = names if HISTORY in without else past.in_order()
        rounds = describe_each(
            cluster,
            ordered,
            expected=SETTINGS not in without,
            now_ms=now_ms,
            held=TRANSACTIONS not in without,
        )
        for described in rounds:
            facts = [
                Facts(group, now_ms, now_ms - window_ms, patience_s, without) for group in described.groups
            ]
            errors += described.errors
            facts = gather(cluster, facts, past.add_to, described.held)
            if SETTINGS not in without:
                facts = look_at_delivery_limits(cluster, facts)
            judged = [course for f in facts if (course := course_of(f)) is not None]
            facts = judge(cluster, facts, judged, past)
            courses = [course for course in judged if course.aged]
            facts = judge_pace(cluster, facts, courses, past)
            for name, look in _LOOKS:
                if name not in without:
                    facts = look(cluster, facts)
            facts = _measure(cluster, facts)
            settled = [f for f in facts if not f.unsettled and not undelivered(f)]
            waiting += [f for f in facts if f.unsettled or undelivered(f)]
            done |= _settled(cluster, settled, patience_s, seen)[0]
            del described, facts, courses, settled  # not kept while the next round is requested
    patient, moved = _settled(cluster, waiting, patience_s, seen)
    done |= patient
    if moved:
        try:
            again = examine_all(
                cluster,
                moved,
                window_ms=window_ms,
                now_ms=asked_ms,
                left_out=without,
                patience_s=0,
                seen=seen,
            )
        except KgroupError as error:
            # What was found of the others stays.
            again = Examined((), tuple(item_error(name, error) for name in moved))
        done |= {checkup.group.group_id: checkup for checkup in again.checkups}
        errors += again.errors
    order = {group: number for number, group in enumerate(names)}
    return Examined(
        tuple(done[group] for group in names if group in done),
        tuple(sorted(errors, key=lambda error: order[error.item])),
    )


def _measure(cluster: ClusterView, facts: list[Facts]) -> list[Facts]:
    """Read the brokers' time, once, where an age decides."""
    aged = {f.group.group_id for f in facts if f.pending or f.group.state in CONVERGING}
    if not aged:
        return facts
    clocks = clocks_of(cluster, facts[0].now_ms, ())
    return [
        f.also(clock=clocks((), f.group.coordinated_by)) if f.group.group_id in aged else f for f in facts
    ]


_LOOKS: tuple[tuple[str, Callable[[ClusterView, list[Facts]], list[Facts]]], ...] = (
    (LAG, look_at_the_unread),
    (LAG, look_at_the_brokers),
    (HISTORY, look_for_their_topics),
    (SETTINGS, look_at_the_limits),
)
"""What is looked at once the statuses are known, unless the look is left out."""


def _settled(
    cluster: ClusterView, facts: list[Facts], patience_s: float, seen: Callable[[Facts], None]
) -> tuple[dict[str, Checkup], list[str]]:
    """Return the check-ups, and the groups to check again: they finished rebalancing while they were."""
    facts, moved = settle(cluster, look_at_deliveries(cluster, facts, patience_s), patience_s)
    facts = look_at_what_is_held_open(cluster, facts)
    done = {}
    for group_facts in facts:
        if group_facts.group.group_id in moved:
            continue
        seen(group_facts)
        group = group_facts.group
        findings = sorted(diagnoses(group_facts), key=lambda each: (-WEIGHTS.index(each.severity), each.code))
        # The check-up names the group with each.
        unread = tuple(
            Unseen(
                "committed offsets" if error.item == group.group_id else error.item,
                error.code,
                error.message.removeprefix(f"{group.group_id}: "),
            )
            for error in group.errors
        )
        # The rows are used up, and are most of what a group takes.
        statuses = tuple(_alike(group_facts))
        done[group.group_id] = Checkup(
            replace(group, offsets=()),
            tuple(findings),
            (*unread, *group_facts.unseen, *unshown(group_facts)),
            statuses,
        )
    return done, sorted(moved)


def _alike(facts: Facts) -> list[Alike]:
    """Return the statuses of a group's partitions, worst first."""
    worst_first = sorted(facts.alike, key=lambda alike: (-WEIGHTS.index(alike[0].weight), alike[1][0]))
    return [
        Alike(status.name, status.weight, _names(tuple(places)), status.why) for status, places in worst_first
    ]


@lru_cache(maxsize=1 << 7)
def _names(places: tuple[TopicPartition, ...]) -> tuple[str, ...]:
    """Return one object for the groups that have the same partitions."""
    return tuple(map(str, places))
