"""Committed and pending offsets of one shard; changed only by replay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgroup.domain import NO_OFFSET
from kgroup.protocol.group_records import OffsetCommitValue
from kgroup.protocol.offset_records import value_of


@dataclass(slots=True)
class StoredOffset:
    """A committed offset, what its record says of it, and that record's log offset, once it has one.

    One object, as there are millions of them. Leader epoch and expiry are -1 when unset; times in ms.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: bytes
    log_offset: int = NO_OFFSET

    @property
    def value(self) -> OffsetCommitValue:
        """What its record says."""
        return value_of(self)


GroupOffsets = dict[str, dict[int, StoredOffset]]
NO_OFFSETS: GroupOffsets = {}
NO_TOPIC: dict[int, StoredOffset] = {}


class OffsetStore:
    """Offsets by group, topic and partition; those of open transactions apart, by producer."""

    def __init__(self) -> None:
        self._committed: dict[str, GroupOffsets] = {}
        self._pending: dict[int, dict[str, GroupOffsets]] = {}
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}
        self._ids: dict[bytes, bytes] = {}
        self._names: dict[str, str] = {}
        self._time = -1

    def of_group(self, group_id: str) -> GroupOffsets:
        """Return the group's committed offsets by topic and partition; not to be changed."""
        return self._committed.get(group_id, NO_OFFSETS)

    def get(self, group_id: str, topic: str, partition: int) -> StoredOffset | None:
        """Return the committed offset, or None."""
        return self.of_group(group_id).get(topic, NO_TOPIC).get(partition)

    def groups(self) -> Iterator[str]:
        """Return ids of the groups that have offsets, committed or pending."""
        yield from self._committed
        yield from (group_id for group_id in self._open if group_id not in self._committed)

    def count(self) -> int:
        """Count committed offsets."""
        return sum(len(by_partition) for g in self._committed.values() for by_partition in g.values())

    def has_pending(self, group_id: str, topic: str | None = None, partition: int = -1) -> bool:
        """Return whether an open transaction has an offset of the group, or of the partition named."""
        open_here = self._open.get(group_id)
        if not open_here:
            return False
        return topic is None or (topic, partition) in open_here

    def pending_partitions(self, group_id: str) -> list[tuple[str, int]]:
        """Return topic and partition of every offset pending in an open transaction."""
        return list(self._open.get(group_id, ()))

    def put(
        self, group_id: str, topic: str, partition: int, value: OffsetCommitValue, log_offset: int
    ) -> None:
        """Commit an offset."""
        self._of_topic(group_id, topic)[partition] = self._stored(value, log_offset)

    def put_all(
        self, group_id: str, topic: str, partitions: Sequence[int], offsets: Sequence[StoredOffset], base: int
    ) -> None:
        """Commit offsets of a topic, one per partition; records follow each other from `base` on."""
        by_partition = self._of_topic(group_id, topic)
        for log_offset, (partition, stored) in enumerate(zip(partitions, offsets, strict=True), base):
            stored.log_offset = log_offset
            by_partition[partition] = stored

    def _of_topic(self, group_id: str, topic: str) -> dict[int, StoredOffset]:
        group = self._committed.get(group_id)
        if group is None:
            group = self._committed[group_id] = {}
        by_partition = group.get(topic)
        if by_partition is None:
            by_partition = group[self._names.setdefault(topic, topic)] = {}
        return by_partition

    def _stored(self, value: OffsetCommitValue, log_offset: int) -> StoredOffset:
        """Return an offset that shares equal values: a million take a third more memory without."""
        if value.commit_timestamp != self._time:
            self._time = value.commit_timestamp
        return StoredOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            self._time,
            value.expire_timestamp,
            self._ids.setdefault(value.topic_id, value.topic_id),
            log_offset,
        )

    def put_pending(
        self,
        producer: int,
        group_id: str,
        topic: str,
        partition: int,
        value: OffsetCommitValue,
        log_offset: int,
    ) -> None:
        """Keep an offset until the producer's transaction ends; the latest of a transaction wins."""
        group = self._pending.setdefault(producer, {}).setdefault(group_id, {})
        group.setdefault(topic, {})[partition] = self._stored(value, log_offset)
        self._open.setdefault(group_id, {}).setdefault((topic, partition), set()).add(producer)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Remove the partition's offset, committed and pending."""
        _drop(self._committed, group_id, topic, partition)
        open_here = self._open.get(group_id)
        if open_here is None:
            return
        # A later COMMIT must restore nothing of what was deleted meanwhile.
        for producer in open_here.pop((topic, partition), ()):
            _drop(self._pending[producer], group_id, topic, partition)
            if not self._pending[producer]:
                del self._pending[producer]
        if not open_here:
            del self._open[group_id]

    def end_transaction(self, producer: int, committed: bool) -> int:
        """Commit or drop the producer's pending offsets; return how many took effect.

        A plain commit that was appended after the transactional one stays: the newest record wins, as for
        any reader of the log that ignores transactions.
        """
        taken = 0
        # A producer without offsets here is no error: the marker goes to every partition of its transaction.
        for group_id, topics in self._pending.pop(producer, {}).items():
            for topic, by_partition in topics.items():
                for partition, stored in by_partition.items():
                    self._close(group_id, topic, partition, producer)
                    if not committed:
                        continue
                    existing = self.get(group_id, topic, partition)
                    if existing is None or existing.log_offset < stored.log_offset:
                        self._of_topic(group_id, topic)[partition] = stored
                        taken += 1
        return taken

    def _close(self, group_id: str, topic: str, partition: int, producer: int) -> None:
        open_here = self._open[group_id]
        producers = open_here[topic, partition]
        producers.discard(producer)
        if not producers:
            del open_here[topic, partition]
        if not open_here:
            del self._open[group_id]


def _drop(groups: dict[str, GroupOffsets], group_id: str, topic: str, partition: int) -> None:
    topics = groups.get(group_id)
    if topics is None or topic not in topics:
        return
    topics[topic].pop(partition, None)
    if not topics[topic]:
        del topics[topic]
    if not topics:
        del groups[group_id]
