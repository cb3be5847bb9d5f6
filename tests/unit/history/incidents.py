"""The recorded incidents (tests/data/incidents), and a story as text."""

from pathlib import Path

from kgroup.history.fold.events import Event
from kgroup.history.replay import Story, replay
from kgroup.history.sources.logs import SegmentLog, segment_logs, topic_names_near

INCIDENTS = Path(__file__).resolve().parents[2] / "data" / "incidents"
NAMES = sorted(folder.name for folder in INCIDENTS.iterdir() if folder.is_dir())
OURS = [name for name in NAMES if name.startswith("kgroup-")]
KAFKA = [name for name in NAMES if name not in OURS]


def log_of(name: str) -> SegmentLog:
    (log,) = segment_logs([INCIDENTS / name])
    return log


def story_of(name: str, **options: object) -> Story:
    return replay([log_of(name)], topic_names=topic_names_near([INCIDENTS / name]), **options)  # type: ignore[arg-type]


def line_of(event: Event) -> str:
    """One event as a line: place, epochs, kind, what happened, why; `?` where the records do not prove it."""
    place = f"{event.offset}" if event.end_offset == event.offset else f"{event.offset}-{event.end_offset}"
    sure = "" if event.proven else "?"
    why = f" <- {event.cause}" if event.cause else ""
    free = f" [unowned {event.unowned_ms} ms]" if event.unowned else ""
    return f"{place} {event.protocol} e{event.epoch} {event.kind}{sure}: {event.detail}{why}{free}"


def text_of(story: Story) -> str:
    return "".join(line_of(event) + "\n" for event in story.events)
