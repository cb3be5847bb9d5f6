"""Rows of the pipeline's tables as results: times as text and as ms, raw bytes as hex."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.times import iso
from kgroup.cli.views.pipeline_rows import told_row

if TYPE_CHECKING:
    import pyarrow as pa

_WIDE = frozenset(
    {"seq", "end_offset", "end_ts", "previous_epoch", "member_epoch", "proven", "suspicious", "count", "key"}
    | {"value", "value_version", "topic_id", "leader_epoch", "expire_ts", "run", "partitions", "unowned"}
)


def query_result(
    table: str, schema: "pa.Schema", rows: Sequence[Mapping[str, Any]], at_ms: int | None, more: bool
) -> Result:
    """The rows of a table (times in ms) as data and as a table; `more`: some were left out."""
    from pyarrow import types

    stamps = {field.name for field in schema if types.is_timestamp(field.type)}
    numbers = {f.name for f in schema if types.is_integer(f.type) or types.is_floating(f.type)}
    told = [told_row(row, schema.names, stamps) for row in rows]
    columns = tuple(Column(name, right=name in numbers, wide=name in _WIDE) for name in schema.names)
    shown = Table(columns, [{k: _cell(v) for k, v in row.items()} for row in told])
    data = {
        "table": table,
        "at_ms": at_ms,
        "at": None if at_ms is None else iso(at_ms),
        "more": more,
        "rows": told,
    }
    names = sorted({row["group_id"] for row in rows if row.get("group_id")})
    return Result(data, (shown,), "rows", names)


def _cell(value: object) -> object:
    """Lists of partitions as a person writes them."""
    if not isinstance(value, list):
        return value
    return [f"{v['topic']}-{v['partition']}" + (f":{v['ms']}ms" if "ms" in v else "") for v in value]
