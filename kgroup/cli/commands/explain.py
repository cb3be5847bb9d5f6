"""`kgroup explain`: what a code, a state or a line of a log means."""

import os
import stat
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, NoReturn

from kgroup.cli.declaring import argument, option
from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode, Failure, of_error
from kgroup.cli.explanations import entries, findings, is_name, lookup, near, statuses
from kgroup.cli.explanations.entry import Entry, EntryKind
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.files import read_log
from kgroup.cli.output.result import Result, error_of, show
from kgroup.cli.output.tables import Column, Table
from kgroup.domain import Document
from kgroup.errors import ConfigError, KgroupError

if TYPE_CHECKING:
    from kgroup.cli.explanations.log_reading import Found

_LABELS = {EntryKind.FINDING: "do", EntryKind.PARTITION_STATUS: "seen"}
_NAMES = {"group": "group", "topic": "topic", "member_id": "member", "instance_id": "instance id"}
_CLUSTER = {"bootstrap_server", "context", "local"}
"""The options that name a cluster; the environment and the default alone ask none."""
_WINDOW_MS = 3_600_000
"""How far back the history of a group in a log is read, as in `doctor`."""
_LONGEST = 80
"""Characters of an unknown line that its error shows."""


def _complete() -> list[str]:
    return sorted(entry.name for entry in {**entries(), **findings(), **statuses()}.values())


@make(
    "explain",
    examples=(
        ("kgroup explain FENCED_INSTANCE_ID", "an error, by name, number or exception class"),
        (
            "kubectl logs orders-0 | kgroup explain - -b broker:9092",
            "and what doctor finds in its groups now",
        ),
        (
            'kgroup explain "Group coordinator broker:9092 is unavailable or invalid"',
            "a line of a client's or broker's log",
        ),
        ("kubectl logs orders-0 | kgroup explain -", "every known line of a log"),
        ("kgroup explain stalled Reconciling KG301", "a status, a state and a finding"),
        ("kgroup explain", "everything it knows"),
    ),
)
def command(
    env: Env,
    term: Annotated[
        list[str] | None,
        argument(
            "[CODE|STATE|LINE]…",
            "Error code, exception, state, KG code or log line.",
            autocompletion=_complete,
        ),
    ] = None,
    file: Annotated[str | None, option("--file FILE", "A log, or a part of it; - is stdin.")] = None,
) -> ExitCode:
    """Say what an error code, state or log line means, its usual cause and the next command.

    A line of a log may have colours, times and stack traces around it. The group, topic, member and instance
    id that it names stand in the commands. Where -b, -C or --local names a cluster, doctor examines their
    groups there: 3 if it has no such group, 5, 6 or 7 if something could not be seen.
    """
    if term == ["-"]:
        term, file = None, "-"
    if file is not None:
        if term:
            raise ConfigError("a log is --file or an argument, not both", "leave one of them out")
        return _show(env, _lines_of(read_log(file, _most()), file))
    if not term:
        if _is_piped():
            env.note("every name; what is piped in is read with: kgroup explain -")
        return _list(env)
    if not all(lookup(word) for word in term) and not any(" " in word.strip() for word in term):
        # "Preparing Rebalance", and a line that is not quoted, are one term each.
        whole = " ".join(term)
        known = lookup(whole)
        if known is None and not _read(whole):
            _fail(next(word for word in term if lookup(word) is None))
        term = [whole]
    return _show(env, [entry for word in term for entry in _explained(word)])


def _explained(term: str) -> "Sequence[Entry | Found]":
    """Return the entry of a name, or the known lines in a text; raise Failure if there is none."""
    known = lookup(term)
    if known and (len(term.split()) == 1 or is_name(term)):
        return [known]
    return _read(term) or ([known] if known else _fail(term))


def _lines_of(text: str, name: str) -> "Sequence[Found]":
    return _read(text) or _fail(name, f"no line of {name} is known")


def _read(text: str) -> "Sequence[Found]":
    # Imported here: names need neither the patterns nor RE2.
    from kgroup.cli.explanations.log_reading import read

    return read(text)


def _most() -> int:
    from kgroup.cli.explanations.log_reading import MOST

    return MOST


def _fail(word: str, said: str | None = None) -> NoReturn:
    shown = word if len(word) <= _LONGEST else word[:_LONGEST] + "…"
    names = near(shown)
    hint = f"did you mean {', '.join(names)}?" if names else "kgroup explain lists every name"
    raise Failure(ExitCode.NOT_FOUND, "UNKNOWN_TERM", said or f"nothing is known as {shown!r}", hint, shown)


def _is_piped() -> bool:
    """Return whether another command writes to stdin; it is not read unasked, as it may never end."""
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return False


def _list(env: Env) -> ExitCode:
    from kgroup.cli.explanations.log_lines import LOG_LINES

    known = (*entries().values(), *statuses().values(), *findings().values(), *LOG_LINES)
    every = sorted(known, key=lambda e: (e.kind, e.name.lower()))
    written = [e for e in every if e.cause or e.classic or e.consumer]
    columns = ("name", "code", "kind", "severity", "meaning")
    rows = [_json(e) for e in written]
    table = Table(tuple(Column(c, right=c == "code") for c in columns), rows)
    return show(
        env,
        Result({"entries": rows, "lines": [], "now": None}, (table,), "entries", [e.name for e in written]),
    )


def _show(env: Env, explained: "Sequence[Entry | Found]") -> ExitCode:
    blocks: list[str] = []
    rows, lines = [], []
    for known in explained:
        entry = known if isinstance(known, Entry) else known.entry
        rows.append(_json(entry))
        head = f"{entry.name} ({', '.join(filter(None, (entry.kind.replace('-', ' '), entry.severity)))})"
        if entry.code is not None:
            head = f"{entry.name} ({entry.code}, {'retriable' if entry.retriable else 'not retriable'})"
        blocks += [*([""] if blocks else []), head]
        if not isinstance(known, Entry):
            lines.append(
                {"line": known.line, "entry": entry.name, "source": known.source}
                | {name: known.names.get(name) for name in _NAMES}
            )
            named = "".join(f", {_NAMES[name]} {clean(value)}" for name, value in known.names.items())
            blocks += _wrapped("seen", f"in line {known.line}{named}; {known.source}")
        blocks += _wrapped("", entry.meaning)
        cause = (_LABELS.get(entry.kind, "cause"), entry.cause)
        for label, text in (("classic", entry.classic), ("consumer", entry.consumer), cause):
            blocks += _wrapped(label, text) if text else []
        blocks += [f"  {'next' if i == 0 else '':<10}{line}" for i, line in enumerate(entry.next)]
    main = Table(tuple(map(Column, ("name", "kind", "code", "severity", "meaning"))), rows)
    told = Result({"entries": rows, "lines": lines, "now": None}, blocks, "entries", main=main)
    told = replace(told, names=[str(row["name"]) for row in rows])
    groups = [known.names.get("group") for known in explained if not isinstance(known, Entry)]
    return show(env, _with_now(env, told, list(dict.fromkeys(filter(None, groups)))))


def _with_now(env: Env, told: Result, groups: Sequence[str]) -> Result:
    """Return the result with what doctor finds in the groups, where options name a cluster."""
    if not env.flags.keys() & _CLUSTER:
        return told
    if not groups:
        env.note("no group is named in what is explained: the cluster was not asked")
        return told
    from kgroup.admin.diagnose.doctor import PATIENCE_S, examine_all
    from kgroup.cli.views import checkups

    try:
        with open_admin(env) as admin:
            examined = examine_all(admin, groups, window_ms=_WINDOW_MS, left_out=(), patience_s=PATIENCE_S)
            where = identity(admin, env)
    except ConfigError:
        raise
    except KgroupError as error:
        return replace(told, errors=(error_of(error),), exit_code=of_error(error))
    return replace(
        told,
        data={**told.data, "now": [checkups.document_of(checkup) for checkup in examined.checkups]},
        blocks=[*told.blocks, "", f"now, {env.cluster_line()}", *checkups.blocks(examined.checkups)],
        errors=[*examined.errors, *checkups.unseen_of(examined.checkups)],
        exit_code=checkups.code_of(examined),
        cluster=where,
    )


def _json(entry: Entry) -> Document:
    return {**asdict(entry), "next": list(entry.next), "aliases": list(entry.aliases)}


def _wrapped(label: str, text: str, width: int = 96) -> list[str]:
    first = f"  {label:<10}" if label else "  "
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=" " * len(first))
