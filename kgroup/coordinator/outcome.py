"""The input and output of the machine: requests with their context; records and replies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kgroup.domain import EndMarker
from kgroup.protocol.codec import Message
from kgroup.protocol.record_kinds import RecordKey, RecordValue

Ticket: TypeAlias = int


@dataclass(slots=True)
class Request:
    """A decoded request and what its connection knows; `client_host` as Kafka prints it: "/127.0.0.1".

    `describable` returns which topics the caller may see; None for all.
    """

    body: Message
    version: int
    client_id: str = ""
    client_host: str = ""
    describable: Callable[[str], bool] | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class Record:
    """One record of `__consumer_offsets`; a None value is a tombstone."""

    key: RecordKey
    value: RecordValue | None


@dataclass(slots=True)
class Reply:
    """The answer to the request that was submitted under `ticket`."""

    ticket: Ticket
    response: Message


@dataclass(slots=True)
class Parked:
    """A request to be answered later."""

    ticket: Ticket
    version: int


@dataclass(frozen=True, slots=True)
class Producer:
    """The transactional producer a batch of offset commits belongs to."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class Outcome:
    """What one step asks of its host: append `records` as one batch, replay each, then send `replies`.

    `producer` makes the batch transactional; `marker` is appended behind it.
    """

    records: Sequence[Record] = ()
    replies: list[Reply] = field(default_factory=list)
    producer: Producer | None = None
    marker: EndMarker | None = None
