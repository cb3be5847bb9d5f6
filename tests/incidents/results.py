"""The exam's table: what each cell was marked, printed after a run and recorded for docs/incidents.md."""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .truth import CELLS

if TYPE_CHECKING:
    from .playing import Incident, Played

RESULTS = Path(__file__).with_name("results.json")
Row = dict[str, Any]
"""A cell: number, incident, kind, cell, verdict, why; the first of an incident has its title and truth."""


def row(script: Incident, kind: str, cell: str, played: Played) -> Row:
    """One cell of an incident that was played."""
    mark, truth = played.marks[cell], played.truth
    made: Row = {"number": script.number, "incident": script.name, "kind": kind, "cell": cell}
    made |= {"verdict": mark.verdict, "why": mark.why}
    if cell == CELLS[0]:
        made |= {"title": script.title, "truth": [truth.who, truth.what, truth.when, truth.why]}
    return made


def lines(rows: Iterable[Row]) -> list[str]:
    """The table, one line per incident and broker, and below it what is not right."""
    by_line: dict[tuple[int, str, str], dict[str, Row]] = {}
    for row in rows:
        by_line.setdefault((row["number"], row["incident"], row["kind"]), {})[row["cell"]] = row
    told = [f"{'incident':48} broker  " + " ".join(f"{cell:10}" for cell in CELLS)]
    for (number, name, kind), cells in sorted(by_line.items()):
        shown = " ".join(f"{_verdict(cells.get(cell)):10}" for cell in CELLS)
        told.append(f"{number:2} {name:45} {kind:7} {shown}")
    count = Counter(row["verdict"] for row in rows)
    told.append(", ".join(f"{number} {verdict}" for verdict, number in count.most_common()))
    told += [
        f"{row['incident']} {row['cell']} on {row['kind']}: {row['verdict']}, {row['why']}"
        for row in rows
        if row["why"]
    ]
    return told


def _verdict(row: Row | None) -> str:
    return row["verdict"].partition(" ")[0] if row else ""


def record(rows: Iterable[Row]) -> None:
    """Keep what a run saw; cells that it did not play stay as they were recorded."""
    with RESULTS.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # both kinds of broker may be played at once
        kept = {_place(row): row for row in recorded()} | {_place(row): row for row in rows}
        ordered = [kept[place] for place in sorted(kept)]
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in ordered)
        RESULTS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def recorded() -> list[Row]:
    """The committed cells."""
    rows: list[Row] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return rows


def _place(row: Row) -> tuple[int, str, str, int]:
    return row["number"], row["incident"], row["kind"], CELLS.index(row["cell"])
