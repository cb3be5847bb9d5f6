"""The settings a topic may have: Kafka's names, types, defaults and bounds, and the values in force.

Kafka 4.3.1's LogConfig is the source. A value that was not given is the broker's, under the broker's name
for it, else the default. Retention alone differs: nothing is deleted by default, as the embedded cluster
may contain a copy of a user's data (docs/decisions/0017-topic-settings.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kgroup.errors import ErrorCode, Refused
from kgroup.numbers import INT64_MAX
from kgroup.settings import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, Setting, Value, one_of

MAX_VALUE = (1 << 15) - 1  # length of a value
_THROTTLED = re.compile(r"([0-9]+:[0-9]+)?")


def _policies(policies: tuple[str, ...]) -> tuple[str, ...]:
    # Kafka drops repeated items if it knows all valid ones.
    return tuple(dict.fromkeys(map(one_of("compact", "delete"), policies)))


def _gzip_level(level: int) -> int:
    if level != -1 and not 1 <= level <= 9:
        raise ValueError("Value must be between 1 and 9 or equal to -1")
    return level


def _throttled(replicas: tuple[str, ...]) -> tuple[str, ...]:
    if "".join(replicas) != "*" and not all(_THROTTLED.fullmatch(replica) for replica in replicas):
        raise ValueError(
            "must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
    return replicas


_COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_ROWS = (
    Setting("cleanup.policy", LIST, ("delete",), check=_policies).documented(
        "What happens to old segments: delete, compact, both, or nothing.", "log.cleanup.policy"
    ),
    Setting("compression.gzip.level", INT, -1, check=_gzip_level).documented(
        "Level of gzip compression, 1 to 9; -1 is the library's default.", "compression.gzip.level"
    ),
    Setting("compression.lz4.level", INT, 9, low=1, high=17).documented(
        "Level of lz4 compression, 1 to 17.", "compression.lz4.level"
    ),
    Setting("compression.type", STRING, "producer", check=one_of(*_COMPRESSIONS)).documented(
        "Compression of stored batches; producer keeps what the producer chose.", "compression.type"
    ),
    Setting("compression.zstd.level", INT, 3, low=-131072, high=22).documented(
        "Level of zstd compression.", "compression.zstd.level"
    ),
    Setting("delete.retention.ms", LONG, 86_400_000, low=0).documented(
        "How long a compacted log keeps tombstones.", "log.cleaner.delete.retention.ms"
    ),
    Setting("file.delete.delay.ms", LONG, 60_000, low=0).documented(
        "How long a removed segment stays on disk.", "log.segment.delete.delay.ms"
    ),
    Setting("flush.messages", LONG, INT64_MAX, low=1).documented(
        "Sync the log to disk after this many records; 1 syncs every append.", "log.flush.interval.messages"
    ),
    Setting("flush.ms", LONG, INT64_MAX, low=0).documented(
        "Sync the log to disk after this time.", "log.flush.interval.ms", is_coarse_behind=True
    ),
    Setting("follower.replication.throttled.replicas", LIST, (), check=_throttled).documented(
        "Throttled followers, as PARTITION:BROKER."
    ),
    Setting("index.interval.bytes", INT, 4096, low=0).documented(
        "Bytes of log between two entries of its offset index.", "log.index.interval.bytes"
    ),
    Setting("leader.replication.throttled.replicas", LIST, (), check=_throttled).documented(
        "Throttled leaders, as PARTITION:BROKER."
    ),
    Setting("local.retention.bytes", LONG, -2, low=-2).documented(
        "Bytes that stay local with tiered storage; -2 means retention.bytes.", "log.local.retention.bytes"
    ),
    Setting("local.retention.ms", LONG, -2, low=-2).documented(
        "How long data stays local with tiered storage; -2 means retention.ms.", "log.local.retention.ms"
    ),
    Setting("max.compaction.lag.ms", LONG, INT64_MAX, low=1).documented(
        "The longest a record may stay without being compacted.", "log.cleaner.max.compaction.lag.ms"
    ),
    Setting("max.message.bytes", INT, 1_048_588, low=0).documented(
        "The largest record batch a producer may send, in bytes.", "message.max.bytes"
    ),
    Setting("message.timestamp.after.max.ms", LONG, 3_600_000, low=0).documented(
        "How far a record's timestamp may lie after the broker's time.", "log.message.timestamp.after.max.ms"
    ),
    Setting("message.timestamp.before.max.ms", LONG, INT64_MAX, low=0).documented(
        "How far a record's timestamp may lie before the broker's time.",
        "log.message.timestamp.before.max.ms",
    ),
    Setting(
        "message.timestamp.type", STRING, "CreateTime", check=one_of("CreateTime", "LogAppendTime")
    ).documented(
        "Whether records keep the producer's time (CreateTime) or get the broker's.",
        "log.message.timestamp.type",
    ),
    Setting("min.cleanable.dirty.ratio", DOUBLE, 0.5, low=0, high=1).documented(
        "The share of a log that is not compacted before compaction starts.",
        "log.cleaner.min.cleanable.ratio",
    ),
    Setting("min.compaction.lag.ms", LONG, 0, low=0).documented(
        "How long a record is safe from compaction.", "log.cleaner.min.compaction.lag.ms"
    ),
    Setting("min.insync.replicas", INT, 1, low=1).documented(
        "Replicas that must have a record before acks=all is answered.", "min.insync.replicas"
    ),
    Setting("preallocate", BOOLEAN, False).documented(
        "Whether a new segment takes its full size on disk at once.", "log.preallocate"
    ),
    Setting("remote.log.copy.disable", BOOLEAN, False).documented(
        "Whether tiered storage copies nothing more."
    ),
    Setting("remote.log.delete.on.disable", BOOLEAN, False).documented(
        "Whether switching tiered storage off deletes what was copied."
    ),
    Setting("remote.storage.enable", BOOLEAN, False).documented(
        "Whether segments are copied to tiered storage."
    ),
    Setting("retention.bytes", LONG, -1).documented(
        "Bytes a partition keeps before old segments are deleted; -1 is no limit.", "log.retention.bytes"
    ),
    Setting("retention.ms", LONG, -1, low=-1).documented(
        "How long records are kept before they are deleted; -1 is for ever.",
        "log.retention.ms",
        is_coarse_behind=True,
    ),
    Setting("segment.bytes", INT, 1 << 30, low=1 << 20).documented(
        "Size at which a log begins a new segment, in bytes.", "log.segment.bytes"
    ),
    Setting("segment.index.bytes", INT, 10_485_760, low=4).documented(
        "The largest offset index of a segment, in bytes.", "log.index.size.max.bytes"
    ),
    Setting("segment.jitter.ms", LONG, 0, low=0).documented(
        "Random time subtracted from segment.ms, so that segments do not roll together.",
        "log.roll.jitter.ms",
        is_coarse_behind=True,
    ),
    Setting("segment.ms", LONG, 604_800_000, low=1).documented(
        "Age at which a log begins a new segment.", "log.roll.ms", is_coarse_behind=True
    ),
    Setting("unclean.leader.election.enable", BOOLEAN, False).documented(
        "Whether a replica that lacks records may become leader.", "unclean.leader.election.enable"
    ),
)
SETTINGS = {row.name: row for row in _ROWS}
"""Kafka's 33 topic settings, by name."""

_SMALLER = Setting("internal.segment.bytes", INT, internal=True).documented("Size of segments, for tests.")
INTERNAL = {_SMALLER.name: _SMALLER}
"""Settings Kafka accepts without listing them: segments smaller than `segment.bytes` may be, for tests."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The values in force for one topic; those that act here, times in ms and sizes in bytes."""

    max_message_bytes: int
    append_time: bool
    """Whether records get the time of their append (LogAppendTime) instead of keeping their own."""
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    compact: bool
    delete: bool
    segment_bytes: int
    fsync: bool
    """Whether every append is synced (flush.messages=1)."""
    delete_retention_ms: int
    min_cleanable_dirty_ratio: float

    @classmethod
    def of(cls, own: Mapping[str, str], broker: Mapping[str, str]) -> TopicSettings:
        """Return what is in force with the topic's own settings, and the broker's by the broker's names."""

        def value(name: str) -> Value:
            return _value(name, own, broker)

        policies, internal = value("cleanup.policy"), own.get("internal.segment.bytes")
        return cls(
            max_message_bytes=value("max.message.bytes"),
            append_time=value("message.timestamp.type") == "LogAppendTime",
            timestamp_before_max_ms=value("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=value("message.timestamp.after.max.ms"),
            compact="compact" in policies,
            delete="delete" in policies,
            segment_bytes=value("segment.bytes") if internal is None else _SMALLER.read(internal),
            fsync=value("flush.messages") == 1,
            delete_retention_ms=value("delete.retention.ms"),
            min_cleanable_dirty_ratio=value("min.cleanable.dirty.ratio"),
        )


def check(own: Mapping[str, str], broker: Mapping[str, str]) -> None:
    """Raise INVALID_CONFIG for a value that a topic cannot have, or two that contradict each other.

    The names are known ones.
    """
    values = {}
    for name, row in (SETTINGS | INTERNAL).items():
        if name in own:
            text = own[name]
            if len(text) > MAX_VALUE:
                raise Refused(
                    ErrorCode.INVALID_CONFIG,
                    "The configuration value cannot be added because "
                    f"it exceeds the maximum value size of {MAX_VALUE} bytes.",
                )
            values[name] = row.parse(text)
    if values.get("remote.storage.enable"):
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
    least, most = (_value(name, own, broker) for name in ("min.compaction.lag.ms", "max.compaction.lag.ms"))
    if least > most:
        raise Refused(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
        )


def _value(name: str, own: Mapping[str, str], broker: Mapping[str, str]) -> Value:
    row = SETTINGS[name]
    text = own.get(name, broker.get(row.behind))
    # Not `parse`: segments of topics of state may be smaller.
    return row.default if text is None else row.read(text)
