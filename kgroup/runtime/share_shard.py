"""One `__share_group_state` partition: a share coordinator, its log, and their order of changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from kgroup.domain import NO_OFFSET, SHARE_STATE_TOPIC, TopicImage
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.log.interface import Log
from kgroup.protocol.batches import LogRecord
from kgroup.protocol.group_records import encode_key, encode_value
from kgroup.protocol.share_state_records import decode_key, decode_value
from kgroup.runtime.complaints import Complaints, line_of
from kgroup.share.coordinator import Change, Record, ShareCoordinator, ShareStateConfig

log = logging.getLogger(__name__)
R = TypeVar("R")


class ShareShard:
    """Appends what the share coordinator decides before anything is answered.

    After a failed append the coordinator is loaded from the log again: what was refused never happened.
    """

    def __init__(
        self, partition: int, log: Log, config: ShareStateConfig, image: TopicImage, complaints: Complaints
    ) -> None:
        self.partition = partition
        self.log = log
        self._config = config
        self._complaints = complaints
        self.coordinator = ShareCoordinator(config, image)

    def load(self) -> None:
        """Rebuild the state from the log, whatever it was before.

        Raises StorageError or DecodeError for a log that cannot be read.
        """
        fresh = ShareCoordinator(self._config, self.coordinator.image)
        for batch in self.log.batches(self.log.start_offset):
            for stored in [] if batch.control else batch.records:
                key = decode_key(stored.key or b"")
                fresh.replay(Record(key, decode_value(key, stored.value)), stored.offset)
        self.coordinator = fresh

    def run(self, operation: Callable[[ShareCoordinator], Change[R]], now_ms: int) -> R:
        """Carry out an operation; return its answer, once what it decided is in the log.

        Refused as the operation says, or with COORDINATOR_NOT_AVAILABLE when nothing could be appended.
        """
        record, answer = operation(self.coordinator)
        if record is not None:
            self._append([record], now_ms)
        return answer

    def topics_changed(self, image: TopicImage, now_ms: int) -> None:
        """Apply a new topic image; remove the state of partitions of deleted topics."""
        gone = image.changes_since(self.coordinator.image).gone
        self.coordinator.image = image
        self._append(self.coordinator.topics_deleted({topic.topic_id for topic in gone.values()}), now_ms)

    def keep_short(self, now_ms: int) -> None:
        """Write snapshots of what had none for long, and delete what all snapshots supersede."""
        self._append(self.coordinator.snapshot_cold(now_ms), now_ms)
        offset = self.coordinator.redundant_offset
        if offset != NO_OFFSET and offset > self.log.start_offset:
            self.log.delete_before(offset)

    def _append(self, records: Iterable[Record], now_ms: int) -> None:
        records = list(records)
        if not records:
            return
        encoded = [LogRecord(encode_key(record.key), encode_value(record.value)) for record in records]
        base = self.log.end_offset
        try:
            self.log.append(encoded, timestamp_ms=now_ms)
        except StorageError as error:
            subject = f"{SHARE_STATE_TOPIC}-{self.partition}"
            self._complaints.say(
                log, subject, f"nothing can be appended, requests are refused: {line_of(error)}"
            )
            self.load()
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from None
        for offset, record in enumerate(records, base):
            self.coordinator.replay(record, offset)
