"""Print a long answer part by part, as the parts arrive: at most one of them is in memory.

`result.py` formats a part. JSON has its data before its verdict, so data need not wait for it; YAML and
tables of changing columns are collected first.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kgroup.admin.models import ItemError
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, of_error
from kgroup.cli.output.messages import print_error
from kgroup.cli.output.result import (
    Part,
    Result,
    envelope,
    error_of,
    indented,
    print_lines,
    print_yaml,
)
from kgroup.errors import KgroupError


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The known rest once all parts exist; `data` are the fields next to the items."""

    errors: Sequence[ItemError] = ()
    exit_code: ExitCode = ExitCode.OK
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """The known start before the first part: the name of the list in `data`, and its cluster."""

    items: str
    cluster: Mapping[str, object] | None


def show_parts(env: Env, answer: Answer, parts: Iterator[Part], ending: Callable[[], Ending]) -> ExitCode:
    """Print the parts as `env` asks, then the errors; return the exit code of the ending."""
    whole = {"json": _print_json, "yaml": _print_yaml}.get(env.output.format)
    if whole is not None:
        end = whole(env, answer, parts, ending)
    else:
        print_lines(env, parts)
        end = ending()
    sys.stdout.flush()
    for error in end.errors:
        print_error(error.message, error.hint)
    return end.exit_code


def _print_yaml(env: Env, answer: Answer, parts: Iterator[Part], ending: Callable[[], Ending]) -> Ending:
    rows = [row for part in parts for row in part.documents()]
    end = ending()
    print_yaml(env, _result(answer, end, rows))
    return end


def _print_json(env: Env, answer: Answer, parts: Iterator[Part], ending: Callable[[], Ending]) -> Ending:
    started = False

    def around(end: Ending) -> tuple[str, str]:
        """Return the document up to its rows, which does not depend on how they end, and from there on."""
        whole = indented(envelope(env, _result(answer, end, [_HERE])))
        before, _, after = whole.partition(indented(_HERE))
        return before, after

    try:
        for part in parts:
            for row in part.documents():
                sys.stdout.write("," + _INNER if started else around(Ending())[0])
                sys.stdout.write(indented(row).replace("\n", _INNER))
                started = True
            del part
        end = ending()
    except KgroupError as error:
        if not started:
            raise
        # What was printed stays a document, which says that it is incomplete.
        end = Ending(errors=[error_of(error)], exit_code=of_error(error))
    if started:
        print(around(end)[1])
    else:
        print(indented(envelope(env, _result(answer, end, []))))
    return end


def _result(answer: Answer, end: Ending, rows: Sequence[object]) -> Result:
    data = {answer.items: rows, **end.data}
    return Result(data, errors=end.errors, exit_code=end.exit_code, cluster=answer.cluster)


_HERE = "\x1erows"
"""A placeholder for the rows in the document; no name or address before it contains this."""
_INNER = "\n" + " " * 6
