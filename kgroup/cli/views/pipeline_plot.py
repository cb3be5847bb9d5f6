"""`kgroup pipeline plot`: a group's timeline as a page or a picture."""

from collections.abc import Callable
from pathlib import Path

from kgroup.cli.output.pages import write_page
from kgroup.errors import ConfigError
from kgroup.pipeline.ask.picture import check_installed, write_png
from kgroup.pipeline.ask.plot import page
from kgroup.pipeline.ask.timeline import Timeline


def drawing_for(out: Path) -> Callable[[Timeline, Path], None]:
    """Return how to write such a file; raise ConfigError for other kinds, or without matplotlib."""
    if out.suffix == ".html":
        return lambda shown, out: write_page(out, page(shown))
    if out.suffix != ".png":
        raise ConfigError(
            f"--out {out} is neither an HTML page nor a PNG picture", "name it FILE.html or FILE.png"
        )

    check_installed()
    return write_png
