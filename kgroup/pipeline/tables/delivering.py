"""The records of `__share_group_state` → rows of the table `deliveries`, as replay-log reports them.

The driver reads them record by record: next to `__consumer_offsets` the topic is short, as brokers delete
what lies before the newest snapshots. Each record is reported by itself, so rows do not depend on where runs
end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Unpack

import pyarrow as pa

from kgroup.domain import SHARE_STATE_TOPIC
from kgroup.errors import KgroupError, StorageError
from kgroup.history.choice import Choice
from kgroup.history.deliveries import DeliveryReader, kept_deliveries
from kgroup.history.fold.events import Event
from kgroup.history.replay import in_order
from kgroup.history.sources.logs import OffsetsLog, SegmentLog
from kgroup.pipeline.read.inputs import Input
from kgroup.pipeline.schemas import DELIVERIES as SCHEMA
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.tables.manifest import bad_in, stopped_at
from kgroup.pipeline.tables.store import DELIVERIES, Run
from kgroup.pipeline.tables.writing import TableFile, TableWriter


@dataclass(slots=True)
class Delivered:
    """What a run read of the topic; `unread` says which partition could not be read on, or why none could.

    `found` is whether the topic, or why it cannot be read, is known at all; True where nobody asks.
    """

    files: list[TableFile] = field(default_factory=list)
    unread: list[tuple[str, KgroupError]] = field(default_factory=list)
    news: bool = False
    found: bool = False

    def miss_the_topic(self) -> None:
        """Note that share groups were read and their deliveries were not."""
        missing = StorageError(
            "there are share groups, and no segment of the topic",
            "name the folders of both topics; kgroup capture keeps both",
        )
        self.unread.append((SHARE_STATE_TOPIC, missing))


def deliver(run: Run, origin: Input, topic_names: Mapping[bytes, str], **choice: Unpack[Choice]) -> Delivered:
    """Write what is new of share groups' deliveries, and let the run's manifest know where it stopped.

    What cannot be read is left to the next run: the tables of `__consumer_offsets` do not depend on it.
    """
    known = run.manifest.deliveries
    before = {part: stopped_at(row) for part, row in known.items()}
    after = {part: kept.seen.next_offset - 1 for part, kept in before.items()}
    done = Delivered(found=bool(known))
    try:
        with origin.state_logs(after) as logs:
            for log in logs:
                done.found = True
                part = log.partition
                reader = DeliveryReader(
                    log,
                    topic_names,
                    names=choice.get("names"),
                    wanted=choice.get("wanted"),
                    runs=False,
                    kept=before.get(part),
                )
                try:
                    events = in_order(reader.advance())
                except KgroupError as error:
                    done.unread.append((f"{SHARE_STATE_TOPIC}-{part}", error))
                    continue
                if log.failure is not None:
                    done.unread.append((f"{SHARE_STATE_TOPIC}-{part}", log.failure))
                _keep(run, reader, events, done)
    except KgroupError as error:
        done.unread.append((SHARE_STATE_TOPIC, error))
        done.found = True
    return done


def _keep(run: Run, reader: DeliveryReader, events: Sequence[Event], done: Delivered) -> None:
    log, known = reader.log, run.manifest.deliveries
    kept = reader.kept
    if kept is None:
        return
    with TableWriter(run.place, run.number, run.token, log.partition, DELIVERIES) as writer:
        writer.write(DELIVERIES, delivery_rows(events))
    done.files += writer.files
    old = known.get(log.partition)
    row = {
        "part": log.partition,
        "source": log.source,
        "state": kept_deliveries().encode(kept),
        "bad": [asdict(each) for each in log.bad] + _damaged_before(log, old),
    }
    done.news = done.news or row != old
    known[log.partition] = row


def _damaged_before(log: OffsetsLog, old: Row | None) -> list[Row]:
    """What earlier runs found in what this one did not read again: files are read whole each time."""
    again = {str(path) for path in log.files} if isinstance(log, SegmentLog) else set()
    return [asdict(each) for each in bad_in(old) if each.source not in again] if old else []


def delivery_rows(events: Sequence[Event]) -> pa.Table:
    """Return the events of one partition, in order, as rows of the table `deliveries`."""
    rows: list[Row] = []
    for event in events:
        at = event.partitions[0] if event.partitions else None
        last = rows[-1] if rows else None
        rows.append(
            {
                "part": event.log_partition,
                "log_offset": event.offset,
                "ts": event.timestamp_ms,
                "seq": last["seq"] + 1 if last and last["log_offset"] == event.offset else 0,
                "group_id": event.group,
                "event": event.kind.value,
                "topic": at and at.topic,
                "partition": at and at.partition,
                "delivered": [
                    {"first_offset": r.first_offset, "last_offset": r.last_offset, "deliveries": r.deliveries}
                    for r in event.records
                ],
                "count": event.count,
                "detail": event.detail,
                "cause": event.cause,
                "proven": event.proven,
            }
        )
    return pa.Table.from_pylist(rows, schema=SCHEMA)
