"""Rows of the pipeline's tables as results: times as text and in ms, every value in JSON form."""

from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Column, Table
from kgroup.domain import Document
from kgroup.durations import iso
from kgroup.history.fold.events import stored_fields

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Sequence[Mapping[str, Any]]
_WIDE = frozenset(
    {"seq", "key", "value", "value_version", "topic_id", "leader_epoch", "expire_ts", "run", "delivered"}
    | {stored.column for _, stored in stored_fields().values() if stored.wide}
)


def query_result(table: str, schema: "pa.Schema", rows: Rows, at_ms: int | None, more: bool) -> Result:
    """Return the rows of a table (times in ms) as data and as a table; `more`: some were omitted."""
    documents, columns = _documents(schema, rows)
    lists = [{k: [*map(_cell, v)] if isinstance(v, list) else v for k, v in row.items()} for row in documents]
    shown = Table(columns, lists)
    data = {
        "table": table,
        "at_ms": at_ms,
        "at": None if at_ms is None else iso(at_ms),
        "more": more,
        "rows": documents,
    }
    names = sorted({row["group_id"] for row in rows if row.get("group_id")})
    return Result(data, (shown,), "rows", names)


def sql_result(schema: "pa.Schema", rows: Rows, more: bool) -> Result:
    """Return the rows of any query (times in ms) as data and as a table; `more`: some were omitted."""
    documents, columns = _documents(schema, rows, wide=frozenset())
    shown = Table(columns, [{name: _cell(row[name]) for name in schema.names} for row in documents])
    described = [{"name": field.name, "type": str(field.type)} for field in schema]
    return Result({"columns": described, "more": more, "rows": documents}, (shown,), "rows")


def _documents(
    schema: "pa.Schema", rows: Rows, wide: frozenset[str] = _WIDE
) -> tuple[list[Document], tuple[Column, ...]]:
    from pyarrow import types

    stamps = {field.name for field in schema if types.is_timestamp(field.type)}
    numbers = {
        f.name
        for f in schema
        if types.is_integer(f.type) or types.is_floating(f.type) or types.is_decimal(f.type)
    }
    columns = tuple(Column(name, right=name in numbers, wide=name in wide) for name in schema.names)
    return [row_document(row, schema.names, stamps) for row in rows], columns


def _cell(value: object) -> object:
    """Return lists of partitions as a person writes them, other nested values by name."""
    if isinstance(value, list):
        return ", ".join(str(_cell(item)) for item in value)
    if isinstance(value, dict):
        if set(value) in ({"topic", "partition"}, {"topic", "partition", "ms"}):
            ms = f":{value['ms']}ms" if "ms" in value else ""
            return f"{value['topic']}-{value['partition']}{ms}"
        return ", ".join(f"{name}={_cell(item)}" for name, item in value.items())
    return value


def row_document(row: Mapping[str, Any], names: Sequence[str], stamps: set[str]) -> Document:
    """Return the row with each of its `stamps`, given in ms, as text, and in ms under its name with `_ms`.

    Unless another column has that name.
    """
    document: Document = {}
    for name in names:
        value = row[name]
        if name in stamps:
            document[name] = None if value is None else iso(value)
            if f"{name}_ms" not in names:
                document[f"{name}_ms"] = value
        else:
            document[name] = _plain(value)
    return document


def _plain(value: Any) -> Any:
    """Return the value in JSON form; bytes as hex, and values without a JSON form as text."""
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
