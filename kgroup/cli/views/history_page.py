"""The timeline as one HTML page without a network: members by time, who owned what, gaps and events."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from kgroup.cli.inputs.history import LIMITS, coverage_text, event_json
from kgroup.cli.output.pages import filled
from kgroup.domain import Document
from kgroup.history.fold.events import Event, partitions_text

if TYPE_CHECKING:
    from kgroup.history.fold.folding import Holdings
    from kgroup.history.replay import Story

Bar: TypeAlias = list[int | str]
"""From, to, what was held, state."""


def page(events: Sequence[Event], story: "Story") -> str:
    """The whole page as text; everything it shows is in it."""
    end = max((max(e.timestamp_ms, e.end_timestamp_ms) for e in events), default=0)
    owners = {name: held for fold in story.folds.values() for name, held in (fold.owners or {}).items()}
    shown = sorted({event.group for event in events if event.group})
    data = {
        "coverage": [coverage_text(covered) for covered in story.coverage if covered.records],
        "limits": list(LIMITS),
        "groups": [
            {
                "name": name,
                "lanes": _lanes(owners.get(name, []), end),
                "events": [_event(event) for event in events if event.group == name],
            }
            for name in shown
        ],
    }
    return filled(Path(__file__).with_name("history_page.html"), data)


def _event(event: Event) -> Document:
    row = event_json(event)
    names = ("timestamp_ms", "offset", "event", "detail", "cause", "proven", "suspicious", "unowned_ms")
    return {name: row[name] for name in names}


def _lanes(history: "Sequence[Holdings]", end_ms: int) -> list[Document]:
    """Bars by member: [from, to, what was held, state]; a replaced static member keeps its lane."""
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
