"""The offsets that one commit writes for one group, by topic; made into records where records are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

from kgroup.coordinator.offset_store import StoredOffset
from kgroup.coordinator.outcome import Record
from kgroup.protocol.group_records import OffsetCommitKey


class OfTopic(NamedTuple):
    """What is committed of a topic: as many offsets as partitions."""

    topic: str
    partitions: Sequence[int]
    offsets: Sequence[StoredOffset]


class CommittedOffsets(Sequence[Record]):
    """The records of a commit, in the order of their appending; for one replay, which stores these offsets.

    Nearly all records are commits. As records they would be three objects more for each partition, which
    encoding and replay would only take apart again, and a commit would take half as long again.
    """

    __slots__ = ("_count", "group_id", "topics")

    def __init__(self, group_id: str, topics: Sequence[OfTopic]) -> None:
        self.group_id = group_id
        self.topics = topics
        self._count = sum([len(one.partitions) for one in topics])

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        for topic, partitions, offsets in self.topics:
            for partition, stored in zip(partitions, offsets, strict=True):
                key = OffsetCommitKey(group=self.group_id, topic=topic, partition=partition)
                yield Record(key, stored.value)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        return list(self)[index]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented
