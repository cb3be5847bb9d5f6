"""One `__consumer_offsets` partition: a coordinator, its log, and the order in which they change."""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from kgroup.coordinator.committed import CommitReader, CommittedOffsets
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.metrics import Counters
from kgroup.coordinator.outcome import Outcome, Record, Reply, Request, Ticket
from kgroup.coordinator.state import Step
from kgroup.domain import OFFSETS_TOPIC, EndMarker, TopicImage
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.log.interface import Log
from kgroup.protocol.batches import Appended, Batch, LogRecord, end_marker_record
from kgroup.protocol.group_records import UnknownKey, decode_key, decode_value, encode_key, encode_value
from kgroup.protocol.offset_records import encode_offsets
from kgroup.protocol.requests import refusal
from kgroup.runtime.clock import SystemClock
from kgroup.runtime.complaints import Complaints

log = logging.getLogger(__name__)
R = TypeVar("R")
NOT_LOADED = "the shard is not loaded"


class Telemetry(NamedTuple):
    """Metric counters and rate-limited logging, shared by all shards."""

    counters: Counters
    complaints: Complaints


class Shard:
    """Appends what the coordinator decides before anything is answered.

    An outcome that cannot be appended never happened: the coordinator is dropped and loaded from the log
    again, the request is answered COORDINATOR_NOT_AVAILABLE and every parked one NOT_COORDINATOR.
    Generations that were sent to members are not reused. An outcome whose records have no encoding is
    refused with UNKNOWN_SERVER_ERROR before anything is appended, and the coordinator stays.
    `telemetry` may be shared by shards; a reload goes on counting where it was.
    """

    def __init__(
        self,
        partition: int,
        log: Log,
        config: GroupConfig,
        seed: int,
        image: TopicImage,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.partition = partition
        self.log = log
        self._counters, self._complaints = telemetry or Telemetry(Counters(), Complaints(SystemClock()))
        self._config, self._seed, self._image = config, seed, image
        self._of_groups: dict[str, dict[str, str]] = {}
        self._waiting: dict[Ticket, Request] = {}
        self._coordinator: Coordinator | None = None
        self._loads = 0

    @property
    def coordinator(self) -> Coordinator:
        assert self._coordinator is not None, NOT_LOADED
        return self._coordinator

    def load(self, now_ms: int) -> None:
        """Rebuild the state from the log, whatever it was before.

        Raises StorageError or DecodeError for a log that cannot be read or contradicts itself.
        """
        # A log that has not grown since the last load must not produce the same member ids again: clients
        # still use those handed out meanwhile.
        again = f"/{self._loads}" if self._loads else ""
        seed = f"{self._seed}/{self.partition}/{self.log.end_offset}{again}"
        self._loads += 1
        fresh = Coordinator(self._config, seed, self._image)
        for group_id, settings in self._of_groups.items():
            fresh.configure(group_id, settings)
        fresh.state.counters = self._counters
        commits = CommitReader()
        for batch in self.log.batches(self.log.start_offset):
            replay_batch(fresh, batch, commits)
        self._coordinator = fresh
        self._settle(fresh.loaded(now_ms), now_ms)

    def submit(self, ticket: Ticket, request: Request, now_ms: int) -> list[Reply]:
        """Carry out a request; the replies that are due now, its own and others'."""
        coordinator = self._coordinator
        assert coordinator is not None, NOT_LOADED
        outcome = coordinator.step(ticket, request, now_ms)
        replies = outcome.replies
        # Nearly all requests are heartbeats: nothing to append, and their own answer at once.
        alone = len(replies) == 1 and replies[0].ticket == ticket
        if alone and not outcome.records and outcome.marker is None:
            return replies
        self._waiting[ticket] = request
        return self._settle(outcome, now_ms, ticket)

    def wake(self, now_ms: int, due_ms: int | None = None) -> list[Reply]:
        """Fire every timer that is due, or was by `due_ms`, one deadline after the other."""
        replies: list[Reply] = []
        last_ms = now_ms if due_ms is None else due_ms
        while (due := self.coordinator.next_wake_ms()) is not None and due <= last_ms:
            replies += self._settle(self.coordinator.wake(now_ms), now_ms)
        return replies

    def next_wake_ms(self) -> int | None:
        """Return when `wake` has something to do next, or None."""
        coordinator = self._coordinator
        assert coordinator is not None, NOT_LOADED
        return coordinator.state.timers.next_ms()

    def topics_changed(self, image: TopicImage, now_ms: int) -> list[Reply]:
        """Apply a new topic image."""
        self._image = image
        return self._settle(self.coordinator.topics_changed(image, now_ms), now_ms)

    def end_transaction(self, marker: EndMarker, now_ms: int) -> tuple[bool, list[Reply]]:
        """Append a transaction's end and apply it; return whether that was done, and the released replies."""
        try:
            self._append(Outcome(marker=marker), [], now_ms)
        except StorageError as error:
            return False, self._start_over(None, now_ms, error)
        return True, []

    def group_config_changed(self, group_id: str, settings: dict[str, str], now_ms: int) -> list[Reply]:
        """Replace a group's dynamic settings; they apply from its next request on.

        Return the replies this released. A shard that is not loaded yet applies them when it is.
        """
        self._of_groups[group_id] = settings
        if self._coordinator is None:
            return []
        return self._settle(self.coordinator.group_settings_changed(group_id, settings, now_ms), now_ms)

    def run(
        self, operation: Callable[[Step], R], now_ms: int, deliver: Callable[[Iterable[Reply]], None]
    ) -> R:
        """Carry out an operation of the host that is no request; `deliver` gets the replies this released.

        Refused as the operation says, or with COORDINATOR_NOT_AVAILABLE when nothing could be appended.
        """
        result, outcome = self.coordinator.run(operation, now_ms)
        end = self.log.end_offset
        deliver(self._settle(outcome, now_ms))
        if outcome.records and self.log.end_offset == end:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "nothing can be appended to the group's log")
        return result

    def abandon(self) -> list[Reply]:
        """Abandon the shard: every parked request is answered NOT_COORDINATOR."""
        waiting, self._waiting = self._waiting, {}
        return [Reply(t, refusal(r.body, ErrorCode.NOT_COORDINATOR)) for t, r in waiting.items()]

    def forget(self, ticket: Ticket) -> None:
        """Forget this ticket, which no call waits for; its reply may still come, and can be dropped."""
        self._waiting.pop(ticket, None)

    def _settle(self, outcome: Outcome, now_ms: int, ticket: Ticket | None = None) -> list[Reply]:
        if outcome.records or outcome.marker is not None:
            records = outcome.records
            encoded: Appended
            try:
                if isinstance(records, CommittedOffsets):
                    encoded = encode_offsets(records.group_id, records.topics)
                else:
                    encoded = [LogRecord(encode_key(r.key), encode_value(r.value)) for r in records]
            except Exception as error:
                # Nothing was appended or replayed: only the requests of the outcome are refused.
                subject = f"a record of {OFFSETS_TOPIC}-{self.partition}"
                self._complaints.say(log, subject, f"cannot be encoded, its request is refused: {error}")
                tickets = dict.fromkeys(reply.ticket for reply in outcome.replies)
                if ticket is not None:
                    tickets[ticket] = None
                waiting = [(t, asked) for t in tickets if (asked := self._waiting.pop(t, None)) is not None]
                return [Reply(t, refusal(asked.body, ErrorCode.UNKNOWN_SERVER_ERROR)) for t, asked in waiting]
            try:
                self._append(outcome, encoded, now_ms)
            except StorageError as error:
                return self._start_over(ticket, now_ms, error)
        for reply in outcome.replies:
            self._waiting.pop(reply.ticket, None)
        return outcome.replies

    def _append(self, outcome: Outcome, encoded: Appended, now_ms: int) -> None:
        """Replay the records, then append them: what a restart could not replay must never reach the log.

        After any exception the coordinator is ahead of the log, or in between: it must be reloaded.
        """
        records, coordinator = outcome.records, self.coordinator
        producer = outcome.producer
        if records:
            producer_id = -1 if producer is None else producer.producer_id
            coordinator.replay_all(records, self.log.end_offset, producer_id)
            if producer is None:
                self.log.append(encoded, timestamp_ms=now_ms)
            else:
                self.log.append(
                    encoded,
                    timestamp_ms=now_ms,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    transactional=True,
                )
        marker = outcome.marker
        if marker is not None:
            self.log.append(
                [end_marker_record(marker.committed, marker.coordinator_epoch)],
                timestamp_ms=now_ms,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transactional=True,
                control=True,
            )
            coordinator.end_transaction(marker.producer_id, committed=marker.committed)

    def _start_over(self, ticket: Ticket | None, now_ms: int, error: StorageError) -> list[Reply]:
        subject = f"{OFFSETS_TOPIC}-{self.partition}"
        self._complaints.say(log, subject, f"nothing can be appended, requests are refused: {error.message}")
        own = self._waiting.pop(ticket, None) if ticket is not None else None
        replies = self.abandon()
        if own is not None and ticket is not None:
            replies.insert(0, Reply(ticket, refusal(own.body, ErrorCode.COORDINATOR_NOT_AVAILABLE)))
        before = self.coordinator
        self.load(now_ms)
        self.coordinator.count_on_from(before)
        return replies


def replay_batch(coordinator: Coordinator, batch: Batch, commits: CommitReader) -> None:
    """Replay one batch of an offsets log; record types that are not ours are skipped.

    Raises DecodeError for bytes that are no record, InconsistentLog for records that contradict others.
    """
    if batch.control:
        marker = batch.end_marker
        if marker is not None:
            coordinator.end_transaction(batch.producer_id, committed=marker.committed)
        return
    producer_id = batch.producer_id if batch.transactional else -1
    # Nearly all batches are commits.
    if producer_id < 0 and (commit := commits.read(batch.records)) is not None:
        coordinator.replay_all(commit, batch.records[0].offset)
        return
    for stored in batch.records:
        key = decode_key(stored.key or b"")
        if isinstance(key, UnknownKey):
            continue
        coordinator.replay(Record(key, decode_value(key, stored.value)), stored.offset, producer_id)
