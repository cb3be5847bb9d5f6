"""Draws the README's `doctor` and `blame` from its text; `make pictures` plays the pages' sessions first."""

import io
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from tests.cli.readme import ROOT, SESSIONS, blocks, commands, play, without_what_varies

FOLDER = Path(__file__).parent / "pictures"
DRAWN = ("doctor", "blame")
WIDTH = 128
# Without rich's fonts, which a page would load from elsewhere.
FORMAT = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
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


def documents() -> dict[str, str]:
    """Return each picture by its name, drawn from the session in the README."""
    found = {}
    for session in blocks("console"):
        for command, output in commands(session):
            name = command.split()[1]
            if name in DRAWN:
                found[name] = _drawn(name, f"$ {command}", output)
    return found


def _drawn(name: str, command: str, output: str) -> str:
    screen = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    screen.print(Text(command, style="bold"))
    screen.print(Text(output.rstrip()))
    return screen.export_svg(title=f"kgroup {name}", code_format=FORMAT, unique_id=name)


def replay_sessions() -> None:
    """Write into the pages what their commands print today, where more than ids and times differ."""
    for page, cluster in SESSIONS.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        for session in blocks("console", page=page):
            with cluster() as bootstrap, TemporaryDirectory() as folder:
                for command, shown, printed in play(session, bootstrap, Path(folder)):
                    if without_what_varies(printed) != without_what_varies(shown):
                        text = text.replace(f"$ {command}\n{shown}", f"$ {command}\n{printed}")
        (ROOT / page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    replay_sessions()
    for name, picture in documents().items():
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")
