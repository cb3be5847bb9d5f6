"""Draws the sessions of README.md and docs/ as a terminal shows them; `make pictures` plays them first."""

import io
import re
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from tests.cli.readme import COLUMNS, ROOT, SESSIONS, blocks, commands, play, uncoloured, without_what_varies

FOLDER = Path(__file__).parent / "pictures"
# Without rich's fonts, which a page would load from elsewhere.
FORMAT = """<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; \
font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


STYLE = re.compile(r"-(r\d+) \{ (fill: .*) \}")
WRITTEN = re.compile(r'<text class="\S+-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<\n]+)</text>')
CELL, ROW = 12.2, 24.4


def name_of(page: str, session: str) -> str:
    """Return the name of a session's picture: `readme-doctor`."""
    return f"{Path(page).stem.lower()}-{verb(session)}"


def verb(session: str) -> str:
    """Return the command that a session begins with."""
    return session.split()[2]


def drawn(name: str, session: str) -> str:
    """Return a session, with the colours that its commands printed, as a picture."""
    screen = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for command, output in commands(session):
        screen.print(Text(f"$ {command}", style="bold"), overflow="fold")
        screen.print(Text.from_ansi(output.removesuffix("\n")), overflow="fold")
    return screen.export_svg(title=f"kgroup {verb(session)}", code_format=FORMAT, unique_id=name)


def shown(picture: str) -> str:
    """Return the text that a picture shows."""
    lines: dict[float, str] = {}
    for _, x, y, text in WRITTEN.findall(picture):
        lines[float(y)] = lines.get(float(y), "").ljust(round(float(x) / CELL)) + unescape(text)
    top = min(lines)
    rows = [lines.get(round(top + ROW * n, 1), "") for n in range(round((max(lines) - top) / ROW) + 1)]
    return "".join(row.replace("\xa0", " ").rstrip() + "\n" for row in rows)


def styles(picture: str) -> list[tuple[str, str]]:
    """Return what a picture shows piece by piece, each with its style."""
    named = dict(STYLE.findall(picture))
    return [
        (named[name], unescape(text).replace("\xa0", " ")) for name, _, _, text in WRITTEN.findall(picture)
    ]


def replay_sessions() -> None:
    """Write into the pages what their commands print today, and draw it.

    Where only ids and times differ, both stay as they are.
    """
    for page, cluster in SESSIONS.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        for session in blocks("console", page=page):
            with cluster() as bootstrap, TemporaryDirectory() as folder:
                played = [
                    (command, printed) for command, _, printed in play(session, bootstrap, Path(folder))
                ]
            printed = "".join(f"$ {command}\n{output}" for command, output in played)
            file = FOLDER / f"{name_of(page, session)}.svg"
            picture = drawn(file.stem, printed)
            if not file.exists() or not alike(picture, file.read_text(encoding="utf-8")):
                text = text.replace(session, uncoloured(printed))
                file.write_text(picture, encoding="utf-8")
        (ROOT / page).write_text(text, encoding="utf-8")


def alike(one: str, other: str) -> bool:
    """Return whether two pictures differ in ids and times only."""
    (first, second) = (
        [(style, *without_what_varies(text)) for style, text in styles(of)] for of in (one, other)
    )
    return first == second


if __name__ == "__main__":
    replay_sessions()
