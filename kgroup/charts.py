"""Charts of a page: each drawing is as wide as the page, and its axes are text, which is not scaled."""

from collections.abc import Iterable
from html import escape

WIDTH = 1000
"""The width of a drawing, in its own units; its height is in pixels."""
Label = tuple[float, str]
_STYLE = """
:root{color-scheme:light dark;--ink:#1c2330;--dim:#5a6472;--line:#ccd3dd;--bg:#fff;
--curve:#2563eb;--under:#bfdbfe}
@media(prefers-color-scheme:dark){
:root{--ink:#e4e8ee;--dim:#9aa4b2;--line:#39424f;--bg:#171b21;--curve:#60a5fa;--under:#1e3a8a}}
body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem;max-width:70rem;
color:var(--ink);background:var(--bg)}
h1{font-size:1.3rem;overflow-wrap:anywhere}
p,figcaption,figure span{color:var(--dim);margin:.2rem 0}b{color:var(--ink)}
figure{margin:1.4rem 0}figcaption{margin-bottom:.5rem}figure svg{display:block;width:100%}
figure div{position:relative;margin-left:5.5rem}figure span{position:absolute;font-size:12px}
.y span{right:100%;width:5rem;text-align:right;margin-right:.4rem;transform:translateY(-50%)}
.x{height:1.3rem}.x span{white-space:nowrap}@media(max-width:40rem){.x span:nth-child(even){display:none}}
line{stroke:var(--line);vector-effect:non-scaling-stroke}
path{stroke:var(--curve);fill:var(--under);vector-effect:non-scaling-stroke}
"""


def page(title: str, body: str, style: str = "") -> str:
    """Return a page that loads nothing from elsewhere; `body` and `style` are written as they are."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}{style}</style></head><body><main>\n<h1>{escape(title)}</h1>\n{body}\n"
        "</main></body></html>\n"
    )


def chart(
    name: str, caption: str, drawing: str, height: int, rows: Iterable[Label], ticks: Iterable[Label]
) -> str:
    """Return a drawing, labels beside it at pixels from its top, and below it at units from its left."""
    lines = [f'<line x1="0" x2="{WIDTH}" y1="{height}" y2="{height}"/>']
    below = []
    for x, text in ticks:
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}"/>')
        # Those at the ends stay inside the page.
        style = f"left:{x / WIDTH:.1%};transform:translateX({-x / WIDTH:.1%})"
        below.append(f'<span style="{style}">{escape(text)}</span>')
    beside = "".join(f'<span style="top:{y}px">{escape(text)}</span>' for y, text in rows)
    shape = f'viewBox="0 0 {WIDTH} {height}" height="{height}" preserveAspectRatio="none"'
    return (
        f"<figure><figcaption><b>{escape(name)}</b> {escape(caption)}</figcaption>\n"
        f'<div class="y">{beside}<svg {shape} role="img" aria-label="{escape(name)} {escape(caption)}">'
        f'{"".join(lines)}{drawing}</svg></div>\n<div class="x">{"".join(below)}</div></figure>\n'
    )
