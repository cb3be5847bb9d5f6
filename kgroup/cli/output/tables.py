"""Tables as text: the same columns on and off a terminal, cut or wrapped only on a terminal."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TypeAlias

from kgroup.cli.click import style as styled
from kgroup.cli.env.escaping import clean
from kgroup.domain import Document, value
from kgroup.errors import ConfigError


@value
class Column:
    """One column: `key` names it in rows, in `--columns` and in the CSV header, its title is `KEY`.

    `wide` columns are shown by `-o wide` and `--columns` only; `style` maps a cell's text to a
    style ("green", "bold red"), used where colour is on.
    """

    key: str
    title: str = ""
    right: bool = False
    wide: bool = False
    style: Mapping[str, str] | None = None

    @property
    def heading(self) -> str:
        return self.title or self.key.upper().replace("_", "-")


def with_fields(rows: list[Document], models: Sequence[object], columns: Iterable[Column]) -> list[Document]:
    """Return the rows, all with the same keys; a column that is none of them gets the field of the model."""
    for name in [column.key for column in columns if rows and column.key not in rows[0]]:
        for row, field in zip(rows, map(attrgetter(name), models), strict=True):
            row[name] = field
    return rows


class ByColumn:
    """Rows of a long table: a list of cells for each column, and a row only where one is asked for."""

    def __init__(self, cells: Mapping[str, Sequence[object]]) -> None:
        self.cells = cells

    def __len__(self) -> int:
        return len(next(iter(self.cells.values()), ()))

    def __iter__(self) -> Iterator[Document]:
        return (dict(zip(self.cells, row, strict=True)) for row in zip(*self.cells.values(), strict=True))


@value
class Table:
    """Rows of plain values by column key; None is shown as `-`, in CSV as an empty cell.

    `varied` where the columns depend on the rows, so another part of the same answer may have others. `cut`
    names the columns that are cut, not folded, on a terminal that is too narrow.
    """

    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, object]] | ByColumn
    varied: bool = False
    cut: frozenset[str] = frozenset()

    def chosen(self, names: tuple[str, ...] | None, wide: bool) -> tuple[Column, ...]:
        """Return the columns to show; raise ConfigError with the existing ones when one is missing."""
        if names is None:
            return tuple(c for c in self.columns if wide or not c.wide)
        by_name = {c.key: c for c in self.columns} | {_normal(c.heading): c for c in self.columns}
        missing = [name for name in names if _normal(name) not in by_name]
        if missing:
            raise ConfigError(
                f"--columns: there is no column {missing[0]!r}",
                "one of " + ", ".join(c.key for c in self.columns),
            )
        return tuple(by_name[_normal(name)] for name in names)


@value
class Painted:
    """A line of text that is shown in a style where colour is on."""

    text: str
    style: str


Block: TypeAlias = str | Painted | Table
"""A part of a result as a person reads it: a line, or a table."""


def painted(text: str, style: str) -> str:
    """Return `text` with the escapes of a style such as "bold red"."""
    words = style.split()
    color = next((word for word in words if word not in ("bold", "dim")), None)
    return styled(text, fg=color, bold="bold" in words or None, dim="dim" in words or None)


def _normal(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def cell_text(value: object) -> str:
    """Return a value as a cell: one line, control characters escaped so that no name moves the cursor."""
    if value is None or value == "" or value == ():
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(cell_text(v) for v in value)
    return clean(str(value))


def plain_lines(table: Table, columns: tuple[Column, ...], headers: bool) -> Iterator[str]:
    """Yield the table as aligned lines, two blanks between columns, never cut or wrapped."""
    texts = [([column.heading] if headers else []) + _cells(table, column) for column in columns]
    widths = [max(map(len, cells), default=0) for cells in texts]
    # One call aligns a whole line.
    line = "  ".join(f"%{'' if c.right else '-'}{w}s" for c, w in zip(columns, widths, strict=True))
    for cells in zip(*texts, strict=True):
        yield (line % cells).rstrip()


def _cells(table: Table, column: Column) -> list[str]:
    """Return a column's texts; numbers and repeated names, most of a long table, are fast."""
    rows, key = table.rows, column.key
    values = rows.cells[key] if isinstance(rows, ByColumn) else [row.get(key) for row in rows]
    kinds = set(map(type, values))
    if kinds == {int}:
        return list(map(str, values))
    if all(issubclass(kind, str | None) for kind in kinds):
        return list(map(_Names().__getitem__, values))
    return [str(value) if type(value) is int else cell_text(value) for value in values]


class _Names(dict[object, str]):
    """A cache of names, and of none, as cells."""

    def __missing__(self, name: object) -> str:
        self[name] = text = cell_text(name)
        return text


_READABLE = 12
"""A column folded to less than this is hard to read."""


def too_narrow(table: Table, columns: tuple[Column, ...], headers: bool, width: int) -> bool:
    """Return whether folding the columns into `width` would make them too narrow to read."""
    needed = 2 * (len(columns) - 1)
    for column in columns:
        longest = max((len(cell_text(row.get(column.key))) for row in table.rows), default=0)
        needed += max(min(longest, _READABLE), len(column.heading) if headers else 0)
    return needed > width


_MOMENT = re.compile(r"-|\d{4}-\d\d-\d\dT[\d:.]+Z")


def stacked_lines(table: Table, columns: tuple[Column, ...], width: int) -> Iterator[str]:
    """Yield each row as a block: the first cell, and below it a line for each that is not empty."""
    named = max((len(column.heading) for column in columns), default=0)
    for row in table.rows:
        for number, column in enumerate(columns):
            text = cell_text(row.get(column.key))
            if number and text == "-":
                continue
            indent = "  " if number else ""
            yield from wrapped(f"{indent}{column.heading:<{named}}  {text}", width, len(indent) + named + 2)


def wrapped(line: str, width: int, indent: int) -> Iterator[str]:
    """Yield `line` in pieces of `width`, broken at blanks where possible, all but the first indented."""
    room = max(width - indent, 8)
    while len(line) > width:
        cut = line.rfind(" ", indent + 1, width + 1)
        cut = cut if cut > indent else width
        yield line[:cut].rstrip()
        line = " " * min(indent, width - room) + line[cut:].lstrip()
    yield line


def folded_lines(
    table: Table, columns: tuple[Column, ...], headers: bool, width: int, *, paint: bool
) -> Iterator[str]:
    """Yield the table in `width`: long cells folded at blanks, dots and dashes, `table.cut` cut.

    Topics are cut in the middle where those in the table still differ.
    """
    cells = [([c.heading] if headers else []) + _cells(table, c) for c in columns]
    shortened = _TOPICS if _distinct(table, columns, cells, width) else frozenset[str]()
    widths = _fitted(table, columns, cells, width, shortened)
    for number, row in enumerate(zip(*cells, strict=True)):
        pieces = [
            [text if len(text) <= wide else text[: wide - 1] + "…"]
            if column.key in table.cut
            else [middle_cut(text, wide)]
            if column.key in shortened
            else list(_folded(text, wide))
            for column, text, wide in zip(columns, row, widths, strict=True)
        ]
        for line in range(max(map(len, pieces))):
            shown = []
            for column, text, parts, wide in zip(columns, row, pieces, widths, strict=True):
                part = parts[line] if line < len(parts) else ""
                padded = part.rjust(wide) if column.right else part.ljust(wide)
                style = "bold" if headers and not number else (column.style or {}).get(text, "")
                if paint and style and part:
                    padded = painted(padded, style)
                shown.append(padded)
            yield "  ".join(shown).rstrip()


_TOPICS = frozenset({"topic"})


def _distinct(table: Table, columns: tuple[Column, ...], cells: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether topics that are cut to fit still differ from each other."""
    widths = _fitted(table, columns, cells, width, _TOPICS)
    topics = [
        (set(texts), wide) for c, texts, wide in zip(columns, cells, widths, strict=True) if c.key in _TOPICS
    ]
    return all(len({middle_cut(text, wide) for text in texts}) == len(texts) for texts, wide in topics)


def middle_cut(text: str, width: int) -> str:
    """Return `text` in `width`, its middle left out: topics often begin alike, and end with a version."""
    if len(text) <= width:
        return text
    after = (width - 1) // 2
    return f"{text[: width - 1 - after]}…{text[len(text) - after :]}"


def _fitted(
    table: Table,
    columns: tuple[Column, ...],
    cells: Sequence[Sequence[str]],
    width: int,
    shortened: frozenset[str],
) -> list[int]:
    """Return the columns' widths: those that are cut shrink first, then always the widest."""
    widths = [max(map(len, texts), default=0) for texts in cells]
    least = []
    for column, wide in zip(columns, widths, strict=True):
        texts = [cell_text(row.get(column.key)) for row in table.rows]
        # A timestamp stays in one piece.
        whole = max(map(len, texts)) if texts and all(map(_MOMENT.fullmatch, texts)) else 0
        least.append(max(min(wide, _READABLE), len(column.heading), whole))
    excess = sum(widths) + 2 * (len(columns) - 1) - width
    for keys in (table.cut, shortened, frozenset(column.key for column in columns)):
        while excess > 0:
            able = [n for n, c in enumerate(columns) if c.key in keys and widths[n] > least[n]]
            if not able:
                break
            widths[max(able, key=widths.__getitem__)] -= 1
            excess -= 1
    return widths


def _folded(text: str, width: int) -> Iterator[str]:
    while len(text) > width:
        ends = (n for n in range(width, 0, -1) if text[n] == " " or text[n - 1] in " .-_:,/")
        cut = next(ends, width)
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    yield text
