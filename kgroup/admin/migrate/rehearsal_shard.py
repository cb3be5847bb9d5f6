"""Where a rehearsal takes place: a group's records copied into a shard in memory, with its own clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kgroup.admin.models import CLASSIC, CONSUMER
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.outcome import Reply, Request
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import Topic, TopicImage
from kgroup.errors import BrokerRefused, ErrorCode
from kgroup.history.decode.records import group_of, raw_records
from kgroup.history.decode.scan import CONTROL, TRANSACTIONAL, BatchHeader
from kgroup.history.sources.logs import OffsetsLog
from kgroup.log.memory import MemoryLog
from kgroup.protocol.batches import LogRecord
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseTopics,
)
from kgroup.runtime.shard import Shard

R = TypeVar("R", bound=Message)
NAMES_UNTIL = 9
"""The last version of OffsetFetch that names topics."""


@dataclass(slots=True)
class Copy:
    """A group's records in their own log, their number, and the time of the last."""

    source: str
    partition: int
    log: MemoryLog = field(default_factory=MemoryLog)
    count: int = 0
    last_ms: int = 0
    producers: set[int] = field(default_factory=set)

    def append(self, header: BatchHeader, records: Sequence[LogRecord]) -> None:
        """Add the group's records of a batch; transactions keep their batches and markers."""
        control, transactional = bool(header.attributes & CONTROL), bool(header.attributes & TRANSACTIONAL)
        self.count += 0 if control else len(records)
        self.last_ms = max(self.last_ms, header.max_timestamp_ms)
        if transactional:
            self.producers.add(header.producer_id)
        self.log.append(
            records,
            timestamp_ms=header.max_timestamp_ms,
            producer_id=header.producer_id if transactional else -1,
            producer_epoch=header.producer_epoch if transactional else -1,
            transactional=transactional,
            control=control,
        )


def copies_of(log: OffsetsLog, group_ids: Iterable[str]) -> dict[str, Copy]:
    """Return the records of each group that has some, by one pass over the log.

    Raise what keeps the log from being read to its end: half of a group's records are another group. Offsets
    of transactions count only where they were committed.
    """
    copies = {group_id: Copy(log.source, log.partition) for group_id in group_ids}
    for chunk, headers in log.batches():
        for header in headers:
            by_group: dict[str, list[LogRecord]] = {}
            if header.attributes & CONTROL:
                marker = [LogRecord(r.key, r.value) for r in raw_records(chunk, header)]
                by_group = {name: marker for name, c in copies.items() if header.producer_id in c.producers}
            else:
                for r in raw_records(chunk, header):
                    if r.key is not None and (name := group_of(r.key)) in copies:
                        by_group.setdefault(name, []).append(LogRecord(r.key, r.value))
            for name, records in by_group.items():
                copies[name].append(header, records)
    if log.failure is not None:
        raise log.failure
    return {name: copy for name, copy in copies.items() if copy.count}


def no_records(source: str, group_id: str) -> BrokerRefused:
    """Return why a group that has no record in a log cannot be copied."""
    return BrokerRefused(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"{source} has no record of group {group_id}",
        hint="a group that never committed nor finished a rebalance leaves none",
    )


def image_from(names: Mapping[bytes, str], counts: Mapping[str, int]) -> TopicImage:
    """Return the topics in the coordinator's form."""
    return TopicImage.of(Topic(name, topic_id, counts.get(name, 0)) for topic_id, name in names.items())


class Stage:
    """The coordinator of the rehearsal, its clock and its log."""

    def __init__(self, group_id: str, shard: Shard, now_ms: int) -> None:
        self.group_id = group_id
        self.shard = shard
        self.now_ms = now_ms
        self._answers: dict[int, Message] = {}
        self._ticket = 0

    def send(self, body: Message, client_id: str, host: str, version: int | None = None) -> int:
        self._ticket += 1
        newest = body.VERSIONS[-1] if version is None else version
        request = Request(body, newest, client_id, host)
        self._keep(self.shard.submit(self._ticket, request, self.now_ms))
        return self._ticket

    def answer(self, ticket: int, response: type[R], /) -> R | None:
        """Return the answer, of the class named; None while it waits for others."""
        answer = self._answers.get(ticket)
        assert answer is None or isinstance(answer, response)
        return answer

    def pass_time(self, ms: int) -> None:
        """Let time pass deadline by deadline."""
        until = self.now_ms + ms
        while (due := self.shard.next_wake_ms()) is not None and due <= until:
            self._keep(self.shard.wake(max(due, self.now_ms)))
        self.now_ms = until

    def _keep(self, replies: Iterable[Reply]) -> None:
        self._answers |= {reply.ticket: reply.response for reply in replies}

    @property
    def group(self) -> ClassicGroup | ConsumerGroup:
        group = self.shard.coordinator.state.groups[self.group_id]
        assert not isinstance(group, ShareGroup | StreamsGroup), "a plan is for groups of consumers"
        return group

    @property
    def type(self) -> str:
        return CONSUMER if isinstance(self.group, ConsumerGroup) else CLASSIC

    def offsets(self) -> tuple[OffsetFetchResponseTopics, ...]:
        """Return all committed offsets as OffsetFetch reports them."""
        group_request = OffsetFetchRequestGroup(group_id=self.group_id, topics=None)
        ticket = self.send(OffsetFetchRequest(groups=(group_request,)), "kgroup", "/127.0.0.1", NAMES_UNTIL)
        answer = self.answer(ticket, OffsetFetchResponse)
        assert answer is not None
        (group,) = answer.groups
        return group.topics
