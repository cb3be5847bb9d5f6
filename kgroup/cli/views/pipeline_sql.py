"""Rows of any question in SQL as a result: whatever types it has, as JSON and tables have them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.views.pipeline_rows import told_row

if TYPE_CHECKING:
    import pyarrow as pa


def sql_result(schema: "pa.Schema", rows: Sequence[Mapping[str, Any]], more: bool) -> Result:
    """The rows (times in ms) as data and as a table; `more`: some were left out.

    A time is in the data as text, and as ms under its name with `_ms` unless another column is called so.
    """
    from pyarrow import types

    stamps = {field.name for field in schema if types.is_timestamp(field.type)}
    numbers = {
        f.name
        for f in schema
        if types.is_integer(f.type) or types.is_floating(f.type) or types.is_decimal(f.type)
    }
    told = [told_row(row, schema.names, stamps) for row in rows]
    columns = tuple(Column(name, right=name in numbers) for name in schema.names)
    shown = Table(columns, [{name: _cell(row[name]) for name in schema.names} for row in told])
    described = [{"name": field.name, "type": str(field.type)} for field in schema]
    return Result({"columns": described, "more": more, "rows": told}, (shown,), "rows")


def _cell(value: object) -> object:
    """Lists of partitions as a person writes them, other nested values as they are."""
    if isinstance(value, list):
        return ", ".join(str(_cell(each)) for each in value)
    if isinstance(value, dict):
        if set(value) in ({"topic", "partition"}, {"topic", "partition", "ms"}):
            ms = f":{value['ms']}ms" if "ms" in value else ""
            return f"{value['topic']}-{value['partition']}{ms}"
        return ", ".join(f"{name}={_cell(each)}" for name, each in value.items())
    return value
