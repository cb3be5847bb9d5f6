"""Plays a program on our share partition, which stores on our share coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kgroup.domain import Topic, TopicImage, uuid_bytes
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol import batches
from kgroup.protocol.codec import Message
from kgroup.protocol.group_records import encode_key, encode_value
from kgroup.protocol.messages import delete_share_group_state as deleting
from kgroup.protocol.messages import initialize_share_group_state as initializing
from kgroup.protocol.messages import read_share_group_state as reading
from kgroup.protocol.messages import read_share_group_state_summary as summarizing
from kgroup.protocol.messages import write_share_group_state as writing
from kgroup.protocol.messages.share_fetch import AcknowledgementBatch
from kgroup.share.aborted import aborted_extents
from kgroup.share.acquire import Extent, Terms, Wish
from kgroup.share.coordinator import Change, Record, ShareCoordinator, ShareStateConfig, StateKey
from kgroup.share.in_flight import Batch, Fate
from kgroup.share.partition import SharePartition, Stored, seen_by_members

Op = dict[str, Any]
Told = dict[str, Any]
GROUP = "g"
START_MS = 1_000_000
MESSAGES = {
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the epoch on the broker.",
    ErrorCode.FENCED_STATE_EPOCH: (
        "The coordinator rejected the request because the state epoch did not match."
    ),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.UNKNOWN_SERVER_ERROR: "The server experienced an unexpected error when processing the request.",
}
"""Ways in which a write can fail before the share coordinator looks at it, and what Kafka says then."""
REQUESTS: Mapping[str, tuple[type[Any], type[Any], type[Any]]] = {
    "initialize": (
        initializing.InitializeShareGroupStateRequest,
        initializing.InitializeShareGroupStateResponse,
        initializing.PartitionResult,
    ),
    "read": (
        reading.ReadShareGroupStateRequest,
        reading.ReadShareGroupStateResponse,
        reading.PartitionResult,
    ),
    "write": (
        writing.WriteShareGroupStateRequest,
        writing.WriteShareGroupStateResponse,
        initializing.PartitionResult,
    ),
    "delete": (
        deleting.DeleteShareGroupStateRequest,
        deleting.DeleteShareGroupStateResponse,
        initializing.PartitionResult,
    ),
    "summary": (
        summarizing.ReadShareGroupStateSummaryRequest,
        summarizing.ReadShareGroupStateSummaryResponse,
        summarizing.PartitionResult,
    ),
}
TOPIC_RESULTS = {
    initializing.PartitionResult: initializing.TopicResult,
    reading.PartitionResult: reading.TopicResult,
    summarizing.PartitionResult: summarizing.TopicResult,
}


class Ours:
    """One program under way."""

    def __init__(self, setup: Told) -> None:
        self.now_ms = START_MS
        self.topic_id = uuid_bytes(setup["topic_id"])
        self.image = TopicImage.of([Topic("t", self.topic_id, setup["partitions"])])
        self.config = ShareStateConfig(updates_per_snapshot=setup["updates"])
        self.coordinator = ShareCoordinator(self.config, self.image)
        self.log: list[Record] = []
        self.written: list[Record] = []
        self.share: SharePartition | None = None
        self.terms = _terms(setup)
        self.reset = setup["group"].get("share.auto.offset.reset", "latest")
        self.fails = ErrorCode.NONE
        self.letters: list[str] = []

    def play(self, op: Op) -> Told:
        """Carry out an operation; what it did, as the JVM tells it."""
        self.fails = ErrorCode[op["fail"]] if "fail" in op else ErrorCode.NONE
        told: Told = getattr(self, f"_{op['op']}")(op) or {}
        told["letters"], self.letters = self.letters, []
        told["records"] = [
            [encode_key(key).hex(), None if (data := encode_value(value)) is None else data.hex()]
            for key, value in self.written
        ]
        self.written.clear()
        if self.share is not None:
            told["state"] = state_of(self.share)
        return told

    def _request(self, op: Op) -> Told:
        request, response, result = REQUESTS[op["op"]]
        body = request.decode(bytes.fromhex(op["request"]), op["version"])
        [topic] = body.topics
        [asked] = topic.partitions
        key = StateKey(body.group_id, topic.topic_id, asked.partition)
        try:
            done = self._asked(op["op"], key, asked)
        except Refused as refused:
            done = result(partition=asked.partition, error_code=refused.code, error_message=refused.message)
        results = TOPIC_RESULTS[result](topic_id=topic.topic_id, partitions=(done,))
        answer: Message = response(results=(results,))
        return {"answer": answer.encode(op["version"]).hex()}

    _initialize = _read = _write = _delete = _summary = _request

    def _asked(self, name: str, key: StateKey, asked: Any) -> Any:
        coordinator = self.coordinator
        if name == "summary":
            return coordinator.summary(key)
        if name == "delete":
            return self._appended(coordinator.delete(key))
        operation: Callable[..., Change[Any]] = getattr(coordinator, name)
        return self._appended(operation(key, asked, self.now_ms))

    def _appended(self, change: Change[Any]) -> Any:
        record, answer = change
        if record is not None:
            self._append([record])
        return answer

    def _append(self, records: Iterable[Record]) -> None:
        for record in records:
            self.coordinator.replay(record, len(self.log))
            self.log.append(record)
            self.written.append(record)

    def _cold(self, _: Op) -> Told:
        self._append(self.coordinator.snapshot_cold(self.now_ms))
        return {"answer": None}

    def _deleted(self, _: Op) -> Told:
        self._append(self.coordinator.topics_deleted({self.topic_id}))
        return {"answer": None}

    def _redundant(self, _: Op) -> Told:
        return {"answer": self.coordinator.redundant_offset}

    def reloaded(self) -> ShareCoordinator:
        """A coordinator that has read the log anew."""
        fresh = ShareCoordinator(self.config, self.image)
        for offset, record in enumerate(self.log):
            fresh.replay(record, offset)
        return fresh

    def _load(self, op: Op) -> Told:
        self.share = None
        key = StateKey(GROUP, self.topic_id, 0)
        try:
            self._fail()
            asked = reading.PartitionOfLeader(partition=0, leader_epoch=op["epoch"])
            found = self._appended(self.coordinator.read(key, asked, self.now_ms))
            start = found.start_offset if found.start_offset >= 0 else op[self.reset]
            stored = Stored(found.state_epoch, start, found.state_batches)
            self.share = SharePartition(0, op["epoch"], stored, self.terms, self._store)
        except Refused as refused:
            return _refused(seen_by_members(refused))
        self._bury()
        return {}

    def _fail(self) -> None:
        if self.fails:
            raise Refused(self.fails, MESSAGES[self.fails])

    def _store(self, change: writing.PartitionState) -> None:
        key = StateKey(GROUP, self.topic_id, 0)
        self._fail()
        self._appended(self.coordinator.write(key, change, self.now_ms))

    def _bury(self) -> None:
        """Take the dead letters, and be done with them at once."""
        assert self.share is not None
        while self.share.dead:
            letters = self.share.dead.pop(0)
            self.letters.append(f"{letters.first} {letters.last} {letters.count} {letters.cause}")
            self.share.dead_letters_done(letters)

    def _acquire(self, op: Op) -> Told:
        assert self.share is not None
        read = _batches(bytes.fromhex(op["records"]))
        extents = [Extent(batch.base_offset, batch.last_offset) for batch in read]
        aborted = aborted_extents(read, op["aborted"]) if op["committed"] else ()
        wish = Wish(op["member"], op["most"], op["batch"], by_record=op["mode"] == 1)
        got = self.share.acquire(wish, op["offset"], extents, self.now_ms, aborted)
        acquired = [[each.first_offset, each.last_offset, each.delivery_count] for each in got.records]
        return {"acquired": acquired, "size": got.size}

    def _acknowledge(self, op: Op) -> Told:
        assert self.share is not None
        said = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=tuple(types))
            for first, last, types in op["batches"]
        ]
        try:
            self.share.acknowledge(op["member"], said, self.now_ms)
        except Refused as refused:
            return _refused(refused)
        self._bury()
        return {}

    def _release(self, op: Op) -> Told:
        assert self.share is not None
        try:
            self.share.release(op["member"], self.now_ms)
        except Refused as refused:
            return _refused(refused)
        self._bury()
        return {}

    def _log_start(self, op: Op) -> None:
        assert self.share is not None
        self.share.log_start_moved(op["offset"])

    def _wait(self, op: Op) -> None:
        until = self.now_ms + op["ms"]
        while self.share is not None and (due := self.share.next_wake_ms()) is not None and due <= until:
            self.now_ms = max(self.now_ms, due)
            self.share.wake(self.now_ms)
            self._bury()
        self.now_ms = until


def _batches(data: bytes) -> list[batches.Batch]:
    """The batches, whose checksums are not looked at."""
    found: list[batches.Batch] = []
    at = 0
    while at < len(data):
        found.append(batches.Batch(data, at))
        at += found[-1].size
    return found


def _refused(refused: Refused) -> Told:
    return {"error": refused.code.name, "message": refused.message}


def _terms(setup: Told) -> Terms:
    group = setup["group"]
    return Terms(
        lock_ms=int(group.get("share.record.lock.duration.ms", 30_000)),
        most_deliveries=int(group.get("share.delivery.count.limit", 5)),
        most_in_flight=int(group.get("share.partition.max.record.locks", 2000)),
        may_renew=group.get("share.renew.acknowledge.enable", "true") == "true",
        dead_letters=setup["dlq"] and bool(group.get("errors.deadletterqueue.topic.name")),
    )


def state_of(share: SharePartition) -> Told:
    """All there is to a share partition, as the JVM tells it."""
    flight = share.flight
    return {
        "start": flight.start,
        "end": flight.end,
        "complete": flight.complete,
        "can_acquire": share.can_acquire(),
        "next": share.next_offset(),
        "batches": [[batch.first, batch.last, _fate(batch)] for batch in flight.batches],
    }


def _fate(batch: Batch) -> str | list[str]:
    return _told(batch.whole) if batch.whole is not None else [_told(each) for each in batch.each]


def _told(fate: Fate) -> str:
    return f"{fate.state.name} {fate.count} {fate.member}"
