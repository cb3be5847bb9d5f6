"""A shard over a log of given records, and requests to it."""

from __future__ import annotations

from collections.abc import Sequence

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.outcome import Request
from kgroup.domain import EndMarker, Topic, TopicImage
from kgroup.log.memory import MemoryLog
from kgroup.protocol.batches import LogRecord
from kgroup.protocol.codec import Message
from kgroup.protocol.group_records import RecordKey, RecordValue, encode_key, encode_value
from kgroup.runtime.shard import Shard

NOW_MS = 1_700_000_000_000
TOPIC_ID, OTHER_ID = b"t" * 16, b"u" * 16
IMAGE = TopicImage.of([Topic("t1", TOPIC_ID, 4), Topic("t2", OTHER_ID, 1)])
Entry = tuple[RecordKey, RecordValue | None]


def shard_over(
    *batches: Sequence[Entry], config: GroupConfig | None = None, image: TopicImage = IMAGE
) -> Shard:
    """A loaded shard; each sequence of records is one batch of its log."""
    log = MemoryLog()
    for batch in batches:
        log.append([LogRecord(encode_key(key), encode_value(value)) for key, value in batch])
    shard = Shard(0, log, config or GroupConfig(), 1, image)
    shard.load(NOW_MS)
    return shard


def ask(shard: Shard, body: Message, version: int | None = None, now_ms: int = NOW_MS) -> Message | None:
    """The request's own response, None if it is parked."""
    chosen = body.VERSIONS[-1] if version is None else version
    replies = shard.submit(0, Request(body, chosen, "client", "/127.0.0.1"), now_ms)
    return next((reply.response for reply in replies if reply.ticket == 0), None)


def end(shard: Shard, producer_id: int, *, committed: bool) -> None:
    """End a producer's transaction."""
    done, replies = shard.end_transaction(EndMarker(producer_id, 0, committed, 0), NOW_MS)
    assert done and not replies
