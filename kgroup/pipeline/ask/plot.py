"""A timeline as a page of its own: commit rate, distance, rebalances, members, events to audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from kgroup import charts
from kgroup.pipeline.ask.timeline import COLOURS, LANES, Timeline, line_of

HEIGHT, TOP, LANE = 200, 20, 26
DAY_MS = 86_400_000
Points = Sequence[tuple[int, int]]


def page(shown: Timeline) -> str:
    """Return the page as self-contained HTML; hovering over a mark shows its event."""
    first, last = shown.bounds
    ticks = list(_ticks(first, last))
    per_span = f"in {shown.span_ms // 60_000} min"
    body = [_curve("commits", per_span, shown.rates, shown, ticks)]
    if shown.behind:
        steps = [*shown.behind, (last, shown.behind[-1][1])]
        body.append(_curve("distance", shown.distance_text, steps, shown, ticks))
    else:
        body.append(f"<p>{escape(shown.distance_text)}</p>\n")
    marks = []
    for number, (lane, kinds) in enumerate(LANES.items()):
        for event in (event for event in shown.events if event.kind in kinds):
            start, end = _x(event.timestamp_ms, first, last), _x(event.end_timestamp_ms, first, last)
            box = f'x="{start}" y="{LANE * number}" width="{max(4.0, round(end - start, 1))}" height="16"'
            title = escape(line_of(event))
            marks.append(
                f'<rect {box} fill="{COLOURS[lane]}" fill-opacity="0.7"><title>{title}</title></rect>'
            )
    rows = [(LANE * number + 8, lane) for number, lane in enumerate(LANES)]
    body.append(charts.chart("events", "", "".join(marks), LANE * len(LANES), rows, ticks))
    said = " to ".join(f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}" for ms in (first, last))
    body.append(f"<p>{escape(shown.remark)}</p><p>Times are UTC, as brokers stamped the records: {said}.</p>")
    title = f"{shown.group} · commits, distance from the logs' ends, rebalances, members"
    return charts.page(title, "".join(body))


def _ticks(first: int, last: int) -> Iterator[charts.Label]:
    form = "%H:%M:%S" if last - first < DAY_MS else "%m-%d %H:%M"
    for i in range(6):
        at = datetime.fromtimestamp((first + (last - first) * i // 5) / 1000, UTC)
        yield charts.WIDTH * i / 5, at.strftime(form)


def _x(ms: int, first: int, last: int) -> float:
    return round(charts.WIDTH * (ms - first) / max(1, last - first), 1)


def _curve(name: str, caption: str, points: Points, shown: Timeline, ticks: Sequence[charts.Label]) -> str:
    """Return steps from point to point; commits go down to zero where a span has no point."""
    if not points:
        return f"<p>no {name}</p>\n"
    rate, bounds, most = points is shown.rates, shown.bounds, max(count for _, count in points)
    parts = [f"M{_x(points[0][0], *bounds)},{HEIGHT}"]
    ends = [at for at, _ in points[1:]] + [min(points[-1][0] + shown.span_ms, bounds[1])]
    for (start, count), following in zip(points, ends, strict=True):
        y = round(HEIGHT - (HEIGHT - TOP) * count / max(1, most), 1)
        parts.append(f"L{_x(start, *bounds)},{y}")
        end = min(following, start + shown.span_ms) if rate else following
        parts.append(f"L{_x(end, *bounds)},{y}")
        if end < following or following == ends[-1] and start == points[-1][0]:
            parts.append(f"V{HEIGHT}H{_x(following, *bounds)}")
    rows = ((TOP, f"{most:,}" if rate else f"at most {most:,}"), (HEIGHT, "0"))
    return charts.chart(name, caption, f'<path d="{"".join(parts)}"/>', HEIGHT, rows, ticks)
