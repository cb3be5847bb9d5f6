"""Events and coverage as JSON and as a table: the fields declared here are printed, and make the schema."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, TypedDict

from kgroup.admin.as_json import declared
from kgroup.cli.output.tables import Column
from kgroup.domain import EPOCH_TYPES, GROUP_TYPES, Document, TopicPartition
from kgroup.durations import iso
from kgroup.history.fold.events import Delivered, Event, Unowned
from kgroup.history.fold.view import SIMPLE
from kgroup.history.log_items import BadRange

if TYPE_CHECKING:
    from kgroup.history.replay import Coverage


class EventDocument(TypedDict):
    """One event as printed; docs/json-output.md fixes the names."""

    offset: int
    end_offset: int
    topic: Annotated[
        str, "`__consumer_offsets`, or `__share_group_state` for what share groups did with records"
    ]
    partition: Annotated[int, "of that topic"]
    timestamp_ms: int
    timestamp: str | None
    end_timestamp_ms: int
    group_id: str | None
    type: Annotated[str, (*GROUP_TYPES, SIMPLE)] | None
    generation: int | None
    group_epoch: int | None
    member_epoch: int | None
    event: Annotated[str, "see [replay-log](replay-log.md)"]
    member_id: str | None
    instance_id: str | None
    detail: str
    cause: str | None
    proven: bool
    suspicious: bool
    count: int
    partitions: Annotated[Sequence[Document], list[TopicPartition]]
    unowned_ms: int | None
    unowned: Annotated[Sequence[Document], list[Unowned]]
    records: Annotated[
        Sequence[Document],
        list[Delivered],
        "of share groups: the records meant, and how often each was delivered",
    ]


class CoverageDocument(TypedDict):
    """The coverage of one partition: what is complete from where."""

    topic: str
    partition: Annotated[int, "-1 for all of a topic that could not be read"]
    source: str
    first_offset: int
    last_offset: int
    records: int
    missing: int
    from_the_start: bool
    complete_from_offset: int
    complete_from_ms: int
    complete_from: str | None
    unread: str | None
    bad_ranges: Annotated[Sequence[Document], list[BadRange]]
    gaps: Annotated[Sequence[str], "what kgroup record could not record, and why"]


EVENT_COLUMNS = (
    Column("timestamp", "TIME (UTC)"),
    Column("partition", right=True),
    Column("offset", right=True),
    Column("group_id", "GROUP"),
    Column("type"),
    Column("epoch", "GEN/EPOCH", right=True),
    Column("event"),
    Column("member_id", "MEMBER", wide=True),
    Column("instance_id", "INSTANCE", wide=True),
    Column("detail"),
    Column("cause"),
    Column("unowned_ms", "UNOWNED-MS", right=True),
)


def event_json(event: Event) -> EventDocument:
    """Return one event as printed."""
    epochs = event.protocol in EPOCH_TYPES
    worded: Document = {
        "topic": event.log_topic,
        "partition": event.log_partition,
        "timestamp": iso(event.timestamp_ms),
        "group_id": event.group or None,
        "type": event.protocol or None,
        "generation": None if epochs or event.epoch < 0 else event.epoch,
        "group_epoch": event.epoch if epochs and event.epoch >= 0 else None,
        "event": event.kind.value,
        "partitions": [partition._asdict() for partition in event.partitions],
        "unowned": [partition._asdict() for partition in event.unowned],
        "records": [record._asdict() for record in event.records],
    }
    return declared(EventDocument, event, worded)


def coverage_json(covered: "Coverage") -> CoverageDocument:
    """Return the coverage of one partition as printed."""
    worded: Document = {
        "complete_from_offset": covered.complete_from,
        "complete_from": iso(covered.complete_from_ms),
        "unread": covered.failure.message if covered.failure is not None else None,
        "bad_ranges": [asdict(bad) for bad in covered.bad],
    }
    return declared(CoverageDocument, covered, worded)
