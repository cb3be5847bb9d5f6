"""Writes docs/incidents.md from what the exam recorded: `python docs/incidents.py`."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "tests" / "incidents" / "results.json"
HEAD = """# The exam: thirty incidents

Each incident is a script with real clients and a written truth in `tests/incidents`, played on Kafka 4.3.1
and on kgroup's broker; `make incidents FULL=record` asks every command about it and writes this page.
✓ is right. *missing*: the answer omits what it must say. *wrong*: it says what is not so. *cannot*: no
record and no answer of a broker shows it, and the command says so. *cause*: `doctor`, and after it one
command that it proposes, name the cause. *next*: the step that doctor proposes was carried out, worked and
harmed nothing. *record*: `kgroup record` opened one incident with its cause, or "no record says", and closed
it; or none, where there is none. Of two marks the first is Kafka's; · is not played.
`tests/incidents/known.py` gives the reason of each cell that is not right, and fails once it is.
Incidents with every cell right are not listed.

"""
MARKS = {"right": "✓", "not played": "·"}


def document() -> str:
    """The whole page."""
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    played: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        played.setdefault((row["incident"], row["kind"]), []).append(row["cell"])
    cells = max(played.values(), key=len)  # of an incident played in part, some are missing
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    lines = ["| | incident | " + " | ".join(cells) + " |", "|---|---|" + "---|" * len(cells)]
    notes: dict[str, list[str]] = {}
    for name in dict.fromkeys(row["incident"] for row in rows):
        mine = [row for row in rows if row["incident"] == name]
        seen = {(row["cell"], row["kind"]): row for row in mine}
        shown = " | ".join(_cell([seen.get((cell, kind)) for kind in kinds]) for cell in cells)
        if set(shown) - set("✓| -"):
            lines.append(f"| {mine[0]['number']} | {mine[0]['title']} | {shown} |")
        for row in mine:
            if row["verdict"].startswith("cannot"):
                notes.setdefault(row["why"], []).append(f"{row['number']} {row['cell']}")
    reasons = "".join(f"- {', '.join(dict.fromkeys(where))}: {why}\n" for why, where in notes.items())
    return HEAD + "\n".join(lines) + "\n\n## What cannot be seen\n\n" + reasons


def _cell(rows: list[dict[str, Any] | None]) -> str:
    words = [row["verdict"].partition(" ")[0] if row else "not played" for row in rows]
    words = [MARKS.get(word, word) for word in words]
    return words[0] if len(set(words)) == 1 else ", ".join(words)


if __name__ == "__main__":
    (HERE / "incidents.md").write_text(document(), encoding="utf-8")
