"""Schemas of the commands about history; the field names are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.cli.schemas.derive import schema_of
from kgroup.cli.schemas.groups import GROUP
from kgroup.cli.schemas.parts import (
    INTEGER,
    NUMBER,
    STRING,
    Schema,
    array,
    each,
    note,
    nullable,
    one_of,
    record,
)
from kgroup.cli.views.events import CoverageDocument, EventDocument

_TEXT, _COUNT = nullable(STRING), nullable(INTEGER)
EVENT = schema_of(EventDocument)
COVERAGE = schema_of(CoverageDocument)
_VERDICT = record(
    group_id=STRING,
    verdict=one_of("same", "differs", "not compared"),
    differences=array(STRING),
    not_compared=note(array(STRING), "what could not be compared, and why"),
)
SPAN = note(
    nullable(
        record(
            **each(_COUNT, "since_ms until_ms"),
            **each(_TEXT, "since until"),
            **each(INTEGER, "events_before events_after"),
            events_without_time=note(
                INTEGER, "excluded: without a timestamp there is no place in the time range"
            ),
        )
    ),
    "null without `--since` and `--until`",
)
_READ: dict[str, Schema] = {
    "coverage": note(array(COVERAGE), "one per partition"),
    "limits": note(array(STRING), "what no record contains"),
}
EVENTS = record(events=array(EVENT), **_READ, span=SPAN)
_TALLY = each(INTEGER, "records bytes tombstones")
_REMOVAL = record(**each(STRING, "id command time"), time_ms=INTEGER, **each(_TEXT, "actor reason"))
_BLAME = record(
    about=one_of("rebalance", "rewind", "given up", "deletion", "conversion"),
    event=EVENT,
    evidence=array(EVENT),
    journal=note(array(_REMOVAL), "the removals made from this machine"),
)
_OPEN = record(**each(INTEGER, "producer_id partition first_offset since_ms records"), since=_TEXT)

HISTORY: Mapping[str, Schema] = {
    "replay-log": {
        "anyOf": [
            EVENTS,
            record(
                groups=note(
                    array({"anyOf": [GROUP, _VERDICT]}),
                    "with `--at` as in `describe`; with `--verify` a verdict each",
                ),
                **_READ,
            ),
        ]
    },
    "blame": record(
        groups=array(record(group_id=STRING, state=nullable(STRING), blames=array(_BLAME))),
        **_READ,
        span=SPAN,
    ),
    "offsets-topic stats": record(
        types=array(record(type=INTEGER, name=STRING, **_TALLY)),
        total=record(**_TALLY),
        **each(INTEGER, "batches compressed_batches unreadable_batches markers"),
        **each(INTEGER, "superseded_records superseded_bytes groups"),
        partitions=array(record(**each(INTEGER, "partition bytes"))),
        open_transactions=array(_OPEN),
        remarks=array(STRING),
    ),
    "offsets-topic top": record(
        groups=array(record(group_id=STRING, commits=INTEGER, commits_per_minute=nullable(NUMBER), **_TALLY))
    ),
    "offsets-topic decode": record(type=INTEGER, type_name=STRING, group_id=_TEXT),
}
