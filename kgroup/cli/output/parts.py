"""Print a long answer part by part, as the parts come: no more than one of them is in memory.

What a part looks like is what `result.py` makes of it. JSON has its verdict in front of its data, so the
data wait in a file until the verdict is known; YAML and tables of changing columns are put together first.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.output.messages import print_error
from kgroup.cli.output.result import (
    Result,
    ShownError,
    envelope,
    json_line,
    print_blocks,
    print_csv,
    print_yaml,
    visible,
)
from kgroup.cli.output.tables import Table
from kgroup.cli.output.uncollected import uncollected
from kgroup.domain import Document

if TYPE_CHECKING:
    from typing import TextIO

KEPT_IN_MEMORY = 8 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """Some items of an answer; each form is made only when it is what is printed.

    `documents` are the items as JSON objects, `blocks` what a person reads, `main` the table for CSV and
    `--columns`, `names` what `-o name` prints.
    """

    documents: Callable[[], Iterable[Document]]
    blocks: Callable[[], Sequence[str | Table]]
    main: Callable[[], Table]
    names: Callable[[], Iterable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is known once all parts are there; `data` is what stands beside the items."""

    errors: Sequence[ShownError]
    exit_code: ExitCode
    cluster: Mapping[str, object] | None
    data: Mapping[str, object] = field(default_factory=dict)


def show_parts(env: Env, items: str, parts: Iterator[Part], ending: Callable[[], Ending]) -> ExitCode:
    """Print the parts as `env` asks, under the name `items`, then the errors; the exit code of the ending."""
    printers = {"json": _print_json, "yaml": _print_yaml, "csv": _print_csv, "ndjson": _print_lines}
    own = printers.get(env.output.format, _print_text)
    with uncollected():
        end = own(env, items, parts, ending)
    sys.stdout.flush()
    for error in end.errors:
        print_error(error.message, error.hint)
    return end.exit_code


def _print_text(env: Env, items: str, parts: Iterator[Part], ending: Callable[[], Ending]) -> Ending:
    shown = False
    for part in parts:
        if env.output.format == "name":
            for name in part.names():
                print(clean(name))
        elif blocks := part.blocks():
            if shown:
                print()
            print_blocks(env, blocks, part.main().columns if env.output.columns else None)
            shown = True
        del part  # while the next one is made
        sys.stdout.flush()
    return ending()


def _print_lines(env: Env, items: str, parts: Iterator[Part], ending: Callable[[], Ending]) -> Ending:
    for part in parts:
        for row in part.documents():
            print(json_line(env.command, row))
        del part
        sys.stdout.flush()
    return ending()


def _print_csv(env: Env, items: str, parts: Iterator[Part], ending: Callable[[], Ending]) -> Ending:
    waiting: list[Table] = []
    for number, part in enumerate(parts):
        table = part.main()
        if table.varied:
            waiting.append(table)
        else:
            print_csv(env, table, headers=not number)
        del part, table
        sys.stdout.flush()
    if waiting:
        columns = {column.key: column for table in waiting for column in table.columns}
        print_csv(env, Table(tuple(columns.values()), [row for table in waiting for row in table.rows]))
    return ending()


def _print_yaml(env: Env, items: str, parts: Iterator[Part], ending: Callable[[], Ending]) -> Ending:
    rows = [row for part in parts for row in part.documents()]
    end = ending()
    print_yaml(env, _result(end, items, rows))
    return end


def _print_json(env: Env, items: str, parts: Iterator[Part], ending: Callable[[], Ending]) -> Ending:
    from kgroup.cli.output.documents import indented

    with _Spool() as spool:
        for part in parts:
            for row in part.documents():
                spool.add(visible(indented(row, depth=3)))
            del part
        end = ending()
        whole = indented(envelope(env, _result(end, items, [_HERE] if spool.count else [])))
        before, _, after = whole.partition(indented(_HERE))
        sys.stdout.write(visible(before))
        for number, text in enumerate(spool):
            sys.stdout.write(f",\n      {text}" if number else text)
        print(visible(after))
    return end


def _result(end: Ending, items: str, rows: Sequence[object]) -> Result:
    return Result({items: rows, **end.data}, errors=end.errors, exit_code=end.exit_code, cluster=end.cluster)


_HERE = "\x1erows"
"""Stands in the document where the rows go; no name or address in front of it is that."""


class _Spool:
    """Texts in the order they are added: a few in memory, many in a file that only this account can read."""

    def __init__(self) -> None:
        self.count = 0
        self._texts: list[str] = []
        self._size = 0
        self._file: TextIO | None = None

    def add(self, text: str) -> None:
        self.count += 1
        self._texts.append(text)
        self._size += len(text)
        if self._size > KEPT_IN_MEMORY:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            from tempfile import TemporaryFile

            self._file = TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", newline="")  # noqa: SIM115
        for text in self._texts:
            self._file.write(text)
            self._file.write(_BETWEEN)
        self._texts, self._size = [], 0

    def __iter__(self) -> Iterator[str]:
        if self._file is not None:
            self._file.seek(0)
            whole: list[str] = []
            for line in self._file:
                if line == _BETWEEN_LINE:
                    yield "".join(whole)[:-1]
                    whole = []
                else:
                    whole.append(line)
        yield from self._texts

    def __enter__(self) -> "_Spool":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


_BETWEEN_LINE = "\x1e\n"
_BETWEEN = "\n" + _BETWEEN_LINE
"""A line that is in no JSON text, in which control characters are escapes."""
