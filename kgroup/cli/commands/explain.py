"""`kgroup explain`: what a code or state means."""

import textwrap
from dataclasses import asdict
from typing import Annotated

import typer

from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.explanations import entries, findings, lookup, near, statuses
from kgroup.cli.explanations.entry import Entry
from kgroup.cli.frame.options import command as make
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.domain import Document

_LABELS = {"finding": "do", "partition-status": "seen"}


def _complete(incomplete: str) -> list[str]:
    known = {**entries(), **findings(), **statuses()}
    return sorted(e.name for e in known.values() if e.name.lower().startswith(incomplete.lower()))


@make(
    "explain",
    examples=(
        ("kgroup explain FENCED_INSTANCE_ID", "an error, by name, number or exception class"),
        ("kgroup explain Reconciling", "a state of a group or member"),
        ("kgroup explain stalled", "a status of a partition"),
        ("kgroup explain KG301", "a finding of describe or doctor, and what to do about it"),
        ("kgroup explain", "everything it knows"),
    ),
)
def command(
    env: Env,
    term: Annotated[
        list[str] | None,
        typer.Argument(
            help="Error code, exception, state or KG code.", metavar="[CODE|STATE]…", autocompletion=_complete
        ),
    ] = None,
) -> ExitCode:
    """Say what an error code or state means in each protocol, its usual cause and the next command."""
    if not term:
        known = (*entries().values(), *statuses().values(), *findings().values())
        every = sorted(known, key=lambda e: (e.kind, e.name.lower()))
        written = [e for e in every if e.cause or e.classic or e.consumer]
        headings = (Column("name"), Column("code", right=True), Column("kind"), Column("meaning"))
        rows = [_json(e) for e in written]
        table = Table(headings, rows)
        return show(env, Result({"entries": rows}, (table,), "entries", [e.name for e in written]))
    each = [lookup(word) for word in term]
    found = [entry for entry in each if entry]
    if len(found) < len(each):
        # "Preparing Rebalance", and an exception with its message, are one term each.
        whole = lookup(" ".join(term))
        if whole is None:
            word = term[each.index(None)]
            names = near(word)
            hint = f"did you mean {', '.join(names)}?" if names else "kgroup explain lists every name"
            raise Failure(ExitCode.NOT_FOUND, "UNKNOWN_TERM", f"nothing is known as {word!r}", hint, word)
        found = [whole]
    data = {"entries": [_json(e) for e in found]}
    columns = (Column("name"), Column("kind"), Column("code"), Column("meaning"))
    blocks: list[str] = []
    for entry in found:
        head = f"{entry.name} ({entry.kind.replace('-', ' ')})"
        if entry.code is not None:
            head = f"{entry.name} ({entry.code}, {'retriable' if entry.retriable else 'not retriable'})"
        blocks += [*([""] if blocks else []), head, *_wrapped("", entry.meaning)]
        cause = (_LABELS.get(entry.kind, "cause"), entry.cause)
        for label, text in (("classic", entry.classic), ("consumer", entry.consumer), cause):
            blocks += _wrapped(label, text) if text else []
        blocks += [f"  {'next' if i == 0 else '':<10}{line}" for i, line in enumerate(entry.next)]
    main = Table(columns, data["entries"])
    return show(env, Result(data, blocks, "entries", [e.name for e in found], main=main))


def _json(entry: Entry) -> Document:
    return {**asdict(entry), "next": list(entry.next), "aliases": list(entry.aliases)}


def _wrapped(label: str, text: str, width: int = 96) -> list[str]:
    first = f"  {label:<10}" if label else "  "
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=" " * len(first))
