"""One group over time as a page of its own: commit rate, rebalances, and what an audit should look at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from kgroup.history.events import Event, Kind, duration_text

WIDTH, HEIGHT, LEFT, LANE = 1000, 220, 70, 26
_LANES = {
    "rebalances": frozenset(
        {Kind.REBALANCE_STARTED, Kind.REBALANCE_COMPLETED, Kind.UPGRADED, Kind.DOWNGRADED}
    ),
    "members": frozenset({Kind.MEMBER_JOINED, Kind.MEMBER_LEFT_OR_EXPIRED, Kind.MEMBER_REPLACED}),
    "suspicious": frozenset({Kind.REWOUND, Kind.COMMITTED_UNOWNED, Kind.EPOCH_REGRESSED}),
}
_COLOURS = {"rebalances": "#2563eb", "members": "#64748b", "suspicious": "#dc2626"}
_STYLE = (
    "body{font:14px system-ui;margin:2rem;max-width:70rem;color:#0f172a}"
    "text{font:12px system-ui;fill:#475569}h1{font-size:1.3rem}"
)


def page(group: str, events: Sequence[Event], rates: Sequence[tuple[int, int]], remark: str) -> str:
    """The page as HTML, all in one; hovering over a mark tells what it is.

    `rates` are (start of a minute in ms, commits in it), in order; `remark` says what is complete. Lag is not
    in it: the topic does not hold the ends of the logs.
    """
    own = [event for event in events if event.group == group]
    times = [t for e in own for t in (e.timestamp_ms, e.end_timestamp_ms) if t >= 0] + [t for t, _ in rates]
    first, last = min(times, default=0), max(times, default=1)
    body = [_axis(first, last), _rate(rates, first, last)]
    for number, (lane, kinds) in enumerate(_LANES.items()):
        chosen = [event for event in own if event.kind in kinds]
        body.append(_lane(lane, HEIGHT + 30 + LANE * number, chosen, first, last))
    height = HEIGHT + 40 + LANE * len(_LANES)
    drawing = f'<svg viewBox="0 0 {WIDTH + LEFT + 20} {height}" role="img">{"".join(body)}</svg>'
    title = f"{escape(group)} · commits a minute, rebalances, members"
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    notes = f"<p>{escape(remark)}</p><p>Times are UTC, as brokers stamped the records.</p>"
    body_text = f"<h1>{title}</h1>{drawing}{notes}"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{body_text}</body></html>\n"


def _x(ms: int, first: int, last: int) -> float:
    return round(LEFT + WIDTH * (ms - first) / max(1, last - first), 1)


def _axis(first: int, last: int) -> str:
    marks = []
    for i in range(6):
        ms = first + (last - first) * i // 5
        text = datetime.fromtimestamp(ms / 1000, UTC).strftime("%m-%d %H:%M:%S")
        x = _x(ms, first, last)
        marks.append(f'<line x1="{x}" x2="{x}" y1="10" y2="{HEIGHT}" stroke="#e2e8f0"/>')
        marks.append(f'<text x="{x}" y="{HEIGHT + 16}" text-anchor="middle">{text}</text>')
    return "".join(marks)


def _rate(rates: Sequence[tuple[int, int]], first: int, last: int) -> str:
    top = max((count for _, count in rates), default=0)
    if not top:
        return f'<text x="{LEFT}" y="{HEIGHT // 2}">no commits</text>'
    points = []
    for i, (ms, count) in enumerate(rates):
        if not i or ms - rates[i - 1][0] > 60_000:
            points.append(f"M{_x(ms, first, last)},{HEIGHT}")
        y = round(HEIGHT - (HEIGHT - 20) * count / top, 1)
        points.append(f"L{_x(ms, first, last)},{y}")
        if i + 1 == len(rates) or rates[i + 1][0] - ms > 60_000:
            points.append(f"L{_x(min(ms + 60_000, last), first, last)},{y}V{HEIGHT}")
    line = f'<path d="{"".join(points)}" fill="#bfdbfe" stroke="#2563eb" stroke-width="1"/>'
    return f'{line}<text x="{LEFT - 6}" y="24" text-anchor="end">{top}/min</text>'


def _lane(name: str, y: int, events: Sequence[Event], first: int, last: int) -> str:
    parts = [f'<text x="{LEFT - 6}" y="{y + 12}" text-anchor="end">{name}</text>']
    for event in events:
        start, end = _x(event.timestamp_ms, first, last), _x(event.end_timestamp_ms, first, last)
        span = event.end_timestamp_ms - event.timestamp_ms
        told = [
            str(event.kind),
            event.detail,
            event.cause or "",
            f"took {duration_text(span)}" if span > 0 else "",
        ]
        width = max(3.0, round(end - start, 1))
        title = escape(" · ".join(text for text in told if text))
        box = f'x="{start}" y="{y}" width="{width}" height="16" fill="{_COLOURS[name]}" fill-opacity="0.7"'
        parts.append(f"<rect {box}><title>{title}</title></rect>")
    return "".join(parts)
