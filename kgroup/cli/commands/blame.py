"""`kgroup blame`: what caused a group's last rebalance, rewind or deletion."""

from typing import TYPE_CHECKING, Annotated

from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.declaring import argument, option
from kgroup.cli.frame.options import command as make
from kgroup.cli.inputs.locations import StorageOption

if TYPE_CHECKING:
    from kgroup.history.fold.explain import Blame


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
    files: Annotated[
        list[str] | None,
        option("--files PATH", "Segment files, folders or URLs, no broker needed; repeatable."),
    ] = None,
    since: Annotated[str | None, option("--since TIME", "Only what happened from this time on.")] = None,
    until: Annotated[str | None, option("--until TIME", "Only what happened up to this time.")] = None,
    storage_option: StorageOption = None,
) -> ExitCode:
    """Say what caused the last rebalance, rewind, deletion and protocol change, with the records as evidence.

    Where the records allow more than one cause, it says so.
    """
    from kgroup.cli.inputs.history import (
        LIMITS,
        closing_lines,
        coverage_json,
        coverage_lines,
        event_json,
        opened,
        shortcomings,
    )
    from kgroup.cli.inputs.history_selection import Selection, note_span, without_paths
    from kgroup.cli.output.result import Result, show
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
    found = {name: blame(events, name) for name in names}
    errors, code = shortcomings(story, selection)
    lines = [*coverage_lines(story, selection), *span_lines(selection)]
    if not any(event.group for event in events):
        lines += ["", nothing_text(story, selection)]
    for name, blames in found.items():
        lines += ["", *_text(name, blames)]
    blamed = [b.event for blames in found.values() for b in blames]
    lines += ["", *closing_lines(blamed)]
    data = {
        "groups": [
            {
                "group_id": name,
                "blames": [
                    {
                        "about": b.about,
                        "event": event_json(b.event),
                        "evidence": [event_json(event) for event in b.evidence],
                    }
                    for b in blames
                ],
            }
            for name, blames in found.items()
        ],
        "coverage": [coverage_json(covered) for covered in story.coverage],
        "limits": list(LIMITS),
        "span": selection.span_json(story.events),
    }
    return show(env, Result(data, lines, "groups", names, errors, code, where))


def _text(name: str, blames: "list[Blame]") -> list[str]:
    from kgroup.cli.output.times import iso

    lines = [name]
    for b in blames:
        event = b.event
        sure = "" if event.proven else " (not proven by the records)"
        lines.append(f"  last {b.about}: {iso(event.timestamp_ms)} offset {event.offset}: {event.detail}")
        lines.append(f"    because: {event.cause or 'the records do not tell'}{sure}")
        lines += [
            f"    evidence: {iso(e.timestamp_ms)} offset {e.offset} {e.kind}: {e.detail}" for e in b.evidence
        ]
    absent = [about for about in ("rewind", "deletion") if about not in {b.about for b in blames}]
    if absent:
        lines.append(f"  no {' and no '.join(absent)} in what was read")
    return lines
