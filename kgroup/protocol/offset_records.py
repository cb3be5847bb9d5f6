"""The records of a commit, encoded together: their common parts are made once.

A group commits the same topics all the time, and the parts of one commit about a topic's partitions differ
in offset and leader epoch. The bytes are those of `encode_key`, `encode_value` and `encode_records`.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Protocol

from kgroup.domain import NO_EXPIRY
from kgroup.protocol.group_records import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value
from kgroup.protocol.log_records import EncodedRecords, LogRecord, encode_records, varint

_INT32_BYTES = 4
_VERSION = OffsetCommitValue.WRITTEN.to_bytes(2, "big")
_OFFSET_AND_EPOCH_BYTES = 12


class Committed(Protocol):
    """A commit's value, times in ms; with a time of expiry it has no leader epoch nor topic id."""

    @property
    def offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def metadata(self) -> str: ...
    @property
    def commit_timestamp(self) -> int: ...
    @property
    def expire_timestamp(self) -> int: ...
    @property
    def topic_id(self) -> bytes: ...


def encode_offsets(
    group: str, topics: Iterable[tuple[str, Sequence[int], Sequence[Committed]]]
) -> EncodedRecords:
    """Return the records of a group's offsets: each topic with its partitions and what was committed of each.

    What was committed of one topic has one time and one topic id. The records take the time of their batch.
    Raises ValueError for a name or metadata that is too long for a record.
    """
    out: list[bytes] = []
    count = 0
    for topic, partitions, commits in topics:
        metadata, width = None, 0
        for delta, (partition, commit) in enumerate(zip(partitions, commits, strict=True), count):
            if commit.expire_timestamp != NO_EXPIRY:
                # Rare, and of another layout (version 1).
                key_bytes = encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition))
                record = LogRecord(key_bytes, encode_value(value_of(commit)))
                out.append(encode_records([record], [delta], 0, 0)[0])
                continue
            nth = varint(delta)
            if commit.metadata != metadata or len(nth) != width:
                metadata, width = commit.metadata, len(nth)
                key = _key_start(group, topic)
                version, tail = _value_around(metadata, commit.commit_timestamp, commit.topic_id)
                lead, pack = _frame(width, len(key), len(version), len(tail))
            out.append(pack(lead, nth, key, partition, version, commit.offset, commit.leader_epoch, tail))
        count += len(partitions)
    return EncodedRecords(b"".join(out), count)


def value_of(commit: Committed) -> OffsetCommitValue:
    """Return what a record says of a commit."""
    return OffsetCommitValue(
        offset=commit.offset,
        leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
        commit_timestamp=commit.commit_timestamp,
        expire_timestamp=commit.expire_timestamp,
        topic_id=commit.topic_id,
    )


@lru_cache(maxsize=256)
def _frame(nth: int, key: int, version: int, tail: int) -> tuple[bytes, Callable[..., bytes]]:
    """Return the bytes before the offset delta of a record with parts of these sizes, and their joiner."""
    size = 2 + nth + key + _INT32_BYTES + version + _OFFSET_AND_EPOCH_BYTES + tail
    # Its attributes, and no time of its own; see `encode_records`.
    lead = varint(size) + b"\0\0"
    return lead, struct.Struct(f">{len(lead)}s{nth}s{key}si{version}sqi{tail}s").pack


@lru_cache(maxsize=4096)
def _key_start(group: str, topic: str) -> bytes:
    """Return a key's length and its bytes without the partition, which comes last."""
    key = encode_key(OffsetCommitKey(group=group, topic=topic, partition=0))
    return varint(len(key)) + key[:-_INT32_BYTES]


@lru_cache(maxsize=256)
def _value_around(metadata: str, commit_timestamp: int, topic_id: bytes) -> tuple[bytes, bytes]:
    """Return the bytes before a value's offset and leader epoch, its length first, and those behind."""
    value = encode_value(
        OffsetCommitValue(offset=0, metadata=metadata, commit_timestamp=commit_timestamp, topic_id=topic_id)
    )
    assert value is not None
    return varint(len(value)) + _VERSION, value[len(_VERSION) + _OFFSET_AND_EPOCH_BYTES :] + b"\0"
