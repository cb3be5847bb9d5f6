"""Schemas of `kgroup pipeline …`; the field names are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.cli.schemas.history import COVERAGE, EVENT, SPAN
from kgroup.cli.schemas.parts import BOOLEAN, INTEGER, STRING, Schema, array, nullable, record

PIPELINE: Mapping[str, Schema] = {
    "pipeline run": record(
        run=nullable(INTEGER),
        bytes_read=INTEGER,
        bytes_written=INTEGER,
        splits=INTEGER,
        rows=array(record(table=STRING, rows=INTEGER)),
        coverage=array(COVERAGE),
        workers=array(record(host=STRING, kgroup=STRING, loops=STRING)),
    ),
    "pipeline query": record(
        table=STRING,
        at_ms=nullable(INTEGER),
        at=nullable(STRING),
        more=BOOLEAN,
        rows=array({"type": "object"}),
    ),
    "pipeline sql": record(
        columns=array(record(name=STRING, type=STRING)), more=BOOLEAN, rows=array({"type": "object"})
    ),
    "pipeline vacuum": record(files_before=INTEGER, files_after=INTEGER, deleted=INTEGER),
    "pipeline events": record(events=array(EVENT), coverage=array(COVERAGE), limits=array(STRING), span=SPAN),
}
