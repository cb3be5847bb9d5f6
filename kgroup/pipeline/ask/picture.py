"""A timeline as a picture, by matplotlib (the extra `plot`)."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgroup.extras import require_extra
from kgroup.pipeline.ask.timeline import COLOURS, LANES, Timeline


def check_installed() -> None:
    """Raise ConfigError that says what to install, if matplotlib is missing."""
    require_extra("plot", "a PNG (not an .html page)", "matplotlib")


def write_png(shown: Timeline, path: Path) -> None:
    """Draw commit rate, distance and the lanes of events, one below the other; OSError if it cannot."""
    check_installed()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7), layout="constrained")
    FigureCanvasAgg(figure)
    rate, distance, lanes = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 1.5))
    rate.set_title(shown.group, parse_math=False)
    rate.set_ylabel(f"commits in {shown.span_ms // 60_000} min")
    width = shown.span_ms / 86_400_000
    rate.bar(_days(at for at, _ in shown.rates), [n for _, n in shown.rates], width, align="edge")
    distance.set_title(shown.distance_text, fontsize="small", loc="left", parse_math=False)
    distance.set_ylabel("records, at most")
    if shown.behind:
        steps = [*shown.behind, (shown.bounds[1], shown.behind[-1][1])]
        distance.step(_days(at for at, _ in steps), [n for _, n in steps], where="post")
    else:
        distance.set_yticks([])
    names = list(LANES)
    for number, name in enumerate(names):
        own = [event for event in shown.events if event.kind in LANES[name]]
        starts, ends = _days(e.timestamp_ms for e in own), _days(e.end_timestamp_ms for e in own)
        lanes.scatter(starts, [number] * len(own), marker="|", s=120, color=COLOURS[name])
        lanes.hlines([number] * len(own), starts, ends, linewidth=8, color=COLOURS[name], alpha=0.5)
    lanes.set_yticks(range(len(names)), names)
    lanes.set_ylim(len(names) - 0.5, -0.5)
    lanes.set_xlim(_days(shown.bounds))
    lanes.xaxis_date(tz=UTC)
    lanes.set_xlabel(f"UTC · {shown.remark}", fontsize="small", wrap=True, parse_math=False)
    figure.autofmt_xdate()
    # Its owner's alone, as a page is.
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        figure.savefig(file, dpi=110, format="png")


def _days(times_ms: Any) -> Any:
    """Return times in matplotlib's days."""
    from matplotlib import dates

    of: Any = dates.date2num
    return of([datetime.fromtimestamp(max(0, ms) / 1000, UTC) for ms in times_ms])
