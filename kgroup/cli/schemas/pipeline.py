"""Schemas of `kgroup pipeline …`; the field names are fixed (docs/json-output.md)."""

from collections.abc import Mapping

from kgroup.cli.schemas.history import COVERAGE, EVENTS
from kgroup.cli.schemas.parts import (
    BOOLEAN,
    INTEGER,
    OBJECT,
    STRING,
    Schema,
    array,
    each,
    note,
    nullable,
    record,
)

_MORE = note(BOOLEAN, "rows were left out by `--limit`")
_ROWS = note(array(OBJECT), "a time `x` in ISO 8601 and as `x_ms`, raw bytes in hex")
PIPELINE: Mapping[str, Schema] = {
    "pipeline run": record(
        run=note(nullable(INTEGER), "its number, null when nothing was new"),
        **each(INTEGER, "bytes_read bytes_written splits"),
        rows=array(record(table=STRING, rows=INTEGER)),
        coverage=array(COVERAGE),
        workers=note(
            array(
                record(
                    host=STRING,
                    kgroup=note(STRING, "its path"),
                    loops=note(STRING, "compiled, or plain Python"),
                )
            ),
            "hosts that ran tasks",
        ),
    ),
    "pipeline query": record(
        table=STRING, at_ms=nullable(INTEGER), at=nullable(STRING), more=_MORE, rows=_ROWS
    ),
    "pipeline sql": record(
        columns=array(record(name=STRING, type=note(STRING, "as Arrow names it"))), more=_MORE, rows=_ROWS
    ),
    "pipeline vacuum": record(**each(INTEGER, "files_before files_after deleted")),
    "pipeline events": EVENTS,
}
