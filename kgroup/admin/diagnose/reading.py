"""The statuses that only the history decides: whether a partition's reader goes on.

A description leaves them open, and says so. Time is judged by records: how long the oldest unread one has
waited, beside how long the group takes with its other partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import nlargest
from itertools import islice, takewhile
from statistics import median_high
from typing import TYPE_CHECKING, TypeAlias

from kgroup.admin.diagnose.commits import KEPT, Key, Learned, Point, Step, steps_of
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.generations import (
    Held,
    came_since,
    emptied_ms,
    ended_ms,
    ends_of,
    hold,
    judge_fruitless,
    last_commits,
    lost_ends,
    mistimed,
    read_of_late,
)
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import CLASSIC, SHARE, OffsetRow
from kgroup.admin.read.broker_clock import BEHIND_MS, EITHER, clocks_of
from kgroup.admin.read.group_facts import ENDS, NOT_READ
from kgroup.admin.read.offsets import ListedOffset
from kgroup.admin.read.open_transactions import OpenTransaction, seen_transactions
from kgroup.admin.read.readable import CLOCK_UNSURE, FUTURE, Came, first_read, future, untimed
from kgroup.admin.read.record_times import Age, times_at
from kgroup.admin.refusals import code_name
from kgroup.admin.statuses import (
    ERROR,
    HISTORY,
    LOOPS,
    OPEN_MS,
    SPAN_MS,
    SUSPECT_MS,
    WARN,
    Loop,
    Owner,
    PartitionFacts,
    PartitionStatus,
    Progress,
    Status,
    Unseen,
    status_of,
    unknown,
)
from kgroup.domain import TopicPartition, grouped
from kgroup.durations import utc
from kgroup.errors import DamagedBatch, KgroupError
from kgroup.history.fold.events import Event, Kind
from kgroup.history.sources.live import LiveTopic

if TYPE_CHECKING:
    from kgroup.admin.diagnose.histories import Past

SOME = 3
"""The number of a partition's own commits in a row that say how often it is committed."""
SAMPLES = 5
"""The number of a group's partitions by which its usual delay is measured."""
LATE_MS = 60_000
"""From this delay on of all that a group reads of a topic, its producers may stamp late instead."""
At: TypeAlias = tuple[TopicPartition, int]
Times: TypeAlias = Mapping[At, Age]
Transactions: TypeAlias = Sequence[OpenTransaction]


def judge(cluster: ClusterView, facts: list[Facts], judged: Sequence[Course], past: Past) -> list[Facts]:
    """Give each partition the status that the history shows, in a few requests per leader for all groups.

    Of groups with a partition that seems to stand still, the commits of the last hour are read one by one.
    Return the facts with these statuses; `judged` are how the groups read.
    """
    courses = [course for course in judged if course.aged]
    if courses:
        _look(cluster, courses, facts[0].now_ms)
    found = {course: _judgements(cluster, course) for course in courses}
    stalled = [course for course in courses if any(course.depends_on_waits(said) for said in found[course])]
    _learn_waits(cluster, stalled, past)
    found |= {course: _judgements(cluster, course) for course in stalled}
    for course in judged:
        said = _agreed(found[course], course.lates) if course in found else {}
        course.facts = with_statuses(course.facts, said | dict(_former(course.facts)))
        if course.fresh:
            course.facts = judge_fruitless(
                cluster, course.facts, course.fresh, course.lates, course.untrusted
            )
        course.facts = course.facts.also(*course.unshown)
    known = {course.facts.group.group_id: course.facts for course in judged}
    return [known.get(f.group.group_id, f) for f in facts]


def _look(cluster: ClusterView, courses: Sequence[Course], now_ms: int) -> None:
    """Read the clocks, the times of records and the open transactions by which groups are judged."""
    clocks = clocks_of(cluster, now_ms, set[TopicPartition]().union(*(course.timed for course in courses)))
    times: dict[At, Age] = {}
    for course in courses:
        course.facts = course.facts.also(clock=clocks(course.timed, course.facts.group.coordinated_by))
        course.times = times
    # What follows from some of them is asked for once they are there.
    for asked in (Course.records, Course.not_yet_written, Course.newest_stamped):
        times |= times_at(cluster, {at for course in courses for at in asked(course)})
    held = {p for course in courses for p, row in course.undecided.items() if _held_back(row)}
    opened = seen_transactions(cluster, held)
    for course in courses:
        course.opened = opened


def _learn_waits(cluster: ClusterView, courses: Sequence[Course], past: Past) -> None:
    """Note how long commits of these groups let records wait of late, or why that is not known."""
    compared = {at for course in courses for at in course.compared_records}
    times = times_at(cluster, compared)
    for course in courses:
        course.learn(times)
    topic = past.topic() if courses else None
    if not isinstance(topic, LiveTopic):
        return
    unread = [course for course in courses if not course.recall(past.steps)]
    newest_ms = {key: ms for course in unread for key, ms in course.compared.items()}
    if not newest_ms:
        return
    steps, missing = steps_of(cluster, topic, newest_ms)
    what = "how often its group commits"
    for course in unread:
        name = course.facts.group.group_id
        since_ms = max(course.compared.values(), default=-1) - SPAN_MS
        course.untold = course.facts.lost(since_ms, what)
        if error := missing.get(name):
            course.untold = Unseen(HISTORY, code_name(error), f"{what}: {error.message}")
        course.steps = steps.get(name, ())
        past.steps[name] = course.suspects, course.steps, course.untold


def _judgements(cluster: ClusterView, course: Course) -> list[dict[TopicPartition, Status]]:
    """Return the statuses by the times of records as they are, and as they may have been meant."""
    return [_by_times(cluster, reading) for reading in (course, *course.mistimed())]


def _by_times(cluster: ClusterView, course: Course) -> dict[TopicPartition, Status]:
    statuses = {partition: course.status(partition, row) for partition, row in course.undecided.items()}
    statuses |= {partition: course.left_behind(partition, row) for partition, row in course.unread.items()}
    return statuses | _fresh(cluster, course)


def _agreed(
    judgements: Sequence[Mapping[TopicPartition, Status]], lates: Sequence[Mapping[str, int]]
) -> dict[TopicPartition, Status]:
    """Return what the times of records say, right or not; unknown where that differs.

    `lates` are how late the records of a topic count as stamped, of each judgement.
    """
    statuses = dict(judgements[0])
    for partition, said in judgements[0].items():
        by_times = [judgement[partition] for judgement in judgements if partition in judgement]
        other = next(
            (status for status in by_times if (status.name, status.weight) != (said.name, said.weight)), said
        )
        if other is not said and said.unseen is None:
            late = lates[1].get(partition.topic) or max(lates[1].values(), key=abs)
            statuses[partition] = other if other.unseen else unknown(mistimed(partition, late))
    return statuses


def with_statuses(facts: Facts, statuses: Mapping[TopicPartition, Status]) -> Facts:
    """Return the facts with these statuses of these partitions."""
    if not statuses:
        return facts
    rows = tuple(
        replace(row, status=statuses[partition]) if partition in statuses else row
        for partition, row in facts.rows
    )
    return facts.also(group=replace(facts.group, offsets=rows))


def undecided(facts: Facts) -> Iterator[tuple[TopicPartition, OffsetRow]]:
    """Yield the partitions whose status the history decides, or a clock that doctor knows better."""
    for partition, row, status in facts.with_status(PartitionStatus.UNKNOWN):
        if status.unseen in (NOT_READ, CLOCK_UNSURE) or _is_future(status):
            yield partition, row


def _is_future(status: Status | None) -> bool:
    """Return whether a record is stamped in the future: that of the oldest unread one may be right."""
    return status is not None and status.unseen is not None and status.unseen.code == FUTURE


def _oldest(row: OffsetRow) -> int | None:
    """Return the offset of the oldest record that waits, or that holds back what can be read."""
    return row.last_stable_offset if _held_back(row) else row.committed_offset


def _untimed(partition: TopicPartition, row: OffsetRow, age: Age | None) -> Status:
    """Return the status of a partition whose oldest unread record has no time that is known."""
    if not isinstance(age, DamagedBatch):
        return unknown(untimed(partition, age))
    stands, end = row.committed_offset or 0, row.log_end_offset or 0
    return status_of(PartitionFacts(end, committed=stands, damaged=age.met_from(stands, end)))


def _held_back(row: OffsetRow) -> bool:
    """Return whether all is read that readers of committed records get.

    Without a commit an undecided partition has nothing else to read.
    """
    end, stable = row.log_end_offset, row.last_stable_offset
    if end is None or stable is None or stable >= end:
        return False
    if row.committed_offset is None:
        return row.status is not None and row.status.unseen == NOT_READ
    return row.work == end - stable


_READ_AND_GONE = (PartitionStatus.PURGED, PartitionStatus.BEYOND_END, PartitionStatus.RECREATED)
"""Statuses of partitions whose last record read is not in the log any more."""


class Course:
    """How a group reads, by its history: what decides the statuses that a description leaves open.

    What its partitions share is put together once, as one cause may stop thousands of them. `times` are those
    of `records`, when they were read.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.undecided = dict(undecided(facts))
        self.begun = dict(facts.placed(PartitionStatus.NOT_BEGUN))
        memberless = not facts.group.known_members
        unheld = memberless or facts.rebalances
        self._ends = ends_of(facts) if unheld else {}
        self._emptied_ms = emptied_ms(facts) if unheld else -1
        self._last_ms = last_commits(facts) if self._ends or self._emptied_ms >= facts.since_ms else {}
        unowned = PartitionStatus.UNREAD if memberless else PartitionStatus.MOVING
        unread = facts.with_status(unowned) if self._last_ms else ()
        self.unread = {
            partition: row
            for partition, row, _ in unread
            if row.committed_offset is not None
            and (partition in self._ends or self._lost_ends(partition) is not None)
        }
        """What nobody owns now, and members may have ended at again and again."""
        # Without members a group has rows of what it committed alone.
        committed = {*facts.group.places} if self._ends else set()
        self.fresh = {
            partition: those
            for partition, those in self._ends.items()
            if memberless and partition not in committed
        }
        """The same of partitions that it never committed, with when members ended."""
        last_ms = read_of_late(facts) if self._ends else self._last_ms
        self.committed_ms = last_ms if self.unread or self.fresh else facts.log.committed_ms
        self.aged = {*self.undecided, *self.begun, *self.unread, *self.fresh}
        """The partitions of which records are aged."""
        self.times: Times = {}
        self.opened: Mapping[TopicPartition, Transactions] = {}
        """The transactions that hold its readers back."""
        self.late_ms: Mapping[str, int] = {}
        """By topic, how late its records count as stamped."""
        self.steps: Sequence[Step] = ()
        self.untold: Unseen | None = None
        """Its last commits, where they were looked at, and why some are missing."""

    def depends_on_waits(self, said: Mapping[TopicPartition, Status]) -> bool:
        """Return whether how long records wait in this group, as a rule, may make a status better."""
        return any(
            status.name in (PartitionStatus.STALLED, PartitionStatus.HELD_BACK)
            if partition in self.undecided
            else partition in self.begun and status.weight == ERROR
            for partition, status in said.items()
        )

    def _waits_ms(self, partition: TopicPartition) -> int | Unseen:
        """Return how long commits of late let records wait: half of them did not take longer.

        By those of the partition itself where there are some; one long outage among them does not count.
        """
        if self.untold is not None and sum(step.partition == partition for step in self.steps) < KEPT:
            return self.untold
        for step in self.steps:
            if isinstance(step.written_ms, KgroupError):
                return untimed(step.partition, step.written_ms)
        own = [step for step in self.steps if step.partition == partition]
        steps = own if len(own) >= SOME else self.steps
        waits = [step.waited_ms(self.late_ms.get(step.partition.topic, 0)) for step in steps]
        return median_high(waits) if waits else 0

    @property
    def suspects(self) -> dict[TopicPartition, int]:
        """Some of the partitions that may stand still, and when they were last committed."""
        own = (partition for partition in self.undecided if partition in self.committed_ms)
        return {partition: self.committed_ms[partition] for partition in islice(own, SAMPLES)}

    @property
    def compared(self) -> dict[Key, int]:
        """The partitions whose commits show how often the group commits, and when the last one was."""
        newest = nlargest(SAMPLES, ((ms, partition) for partition, ms in self.committed_ms.items()))
        those = {partition: ms for ms, partition in newest} | self.suspects
        return {(self.facts.group.group_id, partition): ms for partition, ms in those.items()}

    def recall(self, known: Mapping[str, Learned]) -> bool:
        """Take the steps that were learned before, if what may stand still was not committed since."""
        suspects, steps, untold = known.get(self.facts.group.group_id, ({}, (), None))
        if not suspects or suspects != self.suspects:
            return False
        self.steps, self.untold = steps, untold
        return True

    @property
    def compared_records(self) -> Iterable[At]:
        """The records whose times `learn` takes: none, as commits are read with theirs."""
        return ()

    def learn(self, times: Times) -> None:
        """Take how long the records compared waited."""

    @property
    def unshown(self) -> Iterable[Unseen]:
        """Yield that members of a group without any may have ended again and again, and committed nothing."""
        facts = self.facts
        # Each generation of a classic group has a number, and each of another one two.
        if not facts.fruitless and (facts.state is None or facts.state.epoch >= LOOPS):
            lost = lost_ends(facts, facts.since_ms, self._emptied_ms, "without a commit")
            if lost is not None:
                yield lost

    @property
    def timed(self) -> set[TopicPartition]:
        """Those, and the ones that they are compared with."""
        return self.aged.union(at[0] for at in (*self._samples, *self._of_topics))

    def not_yet_written(self) -> Iterator[At]:
        """The records after those that are stamped later than they were committed: these may be gone."""
        for partition, offset in (*self._samples, *self._of_topics):
            ms = self.times.get((partition, offset))
            if isinstance(ms, int) and ms > self.committed_ms[partition]:
                yield partition, offset + 1

    def newest_stamped(self) -> Iterator[At]:
        """The newest records by their stamps, of topics whose records may be stamped late."""
        late = {topic for topic, ms in self._least_delays.items() if ms > LATE_MS}
        for partition, at in self.facts.best_clock.stamps.items() if late else ():
            if partition.topic in late:
                yield partition, at.offset

    @property
    def lates(self) -> list[Mapping[str, int]]:
        """By topic, how late records count as stamped: as they are, and as producers' clocks may be off.

        A record came before it was committed, and before now: so late at most are the times of a topic's
        records, and so far ahead at least; and less late, or more ahead, by what the reader itself takes.
        """
        least = [{topic: ms - reads_ms for topic, ms in self._shifts.items()} for reads_ms in (0, SUSPECT_MS)]
        return [self.late_ms, *(least if self._shifts else ())]

    def mistimed(self) -> Iterator[Course]:
        """Yield the same course as if producers' clocks were off, if they may be; it is read late else."""
        for late in self.lates[1:]:
            other = type(self)(self.facts)
            other.opened = self.opened
            other.late_ms, other.steps, other.untold = late, self.steps, self.untold
            other.begun = {partition: row for partition, row in self.begun.items() if partition.topic in late}
            other.times = {
                at: ms + late.get(at[0].topic, 0) if isinstance(ms, int) else ms
                for at, ms in self.times.items()
            }
            yield other

    def going(self, least_ms: int) -> Iterable[tuple[TopicPartition, OffsetRow, int]]:
        """Yield what is being read though it was so far behind at its last commit, with how far in ms."""
        for partition, row in self.facts.placed(PartitionStatus.READING):
            waits = self.came_ms(partition, self.undecided.get(partition, row))
            at_ms = self.committed_ms.get(partition, -1)
            timed = partition in self.undecided and partition.topic not in self._shifts
            if timed and isinstance(waits, int) and at_ms - waits >= least_ms:
                yield partition, row, at_ms - waits

    def points(self, partition: TopicPartition) -> Sequence[Point]:
        """Return earlier commits of a partition, where they are known without reading them."""
        return ()

    @cached_property
    def _shifts(self) -> Mapping[str, int]:
        """How late the records of topics are stamped at most, where producers' clocks may be off."""
        ages = grouped(
            (at[0].topic, self.facts.best_clock.most_ms - ms)
            for at in (*self.newest_stamped(), *self.records())
            if isinstance(ms := self.times.get(at), int)
        )
        least = {topic: min([ms, *ages.get(topic, ())]) for topic, ms in self._least_delays.items()}
        return {topic: ms for topic, ms in least.items() if abs(ms) > LATE_MS}

    @cached_property
    def _least_delays(self) -> Mapping[str, int]:
        """How long a record of each topic took at least from its arrival to its commit."""
        return {topic: min(those) for topic, those in grouped(self._topic_delays).items()}

    def records(self) -> Iterator[At]:
        """Yield the records whose times decide: the oldest unread ones, and the newest that were read."""
        known = self.facts.history is not None
        for partition, row in self.undecided.items():
            if (at := _oldest(row)) is not None and (known or _held_back(row)):
                yield partition, at
        if not known:
            return
        for partition, row in self.unread.items():
            yield partition, row.committed_offset or 0
        yield from self._samples
        yield from self._of_topics

    def status(self, partition: TopicPartition, row: OffsetRow) -> Status:
        """Return the status of an undecided partition."""
        held = _held_back(row)
        unseen = self._without_history(row, held)
        if isinstance(unseen, Status):
            return unseen
        if _is_future(row.status) and row.status is not None and partition.topic not in self._rightly_stamped:
            return row.status
        waits = self._begins(partition, row) if held else self.came_ms(partition, row)
        if not isinstance(waits, int):
            return _untimed(partition, row, waits)
        clock = self.facts.best_clock
        made = self.progress(partition, row, waits) if unseen is None else Progress(-1, waits_ms=unseen)
        statuses = []
        # By the brokers' clock at least, by this machine's at most: where they differ, neither decides.
        for now_ms in dict.fromkeys((waits + clock.age_ms(waits), clock.most_ms)):
            age_ms = max(now_ms - waits, 0)
            known = PartitionFacts(
                row.log_end_offset or 0,
                committed=row.committed_offset,
                stable=row.last_stable_offset,
                readable=not held,
                open_ms=age_ms if held else 0,
                waited_ms=age_ms,
                owner=self.owner(row),
                shared=self.facts.group.type == SHARE,
                progress=made,
                now_ms=now_ms,
            )
            statuses.append(status_of(known))
        behind = clock.is_behind or waits > clock.most_ms + BEHIND_MS
        return self._certain(partition, made, statuses, behind=behind)

    def came_ms(self, partition: TopicPartition, row: OffsetRow) -> Age | None:
        """Return when the oldest unread record came, by its time."""
        return self.times.get((partition, row.committed_offset or 0))

    def _certain(
        self,
        partition: TopicPartition,
        made: Progress | Unseen | None,
        statuses: Sequence[Status],
        *,
        behind: bool,
    ) -> Status:
        """Return the status if what is unsure does not change it: the clock, and what was not seen."""
        first, last = statuses[0], statuses[-1]
        loops = isinstance(made, Progress) and made.generations >= LOOPS
        if first.name == PartitionStatus.STALLED and not loops:
            # The delays that were not seen may be longer than all others: then it would still be in time.
            if self._unread_sample is not None:
                return unknown(self._unread_sample)
            if self.untold is not None and self._shifts:
                return unknown(self.untold)
        # A clock behind the brokers' shows only how long they wait at least.
        sure = not behind or first.weight == ERROR
        if sure and first.name == last.name and first.weight == last.weight:
            return first
        waits = f"{partition}: how long records wait: {self.facts.best_clock.words or EITHER}"
        return unknown(replace(CLOCK_UNSURE, message=waits))

    def _without_history(self, row: OffsetRow, held: bool) -> Status | Unseen | None:
        """Return the status of a partition whose history is not known; for one held back, why it is not."""
        facts = self.facts
        if facts.state is not None and (held or row.committed_offset is not None):
            return None
        missed = next((unseen for unseen in facts.unseen if unseen.look == HISTORY), None)
        what = "its history is not known, which shows whether its reader goes on"
        missed = missed or (NOT_READ if HISTORY in facts.left_out else Unseen(HISTORY, "NOT_SEEN", what))
        return missed if held else unknown(missed)

    def _begins(self, partition: TopicPartition, row: OffsetRow) -> Age | None:
        """Return when the transaction began that holds readers back, by its coordinator if that lists it."""
        starts = [transaction.start_ms for transaction in self.opened.get(partition, ())]
        written = self.times.get((partition, row.last_stable_offset or 0))
        if not isinstance(written, int) and row.status is not None and row.status.unseen == NOT_READ:
            written = self.facts.best_clock.least_ms - OPEN_MS  # the description shows that it is that old
        return min((ms for ms in starts if ms >= 0), default=written)

    def left_behind(self, partition: TopicPartition, row: OffsetRow) -> Status:
        """Return the status of an unread partition at which members may have ended."""
        assert row.status is not None
        waits = self.times[partition, row.committed_offset or 0]
        if not isinstance(waits, int):
            return _untimed(partition, row, waits)
        if (ended := sum(ms >= waits for ms in self._ends.get(partition, ()))) < LOOPS:
            unseen = self._lost_ends(partition, waits) or self.untrusted.get(partition.topic)
            return row.status if unseen is None else unknown(unseen)
        return Loop.of(ended, "no member gets beyond it")

    def _lost_ends(self, partition: TopicPartition, waits_ms: int = -1) -> Unseen | None:
        """Return that members may have ended again and again since a partition's last commit."""
        # Where compaction left one commit, those before may have had the same offset.
        read_ms = -1 if partition in self._unsure else self._last_ms.get(partition, -1)
        since_ms = max(read_ms, waits_ms)
        return lost_ends(self.facts, since_ms, self._emptied_ms, f"at the same record of {partition}")

    def owner(self, row: OffsetRow) -> Owner | None:
        """Return the owner of a partition with the time that it has between two polls."""
        recorded = self.facts.recorded_members.get(row.member_id or "")
        name = row.instance_id or row.member_id or ""
        if recorded is None or recorded.rebalance_timeout_ms < 0:
            return Owner(name)
        return Owner(name, poll_ms=recorded.rebalance_timeout_ms)

    def got_ms(self, partition: TopicPartition, member_id: str | None) -> int:
        """Return since when this member owns a partition; -1 where that is before what the history has.

        A classic group assigns anew with each generation, and a process that takes an instance id over gets
        its partitions without one; in the consumer protocol a partition stays where it is. A classic member
        of a consumer group gets all anew whenever it joins.
        """
        if self.facts.group.type == CLASSIC:
            return max(self._completed_ms, self._replaced_ms.get(member_id, -1))
        return self._got_ms.get(member_id, {}).get(partition, -1)

    def earliest_ms(self, partition: TopicPartition, member_id: str | None) -> int:
        """Return since when at the earliest this member may own a partition, or another one that ended.

        It is when it got it, but where compaction left only the last of its records.
        """
        got_ms = self.got_ms(partition, member_id)
        since_ms = got_ms if self._speaks_classic(member_id) else self._joined_ms.get(member_id, got_ms)
        since_ms = min(since_ms, self.facts.since_ms)
        return got_ms if self.facts.is_whole(since_ms) else since_ms

    def _speaks_classic(self, member_id: str | None) -> bool:
        member = self.facts.recorded_members.get(member_id or "")
        return self.facts.group.type == CLASSIC or (member is not None and member.protocol == CLASSIC)

    def progress(self, partition: TopicPartition, row: OffsetRow, waits_ms: int) -> Progress | Unseen | None:
        """Return what the log says of a partition's reading; None where its offset was set back.

        Its reader does not notice that: it reads on where it was. Unseen where its owner committed another
        partition since, whose log could not be read: older records may wait there.
        """
        at, member_id = self.committed_ms.get(partition, -1), row.member_id
        if self._rewound_ms.get(partition, -1) >= max(self._completed_ms, at, 0):
            return None
        since = max(at, self.got_ms(partition, member_id))
        began = max(since, waits_ms)
        busy = None
        if self._newest_of.get(member_id, -1) > began:
            older = takewhile(lambda wait: wait[0] <= waits_ms, self._waiting_of.get(member_id, ()))
            busy = next((where for _, where, ms in older if ms > began), None)
            dark = (where for where, ms in self._dark_of.get(member_id, ()) if ms > began)
            if busy is None and (where := next(dark, None)) is not None:
                what = f"{partition}: its owner may read {where} first, whose log could not be read"
                return Unseen(ENDS, "NOT_READ", what)
        newest, second = self._newest
        last = max(at, waits_ms)
        lost = None
        if since > last or self.got_ms(partition, member_id) < 0:  # else only who owns it now may have ended
            lost = self.facts.lost(last, f"whether members ended at the same record of {partition}")
        if lost is None and since > last and not self._speaks_classic(member_id):
            # Of one that came before, the first record that is left may be of a later epoch.
            lost = self.facts.lost(self._came_ms.get(member_id, -1), f"since when {partition} has its owner")
        others_ms, other = second if newest[1] == partition else newest
        loops = len(self.ends(partition, waits_ms)) >= LOOPS
        if lost is None and (since == at or loops) and partition in self._unsure:
            lost = self.facts.lost(-1, f"whether {partition} got on with its last commit")
        if others_ms > began and other in self._unsure:
            lost, others_ms = lost or self.facts.lost(-1, f"whether {other} got on with its last commit"), -1
        return Progress(
            since,
            others_ms=others_ms,
            owner_ms=self._held_ms.get(partition, at),
            usual_ms=self._usual_ms,
            generations=len(self.ends(partition, max(at, waits_ms))),
            busy="" if busy is None else str(busy),
            waits_ms=self._waits_ms(partition),
            lost=lost,
            restores=self.restores if since > at else None,
        )

    @property
    def restores(self) -> Unseen | None:
        """Why an owner that has committed nothing yet may be right not to read."""
        if not self.facts.group.restores:
            return None
        what = "whether its owner restores state before it reads is in its own log and metrics only"
        return Unseen("restoration", "NOT_SEEN", what)

    def ends(self, partition: TopicPartition, since_ms: int) -> list[int]:
        """Return when owners of a partition ended after this moment, that of its last commit or later."""
        ended = (*self._ended_ms.get(partition, ()), *self._taken_ms.get(partition, ()))
        return sorted(ms for ms in ended if ms >= since_ms)

    @cached_property
    def _events(self) -> Mapping[Kind, list[Event]]:
        return grouped((event.kind, event) for event in self.facts.history or ())

    @cached_property
    def _completed_ms(self) -> int:
        return self.facts.completed_ms

    @cached_property
    def _read(self) -> list[At]:
        """The last record read of each partition, the last committed one first."""
        committed_ms = self.committed_ms
        read = [
            (partition, row.committed_offset - 1)
            for partition, row in self.facts.rows
            if row.committed_offset
            and partition in committed_ms
            and not (row.status is not None and row.status.name in _READ_AND_GONE)
        ]
        return sorted(read, key=lambda at: -committed_ms[at[0]])

    @cached_property
    def _samples(self) -> list[At]:
        """The last record read of some other partitions, of the same ones where there are no others."""
        # Who sees less may not know of one that it waits: nobody compares with that.
        unsure = {partition for partition, _ in self.facts.placed(PartitionStatus.UNKNOWN)}
        others = [at for at in self._read if at[0] not in unsure]
        return (others or self._read)[:SAMPLES]

    @cached_property
    def _of_topics(self) -> list[At]:
        """The last records read of each topic with partitions to age: of those first, then of others."""
        read = grouped((at[0].topic, at) for at in self._read)
        chosen: list[At] = []
        for topic in {partition.topic for partition in self.aged} & read.keys():
            own = [at for at in read[topic] if at[0] in self.undecided]
            chosen += [*own[:SAMPLES], *read[topic][:SAMPLES]]
        return chosen

    @cached_property
    def _rightly_stamped(self) -> set[str]:
        """The topics of which all that was read had come by its time before it was committed."""
        unread = {at[0].topic for at in self._of_topics if isinstance(self.times.get(at), KgroupError)}
        return {topic for topic, ms in self._least_delays.items() if ms >= 0} - unread

    @cached_property
    def untrusted(self) -> Mapping[str, Unseen]:
        """The topics of which nothing that was read shows that times are right, and why they may not be.

        A record is stamped in the future, or the stamps of a partition could not be read.
        """
        topics = {partition.topic for partition in (*self.begun, *self.fresh, *self.unread)}
        dark = [p for p, row in self.facts.rows if row.log_end_offset is None and p.topic in topics]
        unseen = {p.topic: Unseen(ENDS, "NOT_READ", f"{p}: its log could not be read") for p in dark}
        unseen |= {
            p.topic: future(p) for p in self.facts.best_clock.stamps if self.facts.best_clock.is_future(p)
        }
        return {topic: why for topic, why in unseen.items() if topic not in self._rightly_stamped}

    @cached_property
    def unsampled(self) -> Mapping[str, Unseen]:
        """The topics of which no record that was read could be read again, with why."""
        return {
            at[0].topic: untimed(at[0], error)
            for at in self._of_topics
            if at[0].topic not in self._least_delays and isinstance(error := self.times.get(at), KgroupError)
        }

    @cached_property
    def _unread_sample(self) -> Unseen | None:
        """The first sample whose time could not be read."""
        read = ((partition, self.times.get((partition, offset))) for partition, offset in self._samples)
        return next((untimed(partition, at) for partition, at in read if isinstance(at, KgroupError)), None)

    @property
    def _topic_delays(self) -> Iterator[tuple[str, int]]:
        for at, ms in self._delays({*self._samples, *self._of_topics}):
            yield at[0].topic, ms

    def _delays(self, read: Collection[At]) -> Iterator[tuple[At, int]]:
        """Yield how long records took from their arrival to their commit, by their times.

        Where the last one read is compacted away, that of the next one was read: it came after the commit.
        """
        for partition, offset in read:
            ms, committed_ms = self.times.get((partition, offset)), self.committed_ms[partition]
            if isinstance(ms, int) and (ms <= committed_ms or ms != self.times.get((partition, offset + 1))):
                yield (partition, offset), committed_ms - ms

    @cached_property
    def _unsure(self) -> set[TopicPartition]:
        """The partitions of which compaction left one commit: it may be the last of many of one offset."""
        return {partition for partition, (since_ms, _) in self.facts.log.repeated.items() if since_ms < 0}

    @cached_property
    def _usual_ms(self) -> int:
        """How long the group takes from the arrival of a record to its commit, at most.

        By what it reads else, where the last ones read of the samples are aborted: those have no time. Where
        a sample could not be read nothing stands for it (`_certain`).
        """
        for read in (self._samples, *(() if self._unread_sample else (self._of_topics,))):
            if sure := [ms for at, ms in self._delays(read) if at[0] not in self._unsure]:
                return max(0, *sure)
        return 0

    @cached_property
    def _newest(self) -> tuple[tuple[int, TopicPartition | None], ...]:
        """The two newest commits of the group: of what is not one partition, one of them is the newest."""
        by_time = ((ms, partition) for partition, ms in self.committed_ms.items())
        return (*nlargest(2, by_time), (-1, None), (-1, None))[:2]

    @cached_property
    def _held_ms(self) -> Mapping[TopicPartition, int]:
        """The newest commit of what the owner of a partition holds, by partition."""
        held: dict[TopicPartition, int] = {}
        for member in self.facts.recorded_members.values():
            newest = max((self.committed_ms.get(where, -1) for where in member.holds), default=-1)
            held |= dict.fromkeys(member.holds - held.keys(), newest)
        return held

    @cached_property
    def _committed_of(self) -> Mapping[str | None, list[tuple[TopicPartition, OffsetRow, int]]]:
        """The partitions that each member owns and that were committed, with when."""
        committed_ms = self.committed_ms
        placed = (
            (row.member_id, (partition, row, committed_ms.get(partition, -1)))
            for partition, row in self.facts.rows
        )
        return grouped(pair for pair in placed if pair[1][2] >= 0)

    @cached_property
    def _newest_of(self) -> Mapping[str | None, int]:
        return {name: max(ms for _, _, ms in those) for name, those in self._committed_of.items()}

    @cached_property
    def _waiting_of(self) -> Mapping[str | None, list[tuple[int, TopicPartition, int]]]:
        """The partitions of each member with waiting records, the oldest first, and their last commits."""
        return {
            name: sorted(
                (first, partition, ms)
                for partition, row, ms in those
                if partition in self.undecided
                and isinstance(first := self.times.get((partition, row.committed_offset or 0)), int)
            )
            for name, those in self._committed_of.items()
        }

    @cached_property
    def _dark_of(self) -> Mapping[str | None, list[tuple[TopicPartition, int]]]:
        """The partitions of each member whose log could not be read, with when they were committed."""
        return {
            name: [
                (partition, ms) for partition, row, ms in those if row.log_end_offset is None and not row.gone
            ]
            for name, those in self._committed_of.items()
        }

    @cached_property
    def _rewound_ms(self) -> Mapping[TopicPartition, int]:
        """When the offset of a partition was last set back."""
        return {p: e.timestamp_ms for e in self._events.get(Kind.REWOUND, ()) for p in e.partitions}

    @cached_property
    def _ended_ms(self) -> Mapping[TopicPartition, list[int]]:
        """When members ended that had a partition."""
        return ended_ms(self.facts.history or ())

    @cached_property
    def _taken_ms(self) -> Mapping[TopicPartition, list[int]]:
        """When another process took a partition over with the instance id of its owner."""
        taken = self._events.get(Kind.MEMBER_REPLACED, ())
        return grouped((partition, e.timestamp_ms) for e in taken for partition in e.partitions)

    @cached_property
    def _replaced_ms(self) -> Mapping[str | None, int]:
        """When a member last took an instance id over, by the member id that it got."""
        return {e.member_id: e.timestamp_ms for e in self._events.get(Kind.MEMBER_REPLACED, ())}

    @cached_property
    def _came_ms(self) -> Mapping[str | None, int]:
        """When members came, if that is in the history."""
        came = (*self._events.get(Kind.MEMBER_JOINED, ()), *self._events.get(Kind.MEMBER_REPLACED, ()))
        return {event.member_id: event.timestamp_ms for event in came}

    @cached_property
    def _joined_ms(self) -> Mapping[str | None, int]:
        """When the first record about each member was written."""
        return {event.member_id: event.timestamp_ms for event in reversed(self.facts.history or ())}

    @cached_property
    def _got_ms(self) -> Mapping[str | None, Mapping[TopicPartition, int]]:
        """Since when each member of the consumer protocol has its partitions without a break."""
        got: Held = {}
        for event in self.facts.history or ():
            hold(got, event, anew=self._speaks_classic(event.member_id))
        return got


def _fresh(cluster: ClusterView, course: Course) -> dict[TopicPartition, Status]:
    """Return the statuses of partitions without a commit, by what came since their owner got them."""
    facts, begun = course.facts, course.begun
    if not begun or HISTORY in facts.left_out:
        return {}
    since = {} if facts.state is None else {p: course.got_ms(p, row.member_id) for p, row in begun.items()}
    ends = {p: course.ends(p, facts.since_ms) for p in begun}
    # What one of them did not commit, the next would have, unless it came only when most had ended.
    first = {p: min(since[p], those[0]) for p, those in ends.items() if p in since and len(those) >= LOOPS}
    looped = came_since(cluster, first, course.late_ms)
    since |= {p: ms for p, ms in first.items() if _ended_since(course, p, looped[p], ends[p]) >= LOOPS}
    known = {partition: ms for partition, ms in since.items() if ms >= 0}
    listed = came_since(cluster, known, course.late_ms)
    earliest = {p: course.earliest_ms(p, begun[p].member_id) for p in known}
    before = {p: ms for p, ms in earliest.items() if ms < known[p]}
    came = came_since(cluster, before, course.late_ms)
    lost = {
        p: facts.lost(ms, f"since when {p} has its owner") for p, ms in before.items() if came[p] != listed[p]
    }
    what = "when its owner got it is not in its history, so neither is whether records came since"
    statuses = {partition: unknown(Unseen(HISTORY, "NOT_SEEN", what)) for partition in begun}
    statuses |= {p: _since_owned(course, p, ms, listed[p], ends[p], lost.get(p)) for p, ms in known.items()}
    grave = {
        p: at.offset
        for p in known
        if statuses[p].weight == ERROR and not isinstance(at := listed[p], KgroupError)
    }
    statuses |= {
        p: _since_owned(course, p, known[p], came, ends[p], lost.get(p))
        for p, came in first_read(cluster, grave)
    }
    return {partition: _as_trusted(course, partition, status) for partition, status in statuses.items()}


def _ended_since(course: Course, partition: TopicPartition, came: Came, ends: Sequence[int]) -> int:
    """Return how many members ended since the first record came; all of them where its time is not known."""
    if not isinstance(came, ListedOffset):
        return len(ends)
    came_ms = came.timestamp_ms + course.late_ms.get(partition.topic, 0)
    return sum(ms >= came_ms for ms in ends) if came.offset >= 0 else 0


def _since_owned(
    course: Course,
    partition: TopicPartition,
    since_ms: int,
    came: Came,
    ends: Sequence[int],
    lost: Unseen | None,
) -> Status:
    """Return the status of a partition without a commit, by the first record since its owner got it.

    `lost` is why it, or another one that ended, may have had it before.
    """
    row = course.begun[partition]
    waited: int | Unseen = 0
    came_ms = -1
    if isinstance(came, Unseen):
        waited = came
    elif isinstance(came, KgroupError):
        waited = untimed(partition, came)
    elif came.offset >= 0:
        came_ms = came.timestamp_ms + course.late_ms.get(partition.topic, 0)
        waited = course.facts.age_ms(came_ms)
    seen = PartitionFacts(
        row.log_end_offset or 0,
        waited_ms=waited,
        owner=course.owner(row),
        start=-1,
        progress=_made(course, partition, row, since_ms, came_ms, ends, lost),
        now_ms=came_ms + waited if isinstance(waited, int) else 0,
    )
    return status_of(seen)


def _as_trusted(course: Course, partition: TopicPartition, status: Status) -> Status:
    """Return the status, or why the times of its topic do not decide it."""
    if partition.topic in course.unsampled and status.weight != ERROR:
        # Its records may be stamped late, and would count then.
        return unknown(course.unsampled[partition.topic])
    if partition.topic in course.untrusted and status.weight == ERROR:
        return unknown(course.untrusted[partition.topic])
    return status


def _made(
    course: Course,
    partition: TopicPartition,
    row: OffsetRow,
    since_ms: int,
    came_ms: int,
    ends: Sequence[int],
    lost: Unseen | None,
) -> Progress | Unseen:
    """Return what the log says of the reading of a partition without a commit, since a record came.

    `ends` are when owners of it ended, and `lost` is why some may be missing.
    """
    ended = sum(ms >= came_ms for ms in ends)
    made = course.progress(partition, row, came_ms)
    if isinstance(made, Unseen) and ended < LOOPS:
        return made
    known = made if isinstance(made, Progress) else Progress(since_ms, restores=course.restores)
    return replace(known, since_ms=since_ms, generations=ended, lost=lost)


def _former(facts: Facts) -> Iterator[tuple[TopicPartition, Status]]:
    """Yield what the history says of partitions whatever else is known of them."""
    for partition, row in facts.rows if facts.log.rebuilt else ():
        if row.status is None or row.status.name in (PartitionStatus.GONE, PartitionStatus.UNLEADERED):
            continue
        if partition in facts.log.rebuilt and row.committed_offset is not None:
            known = PartitionFacts(row.log_end_offset or 0, rebuilt=True, committed=row.committed_offset)
            yield partition, status_of(known)
    unsubscribed = facts.placed(PartitionStatus.UNSUBSCRIBED)
    stopped = read_of_late(facts) if unsubscribed else {}
    for partition, row in unsubscribed:
        if row.work and partition not in facts.log.rebuilt:
            if facts.history is None and HISTORY not in facts.left_out:
                what = "whether a member read it of late is in its history, which is not known"
                yield partition, unknown(Unseen(HISTORY, "NOT_SEEN", what))
            elif partition in stopped and (at_ms := facts.log.unheld_ms.get(partition, -1)) >= facts.since_ms:
                until = utc(at_ms)
                why = f"no member subscribes to it, it was read until {until}, and records wait"
                yield partition, Status(PartitionStatus.UNSUBSCRIBED, WARN, why)
