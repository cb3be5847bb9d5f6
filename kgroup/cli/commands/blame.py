"""`kgroup blame`: what caused a group's last rebalance, rewind or deletion."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from kgroup.admin import shell
from kgroup.admin.journal import Entry, Journal
from kgroup.admin.models import ChangeStatus, GroupDescription
from kgroup.admin.refusals import is_absent
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.history import (
    LIMITS,
    closing_lines,
    coverage_lines,
    opened,
    shortcomings,
)
from kgroup.cli.inputs.history_selection import Selection, note_span, without_paths
from kgroup.cli.inputs.locations import Files, StorageOption
from kgroup.cli.output.result import Result, show
from kgroup.cli.views.events import coverage_json, event_json
from kgroup.domain import Document
from kgroup.durations import iso
from kgroup.errors import StorageError
from kgroup.history.fold.events import Kind

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView
    from kgroup.history.fold.explain import Blame

REMOVE, DELETE, FORGET = "remove-members", "delete", "offsets delete"
REMOVALS = frozenset({REMOVE, DELETE, FORGET})
CLOCKS_MS = 60_000
"""The clock difference within which a deletion counts as the journal's."""


@make(
    "blame",
    examples=(
        ("kgroup blame orders -b broker:9092", "who or what set off the last rebalance, with the records"),
        (
            "kgroup blame orders --files ./backup --until 2026-03-01T04:00",
            "as of that time, from segment files",
        ),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str], argument("GROUP…", "Group ids.")],
    files: Files = None,
    since: Annotated[str | None, option("--since TIME", "Only what happened from this time on, UTC.")] = None,
    until: Annotated[str | None, option("--until TIME", "Only what happened up to this time, UTC.")] = None,
    storage_option: StorageOption = None,
) -> ExitCode:
    """Say what caused the last rebalance, rewind, deletion and protocol change, with the records as evidence.

    Where the records allow more than one cause, it says so. Members and groups that kgroup removed from this
    machine are named with the journal's entry.
    """
    from kgroup.cli.views.history import nothing_text, span_lines
    from kgroup.history.fold.explain import blame

    group, files = without_paths(group, files or ())
    selection = Selection.of(groups=group, since=since, until=until)
    note_span(env, selection)
    with opened(env, files, selection, storage_option) as source:
        story = source.replay(selection)
        where = source.cluster
        events = selection.chosen(story.events)
        names = selection.names or sorted({event.group for event in events if event.group})
        states = _states(env, source.admin, names) if selection.span.until_ms is None else {}
    entries = _journal(env, where)
    blames_of = {name: [(b, list(_own(name, b, entries))) for b in blame(events, name)] for name in names}
    errors, code = shortcomings(story, selection)
    lines = [*coverage_lines(story, selection), *span_lines(selection)]
    if not any(event.group for event in events):
        lines += ["", nothing_text(story, selection)]
    for name, blames in blames_of.items():
        lines += ["", *_text(name, blames, states.get(name))]
    blamed = [b.event for blames in blames_of.values() for b, _ in blames]
    lines += ["", *closing_lines(blamed)]
    data = {
        "groups": [
            {
                "group_id": name,
                "state": states.get(name),
                "blames": [
                    {
                        "about": b.about,
                        "event": event_json(b.event),
                        "evidence": [event_json(event) for event in b.evidence],
                        "journal": [_entry_json(entry) for entry in own],
                    }
                    for b, own in blames
                ],
            }
            for name, blames in blames_of.items()
        ],
        "coverage": [coverage_json(covered) for covered in (*story.coverage, *story.state_coverage)],
        "limits": list(LIMITS),
        "span": selection.span_json(story.events),
    }
    return show(env, Result(data, lines, "groups", names, errors, code, where))


def _states(env: Env, admin: "ClusterView | None", names: Iterable[str]) -> dict[str, str]:
    """Return the groups' states now: while a classic group rebalances, no record shows it."""
    from kgroup.admin.read.describe import groups_only

    states: dict[str, str] = {}
    for name, group in groups_only(admin, names).items() if admin is not None else ():
        if isinstance(group, GroupDescription):
            states[name] = group.state
        elif not is_absent(group):
            env.note(f"{name}: whether it is rebalancing now is not known: {group.message}")
    return states


def _journal(env: Env, where: Mapping[str, object] | None) -> "Sequence[Entry]":
    """Return this machine's journalled removals from the cluster that was read; for files, from any."""
    cluster_id = (where or {}).get("id")
    try:
        entries = Journal.default().entries()
    except StorageError as error:
        env.note(f"removals by kgroup are not known: {error.message}")
        return ()
    return [e for e in entries if e.command in REMOVALS and cluster_id in (None, e.cluster_id)]


def _own(name: str, blamed: "Blame", entries: "Sequence[Entry]") -> "Iterator[Entry]":
    """Return the journal's entries that removed the members, the offsets or the group of the events."""
    gone = {e.member_id for e in (*blamed.evidence, blamed.event) if e.kind is Kind.MEMBER_LEFT_OR_EXPIRED}
    for entry in entries:
        items = entry.results or ()
        if entry.command == REMOVE:
            # A member id is never reused, so it proves the removal whatever the clocks show.
            if any(item.get("result") == "removed" and item.get("member_id") in gone for item in items):
                yield entry
        elif blamed.about == "deletion" and any(_is_of(item, name, blamed) for item in items):
            last_ms = entry.end_ms or entry.time_ms
            if entry.time_ms - CLOCKS_MS <= blamed.event.timestamp_ms <= last_ms + CLOCKS_MS:
                yield entry


def _is_of(item: Mapping[str, object], name: str, blamed: "Blame") -> bool:
    """Return whether a journalled result is the deletion of this group, or of some of the offsets."""
    if item.get("group_id") != name:
        return False
    if item.get("topic") is None:
        return item.get("result") == ChangeStatus.DELETED and blamed.event.kind is Kind.GROUP_DELETED
    partition = (item["topic"], item.get("partition"))
    return item.get("result") == "done" and partition in blamed.event.partitions


def _entry_json(entry: "Entry") -> Document:
    return {
        "id": entry.id,
        "command": entry.command,
        "time_ms": entry.time_ms,
        "time": iso(entry.time_ms),
        "actor": entry.plan.get("actor"),
        "reason": entry.plan.get("reason"),
    }


def _text(name: str, blames: "list[tuple[Blame, list[Entry]]]", state: str | None) -> list[str]:
    from kgroup.history.verify import REBALANCING

    lines = [name]
    if state in REBALANCING:
        lines.append(
            f"  now: {state}; a rebalance has no record before it completes, so what follows is older"
        )
        lines.append(f"    {shell.command('doctor', name)} names the members it waits for")
    for b, own in blames:
        event = b.event
        sure = "" if event.proven else " (not proven by the records)"
        lines.append(f"  last {b.about}: {iso(event.timestamp_ms)} offset {event.offset}: {event.detail}")
        lines.append(f"    because: {event.cause or 'the records do not say'}{sure}")
        lines += [
            f"    evidence: {iso(e.timestamp_ms)} offset {e.offset} {e.kind}: {e.detail}" for e in b.evidence
        ]
        for entry in own:
            why = f": {entry.plan['reason']}" if entry.plan.get("reason") else ""
            by = f"by {entry.plan.get('actor') or 'unknown'} with kgroup {entry.command}{why}"
            lines.append(f"    done from this machine: journal {entry.id}, {iso(entry.time_ms)} {by}")
    found = {b.about for b, _ in blames}
    if absent := [about for about in ("rebalance", "rewind", "deletion") if about not in found]:
        lines.append(f"  no {' and no '.join(absent)} in what was read")
    return lines
