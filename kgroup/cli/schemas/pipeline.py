"""Schemas of `kgroup pipeline …`; the field names are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.cli.schemas.history import COVERAGE, EVENT, TALLY
from kgroup.cli.schemas.parts import INTEGER, NUMBER, STRING, Schema, array, nullable, record

PIPELINE: Mapping[str, Schema] = {
    "pipeline run": record(
        run=nullable(INTEGER),
        bytes_read=INTEGER,
        bytes_written=INTEGER,
        splits=INTEGER,
        rows=array(record(table=STRING, rows=INTEGER)),
        coverage=array(COVERAGE),
    ),
    "pipeline state": record(
        at_ms=nullable(INTEGER),
        at=nullable(STRING),
        offsets=array(
            record(
                group_id=STRING,
                topic=STRING,
                partition=INTEGER,
                committed_offset=INTEGER,
                leader_epoch=nullable(INTEGER),
                metadata=STRING,
                commit_timestamp_ms=nullable(INTEGER),
                commit_timestamp=nullable(STRING),
                log_offset=INTEGER,
            )
        ),
    ),
    "pipeline events": record(events=array(EVENT), coverage=array(COVERAGE), limits=array(STRING)),
    "pipeline stats": record(
        groups=array(record(group_id=STRING, **TALLY, commits=INTEGER, commits_per_minute=nullable(NUMBER)))
    ),
}
