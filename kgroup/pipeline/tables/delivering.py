"""Turns records of `__share_group_state` into rows of the table `deliveries`, as replay-log reports them.

A task reads a partition record by record: compared with `__consumer_offsets` the topic is short, as brokers
delete what lies before the newest snapshots. Each record is reported by itself, so rows do not depend on
where runs end. The driver gets each partition's files and where its fold stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import pyarrow as pa

from kgroup.domain import SHARE_STATE_TOPIC
from kgroup.errors import KgroupError, StorageError
from kgroup.history.deliveries import DeliveryReader, kept_deliveries
from kgroup.history.fold.events import Event
from kgroup.history.replay import in_order
from kgroup.history.selection import Choice
from kgroup.history.sources.logs import SegmentLog
from kgroup.pipeline.read.inputs import Input, StateLog
from kgroup.pipeline.schemas import DELIVERIES as SCHEMA
from kgroup.pipeline.schemas import Row
from kgroup.pipeline.spark.workers import Move
from kgroup.pipeline.tables.manifest import bad_in, row_of, stopped_at
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.reports import StateRead
from kgroup.pipeline.tables.store import DELIVERIES, Run
from kgroup.pipeline.tables.writing import TableFile, TableWriter


@dataclass(slots=True)
class Delivered:
    """What a run read of the topic; `unread` says which partition could not be read on, or why none was.

    `found` is whether the topic, or why it cannot be read, is known at all; True if no one asked.
    """

    files: list[TableFile] = field(default_factory=list)
    unread: list[tuple[str, KgroupError]] = field(default_factory=list)
    news: bool = False
    found: bool = False

    def miss_the_topic(self) -> None:
        """Note that share groups were read but their deliveries were not."""
        missing = StorageError(
            "there are share groups, and no segment of the topic",
            "name the folders of both topics; kgroup capture keeps both",
        )
        self.unread.append((SHARE_STATE_TOPIC, missing))


@dataclass(frozen=True, slots=True)
class ReadDeliveries:
    """Reads a partition by its number and writes its rows. Runs on an executor.

    `known` are the rows of the run before.
    """

    place: Place
    run: int
    token: str
    names: Mapping[bytes, str]
    choice: Choice
    known: Mapping[int, Row]
    logs: Sequence[StateLog]

    def __call__(self, number: int) -> StateRead:
        part = self.logs[number].partition
        try:
            with self.logs[number].opened() as log:
                old = self.known.get(log.partition)
                reader = DeliveryReader(
                    log,
                    self.names,
                    names=self.choice.get("names"),
                    wanted=self.choice.get("wanted"),
                    runs=False,
                    kept=stopped_at(old) if old else None,
                )
                events = in_order(reader.advance())
                kept = reader.kept
                if kept is None:
                    return StateRead(part, log.failure)
                with TableWriter(self.place, self.run, self.token, log.partition, DELIVERIES) as writer:
                    writer.write(DELIVERIES, delivery_rows(events))
                bad = list(map(row_of, log.bad))
                if old:
                    # Files are read whole each time: damage in those that were read again is in `log.bad`.
                    again = {str(path) for path in log.files} if isinstance(log, SegmentLog) else set()
                    bad += [row_of(damage) for damage in bad_in(old) if damage.source not in again]
                state = {
                    "part": log.partition,
                    "source": log.source,
                    "state": kept_deliveries().encode(kept),
                    "bad": bad,
                }
                return StateRead(part, log.failure, state, writer.files)
        except KgroupError as error:
            return StateRead(part, error)


def deliver(
    move: Move, run: Run, origin: Input, topic_names: Mapping[bytes, str], choice: Choice
) -> Delivered:
    """Write new deliveries of share groups, and note in the run's manifest where reading stopped.

    What cannot be read is left to the next run: the tables of `__consumer_offsets` do not depend on it.
    """
    known = run.manifest.deliveries
    after = {part: stopped_at(row).seen.next_offset - 1 for part, row in known.items()}
    done = Delivered(found=bool(known))
    try:
        state_logs = origin.state_logs(after)
    except KgroupError as error:
        done.unread.append((SHARE_STATE_TOPIC, error))
        done.found = True
        return done
    if state_logs is None:
        return done
    done.found = True
    read = ReadDeliveries(run.place, run.number, run.token, topic_names, choice, known, state_logs.logs)
    results = move.each(read, len(state_logs.logs))
    failures = [
        *state_logs.unread,
        *((state_read.part, state_read.failure) for state_read in results if state_read.failure),
    ]
    done.unread += [
        (f"{SHARE_STATE_TOPIC}-{part}", error) for part, error in sorted(failures, key=itemgetter(0))
    ]
    for state_read in results:
        done.files += state_read.files
        if state_read.state is not None:
            done.news = done.news or state_read.state != known.get(state_read.part)
            known[state_read.part] = state_read.state
    return done


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
