"""The brokers' time: ages of their records must not depend on the clock of the operator's machine.

Coordinators stamp what they write, so the newest record of `__consumer_offsets` is a lower bound, and on a
cluster with any consumer it is seconds old. Where it is old, the controller is asked for its time, which it
tells as that of the leader of its quorum (KIP-836; a cluster of ZooKeeper's has none).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import NamedTuple, Protocol

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import TopicDescription
from kgroup.admin.read.offsets import MAX_TIMESTAMP, ListedOffset, list_offsets
from kgroup.domain import OFFSETS_TOPIC, TopicPartition, grouped
from kgroup.errors import KgroupError

AGREE_MS = 60_000
"""Clocks that differ by at most this count as equal."""
BEHIND_MS = 2_000
FUTURE_MS = 60_000
"""A record stamped so far in the future has a wrong time, which does not show when it arrived."""
EITHER = "this machine's clock is behind, or a producer's is ahead"
"""What may be wrong where a record is stamped later than this machine's time."""
SET_RIGHT = "set the clock right, or retry once any group of the cluster has committed"


@dataclass(frozen=True, slots=True)
class Clock:
    """This machine's time in ms, and the newest that coordinators wrote; None where unknown.

    `ahead` are the partitions whose newest record is stamped later than this machine's time, where the
    coordinators' records may not be seen: its clock is behind, or their producers' are ahead. Where the
    controller told its time, `here_ms` is that, and `off_ms` how far this machine's is ahead of it.
    """

    here_ms: int
    newest_ms: int | None = None
    ahead: frozenset[TopicPartition] = frozenset()
    off_ms: int | None = None
    stamps: Mapping[TopicPartition, ListedOffset] = field(default_factory=dict)
    """The record of a partition with the newest time, which producers give, of those that were looked at.

    It may be a marker, which coordinators stamp.
    """

    @property
    def sure(self) -> bool:
        """Whether `here_ms` is the brokers' time, as far as anything shows."""
        told = self.off_ms is not None
        return told or self.newest_ms is None or self.here_ms - self.newest_ms <= AGREE_MS

    @property
    def is_behind(self) -> bool:
        """Whether the brokers have written what is still to come by this machine's clock."""
        return self.newest_ms is not None and self.newest_ms - self.here_ms > BEHIND_MS

    def is_future(self, partition: TopicPartition) -> bool:
        """Return whether a record of this partition is stamped so late that others' times are not trusted."""
        newest = self.stamps.get(partition)
        return newest is not None and newest.timestamp_ms > self.most_ms + FUTURE_MS

    def may_be_behind(self, partition: TopicPartition) -> bool:
        """Return whether records of this partition may be older than this machine's time says."""
        return self.is_behind or partition in self.ahead

    @property
    def doubt(self) -> str | None:
        """What is wrong, or may be, with the clocks, by the records of `ahead` too."""
        if self.words is None and self.ahead:
            return f"what was written to {min(self.ahead)} is stamped later than it is: {EITHER}"
        return self.words

    @property
    def least_ms(self) -> int:
        """The brokers' time at least."""
        newest = self.here_ms if self.newest_ms is None else self.newest_ms
        return max(self.here_ms, newest) if self.sure else newest

    @property
    def most_ms(self) -> int:
        """The brokers' time at most, unless this machine's clock is behind."""
        return max(self.here_ms, self.newest_ms or 0)

    def age_ms(self, written_ms: int) -> int:
        """Return the minimum age of a record that a coordinator wrote."""
        return max(self.least_ms - written_ms, 0)

    def is_older(self, written_ms: int, bound_ms: int) -> bool | None:
        """Return whether a record that a coordinator wrote is this old; None where no clock shows that."""
        if self.age_ms(written_ms) >= bound_ms:
            return True
        return None if self.is_behind or self.most_ms - written_ms >= bound_ms else False

    @property
    def off(self) -> str | None:
        """What is wrong, or may be, with this machine's clock, whether or not ages are known."""
        if self.off_ms is None or abs(self.off_ms) <= BEHIND_MS:
            return self.words
        side = "ahead of" if self.off_ms > 0 else "behind"
        return f"this machine's clock is {abs(self.off_ms) / 1000:.0f} s {side} the controller's"

    @property
    def words(self) -> str | None:
        """What is wrong, or may be, with the clocks by which ages are measured; None where they agree."""
        if self.newest_ms is None:
            return None
        apart = (self.here_ms - self.newest_ms) / 1000
        if not self.sure:
            return (
                f"the newest record of {OFFSETS_TOPIC} is {apart:.0f} s old by this machine's clock: nothing "
                "is committed, or this clock is ahead of the brokers'; ages are measured by their records"
            )
        if self.is_behind and self.off_ms is not None:
            return f"the coordinator's clock is at least {-apart:.0f} s ahead of the controller's"
        if self.is_behind:
            return f"this machine's clock is at least {-apart:.0f} s behind the brokers'"
        return None


class Clocks(Protocol):
    """Returns the clock by which records of some partitions are aged, or a group of this broker is judged.

    Brokers' clocks may differ: what is stamped by another one, and is still to come, counts for nothing.
    """

    def __call__(self, places: Collection[TopicPartition], broker: int | None = None) -> Clock: ...


def clock_of(
    cluster: ClusterView,
    here_ms: int,
    also: Iterable[TopicPartition] = (),
    known: Answers[TopicDescription] | None = None,
) -> Clock:
    """Return the brokers' time from their records, and those of `also`; see `clocks_of`."""
    places = frozenset(also)
    return clocks_of(cluster, here_ms, places, known)(places)


def clocks_of(
    cluster: ClusterView,
    here_ms: int,
    also: Collection[TopicPartition],
    known: Answers[TopicDescription] | None = None,
) -> Clocks:
    """Ask once for the brokers' time; return what makes a clock of their records and those of some of `also`.

    Producers stamp the latter: a time beyond this machine's says that one of the two is wrong. `known` topics
    are not asked for; a cluster whose time is known is asked for the times of records alone. The controller
    is asked where the records do not show that this machine's time is right. A refusal leaves this machine's.
    """
    seen = _stamps(cluster, here_ms, also, known)
    if cluster.has_clock:
        return lambda places, broker=None: Clock(here_ms, stamps=seen.clock(places).stamps)
    told = cache(lambda: _told(cluster))

    def clock(places: Collection[TopicPartition], broker: int | None = None) -> Clock:
        measured = seen.clock(places, broker)
        if here_ms - (seen.newest_ms(broker) or 0) <= AGREE_MS and not measured.is_behind:
            return measured
        if (controller := told()) is None:
            brokers = seen.clock(places)
            if measured.is_behind or not brokers.is_behind or brokers.newest_ms is None:
                return brokers
            # Another broker's clock is ahead, or this machine's is behind: what holds for both is true.
            return replace(measured, here_ms=brokers.newest_ms)
        now_ms, off_ms = controller
        at_that_time = seen._replace(here_ms=now_ms).clock(places, -1 if broker is None else broker)
        return replace(at_that_time, ahead=frozenset(), off_ms=off_ms)

    return clock


def _told(cluster: ClusterView) -> tuple[int, int] | None:
    """Return the controller's time, and how far this machine's is ahead of it; None where unknown."""
    began = cluster.now_ms()
    told_ms = _told_ms(cluster)
    return None if told_ms is None else (told_ms, (began + cluster.now_ms()) // 2 - told_ms)


def _told_ms(cluster: ClusterView) -> int | None:
    """Return the controller's time; None where nothing tells it, or it may not be asked for."""
    from kgroup.protocol.messages.describe_quorum import (
        DescribeQuorumRequest,
        DescribeQuorumResponse,
        QuorumPartitionRequest,
        QuorumTopicRequest,
    )

    log = QuorumTopicRequest(topic_name="__cluster_metadata", partitions=(QuorumPartitionRequest(),))
    try:
        # Before version 1 it tells no time.
        answer = cluster.ask(
            None, DescribeQuorumRequest(topics=(log,)), DescribeQuorumResponse, versions=(1, None)
        )
    except KgroupError:
        return None
    parts = [part for topic in answer.topics for part in topic.partitions]
    times = [
        voter.last_caught_up_timestamp
        for part in parts
        for voter in part.current_voters
        if voter.replica_id == part.leader_id
    ]
    return next((ms for ms in times if ms > 0), None)


class _Stamps(NamedTuple):
    """The newest timestamps: those that coordinators wrote, None where they may not be seen, and others."""

    here_ms: int
    coordinators: Mapping[int, Sequence[int]] | None = None
    others: Mapping[TopicPartition, ListedOffset] = MappingProxyType({})

    def newest_ms(self, broker: int | None) -> int | None:
        """Return the newest that this broker wrote, or another one until now; None: that any broker did."""
        written = (self.coordinators or {}).items()
        counted = (ms for by, at in written for ms in at if broker in (None, by) or ms <= self.here_ms)
        return max(counted, default=None)

    def clock(self, places: Collection[TopicPartition], broker: int | None = None) -> Clock:
        stamps = {partition: self.others[partition] for partition in places if partition in self.others}
        if self.coordinators is None:
            # Producers' records alone: an old one says nothing, as a topic may be quiet.
            ahead = frozenset(p for p, at in stamps.items() if at.timestamp_ms > self.here_ms + BEHIND_MS)
            return Clock(self.here_ms, ahead=ahead, stamps=stamps)
        past = (at.timestamp_ms for at in stamps.values() if at.timestamp_ms <= self.here_ms)
        written = self.newest_ms(broker)
        counted = (*past, *(() if written is None else (written,)))
        return Clock(self.here_ms, max(counted, default=None), stamps=stamps)


def _stamps(
    cluster: ClusterView,
    here_ms: int,
    also: Collection[TopicPartition],
    known: Answers[TopicDescription] | None,
) -> _Stamps:
    try:
        topics = known if known and OFFSETS_TOPIC in known else cluster.topics([OFFSETS_TOPIC])
        topic = topics[OFFSETS_TOPIC]
        parts = topic.partitions if isinstance(topic, TopicDescription) else ()
        places = [TopicPartition(OFFSETS_TOPIC, part.partition) for part in parts]
        asked = dict.fromkeys((*places, *also), MAX_TIMESTAMP)
        # Where other partitions' topics are not known, they are asked for.
        began = cluster.now_ms()
        listed = list_offsets(cluster, asked, topics if topics is known or not also else None)
        # What was written while the brokers answered is not ahead of this machine.
        here_ms += max(cluster.now_ms() - began, 0)
    except KgroupError:
        return _Stamps(here_ms)
    stamps = {p: at for p, at in listed.items() if isinstance(at, ListedOffset) and at.timestamp_ms >= 0}
    led = {TopicPartition(OFFSETS_TOPIC, part.partition): part.leader for part in parts}
    ours = grouped((led[partition], at.timestamp_ms) for partition, at in stamps.items() if partition in led)
    return _Stamps(here_ms, ours if parts else None, stamps)
