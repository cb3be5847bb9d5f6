"""`kgroup journal`: the changes kgroup made, and what was there before."""

import json
from collections import Counter
from typing import Annotated

from kgroup.admin.journal import Entry, Journal
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.inputs.group_names import matches
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.domain import Document, first_of
from kgroup.durations import iso

NAMED = 3
"""Groups of a change that a row of the list names; JSON and `journal show` have all."""


@make(
    "journal list",
    examples=(
        ("kgroup journal list", "the last changes, newest first"),
        ("kgroup journal list orders --limit 100 -o json", "those of one group, for a script"),
    ),
)
def list_entries(
    env: Env,
    groups: Annotated[list[str] | None, argument("[GLOB]…", "Only changes of these groups.")] = None,
    limit: Annotated[int, option("--limit N", "Show at most this many changes.", min=1)] = 20,
) -> ExitCode:
    """List the changes kgroup made from this account, newest first.

    The journal is a file on this machine: changes made elsewhere or with other tools are not in it.
    """
    entries = Journal.default().entries()
    undone = {str(entry.plan["undoes"]): entry.id for entry in entries if entry.plan.get("undoes")}
    chosen = [
        entry
        for entry in reversed(entries)
        if not groups or any(matches(glob, name) for name in _groups(entry) for glob in groups)
    ][:limit]
    rows = [_summary(entry, undone) for entry in chosen]
    columns = (
        Column("id"),
        Column("time"),
        Column("command"),
        Column("groups"),
        Column("outcome"),
        Column("undone_by"),
        Column("actor", wide=True),
        Column("reason"),
    )
    shown: list[Document] = []
    for row, entry in zip(rows, chosen, strict=True):
        counts = _counts(entry)
        outcome = ", ".join(f"{count} {name}" for name, count in (counts or {}).items()) or "nothing"
        shown.append(
            {
                **row,
                "groups": first_of(_groups(entry), NAMED),
                "outcome": "cut off: not known" if counts is None else outcome,
            }
        )
    ids = [entry.id for entry in chosen]
    return show(env, Result({"entries": rows}, (Table(columns, shown),), items="entries", names=ids))


@make(
    "journal show",
    examples=(
        ("kgroup journal show LAST", "what the last change did, item by item"),
        ("kgroup journal show j-0012 -o json", "with the plan and the image of what was there before"),
    ),
)
def show_entry(env: Env, entry: Annotated[str, argument("ID|LAST", "The entry's id, or LAST.")]) -> ExitCode:
    """Show one change: its plan, what was there before, and what became of each item."""

    journal = Journal.default()
    recorded = journal.find(entry)
    if recorded is None:
        hint = "kgroup journal list shows the entries"
        raise Failure(ExitCode.NOT_FOUND, "NOT_IN_JOURNAL", f"the journal has no entry {entry!r}", hint)
    row = {
        **_summary(recorded, {}),
        "plan": dict(recorded.plan),
        "before": dict(recorded.before),
        "results": None if recorded.results is None else [dict(result) for result in recorded.results],
    }
    del row["undone_by"]
    names = ("id", "time", "command", "cluster_id", "actor", "reason")
    head = [f"{name}: {row[name]}" for name in names if row[name] is not None]
    blocks: list[str | Table] = [*head, "", _results_table(recorded)]
    blocks += ["", "before:", *json.dumps(recorded.before, indent=2, ensure_ascii=False).split("\n")]
    return show(env, Result({"entry": row}, blocks, names=[recorded.id], main=_results_table(recorded)))


def _groups(entry: "Entry") -> list[str]:
    """Return the groups a change is about, in every form of its plan."""
    named = entry.plan.get("groups") or [entry.plan.get("group_id")]
    if not isinstance(named, list):
        return []
    names = [item.get("group_id") if isinstance(item, dict) else item for item in named]
    return [str(name) for name in names if name]


def _summary(entry: "Entry", undone: dict[str, str]) -> Document:
    return {
        "id": entry.id,
        "command": entry.command,
        "cluster_id": entry.cluster_id,
        "time_ms": entry.time_ms,
        "time": iso(entry.time_ms),
        "end_ms": entry.end_ms,
        "groups": _groups(entry),
        "actor": entry.plan.get("actor"),
        "reason": entry.plan.get("reason"),
        "results": _counts(entry),
        "undone_by": undone.get(entry.id),
    }


def _counts(entry: "Entry") -> dict[str, int] | None:
    """Return the number of items per result; None for a change that was cut off."""
    return None if entry.results is None else dict(Counter(str(r.get("result")) for r in entry.results))


def _results_table(entry: "Entry") -> Table:
    rows = [dict(result) for result in entry.results or ()]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    used = [key for key in keys if any(row.get(key) not in (None, "") for row in rows)]
    return Table(tuple(Column(key) for key in used), rows)


command = subcommands("journal", "List and show the changes kgroup made.", list_entries, show_entry)
