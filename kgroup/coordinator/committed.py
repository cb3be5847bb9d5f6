"""The offsets that one commit writes for one group, by topic; made into records where records are needed."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

from kgroup.coordinator.offset_store import StoredOffset
from kgroup.coordinator.outcome import Record
from kgroup.domain import NO_EXPIRY, ZERO_UUID
from kgroup.protocol.group_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    encode_key,
)
from kgroup.protocol.log_records import LogRecord


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


_KIND = OffsetCommitKey.TYPE.to_bytes(2, "big")
_ALIKE_IN = tuple(version.to_bytes(2, "big") for version in (3, 4))
"""The versions of a value in which offset and leader epoch come first, as twelve bytes."""
_OFFSET_AND_EPOCH = struct.Struct(">2xqi")
_PARTITION = struct.Struct(">i")


class CommitReader:
    """Reads commits from the batches of a log: what is equal in neighbouring records is decoded once."""

    def __init__(self) -> None:
        self._start: bytes | None = None
        self._group_id = self._topic = ""
        self._version, self._rest = b"", b""
        self._metadata, self._time, self._topic_id = "", -1, ZERO_UUID
        self._ids: dict[bytes, bytes] = {}

    def read(self, records: Sequence[LogRecord]) -> CommittedOffsets | None:
        """Return the one commit that a batch's records are, without a gap; None if they are anything else.

        Raise DecodeError for a value that is none.
        """
        topics: list[OfTopic] = []
        partitions, offsets = list[int](), list[StoredOffset]()
        at, group_id, last = records[0].offset if records else 0, None, None
        for key, value, _, _, offset in records:
            if not key or not value or offset != at:
                return None
            if key[:-4] != self._start and not self._knows_place(key):
                return None
            if (value[14:] != self._rest or value[:2] != self._version) and not self._knows_rest(value):
                return None
            if self._start != last:
                if group_id not in (None, self._group_id):
                    return None
                last, group_id = self._start, self._group_id
                partitions, offsets = [], []
                topics.append(OfTopic(self._topic, partitions, offsets))
            partitions.append(_PARTITION.unpack(key[-4:])[0])
            where, epoch = _OFFSET_AND_EPOCH.unpack_from(value)
            stored = StoredOffset(where, epoch, self._metadata, self._time, NO_EXPIRY, self._topic_id)
            offsets.append(stored)
            at += 1
        return None if group_id is None else CommittedOffsets(group_id, topics)

    def _knows_place(self, key: bytes) -> bool:
        commit_key = decode_key(key) if key[:2] == _KIND else None
        # Kafka ignores bytes behind a key: then its partition is not the last of it.
        if not isinstance(commit_key, OffsetCommitKey) or encode_key(commit_key) != key:
            return False
        self._start, self._group_id, self._topic = key[:-4], commit_key.group, commit_key.topic
        return True

    def _knows_rest(self, value: bytes) -> bool:
        if value[:2] not in _ALIKE_IN:
            return False
        commit = OffsetCommitValue.decode_prefix(value, 2, value[1])[0]
        self._version, self._rest = value[:2], value[14:]
        self._metadata, self._time = commit.metadata, commit.commit_timestamp
        # A million offsets take a third more memory without.
        self._topic_id = self._ids.setdefault(commit.topic_id, commit.topic_id)
        return True
