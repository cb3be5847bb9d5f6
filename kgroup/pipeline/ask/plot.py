"""A timeline as a page of its own: commit rate, distance, rebalances, members, events to audit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from kgroup.pipeline.ask.timeline import COLOURS, LANES, Timeline, line_of

WIDTH, HEIGHT, LEFT, LANE = 1000, 200, 110, 26
_STYLE = (
    "body{font:14px system-ui;margin:2rem;max-width:70rem;color:#0f172a}"
    "text{font:12px system-ui;fill:#475569}h1{font-size:1.3rem}"
)
Points = Sequence[tuple[int, int]]


def page(shown: Timeline) -> str:
    """Return the page as self-contained HTML; hovering over a mark shows its event."""
    first, last = shown.bounds
    distance_top = HEIGHT + 50
    rate = f"commits in {shown.span_ms // 60_000} min"
    body = []
    for i in range(6):
        ms = first + (last - first) * i // 5
        text = datetime.fromtimestamp(ms / 1000, UTC).strftime("%m-%d %H:%M:%S")
        x = _x(ms, first, last)
        body.append(f'<line x1="{x}" x2="{x}" y1="10" y2="{HEIGHT}" stroke="#e2e8f0"/>')
        body.append(f'<text x="{x}" y="{HEIGHT + 16}" text-anchor="middle">{text}</text>')
    body += [
        _curve(shown.rates, rate, 0, shown.span_ms, (first, last), gaps=True),
        f'<text x="{LEFT}" y="{distance_top + 8}">{escape(shown.distance_text)}</text>',
    ]
    below = distance_top + 20
    if shown.behind:
        steps = [*shown.behind, (last, shown.behind[-1][1])]
        body.append(_curve(steps, "records", distance_top, shown.span_ms, (first, last), gaps=False))
        below = distance_top + HEIGHT + 10
    for number, (lane, kinds) in enumerate(LANES.items()):
        y = below + LANE * number
        body.append(f'<text x="{LEFT - 6}" y="{y + 12}" text-anchor="end">{lane}</text>')
        for event in (event for event in shown.events if event.kind in kinds):
            start, end = _x(event.timestamp_ms, first, last), _x(event.end_timestamp_ms, first, last)
            width = max(3.0, round(end - start, 1))
            box = f'x="{start}" y="{y}" width="{width}" height="16" fill="{COLOURS[lane]}" fill-opacity="0.7"'
            body.append(f"<rect {box}><title>{escape(line_of(event))}</title></rect>")
    height = below + 10 + LANE * len(LANES)
    drawing = f'<svg viewBox="0 0 {WIDTH + LEFT + 20} {height}" role="img">{"".join(body)}</svg>'
    title = f"{escape(shown.group)} · commits, distance from the logs' ends, rebalances, members"
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    notes = f"<p>{escape(shown.remark)}</p><p>Times are UTC, as brokers stamped the records.</p>"
    body_text = f"<h1>{title}</h1>{drawing}{notes}"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{body_text}</body></html>\n"


def _x(ms: int, first: int, last: int) -> float:
    return round(LEFT + WIDTH * (ms - first) / max(1, last - first), 1)


def _curve(points: Points, unit: str, top: int, span_ms: int, bounds: tuple[int, int], gaps: bool) -> str:
    """Return steps from point to point; with `gaps` down to zero where a span has no point."""
    base, most = top + HEIGHT, max((count for _, count in points), default=0)
    if not points:
        return f'<text x="{LEFT}" y="{base - HEIGHT // 2}">no {unit}</text>'
    parts = [f"M{_x(points[0][0], *bounds)},{base}"]
    ends = [at for at, _ in points[1:]] + [min(points[-1][0] + span_ms, bounds[1])]
    for (start, count), following in zip(points, ends, strict=True):
        y = round(base - (HEIGHT - 20) * count / max(1, most), 1)
        parts.append(f"L{_x(start, *bounds)},{y}")
        end = min(following, start + span_ms) if gaps else following
        parts.append(f"L{_x(end, *bounds)},{y}")
        if end < following or following == ends[-1] and start == points[-1][0]:
            parts.append(f"V{base}H{_x(following, *bounds)}")
    line = f'<path d="{"".join(parts)}" fill="#bfdbfe" stroke="#2563eb" stroke-width="1"/>'
    label = f'<text x="{LEFT - 6}" y="{top + 24}" text-anchor="end">{most}</text>'
    return f'{line}{label}<text x="{LEFT - 6}" y="{top + 40}" text-anchor="end">{unit}</text>'
