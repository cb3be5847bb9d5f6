"""How share groups go on: whether their members finish records, by the log of deliveries.

A share group's partition belongs to nobody, so what counts is when anybody last finished a record of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

from kgroup.admin.diagnose.commits import SHORT_MS, Learned, Point, Step
from kgroup.admin.diagnose.deliveries import is_recorded
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.handled import Done, Handled
from kgroup.admin.diagnose.reading import At, Course, Times
from kgroup.admin.models import SHARE, OffsetRow
from kgroup.admin.read.readable import TIMES
from kgroup.admin.read.record_times import Age, Untimed
from kgroup.admin.statuses import (
    HISTORY,
    LAG,
    LOOPS,
    READING,
    SPAN_MS,
    Owner,
    PartitionStatus,
    Progress,
    Status,
    Unseen,
    unknown,
)
from kgroup.domain import TopicPartition
from kgroup.durations import utc
from kgroup.history.fold.events import Kind


def course_of(facts: Facts) -> Course | None:
    """Return how a group reads; None where that was left out, or its log does not show it."""
    if LAG in facts.left_out:
        return None
    if facts.group.type != SHARE:
        return Course(facts)
    return Sharing(facts) if is_recorded(facts) else None


class Sharing(Course):
    """How a share group reads: its members take the records of all partitions.

    `worst` takes what the log does not show as if nothing had been finished then; `unstamped` takes what
    waits as if it had come now, unless it was delivered before.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._handled: Mapping[TopicPartition, Handled] = (
            {} if facts.delivered is None else facts.delivered.handled
        )
        self.undecided = {
            partition: replace(row, committed_offset=self._handled[partition].open_from)
            if partition in self._handled
            else row
            for partition, row in self.undecided.items()
        }
        self.aged = {*self.undecided}
        self.committed_ms = {p: h.since_ms for p, h in self._handled.items()}
        self.unread, self.fresh = {}, {}
        self.worst = self.unstamped = False

    def status(self, partition: TopicPartition, row: OffsetRow) -> Status:
        """Return the status of an undecided partition; unknown where what the log lacks decides."""
        if (handled := self._handled.get(partition)) is None:
            return unknown(Unseen(HISTORY, "NOT_SEEN", f"its log has nothing of {partition}"))
        if handled.open_from >= (row.log_end_offset or 0):
            return READING  # all that was there by then has been finished
        said = super().status(partition, row)
        if said.unseen is not None or self.worst or self.unstamped:
            return said
        doubts = (("worst", self._doubt(partition, handled)), ("unstamped", self._doubt_of_times(partition)))
        for name, doubt in doubts:
            if doubt is None:
                continue
            other = copy(self)
            setattr(other, name, True)
            least = other.status(partition, row)
            if (least.name, least.weight) != (said.name, said.weight):
                return unknown(doubt)
        return said

    def _doubt_of_times(self, partition: TopicPartition) -> Unseen | None:
        """Return why nothing shows whether times are right: what was finished was, in a whole log."""
        if self._handled[partition].complete or partition.topic in self._shown:
            return None
        what = f"brokers deleted the log of what was finished of {partition.topic}"
        return Unseen(TIMES, "NOT_SHOWN", f"whether the times of its records are right does not show: {what}")

    @cached_property
    def _shown(self) -> set[str]:
        return {partition.topic for partition, handled in self._handled.items() if handled.done}

    def _doubt(self, partition: TopicPartition, handled: Handled) -> Unseen | None:
        """Return why a record may have been finished earlier than the log shows."""
        what = f"when a record of {partition} was last finished"
        if not handled.whole:
            begins = f"brokers deleted what the log had before {utc(handled.since_ms)}"
            return Unseen(HISTORY, "DELETED", f"{what} is not known: {begins}")
        if isinstance(self.facts.lock_ms, Unseen) and any(end.given_up for end in handled.failed):
            return self.facts.lock_ms
        return self.facts.lost(self._members_ms, f"since when it has members, which decides {what},")

    def progress(self, partition: TopicPartition, row: OffsetRow, waits_ms: int) -> Progress:
        """Return what the log says of how a partition's records are finished."""
        handled, facts = self._handled[partition], self.facts
        limit = facts.delivery_limit
        if self.worst and isinstance(facts.lock_ms, Unseen):
            limit = 0  # what was given up counts as that, whatever the limit is
        lost = self.worst and not handled.whole
        finished_ms = -1 if lost else handled.finished_ms(limit)
        began_ms = max(finished_ms, waits_ms)
        rounds = LOOPS if lost and handled.since_ms > waits_ms else handled.rounds(began_ms)
        members_ms = self._members_ms
        # Who ends again and again finishes nothing, however often it begins.
        if sum(ms >= began_ms for ms in self._left_ms) >= LOOPS or (
            self.worst and facts.lost(members_ms, "") is not None
        ):
            members_ms = -1
        return Progress(
            max(finished_ms, members_ms),
            generations=rounds,
            waits_ms=self._waits_ms(partition),
            lock_ms=facts.lock_ms,
        )

    def came_ms(self, partition: TopicPartition, row: OffsetRow) -> Age | None:
        """Return when the oldest unread record came, by its time; what had been delivered, had come."""
        came_ms, delivered_ms = super().came_ms(partition, row), self._handled[partition].delivered_ms
        if not isinstance(came_ms, int):
            return came_ms
        known_ms = came_ms if not self.unstamped else self.facts.best_clock.most_ms
        return known_ms if delivered_ms is None else min(known_ms, delivered_ms)

    def owner(self, row: OffsetRow) -> Owner:
        """Return who reads a partition: all members."""
        return Owner("its members")

    def _without_history(self, row: OffsetRow, held: bool) -> None:
        return None

    @cached_property
    def _read(self) -> list[At]:
        purged = {partition for partition, _ in self.facts.placed(PartitionStatus.PURGED)}
        read = [
            (partition, handled.done[-1].last if handled.done else handled.open_from - 1)
            for partition, handled in self._handled.items()
            # The time of a record that was deleted is not to be had.
            if handled.open_from > 0 and partition not in purged
        ]
        return sorted(read, key=lambda at: -self.committed_ms[at[0]])

    def _delays(self, read: Collection[At]) -> Iterator[tuple[At, int]]:
        for at, ms in super()._delays(read):
            # Where only the log's begin is known, it shows what is stamped later than that.
            if self._handled[at[0]].done or ms < 0:
                yield at, ms

    @cached_property
    def _members_ms(self) -> int:
        """Since when it has had members, without a break."""
        here: set[str | None] = set()
        since_ms = -1
        for event in self.facts.history or ():
            if event.kind == Kind.MEMBER_LEFT_OR_EXPIRED:
                here.discard(event.member_id)
            elif event.member_id is not None:  # where compaction left little, that a member joined is gone
                since_ms = since_ms if here else event.timestamp_ms
                here.add(event.member_id)
        return since_ms

    @cached_property
    def _left_ms(self) -> list[int]:
        left = (event for event in self.facts.history or () if event.kind == Kind.MEMBER_LEFT_OR_EXPIRED)
        return [event.timestamp_ms for event in left]

    # how long records take

    def recall(self, known: Mapping[str, Learned]) -> bool:
        """The log of deliveries has all: `learn` takes it."""
        return True

    @property
    def compared_records(self) -> Iterable[At]:
        """The records of which it took long until they were finished."""
        for partition, before, done in self._pairs:
            if done.at_ms - before.at_ms > SHORT_MS:
                yield partition, done.first

    def learn(self, times: Times) -> None:
        """Take how long records of late waited until they were finished."""
        written = {at: ms for at, ms in times.items() if not isinstance(ms, Untimed)}
        self.steps = [
            Step(partition, before.at_ms, done.at_ms, written.get((partition, done.first)))
            for partition, before, done in self._pairs
        ]
        cut = next((p for p, h in self._handled.items() if not h.complete), None)
        if cut is not None:
            what = f"how long its records take is not known: brokers deleted a part of the log of {cut}"
            self.untold = Unseen(HISTORY, "DELETED", what)

    @property
    def _pairs(self) -> Iterable[tuple[TopicPartition, Done, Done]]:
        """The records of the last hour that were finished of each partition, with those before."""
        newest_ms = max((h.done[-1].at_ms for h in self._handled.values() if h.done), default=-1)
        for partition, handled in self._handled.items():
            late = (done for done in handled.done if done.at_ms >= newest_ms - SPAN_MS)
            for before, done in pairwise(late):
                yield partition, before, done

    @property
    def unshown(self) -> Iterable[Unseen]:
        """Nothing: whether members of a share group come and go decides no status of it."""
        return ()

    def going(self, least_ms: int) -> Iterable[tuple[TopicPartition, OffsetRow, int]]:
        """Yield the same by the last record that was finished."""
        for partition, row, age_ms in super().going(least_ms):
            if self._handled[partition].done:
                yield partition, self.undecided.get(partition, row), age_ms

    def points(self, partition: TopicPartition) -> Sequence[Point]:
        """Return up to where records were finished, and when, of the last minutes."""
        return self._handled[partition].points
