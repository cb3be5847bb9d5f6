"""A plan's results as one HTML page: a table, and for each kind the partitions read over time."""

from collections.abc import Sequence
from html import escape

from kgroup.simulation.play.planning import PUSH, PlanResult

WIDTH, HEIGHT = 900, 120
MOST_POINTS = 900
_STYLE = (
    "body{font:15px sans-serif;margin:2em;max-width:60em;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.3em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}svg{background:#f6f6f6;width:100%;height:auto}"
    "h2{font-size:1em;margin:1.5em 0 .3em}p{color:#666;margin:.2em 0}"
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
    pictures = []
    for result in results:
        # A limited number of points; where some are omitted the lowest stays, so that no gap is lost.
        size = -(-len(result.history) // MOST_POINTS) or 1
        chunks = (result.history[i : i + size] for i in range(0, len(result.history), size))
        path: list[str] = []
        for at_ms, read in (min(chunk, key=lambda point: point[1]) for chunk in chunks):
            x = at_ms * WIDTH / longest_ms
            y = HEIGHT - read * (HEIGHT - 4) / max(result.partitions, 1)
            path.append(f"{'H' if path else 'M'}{x:.1f}" + (f"V{y:.1f}" if path else f" {y:.1f}"))
        pictures.append(
            f"<h2>{name_of(result)}</h2><p>partitions read, 0 to {result.partitions}, over "
            f"{result.simulated_ms / 1000:.0f} s</p>\n"
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><path d="{"".join(path)}" fill="none" '
            f'stroke="#27c" stroke-width="1.5"/></svg>'
        )
    head = "".join(f"<th>{escape(title)}</th>" for _, title in _COLUMNS)
    rows = "".join(
        f"<tr><td>{name_of(result)}</td>"
        + "".join(f"<td>{getattr(result, key):,}</td>" for key, _ in _COLUMNS)
        + "</tr>\n"
        for result in results
    )
    drawn = "\n".join(pictures)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n<p>{escape(summary)}</p>\n"
        f"<table><tr><th>group</th>{head}</tr>\n{rows}</table>\n{drawn}\n</body></html>\n"
    )


def name_of(result: PlanResult) -> str:
    """Return the kind of group: `classic static`, `consumer dynamic`, `push` …"""
    if result.protocol == PUSH:
        return PUSH
    kind = f"{result.protocol} {'static' if result.static else 'dynamic'}"
    if result.registered:
        return f"{kind}, ids registered"
    return kind if result.target_size is None else f"{kind}, {result.target_size} active"
