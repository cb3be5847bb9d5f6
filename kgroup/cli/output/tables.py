"""Tables as text: the same columns on a terminal and off it, cut or wrapped only on a terminal."""

import re
from collections.abc import Iterator, Mapping, Sequence

from kgroup.cli.escaping import clean
from kgroup.domain import value
from kgroup.errors import ConfigError


@value
class Column:
    """One column: `key` names it in rows, in `--columns` and in the CSV header, its title is `KEY`.

    `wide` columns are shown by `-o wide` and `--columns` only; `style` maps a cell's text to a
    style of rich ("green", "bold red"), used where colour is on.
    """

    key: str
    title: str = ""
    right: bool = False
    wide: bool = False
    style: Mapping[str, str] | None = None

    @property
    def heading(self) -> str:
        return self.title or self.key.upper().replace("_", "-")


@value
class Table:
    """Rows of plain values by column key; None is shown as `-`, in CSV as an empty cell.

    `varied` where the columns depend on the rows, so that another part of the same answer may have others.
    """

    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, object]]
    varied: bool = False

    def chosen(self, wanted: tuple[str, ...] | None, wide: bool) -> tuple[Column, ...]:
        """The columns to show; ConfigError names the ones there are when a wanted one is missing."""
        if wanted is None:
            return tuple(c for c in self.columns if wide or not c.wide)
        by_name = {c.key: c for c in self.columns} | {_normal(c.heading): c for c in self.columns}
        missing = [name for name in wanted if _normal(name) not in by_name]
        if missing:
            raise ConfigError(
                f"--columns: no column {missing[0]!r}", "one of " + ", ".join(c.key for c in self.columns)
            )
        return tuple(by_name[_normal(name)] for name in wanted)


def _normal(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def cell_text(value: object) -> str:
    """A value as a table cell: one line, control characters escaped so that no name moves the cursor."""
    if value is None or value == "" or value == ():
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(cell_text(v) for v in value)
    return clean(str(value))


def plain_lines(table: Table, columns: tuple[Column, ...], headers: bool) -> Iterator[str]:
    """The table as aligned lines, two blanks between columns, never cut or wrapped."""
    aligned = []
    for column in columns:
        cells = [column.heading, *_cells(table, column)] if headers else _cells(table, column)
        width = max(map(len, cells), default=0)
        place = str.rjust if column.right else str.ljust
        aligned.append([place(text, width) for text in cells])
    for line in zip(*aligned, strict=True):
        yield "  ".join(line).rstrip()


def _cells(table: Table, column: Column) -> list[str]:
    """A column's texts; what long tables are made of, numbers and the same few names, takes the short way."""
    names = _Names()
    values = [row.get(column.key) for row in table.rows]
    return [
        str(value) if type(value) is int else names[value] if type(value) is str else cell_text(value)
        for value in values
    ]


class _Names(dict[str, str]):
    """Names as cells, each looked at once."""

    def __missing__(self, name: str) -> str:
        self[name] = text = cell_text(name)
        return text


_READABLE = 12
"""A column folded to less than this is no longer read at a glance."""


def too_narrow(table: Table, columns: tuple[Column, ...], headers: bool, width: int) -> bool:
    """Whether folding the columns into `width` would leave slivers."""
    needed = 2 * (len(columns) - 1)
    for column in columns:
        longest = max((len(cell_text(row.get(column.key))) for row in table.rows), default=0)
        needed += max(min(longest, _READABLE), len(column.heading) if headers else 0)
    return needed > width


def _unfolded(table: Table, column: Column) -> int:
    """The width at which a moment stays in one piece; 0 for a column that may fold."""
    cells = [cell_text(row.get(column.key)) for row in table.rows]
    return max(map(len, cells)) if cells and all(_MOMENT.fullmatch(cell) for cell in cells) else 0


_MOMENT = re.compile(r"-|\d{4}-\d\d-\d\dT[\d:.]+Z")


def stacked_lines(table: Table, columns: tuple[Column, ...], width: int) -> Iterator[str]:
    """Each row as a block of its own: the first cell, and below it a line for each that is not empty."""
    named = max((len(column.heading) for column in columns), default=0)
    for row in table.rows:
        for number, column in enumerate(columns):
            text = cell_text(row.get(column.key))
            if number and text == "-":
                continue
            indent = "  " if number else ""
            yield from wrapped(f"{indent}{column.heading:<{named}}  {text}", width, len(indent) + named + 2)


def wrapped(line: str, width: int, indent: int) -> Iterator[str]:
    """`line` in pieces of `width`, broken at blanks where there are some, all but the first indented."""
    room = max(width - indent, 8)
    while len(line) > width:
        cut = line.rfind(" ", indent + 1, width + 1)
        cut = cut if cut > indent else width
        yield line[:cut].rstrip()
        line = " " * min(indent, width - room) + line[cut:].lstrip()
    yield line


def print_rich(table: Table, columns: tuple[Column, ...], headers: bool, color: bool, width: int) -> None:
    """Print through rich, which folds long cells to `width` and paints states."""
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=None, show_header=headers, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(
            column.heading,
            justify="right" if column.right else "left",
            overflow="fold",
            min_width=_unfolded(table, column),
        )
    for row in table.rows:
        texts = [(c, cell_text(row.get(c.key))) for c in columns]
        grid.add_row(*(Text(text, style=(c.style or {}).get(text, "")) for c, text in texts))
    console = Console(no_color=not color, force_terminal=color or None, width=width, highlight=False)
    console.print(grid)
