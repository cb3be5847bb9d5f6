"""SQL queries of a store's tables, by DuckDB in this process (the extra `sql`).

A query reads the tables and nothing else: DuckDB cannot reach files or the network, its settings are locked,
and anything but a SELECT is rejected before it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds

from kgroup.errors import ConfigError
from kgroup.pipeline.ask.jobs import Question, rows_in_manifest
from kgroup.pipeline.ask.views import STATE_AT, VIEWS
from kgroup.pipeline.schemas import COVERAGE, TABLES, Row, in_micros, plain
from kgroup.pipeline.schemas import RUNS as RUNS_SCHEMA
from kgroup.pipeline.tables import delta
from kgroup.pipeline.tables.record import RUNS
from kgroup.pipeline.tables.store import OPEN_EVENTS, Store

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CARET = re.compile(r"^LINE (\d+): (.*)\n( *)\^", re.MULTILINE)
_KINDS = ("SELECT", "EXPLAIN")
_SHUT = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "TimeZone": "UTC",
}
_NEWEST = "max(run) OVER (PARTITION BY part, group_id) AS newest"
_SLOTS = {
    "longest": "list_max([x.ms FOR x IN unowned])",
    "place": "(topic, c.partition)",
    "moment": "moment",
    "group": "$group",
    "matches": "regexp_matches(group_id, $glob)",
    **{name: name for name in TABLES},
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The columns and at most the requested number of rows; `more` says there were others. Times in ms."""

    schema: pa.Schema
    rows: list[Row]
    more: bool


def answered(store: Store, question: str, limit: int = 0) -> Answer:
    """Return the result of a SELECT over the tables and views, in its order, at most `limit` rows (0: all).

    ConfigError for anything but a single SELECT, for an error in it with its place, and for two columns with
    the same name.
    """
    import duckdb

    with opened(store) as connection, _errors(question):
        statements = connection.extract_statements(question)
        if len(statements) != 1:
            raise ConfigError(f"there are {len(statements)} statements in it", "ask one question at a time")
        kind = statements[0].type.name
        if kind not in _KINDS:
            raise ConfigError(f"{kind} is not a query: the tables are read-only", "ask with SELECT … FROM …")
        try:
            relation = connection.sql(question)
        except duckdb.Error:
            # Since DuckDB 2.0 only `execute` says where in the query the error is.
            connection.execute(question)
            raise
        reader = relation.to_arrow_reader(10_000)
        schema: pa.Schema = reader.schema
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        if twice:
            text = f"two columns of the answer are called {twice[0]}"
            raise ConfigError(text, "name them apart with AS")
        rows: list[Row] = []
        try:
            for batch in reader:
                rows += in_ms(pa.Table.from_batches([batch])).to_pylist()
                if 0 < limit < len(rows):
                    break
        except pa.ArrowException as error:
            raise duckdb.Error(str(error)) from None
    more = 0 < limit < len(rows)
    return Answer(schema, rows[:limit] if more else rows, more)


def rows_of(store: Store, asked: Question) -> list[Row]:
    """Return the rows that answer a question, times in ms."""
    with opened(store, tuple(asked.reads), asked.group) as connection:
        relation = connection.sql(asked.text.format(**_SLOTS), params=dict(asked.values) or None)
        rows: list[Row] = in_ms(relation.to_arrow_table()).to_pylist()
        return rows


@contextmanager
def opened(
    store: Store, tables: Sequence[str] = (*TABLES, "coverage", RUNS), group: str | None = None
) -> Iterator[DuckDBPyConnection]:
    """Yield a connection with tables, and nothing else of the machine; with all of them, the views too.

    With `group`, of each table only the partitions that may hold it.
    """
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for name, value in _SHUT.items():
            connection.execute(f"SET {name} = '{value}'")
        connection.execute("CREATE MACRO unix_millis(t) AS epoch_ms(t)")
        for name in tables:
            _register(connection, store, name, group)
        if RUNS in tables:
            for name, query in VIEWS.items():
                if name != "state_at":
                    connection.execute(f"CREATE VIEW {name} AS {query.format(**_SLOTS)}")
            connection.execute(f"CREATE MACRO state_at(moment) AS TABLE {STATE_AT.format(**_SLOTS)}")
        connection.execute("SET lock_configuration = true")
        yield connection


def _register(connection: DuckDBPyConnection, store: Store, name: str, group: str | None) -> None:
    """Make a table one of the connection's, under its name."""
    if name == "coverage":
        rows = rows_in_manifest(store, name)
        plain_rows = pa.Table.from_pylist(rows, schema=COVERAGE)
        connection.register(name, plain_rows.cast(in_micros(COVERAGE)))
        return
    datasets = [_dataset(store, name, group)]
    if name == "events":
        datasets.append(_dataset(store, OPEN_EVENTS, group))
    for number, dataset in enumerate(datasets):
        connection.register(f"{name}_{number}", dataset)
    names = RUNS_SCHEMA.names if name == RUNS else (*TABLES[name].names, "run")
    columns = ", ".join(f'"{column}"' for column in names)
    every = f"SELECT {columns} FROM {name}_0"
    if len(datasets) > 1:
        every += f" UNION ALL SELECT {columns} FROM (SELECT *, {_NEWEST} FROM {name}_1)"
        every += " WHERE run = newest AND event IS NOT NULL"
    connection.execute(f"CREATE VIEW {name} AS {every}")


def _dataset(store: Store, name: str, group: str | None) -> ds.Dataset | pa.Table:
    """Return a table's files as DuckDB scans them: it does not read unused columns and days."""
    if name == RUNS:
        schema = in_micros(RUNS_SCHEMA)
    else:
        kept = plain(TABLES["events" if name == OPEN_EVENTS else name])
        schema = in_micros(kept).append(pa.field("run", pa.int32()))
    # Before the first run there are no tables.
    if store.empty or name != RUNS and not store.names(name, group):
        return schema.empty_table()
    table = delta.opened(store.place, name, store.manifest.versions[name])
    assert table is not None
    dataset = table.to_pyarrow_dataset()
    if (parts := store.parts_with(name, group)) is not None:
        dataset = dataset.filter(ds.field("part").isin(sorted(parts)))
    # What an older kgroup did not write is null.
    lacks = [field for field in schema if field.name not in dataset.schema.names]
    return dataset.replace_schema(pa.schema([*dataset.schema, *lacks])) if lacks else dataset


@contextmanager
def _errors(question: str) -> Iterator[None]:
    """Raise DuckDB's errors as one sentence with the place in the query."""
    import duckdb

    try:
        yield
    except duckdb.PermissionException:
        text = "the question reaches for a file, the network or a setting, and only the tables can be read"
        raise ConfigError(text, "ask of commits, events, members, state_at(…) and the other tables") from None
    except duckdb.Error as error:
        said = " ".join(str(error).partition("\n\nLINE ")[0].split())
        if (caret := _CARET.search(str(error))) is not None:
            line, shown, spaces = int(caret[1]), caret[2], caret[3]
            column = len(spaces) - len(f"LINE {line}: ")
            lines = question.splitlines()
            part = shown.strip(".")
            if shown.startswith("...") and line <= len(lines) and part in lines[line - 1]:
                column += lines[line - 1].index(part) - 3
            said += f" (line {line}, column {column + 1})"
        raise ConfigError(f"SQL: {said}", "kgroup docs sql has examples") from None


def in_ms(table: pa.Table) -> pa.Table:
    """Return the same rows with timestamps as ms since 1970."""
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            unit = pa.timestamp("ms", field.type.tz)
            column = table.column(at).cast(unit, safe=False).cast(pa.int64())
            table = table.set_column(at, field.name, column)
    return table
