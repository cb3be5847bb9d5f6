"""`kgroup pipeline plot`: a group's timeline from its tables, and the ends of logs from its cluster."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kgroup.admin.read.offsets import list_offsets
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import open_admin
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.inputs.history import coverage_text
from kgroup.cli.output.pages import write_page
from kgroup.domain import TopicPartition
from kgroup.errors import ConfigError
from kgroup.pipeline.ask.picture import check_installed, write_png
from kgroup.pipeline.ask.plot import page
from kgroup.pipeline.ask.timeline import Ends, Span, Timeline, span_seconds, timeline

if TYPE_CHECKING:
    from kgroup.pipeline.ask.jobs import Question
    from kgroup.pipeline.schemas import Row
    from kgroup.pipeline.tables.store import Store

    Ask = Callable[[Question], list[Row]]

EndsOf = Callable[[Iterable["TopicPartition"]], "Ends"]


def drawing_for(out: Path) -> "Callable[[Timeline, Path], None]":
    """Return how to write such a file; raise ConfigError for other kinds, or without matplotlib."""
    if out.suffix == ".html":
        return lambda shown, out: write_page(out, page(shown))
    if out.suffix != ".png":
        raise ConfigError(
            f"--out {out} is neither an HTML page nor a PNG picture", "name it FILE.html or FILE.png"
        )

    check_installed()
    return write_png


def log_ends_of(env: Env) -> EndsOf | None:
    """Return a reader of log ends from the cluster that a flag names; None without such a flag.

    The current context may be another cluster than that of the tables.
    """
    if not {"bootstrap_server", "context", "local"} & set(env.flags):
        return None

    def ask(places: Iterable[TopicPartition]) -> "Ends":
        from kgroup.admin.read.offsets import LATEST, ListedOffset

        with open_admin(env) as admin:
            found = list_offsets(admin, dict.fromkeys(places, LATEST))
        known = {place: end.offset for place, end in found.items() if isinstance(end, ListedOffset)}
        return Ends(int(time.time() * 1000), known)

    return ask


def draw(ask: "Ask", store: "Store", group: str, ends_of: EndsOf | None) -> "Timeline":
    """Return the timeline of a group; raise Failure if the tables hold nothing of it."""
    from kgroup.pipeline.ask.jobs import progress
    from kgroup.pipeline.ask.story import story_in

    story = story_in(store, group)
    events = [event for event in story.events if event.group == group]
    if not events:
        raise Failure(
            ExitCode.NOT_FOUND, "GROUP_ID_NOT_FOUND", f"there is no record of group {group} in {store.root}"
        )
    seconds = span_seconds(events)
    rows = ask(progress(group, seconds * 1000))
    spans = [
        Span(r["start"], TopicPartition(r["topic"], r["partition"]), r["commits"], r["offset"]) for r in rows
    ]
    ends = ends_of({span.place for span in spans}) if ends_of is not None else None
    own = {event.log_partition for event in events}
    covered = [c for c in story.coverage if c.partition in own]
    remark = " · ".join(map(coverage_text, covered))
    return timeline(group, events, spans, seconds, ends, remark, max(c.last_ms for c in covered))
