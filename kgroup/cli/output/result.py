"""Print the result of a command, in the format the user requested.

Data goes to stdout, messages to stderr. Every format is made from one `Result`, so a table and its JSON
cannot differ. Its lines are those of one `Part`; `parts.py` prints a long answer as several.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import kgroup
from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env, OutputOptions
from kgroup.cli.exit_codes import ExitCode, Failure, name_of
from kgroup.cli.output.messages import print_error
from kgroup.cli.output.schema_ids import schema_id
from kgroup.cli.output.tables import (
    Block,
    Column,
    Table,
    cell_text,
    folded_lines,
    painted,
    plain_lines,
    stacked_lines,
    too_narrow,
    wrapped,
)
from kgroup.domain import Document, value
from kgroup.errors import ConfigError, KgroupError

if TYPE_CHECKING:
    from kgroup.admin.models import ItemError


@value
class Result:
    """The result of a command.

    `data` is the envelope's `data`; `blocks` are lines of text and tables for a person, in order (a line feed
    in a line came with a name, so it is shown as an escape; an empty line is ""); `items` names the list in
    `data` that `-o ndjson` streams ("run.events": one level deeper); `names` are the lines of `-o name`.
    `main` is the table for CSV and `--columns`, by default the first of `blocks`. `ways_back` say how to undo
    what was done: below the blocks for a person, on stderr where stdout has rows only. `closing` are lines
    below the blocks; `remark` ends them where a plan was only shown.
    """

    data: Mapping[str, object]
    blocks: Sequence[Block] = ()
    items: str | None = None
    names: Sequence[str] = ()
    errors: "Sequence[ItemError]" = ()
    exit_code: ExitCode = ExitCode.OK
    cluster: Mapping[str, object] | None = None
    main: Table | None = None
    ways_back: Sequence[str] = ()
    closing: Sequence[str] = ()
    remark: str = ""

    @property
    def shown(self) -> Sequence[Block]:
        """The blocks and what closes them."""
        if not self.remark:
            return (*self.blocks, *self.closing)
        *lines, last = self.closing or ("",)
        return (*self.blocks, *lines, f"{last}   {self.remark}" if last else self.remark)

    @property
    def main_table(self) -> Table | None:
        if self.main is not None:
            return self.main
        return next((b for b in self.blocks if isinstance(b, Table)), None)


@dataclass(frozen=True, slots=True)
class Part:
    """Some items of an answer; each form is made only when it is printed.

    `documents` are the items as JSON objects, `blocks` text for a person, `main` the table for CSV and
    `--columns`, `names` the lines of `-o name`.
    """

    documents: Callable[[], Iterable[Document]]
    blocks: Callable[[], Sequence[Block]]
    main: Callable[[], Table | None]
    names: Callable[[], Iterable[str]]


def show(env: Env, result: Result) -> ExitCode:
    """Print `result` as `env` asks, its item errors on stderr, and return its exit code."""
    for_people = env.output.is_lines and env.output.headers
    if env.output.format in DOCUMENTS:
        DOCUMENTS[env.output.format](env, result)
    else:
        whole = (*env.head(), *result.shown, *result.ways_back)
        part = Part(
            documents=lambda: _rows(result),
            blocks=lambda: whole if for_people else result.shown,
            main=lambda: result.main_table,
            names=lambda: result.names,
        )
        print_lines(env, (part,))
    sys.stdout.flush()
    for line in () if for_people else result.ways_back:
        env.note(line)
    for error in result.errors:
        print_error(error.message, error.hint)
    return result.exit_code


def print_lines(env: Env, parts: Iterable[Part]) -> None:
    """Print parts as they arrive, in one of the formats made of lines."""
    printers = {"csv": _print_csv, "ndjson": _print_ndjson, "name": _print_names}
    printers.get(env.output.format, _print_text)(env, parts)


def _print_names(env: Env, parts: Iterable[Part]) -> None:
    for part in parts:
        for name in part.names():
            # One line per name: one with a line feed or a control character must not look like others.
            print(clean(name))
        del part  # while the next one is made
        sys.stdout.flush()


def _print_text(env: Env, parts: Iterable[Part]) -> None:
    shown = False
    for part in parts:
        if blocks := part.blocks():
            if not env.output.headers:
                blocks = rows_only(blocks, part.main())
            elif shown:
                print()
            main = part.main() if env.output.columns else None
            print_blocks(env, blocks, None if main is None else main.columns)
            shown = True
        del part
        sys.stdout.flush()


def _print_ndjson(env: Env, parts: Iterable[Part]) -> None:
    for part in parts:
        for row in part.documents():
            print(json_line(env.command, row))
        del part
        sys.stdout.flush()


def _print_csv(env: Env, parts: Iterable[Part]) -> None:
    waiting: list[Table] = []
    for number, part in enumerate(parts):
        table = part.main()
        if table is None and part.blocks():  # with neither, nothing was found, and the errors say why
            raise ConfigError(f"{env.command} has no table to print as CSV", "use -o json")
        if table is not None and table.varied:
            waiting.append(table)
        elif table is not None:
            print_csv(env, table, headers=not number)
        del part, table
        sys.stdout.flush()
    if waiting:
        columns = {column.key: column for table in waiting for column in table.columns}
        print_csv(env, Table(tuple(columns.values()), [row for table in waiting for row in table.rows]))


# A bad verdict is an answer, not a failure to give one.
_STATUS = {ExitCode.OK: "ok", ExitCode.BAD_VERDICT: "ok", ExitCode.PARTIAL: "partial"}


def envelope(env: Env, result: Result) -> Document:
    """Return the JSON document; docs/json-output.md fixes its names and their order."""
    return {
        "schema": schema_id(env.command),
        "kgroup_version": kgroup.__version__,
        "cluster": result.cluster,
        "data": result.data or None,
        "status": _STATUS.get(result.exit_code, "failed"),
        "exit_code": int(result.exit_code),
        "errors": [
            {"code": e.code, "message": e.message, "hint": e.hint, "item": e.item or None}
            for e in result.errors
        ],
    }


def error_of(error: KgroupError) -> "ItemError":
    """Return the entry of the envelope's `errors` for the error that ended a command."""
    from kgroup.admin.models import ItemError

    item = error.item if isinstance(error, Failure) else None
    return ItemError(item or "", name_of(error), error.message, error.hint)


def print_failure(env: Env, error: KgroupError, code: ExitCode) -> None:
    """Print the envelope of a command that failed as a whole: no data, one error."""
    result = Result(data={}, errors=(error_of(error),), exit_code=code)
    (print_yaml if env.output.format == "yaml" else _print_json)(env, result)


def _print_json(env: Env, result: Result) -> None:
    print(indented(envelope(env, result)))


def indented(value: object) -> str:
    """Return JSON for a person to read, with every character visible."""
    import json

    return visible(json.dumps(value, indent=2, ensure_ascii=False))


def json_line(command: str, row: Mapping[str, object]) -> str:
    """Return a row of a command as one line of JSON that begins with the schema."""
    import json

    document = {"schema": schema_id(command), **row}
    return visible(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def visible(text: str) -> str:
    """Return JSON text in which no character is invisible or moves others: those become JSON escapes."""
    return text if text.isascii() else _BEYOND_ASCII.sub(_escaped, text)


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def _escaped(match: re.Match[str]) -> str:
    import json

    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]


def print_yaml(env: Env, result: Result) -> None:
    """Print the envelope as YAML."""
    import yaml

    plain = _plain(envelope(env, result))
    # A plain scalar of YAML has no escapes, which an output that is not Unicode needs.
    wide = "utf" in (sys.stdout.encoding or "utf-8").lower()
    document = yaml.safe_dump(plain, sort_keys=False, allow_unicode=wide)
    if not document.replace("\n", "").isprintable():
        document = yaml.safe_dump(plain, sort_keys=False)
    print(document, end="")


def _plain(value: object) -> object:
    # safe_dump refuses tuples, mapping proxies and enum members, which JSON accepts.
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return str(value) if isinstance(value, str) else value


DOCUMENTS = {"json": _print_json, "yaml": print_yaml}
"""The formats that are one document."""


def _rows(result: Result) -> Iterable[Document]:
    # A stream has printed its lines before it ends with a result that has no data.
    rows: Any = result.data if result.items else [result.data] if result.data else []
    for name in result.items.split(".") if result.items else ():
        rows = rows[name]
    documents: Iterable[Document] = rows
    return documents


def print_csv(env: Env, table: Table, *, headers: bool = True) -> None:
    """Print a table as CSV; `headers` is off for a continuation."""
    import csv

    columns = table.chosen(env.output.columns, wide=True)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    # Python before 3.13 leaves a lone CR unquoted, which readers take for the end of a line.
    quoting = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    if headers and env.output.headers:
        writer.writerow([c.key for c in columns])
    for row in table.rows:
        cells = [_csv_cell(row.get(c.key), env.output) for c in columns]
        broken = any(isinstance(cell, str) and "\r" in cell for cell in cells)
        (quoting if broken else writer).writerow(cells)


def _csv_cell(value: object, out: OutputOptions) -> object:
    """Return a name unchanged for programs; escaped where a person reads it."""
    if value is None or value == () or value == []:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = value if isinstance(value, str) and not out.terminal else cell_text(value)
    if not out.for_spreadsheets:
        return text
    # An apostrophe is how spreadsheets mark text. A tab or CR at the start is an escape by then.
    text = clean(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def rows_only(blocks: Sequence[Block], main: Table | None) -> Sequence[Block]:
    """Return what --no-headers prints: the tables, or that for CSV where a person reads text."""
    tables = [block for block in blocks if isinstance(block, Table)]
    return tables or (blocks if main is None else [main])


def print_blocks(env: Env, blocks: Sequence[Block], main: tuple[Column, ...] | None) -> None:
    """Print lines and tables for a person; `--columns` applies to tables with the columns `main`."""
    out = env.output
    for block in blocks:
        if isinstance(block, Table):
            _print_table(env, block, out.columns if block.columns == main else None)
        else:
            text, style = (block, "") if isinstance(block, str) else (block.text, block.style)
            line = clean(text)
            width = max(_terminal_width(), 20) if out.terminal else len(line)
            indent = len(line) - len(line.lstrip()) + 2
            # On a terminal too narrow for it, a line is broken at blanks and aligned with its text.
            for piece in wrapped(line, width, min(indent, width // 2)):
                print(painted(piece, style) if out.color and style else piece)


def _print_table(env: Env, table: Table, names: tuple[str, ...] | None) -> None:
    out = env.output
    columns = table.chosen(names, wide=out.format == "wide")
    lines = list(plain_lines(table, columns, out.headers))
    longest = max(map(len, lines), default=0)
    width = _terminal_width() if out.terminal else longest
    styled = out.color and any(c.style for c in columns)
    if longest > width and too_narrow(table, columns, out.headers, width):
        for line in stacked_lines(table, columns, max(width, 20)):
            print(line)
        return
    if styled or longest > width:
        lines = list(folded_lines(table, columns, out.headers, max(width, 20), paint=out.color))
    elif out.color and out.headers and lines:
        lines[0] = f"\033[1m{lines[0]}\033[0m"
    if lines:
        print("\n".join(lines))


def _terminal_width() -> int:
    import shutil

    return shutil.get_terminal_size().columns
