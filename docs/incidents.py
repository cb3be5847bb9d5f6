"""Writes docs/incidents.md from what the exam recorded: `python docs/incidents.py`."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "tests" / "incidents" / "results.json"
HEAD = """# The exam: thirty incidents

Written by `docs/incidents.py` from what `make incidents INCIDENTS=record` saw. Each incident is a script with
real clients and a written truth in `tests/incidents`, played on Kafka 4.3.1 and on kgroup's own broker. Every
command is asked about it, and its answer marked: *right*; *missing*, if it leaves out what it must say;
*wrong*, if it says what is not so; *cannot*, if no record and no answer of a broker can tell, and the command
says so. *cause*: `doctor`, and after it one command that it proposes, name the cause. *next*: the next step
that doctor proposes was carried out, did what it promised and harmed nothing. Two words in a cell are Kafka's
and kgroup's. `make interop` plays ten of them; each cell that is not right is in `tests/incidents/known.py`
with its reason, and fails there once it is right.

"""


def document() -> str:
    """The whole page."""
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    cells = list(dict.fromkeys(row["cell"] for row in rows))
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    lines = ["| | incident | " + " | ".join(cells) + " |", "|---|---|" + "---|" * len(cells)]
    notes: dict[str, list[str]] = {}
    for name in dict.fromkeys(row["incident"] for row in rows):
        mine = [row for row in rows if row["incident"] == name]
        seen = {(row["cell"], row["kind"]): row for row in mine}
        shown = " | ".join(_cell([seen.get((cell, kind)) for kind in kinds]) for cell in cells)
        who, what, when, why = mine[0]["truth"]
        lines.append(f"| {mine[0]['number']} | {mine[0]['title']} | {shown} |")
        for row in mine:
            if row["why"]:
                told = f"{row['cell']}: {row['verdict']}, {row['why']}"
                notes.setdefault(f"{row['number']} {name}: {who}; {what}; {when}; {why}", []).append(told)
    told = "".join(
        f"\n**{truth}**\n\n" + "".join(f"- {each}\n" for each in dict.fromkeys(every))
        for truth, every in notes.items()
    )
    return HEAD + "\n".join(lines) + "\n\n## What is not right, or cannot be told\n" + told


def _cell(rows: list[dict[str, Any] | None]) -> str:
    words = [row["verdict"].partition(" ")[0] if row else "not played" for row in rows]
    return words[0] if len(set(words)) == 1 else ", ".join(words)


if __name__ == "__main__":
    (HERE / "incidents.md").write_text(document(), encoding="utf-8")
