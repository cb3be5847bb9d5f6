"""What CI leaves to the full runs: `make full`, or those of one suite, as `make interop-full`.

They set KGROUP_FULL. Without it a test or a row that is `in_full` is deselected, and counts are smaller.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

_ASKED = os.environ.get("KGROUP_FULL", "")
FULL = bool(_ASKED)
RECORD = _ASKED == "record"
"""Whether the tables of docs/ that tell what was seen are written of this run."""


def in_full(why: str) -> pytest.MarkDecorator:
    """Leave a test, or a row of its table, to the full run, because of this."""
    return pytest.mark.full(why)


def sampled(rows: Iterable[Any], kept: Collection[Any], why: str) -> list[Any]:
    """Return the rows of a table; those that are not kept are left to the full run."""
    return [
        row if row in kept else pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=in_full(why))
        for row in rows
    ]


def left_out(items: list[pytest.Item]) -> list[pytest.Item]:
    """Take from `items` what this run leaves out, and return that."""
    left = [] if FULL else [item for item in items if item.get_closest_marker("full")]
    gone = {id(item) for item in left}
    items[:] = [item for item in items if id(item) not in gone]
    return left
