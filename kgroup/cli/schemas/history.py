"""Schemas of the commands over `__consumer_offsets`; the field names are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.cli.schemas.groups import GROUP
from kgroup.cli.schemas.parts import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Schema,
    array,
    nullable,
    one_of,
    record,
)

PLACE = record(topic=STRING, partition=INTEGER)
EVENT = record(
    offset=INTEGER,
    end_offset=INTEGER,
    partition=INTEGER,
    timestamp_ms=INTEGER,
    timestamp=nullable(STRING),
    end_timestamp_ms=INTEGER,
    group_id=nullable(STRING),
    type=nullable(one_of("classic", "consumer", "streams", "share", "simple")),
    generation=nullable(INTEGER),
    group_epoch=nullable(INTEGER),
    member_epoch=nullable(INTEGER),
    event=STRING,
    member_id=nullable(STRING),
    instance_id=nullable(STRING),
    detail=STRING,
    cause=nullable(STRING),
    proven=BOOLEAN,
    suspicious=BOOLEAN,
    count=INTEGER,
    partitions=array(PLACE),
    unowned_ms=nullable(INTEGER),
    unowned=array(record(topic=STRING, partition=INTEGER, ms=INTEGER)),
)
COVERAGE = record(
    partition=INTEGER,
    source=STRING,
    first_offset=INTEGER,
    last_offset=INTEGER,
    records=INTEGER,
    missing=INTEGER,
    from_the_start=BOOLEAN,
    complete_from_offset=INTEGER,
    complete_from_ms=INTEGER,
    complete_from=nullable(STRING),
    unread=nullable(STRING),
    bad_ranges=array(record(source=STRING, start=INTEGER, end=INTEGER, reason=STRING)),
)
VERDICT = record(
    group_id=STRING,
    verdict=one_of("same", "differs", "not compared"),
    differences=array(STRING),
    not_compared=array(STRING),
)
SPAN = nullable(
    record(
        since_ms=nullable(INTEGER),
        since=nullable(STRING),
        until_ms=nullable(INTEGER),
        until=nullable(STRING),
        events_before=INTEGER,
        events_after=INTEGER,
        events_without_time=INTEGER,
    )
)
TALLY = {"records": INTEGER, "bytes": INTEGER, "tombstones": INTEGER}


def _with_coverage(**fields: Schema) -> Schema:
    return record(**fields, coverage=array(COVERAGE), limits=array(STRING))


HISTORY: Mapping[str, Schema] = {
    "replay-log": {
        "anyOf": [
            _with_coverage(events=array(EVENT), span=SPAN),
            _with_coverage(groups=array({"anyOf": [GROUP, VERDICT]})),
        ]
    },
    "blame": _with_coverage(
        span=SPAN,
        groups=array(
            record(
                group_id=STRING,
                blames=array(
                    record(
                        about=one_of("rebalance", "rewind", "deletion", "conversion"),
                        event=EVENT,
                        evidence=array(EVENT),
                        journal=array(
                            record(
                                id=STRING,
                                command=STRING,
                                time_ms=INTEGER,
                                time=STRING,
                                actor=nullable(STRING),
                                reason=nullable(STRING),
                            )
                        ),
                    )
                ),
            )
        ),
    ),
    "offsets-topic stats": record(
        types=array(record(type=INTEGER, name=STRING, **TALLY)),
        total=record(**TALLY),
        batches=INTEGER,
        compressed_batches=INTEGER,
        markers=INTEGER,
        superseded_records=INTEGER,
        superseded_bytes=INTEGER,
        groups=INTEGER,
        partitions=array(record(partition=INTEGER, bytes=INTEGER)),
        open_transactions=array(
            record(
                producer_id=INTEGER,
                partition=INTEGER,
                first_offset=INTEGER,
                since_ms=INTEGER,
                since=nullable(STRING),
                records=INTEGER,
            )
        ),
        unreadable_batches=INTEGER,
        remarks=array(STRING),
    ),
    "offsets-topic top": record(
        groups=array(record(group_id=STRING, commits=INTEGER, commits_per_minute=nullable(NUMBER), **TALLY))
    ),
    "offsets-topic decode": record(type=INTEGER, type_name=STRING, group_id=nullable(STRING)),
}
