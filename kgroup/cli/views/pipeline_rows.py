"""Rows of the pipeline's tables as data: times as text and in ms, and every value as JSON has it."""

from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

from kgroup.cli.output.times import iso
from kgroup.domain import Document


def told_row(row: Mapping[str, Any], names: Sequence[str], stamps: set[str]) -> Document:
    """The row with each of its `stamps`, given in ms, as text, and in ms under its name with `_ms`.

    Unless another column is called so.
    """
    found: Document = {}
    for name in names:
        value = row[name]
        if name in stamps:
            found[name] = None if value is None else iso(value)
            if f"{name}_ms" not in names:
                found[f"{name}_ms"] = value
        else:
            found[name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    """As JSON has it; bytes as hex, and what JSON has no word for as text."""
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
