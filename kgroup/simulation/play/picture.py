"""A plan's results as one HTML page: a table, and for each kind the partitions read over time."""

from collections.abc import Iterator, Sequence
from html import escape

from kgroup import charts
from kgroup.simulation.play.planning import PUSH, PlanResult

HEIGHT, TOP = 120, 4
MOST_POINTS = 900
STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
_STYLE = (
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px}"
    "td,th{padding:.3em .8em .3em 0;text-align:right;vertical-align:top;border-bottom:1px solid var(--line)}"
    "td:first-child,th:first-child{text-align:left}"
)
_COLUMNS = (
    ("rebalances", "rebalances"),
    ("assignments", "assignments"),
    ("stop_the_world_ms", "stop the world, ms"),
    ("unowned_partition_ms", "unowned partitions × ms"),
    ("partitions_moved", "partitions moved"),
    ("duplicates", "records read twice"),
    ("messages_per_member_minute", "messages per member and minute"),
)


def page(title: str, summary: str, results: Sequence[PlanResult]) -> str:
    """Return the page; it loads nothing from elsewhere."""
    longest_ms = max((1, *(result.simulated_ms for result in results)))
    drawn = "".join(_chart(result, longest_ms) for result in results)
    head = "".join(f"<th>{escape(title)}</th>" for _, title in _COLUMNS)
    rows = "".join(
        f"<tr><td>{name_of(result)}</td>"
        + "".join(f"<td>{getattr(result, key):,}</td>" for key, _ in _COLUMNS)
        + "</tr>\n"
        for result in results
    )
    body = (
        f'<p>{escape(summary)}</p>\n<div class="wide" tabindex="0" role="region" aria-label="costs">'
        f"<table><tr><th>group</th>{head}</tr>\n{rows}</table></div>\n{drawn}"
    )
    return charts.page(title, body, _STYLE)


def _chart(result: PlanResult, longest_ms: int) -> str:
    # A limited number of points; where some are omitted the lowest stays, so that no gap is lost.
    size = -(-len(result.history) // MOST_POINTS) or 1
    chunks = (result.history[i : i + size] for i in range(0, len(result.history), size))
    path: list[str] = []
    for at_ms, read in (min(chunk, key=lambda point: point[1]) for chunk in chunks):
        x = at_ms * charts.WIDTH / longest_ms
        y = HEIGHT - read * (HEIGHT - TOP) / max(result.partitions, 1)
        path.append(f"{'H' if path else 'M'}{x:.1f}" + (f"V{y:.1f}" if path else f" {y:.1f}"))
    rows = ((TOP, str(result.partitions)), (HEIGHT, "0"))
    curve = f'<path d="{"".join(path)}" style="fill:none"/>'
    caption = "partitions read, over simulated time"
    return charts.chart(name_of(result), caption, curve, HEIGHT, rows, _ticks(longest_ms))


def _ticks(longest_ms: int) -> Iterator[charts.Label]:
    """Yield round times, six at most."""
    step = next((step for step in STEPS_S if longest_ms <= 6000 * step), longest_ms // 5000)
    for at in range(0, longest_ms // 1000 + 1, step):
        yield at * 1000 * charts.WIDTH / longest_ms, f"{at // 60} min" if step >= 60 else f"{at} s"


def name_of(result: PlanResult) -> str:
    """Return the kind of group: `classic static`, `consumer dynamic`, `push` …"""
    if result.protocol == PUSH:
        return PUSH
    kind = f"{result.protocol} {'static' if result.static else 'dynamic'}"
    if result.registered:
        return f"{kind}, ids registered"
    return kind if result.target_size is None else f"{kind}, {result.target_size} active"
