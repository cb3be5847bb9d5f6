"""The views of `kgroup replay-log`: timeline, state at a moment, raw records, live, verdict."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from kgroup.admin.models import ItemError
from kgroup.admin.read.replayed import description
from kgroup.admin.refusals import unread_deliveries
from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.inputs.history import (
    LIMITS,
    closing_lines,
    coverage_lines,
    coverage_text,
    damage,
    failures_of,
    foreign,
    shortcomings,
    time_notes,
    unknown_then,
    unseen,
    untimed,
)
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.output.messages import print_error
from kgroup.cli.output.pages import filled, write_page
from kgroup.cli.output.result import Result, json_line, show
from kgroup.cli.output.tables import Block, Table
from kgroup.cli.output.times import day_and_clock
from kgroup.cli.views.description import blocks, member_columns, member_rows
from kgroup.cli.views.events import EVENT_COLUMNS, coverage_json, event_json
from kgroup.domain import (
    EPOCH_TYPES,
    SHARE_STATE_TOPIC,
    Document,
    TopicPartition,
    partitions_text,
)
from kgroup.durations import iso
from kgroup.errors import ConfigError
from kgroup.history.fold.events import Event, duration_text
from kgroup.history.fold.folding import Holdings

if TYPE_CHECKING:
    from kgroup.admin.read.following import News
    from kgroup.admin.read.stored import Stored
    from kgroup.history.replay import At, Story


def show_story(
    env: Env,
    story: "Story",
    selection: Selection,
    html: Path | None = None,
    cluster: Mapping[str, object] | None = None,
) -> ExitCode:
    """Print a story that this process or Spark has read; return the exit code."""
    strangers = foreign(story)
    events = [e for e in selection.chosen(story.events) if e.log_partition not in strangers]
    errors, code = shortcomings(story, selection)
    if html is not None:
        write_page(html, page(events, story))
        env.note(f"wrote {html}")
    # For very many events that takes as long as printing them.
    text = env.output.is_lines and env.output.headers
    documents = [] if text else [event_json(event) for event in events]
    data = {
        "events": documents,
        "coverage": [coverage_json(covered) for covered in (*story.coverage, *story.state_coverage)],
        "limits": list(LIMITS),
        "span": selection.span_json(story.events),
    }
    rows = [{**row, "epoch": _epoch(e)} for row, e in zip(documents, events, strict=bool(documents))]
    # The coverage first, then one line per event, with cause and unowned time below it.
    lines = [*coverage_lines(story, selection), *span_lines(selection), ""]
    lines += _event_lines(events)
    if not any(event.group for event in events):
        lines.append(nothing_text(story, selection))
    result = Result(
        data,
        [*lines, "", *closing_lines(events)],
        items="events",
        names=sorted({event.group for event in events if event.group}),
        errors=errors,
        exit_code=code,
        cluster=cluster,
        main=Table(EVENT_COLUMNS, rows),
    )
    return show(env, result)


def _epoch(event: Event) -> str:
    if event.epoch < 0:
        return "-"
    return f"{'e' if event.protocol in EPOCH_TYPES else 'g'}{event.epoch}"


def span_lines(selection: Selection) -> list[str]:
    """Return the requested time range, if there is one."""
    return [f"from {selection.span.text}"] if selection.span.bounded else []


def nothing_text(story: "Story", selection: Selection) -> str:
    """Return that nothing was found, and where something is, if only outside the span."""
    where = selection.outside(story.events).text if selection.span.bounded else ""
    return f"no event in this span: {where}" if where else "no event matches"


def _event_lines(events: Sequence[Event], day: str = "") -> Iterator[str]:
    groups = sorted({event.group for event in events if event.group})
    width = max((len(group) for group in groups), default=0)
    for event in events:
        today, clock = day_and_clock(event.timestamp_ms)
        if today != day:
            day = today
            yield f"{day} (UTC)"
        where = f"{event.offset}-{event.end_offset}" if event.end_offset > event.offset else f"{event.offset}"
        group = f"{event.group:<{width}}  " if len(groups) > 1 else ""
        sure = " " if event.proven else "?"
        yield f"  {clock}  {where:>11}  {group}{_epoch(event):>5}  {event.kind + sure:<27}  {event.detail}"
        indent = " " * (33 + (width + 2 if group else 0))
        if event.cause:
            yield f"{indent}└ {event.cause}"
        if event.unowned:
            places = partitions_text(TopicPartition(u.topic, u.partition) for u in event.unowned)
            longest, shortest = event.unowned_ms or 0, min(u.ms for u in event.unowned)
            span = duration_text(longest)
            if shortest != longest:
                span = f"{duration_text(shortest)} to {span}"
            yield f"{indent}└ {places} had no owner for {span}"


def show_state(
    env: Env, story: "Story", selection: Selection, at: "At", cluster: Mapping[str, object] | None
) -> ExitCode:
    """Print the groups of a story as they were, in the words of `describe`; return the exit code."""
    states = [
        description(state, partition, story.stored(state.group_id)) for partition, state in story.states
    ]
    errors, code = damage(story)
    unknown = unknown_then(story, selection.names)
    missing = [] if states or unknown else unseen(story, selection)
    if missing and code is ExitCode.OK:
        code = ExitCode.NOT_FOUND
    elif unknown:
        errors, code = [*errors, *unknown], ExitCode.PARTIAL
    for note in time_notes(story):
        env.note(note)
    undecoded = [ItemError(g.group_id, e.code, e.message, e.hint) for g in states for e in g.errors]
    if undecoded:
        errors, code = [*errors, *undecoded], ExitCode.PARTIAL
    moment = f"offset {at.offset}" if at.time_ms is None else str(iso(at.time_ms))
    shown: list[Block] = [*coverage_lines(story, selection), f"as of {moment}"]
    for group in states:
        shown += ["", *blocks(group, ("summary", "members", "offsets"), "instance", env.output.terminal)]
        for row in group.offsets:
            deliveries = [
                f"{delivery.first_offset}-{delivery.last_offset} {delivery.state}, "
                f"delivered {delivery.deliveries}×"
                for delivery in row.deliveries or ()
            ]
            if deliveries:
                shown.append(f"  {row.place}: {'; '.join(deliveries)}")
    data = {
        "groups": [asdict(group) for group in states],
        "coverage": [coverage_json(covered) for covered in (*story.coverage, *story.state_coverage)],
        "limits": list(LIMITS),
        "at": {
            "offset": at.offset,
            "time_ms": at.time_ms,
            "time": iso(-1 if at.time_ms is None else at.time_ms),
        },
    }
    rows = [cells for group in states for cells in member_rows(group, "instance", short=False)]
    result = Result(
        data,
        shown,
        items="groups",
        names=[group.group_id for group in states],
        errors=[*errors, *missing],
        exit_code=code,
        cluster=cluster,
        main=Table(member_columns(states), rows),
    )
    return show(env, result)


def show_raw(env: Env, records: "Stored", selection: Selection) -> ExitCode:
    """Print every record as stored in the log, decoded, while it is read."""
    read, without_time = False, 0
    as_json, span = _prints_json(env, "--raw"), selection.span
    for row in records.rows:
        when, read = row["timestamp_ms"], True
        if not span.holds(when):
            without_time += when < 0
            continue
        if as_json:
            print(json_line(env.command, {**row, "timestamp": iso(when)}))
        else:
            key = json.dumps(row["key"], ensure_ascii=False, separators=(",", ":"))
            value = "tombstone" if row["value"] is None else json.dumps(row["value"], ensure_ascii=False)
            tx = f" producer={row['producer_id']}" if row["producer_id"] >= 0 else ""
            of = "state " if row["topic"] == SHARE_STATE_TOPIC else ""
            where = f"{of}{row['partition']}:{row['offset']}"
            moment = iso(when) or "-"
            print(clean(f"{where}  {moment}  {row['type_name']}{tx}  {key}  {value}"))
    errors = [ItemError(b.source, b.code, str(b)) for b in records.bad]
    errors += [*failures_of(records.failures), *untimed(without_time, "record")]
    if records.deliveries_unread:
        errors.append(unread_deliveries(", ".join(selection.patterns) or "share groups"))
    sys.stdout.flush()
    for error in errors:
        print_error(error.message)
    if records.bad and not read and not records.failures:
        return ExitCode.FAILED
    return ExitCode.PARTIAL if errors else ExitCode.OK


def _prints_json(env: Env, view: str) -> bool:
    """Return whether a streaming view prints JSON lines; raise ConfigError for a format it does not have."""
    chosen = env.output.format
    if chosen not in ("table", "wide", "json", "ndjson"):
        raise ConfigError(f"{view} has no -o {chosen}", "-o ndjson prints one object a line")
    return chosen in ("json", "ndjson")


def _print_new(env: Env, events: Iterable[Event], day: str, *, as_json: bool) -> str:
    """Print events after those of `day`; return the day of the last."""
    for event in events:
        if as_json:
            print(json_line(env.command, event_json(event)), flush=True)
        else:
            print("\n".join(clean(line) for line in _event_lines([event], day)), flush=True)
            day = day_and_clock(event.timestamp_ms)[0]
    return day


def show_news(env: Env, polls: "Iterable[News]", selection: Selection) -> ExitCode:
    """Print the events of each poll as it comes; return the exit code."""
    as_json, day, first = _prints_json(env, "--follow"), "", True
    unread: dict[str, str] = {}
    for news in polls:
        if first and not as_json:
            for covered in news.coverage:
                print(clean(coverage_text(covered)), flush=True)
        first = False
        now = {error.item or "": error.message for error in failures_of(news.failures)}
        for name, message in now.items():
            if unread.get(name) != message:
                env.note(f"error: {message}; retrying")
        for name in unread.keys() - now.keys():
            env.note(f"{name} is read again")
        unread = now
        for error in untimed(selection.outside(news.events).untimed, "event"):
            print_error(error.message)
        day = _print_new(env, selection.chosen(news.events), day, as_json=as_json)
    return ExitCode.PARTIAL if unread else ExitCode.OK


Bar: TypeAlias = list[int | str]
"""From, to, owned partitions, state."""


def page(events: Sequence[Event], story: "Story") -> str:
    """Return the whole page as text; everything it shows is in it."""
    end = max((max(e.timestamp_ms, e.end_timestamp_ms) for e in events), default=0)
    owners = {name: held for fold in story.folds.values() for name, held in (fold.owners or {}).items()}
    fields = ("timestamp_ms", "offset", "event", "detail", "cause", "proven", "suspicious", "unowned_ms")
    rows: dict[str, list[Document]] = {}
    for event in events:
        if event.group:
            row: Mapping[str, object] = event_json(event)
            rows.setdefault(event.group, []).append({field: row[field] for field in fields})
    data = {
        "coverage": [coverage_text(covered) for covered in story.coverage if covered.records],
        "limits": list(LIMITS),
        "groups": [
            {
                "name": name,
                "lanes": _lanes(owners.get(name, []), end),
                "events": rows[name],
            }
            for name in sorted(rows)
        ],
    }
    return filled(Path(__file__).with_name("history_page.html"), data)


def _lanes(history: "Sequence[Holdings]", end_ms: int) -> list[Document]:
    """Return bars by member: [from, to, partitions, state]; a replaced static member keeps its lane."""
    lanes: dict[str, list[Bar]] = {}
    open_: dict[str, Bar] = {}
    for held in history:
        now = {m.label: (partitions_text(m.holds), m.state) for m in held.members}
        for name in [n for n in open_ if n not in now or now[n] != tuple(open_[n][2:])]:
            open_.pop(name)[1] = held.timestamp_ms
        for name, (text, state) in now.items():
            if name not in open_:
                open_[name] = [held.timestamp_ms, end_ms, text, state]
                lanes.setdefault(name, []).append(open_[name])
    return [{"member": name, "bars": bars} for name, bars in lanes.items()]
