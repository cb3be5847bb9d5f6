"""What can be read of the logs: where they begin, where readers of committed records stop, and whether any
record is left from an offset on (docs/findings.md).

The distance to the end of a log counts offsets. Control records, aborted and compacted records have offsets
too, and nobody reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import OpenProducer, TopicDescription
from kgroup.admin.read.broker_clock import BEHIND_MS, FUTURE_MS, Clock, clock_of
from kgroup.admin.read.offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    ListedOffset,
    ask_leaders,
    list_offsets,
)
from kgroup.admin.read.open_transactions import open_transactions
from kgroup.admin.read.record_times import Age, Untimed, cut_off, fetch, times_at
from kgroup.admin.refusals import code_name, naming
from kgroup.admin.statuses import PROMPT_MS, Unseen
from kgroup.domain import NO_LEADER_EPOCH, NO_OFFSET, TopicPartition
from kgroup.errors import DamagedBatch, ErrorCode, KgroupError

if TYPE_CHECKING:
    from kgroup.protocol.batches import Batch
    from kgroup.protocol.messages.fetch import PartitionData

FIRST_BYTES, MORE_BYTES = 4 * 1024, 1024 * 1024
"""The size of an answer per partition: a first batch that does not fit holds records."""
RESOLVED_MS = 60_000
"""How long a member that sends no heartbeat is in a consumer group, at most, by Kafka's defaults.

A live one has the coordinator resolve its pattern within seconds: a topic that matches, is older than that
and was assigned to nobody is one that the members may not describe.
"""
ROUNDS = 16
"""How many answers without a record to skip before giving up."""
LOOK, TIMES = "readable records", "record times"
_AGE = Unseen(TIMES, "NOT_LOOKED_AT", "for how long its records have waited was not looked at")
CLOCK_UNSURE = Unseen(
    "clock",
    "CLOCK_UNSURE",
    "records wait, and for how long is not known: nothing was committed for a minute, or this machine's "
    "clock is not the brokers'",
)
FUTURE = "FUTURE"
"""The code of times that are unseen because a record's is still to come."""
Offsets = Mapping[TopicPartition, Collection[int]]
Positions = Mapping[TopicPartition, int]


def untimed(partition: TopicPartition, age: Age | None) -> Unseen:
    """Return why the time of a partition's oldest unread record is not known."""
    if isinstance(age, KgroupError):
        return Unseen(TIMES, code_name(age), naming(partition, age.message))
    why = age.why if isinstance(age, Untimed) else "the time of its oldest unread record is not known"
    return Unseen(TIMES, "NOT_SEEN", f"{partition}: {why}")


def future(partition: TopicPartition) -> Unseen:
    """Return why times decide nothing of a partition where a record of its topic is stamped in the future."""
    what = f"{partition}: a record is stamped in the future, so when others came is not known"
    return Unseen(TIMES, FUTURE, what)


@dataclass(slots=True)
class LogView:
    """What was seen of one log: its start, its last stable offset, and where records are left.

    A record can be read at or after each offset up to `readable_at`; none from `nothing_from` to
    `nothing_to`. `unread` is why neither is known. Beyond `readable_at`, the next is the batch at
    `damaged_at`, which fails its checksum. `recent_from` is the first offset written within the last
    PROMPT_MS, -1 where none was; `recent_at_most` the same by the newest of the brokers' records, where this
    machine's clock may be ahead of theirs. `opened` is the age of the transaction at the last stable offset
    as its coordinator tells it: 0, or PROMPT_MS. `asked_at` is the farthest offset that was asked for.
    """

    start: int | Unseen | None = None
    stable: int | Unseen | None = None
    readable_at: int = -1
    nothing_from: int = -1
    nothing_to: int = -1
    unread: Unseen | None = None
    damaged_at: int = -1
    recent_from: int | Unseen | None = None
    recent_at_most: int | Unseen | None = None
    clock_is_behind: bool = False
    opened: int | Unseen | None = None
    asked_at: int = -1

    def take_bounds(self, data: PartitionData) -> None:
        """Take the bounds that an answer has: those of old brokers have none."""
        if data.last_stable_offset >= 0:
            self.stable = data.last_stable_offset
        if data.log_start_offset >= 0:
            self.start = data.log_start_offset

    @property
    def waits(self) -> range:
        """The offsets from which on a record can be read, and none was deleted."""
        return range(self.start, self.readable_at + 1) if isinstance(self.start, int) else range(0)

    def waited(self, offset: int) -> int | Unseen:
        """Return the least age of the record at this offset, as far as it matters: 0, or PROMPT_MS."""
        if self.recent_from is None:
            return _AGE
        ages = set()
        # The records right there may be compacted away.
        first = max(offset, self.readable_at) if offset == self.asked_at else offset
        for recent in (self.recent_from, self.recent_at_most):
            if isinstance(recent, Unseen):
                return recent
            if recent is not None:
                ages.add(0 if 0 <= recent <= first else PROMPT_MS)
        return self._surely(ages)

    def _surely(self, ages: set[int]) -> int | Unseen:
        # A clock behind the brokers' shows only the least age: what looks young may be old.
        unsure = len(ages) > 1 or (self.clock_is_behind and ages == {0})
        return CLOCK_UNSURE if unsure else ages.pop()

    def held_back_ms(self, stable: int) -> int | Unseen:
        """Return the least age of the transaction at the last stable offset: 0, or PROMPT_MS."""
        return self.waited(stable) if self.opened is None else self.opened

    def open_since(self, start_ms: int, clock: Clock) -> None:
        """Take from its coordinator when the transaction at the last stable offset began."""
        moments = (
            {clock.most_ms} if clock.sure or clock.newest_ms is None else {clock.most_ms, clock.newest_ms}
        )
        # Its coordinator's time is a broker's, too.
        self.clock_is_behind = self.clock_is_behind or start_ms > clock.most_ms + BEHIND_MS
        self.opened = self._surely({0 if now_ms - start_ms < PROMPT_MS else PROMPT_MS for now_ms in moments})

    def damaged(self, offset: int) -> int | None:
        """Return the offset of the damaged batch that a reader from there on meets before any record."""
        return self.damaged_at if self.readable_at < offset <= self.damaged_at else None

    def readable(self, offset: int) -> bool | Unseen:
        """Return whether a record can be read from this offset to the last stable offset, damaged or not."""
        if offset <= max(self.readable_at, self.damaged_at):
            return True
        if isinstance(self.stable, int) and (
            offset >= self.stable or 0 <= self.nothing_from <= offset and self.stable <= self.nothing_to
        ):
            return False
        return self.unread or Unseen(LOOK, "NOT_LOOKED_AT", "whether records can be read was not looked at")


@dataclass(slots=True)
class Logs:
    """The logs of a cluster as far as they were looked at, for many groups: each is asked once a round."""

    cluster: ClusterView
    clock: Clock | None = None
    views: dict[TopicPartition, LogView] = field(default_factory=dict)

    def look(self, offsets: Offsets, topics: Answers[TopicDescription]) -> None:
        """Look at the logs of partitions from these offsets on, mostly in one request per leader.

        A partition that cannot be read says why in its view; none is fatal for the others.
        """
        pending = {}
        for partition, positions in offsets.items():
            view = self.views.setdefault(partition, LogView())
            view.stable, view.unread, view.nothing_from, view.damaged_at = None, None, -1, -1
            view.asked_at = max(positions)
            # What had a record behind it still has.
            if view.asked_at > view.readable_at:
                pending[partition] = view.asked_at
        size = FIRST_BYTES
        for _ in range(ROUNDS):
            if not pending:
                break
            ask = partial(
                fetch, self.cluster, offsets=pending, partition_bytes=size, isolation=READ_COMMITTED
            )
            answers = ask_leaders(self.cluster, pending, topics, ask)
            pending = dict(self._following(offsets, pending, answers))
            size = MORE_BYTES
        for partition, at in pending.items():
            what = f"{partition}: {ROUNDS} fetches brought no record before offset {at}"
            self.views[partition].unread = Unseen(LOOK, "NOT_FOUND", what)
        self._list_stable(offsets, topics)

    def recent(
        self, places: Collection[TopicPartition], topics: Answers[TopicDescription], here_ms: int
    ) -> None:
        """Find where the records of the last PROMPT_MS begin, of partitions not asked before."""
        asked = [partition for partition in places if self.views[partition].recent_from is None]
        if not asked:
            return
        self.clock = self.clock or clock_of(self.cluster, here_ms, asked, topics)
        newest = self.clock.newest_ms
        for partition, seen in self._recent(asked, topics, self.clock.most_ms):
            self.views[partition].recent_from = seen
            self.views[partition].clock_is_behind = self.clock.may_be_behind(partition)
        if not self.clock.sure and newest is not None:
            for partition, seen in self._recent(asked, topics, newest):
                self.views[partition].recent_at_most = seen

    def begun(
        self, places: Collection[TopicPartition], topics: Answers[TopicDescription]
    ) -> frozenset[TopicPartition]:
        """Return those of the partitions whose first record may be of the last RESOLVED_MS.

        `recent` was asked for them before.
        """
        if not places or self.clock is None:
            return frozenset()
        listed = self._recent(places, topics, self.clock.most_ms, RESOLVED_MS)
        return frozenset(partition for partition, seen in listed if seen == 0 or isinstance(seen, Unseen))

    def hold(
        self, held: Collection[TopicPartition], producers: Mapping[TopicPartition, Collection[OpenProducer]]
    ) -> None:
        """Ask when the transactions began that hold readers back: producers stamp their records."""
        clock, views = self.clock, self.views
        ends = {partition: end for partition in held if isinstance(end := views[partition].stable, int)}
        if clock is None or not ends:
            return
        open_ = {partition: producers.get(partition, ()) for partition in ends}
        ids = {transaction.producer_id for those in open_.values() for transaction in those}
        try:
            known = open_transactions(self.cluster, ends, ids if all(open_.values()) else ())
        except KgroupError as error:
            if code_name(error) != ErrorCode.UNSUPPORTED_VERSION.name:
                for partition in ends:
                    what = f"since when a transaction holds readers of {partition} back: {error.message}"
                    views[partition].opened = Unseen("transactions", code_name(error), what)
            return  # by the times of their records, before Kafka 3.0
        for partition, end in ends.items():
            holders = {t.producer_id for t in open_[partition] if t.start_offset == end}
            begun = [t.start_ms for t in known[partition] if not holders or t.producer_id in holders]
            if begun and min(begun) >= 0:
                views[partition].open_since(min(begun), clock)

    def _recent(
        self,
        places: Collection[TopicPartition],
        topics: Answers[TopicDescription],
        now_ms: int,
        age_ms: int = PROMPT_MS,
    ) -> Iterator[tuple[TopicPartition, int | Unseen]]:
        listed = list_offsets(self.cluster, dict.fromkeys(places, now_ms - age_ms), topics)
        for partition, at in listed.items():
            seen: int | Unseen
            if isinstance(at, KgroupError):
                seen = untimed(partition, at)
            elif (self.clock and self.clock.is_future(partition)) or at.timestamp_ms > now_ms + FUTURE_MS:
                seen = future(partition)
            else:
                seen = at.offset
            yield partition, seen

    def _following(
        self,
        positions: Offsets,
        asked: Positions,
        answers: Mapping[TopicPartition, PartitionData | KgroupError],
    ) -> Iterator[tuple[TopicPartition, int]]:
        """Note what the answers show; yield what to ask next: after it, or from a group's earlier offset."""
        outside: list[TopicPartition] = []
        for partition, answer in answers.items():
            view, offset = self.views[partition], asked[partition]
            if isinstance(answer, KgroupError):
                view.unread = _not_read(partition, answer)
                continue
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                outside.append(partition)
                continue
            view.take_bounds(answer)
            try:
                first, after = first_readable(answer, offset)
            except KgroupError as error:
                yield from self._undecoded(partition, answer, error, offset, positions[partition])
                continue
            if first is not None:
                view.readable_at = max(view.readable_at, first)
            elif after < answer.last_stable_offset:
                yield partition, after
            else:
                before = [at for at in positions[partition] if not 0 <= view.nothing_from <= at]
                view.nothing_from = max(at for at in before if at <= offset)
                view.nothing_to = answer.last_stable_offset
                # A group that is further behind may have records left.
                if earlier := [at for at in before if at < view.nothing_from]:
                    yield partition, max(earlier)
        yield from self._from_the_start(outside, asked)

    def _undecoded(
        self,
        partition: TopicPartition,
        answer: PartitionData,
        error: KgroupError,
        offset: int,
        positions: Collection[int],
    ) -> Iterator[tuple[TopicPartition, int]]:
        """Note why nothing was read; yield an earlier offset, as records may precede a damaged batch."""
        view = self.views[partition]
        if not isinstance(error, DamagedBatch):
            view.unread = _not_read(partition, error)
            return
        view.damaged_at = max(view.damaged_at, error.met_from(offset, answer.high_watermark))
        if earlier := [at for at in positions if at < offset]:
            yield partition, max(earlier)

    def _from_the_start(
        self, places: Collection[TopicPartition], asked: Positions
    ) -> Iterator[tuple[TopicPartition, int]]:
        """Yield where logs begin that lack the offset asked for."""
        starts = list_offsets(self.cluster, dict.fromkeys(places, EARLIEST))
        for partition, start in starts.items():
            view = self.views[partition]
            if isinstance(start, KgroupError):
                view.start = view.unread = _not_read(partition, start)
                continue
            view.start = start.offset
            if start.offset > asked[partition]:
                yield partition, start.offset
            else:
                what = f"{partition}: offset {asked[partition]} is not in its log"
                view.unread = Unseen(LOOK, ErrorCode.OFFSET_OUT_OF_RANGE.name, what)

    def _list_stable(self, places: Collection[TopicPartition], topics: Answers[TopicDescription]) -> None:
        """Ask for the bounds that no answer to a Fetch had: these take no right to read."""
        for attribute, when, isolation in (("stable", LATEST, READ_COMMITTED), ("start", EARLIEST, 0)):
            missing = [partition for partition in places if getattr(self.views[partition], attribute) is None]
            times = dict.fromkeys(missing, when)
            listed = list_offsets(self.cluster, times, topics, isolation=isolation)
            for partition, at in listed.items():
                seen = (
                    at.offset
                    if isinstance(at, ListedOffset)
                    else Unseen(f"{attribute} offset", code_name(at), naming(partition, at.message))
                )
                setattr(self.views[partition], attribute, seen)


Came: TypeAlias = ListedOffset | KgroupError | Unseen
"""The first record from some point on, of offset -1 where there is none, or why it is not known."""


def first_read(
    cluster: ClusterView, offsets: Mapping[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, Came]]:
    """Yield the first record that readers of committed ones get, where it is not the one at the offset."""
    if not offsets:
        return
    logs = Logs(cluster)
    topics = cluster.topics({partition.topic for partition in offsets})
    logs.look({partition: (at,) for partition, at in offsets.items()}, topics)
    later = {}
    for partition, at in offsets.items():
        view = logs.views[partition]
        readable = view.readable(at)
        if isinstance(readable, Unseen):
            yield partition, readable
        elif not readable:
            yield partition, ListedOffset(NO_OFFSET, -1, NO_LEADER_EPOCH)
        elif view.readable_at > at:
            later[partition] = view.readable_at
    for (partition, at), written in times_at(cluster, later.items()).items():
        if isinstance(written, int):
            yield partition, ListedOffset(at, written, NO_LEADER_EPOCH)
        else:
            yield partition, untimed(partition, written)


def _not_read(partition: TopicPartition, error: KgroupError) -> Unseen:
    return Unseen(LOOK, code_name(error), naming(partition, error.message))


def first_readable(answer: PartitionData, offset: int) -> tuple[int | None, int]:
    """Return the first offset from `offset` on that a reader of committed records gets, and the next one.

    A batch that does not fit the answer holds records; where transactions were aborted they may be theirs,
    and it has to be fetched whole. Raise DecodeError for damaged batches.
    """
    from kgroup.protocol.batches import batches_in

    aborted = sorted((t.first_offset, t.producer_id) for t in answer.aborted_transactions or ())
    if offset < answer.last_stable_offset and not aborted and cut_off(answer):
        return offset, offset
    skipped: set[int] = set()
    after = offset
    for batch in batches_in(answer.records or b""):
        while aborted and aborted[0][0] <= batch.last_offset:
            skipped.add(aborted.pop(0)[1])
        after = max(after, batch.last_offset + 1)
        if batch.control:
            _ended(batch, skipped)
        elif batch.last_offset >= offset and not (batch.transactional and batch.producer_id in skipped):
            for record in batch.records:
                if record.offset >= offset:
                    return record.offset, after
    return None, after


def _ended(batch: Batch, skipped: set[int]) -> None:
    end = batch.end_marker
    if end is not None and not end.committed:
        skipped.discard(batch.producer_id)
