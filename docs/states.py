"""Writes the tables of docs/states.md from the text of `kgroup explain`; its figures are drawn by hand."""

from pathlib import Path

from kgroup.cli.explanations.entry import Entry
from kgroup.cli.explanations.states import GROUP_STATES, MEMBER_STATES

PAGE = Path(__file__).parent / "states.md"
BEGIN, END = "<!-- Written by `make docs`. -->\n", "<!-- Its end. -->\n"


def document() -> str:
    """The page, its tables anew."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    groups, members = _table(GROUP_STATES), _table(MEMBER_STATES)
    text = f"\n## What each state of a group means\n\n{groups}\n## Of a member\n\n{members}\n"
    return f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}"


def _table(entries: tuple[Entry, ...]) -> str:
    rows = [
        f"| `{each.name}` | {each.meaning} | {each.cause or 'This is how it should be.'} "
        f"| {'<br>'.join(f'`{line}`' for line in each.next)} |"
        for each in entries
    ]
    return "\n".join(["| state | means | why, and what to do | type |", "|---|---|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
