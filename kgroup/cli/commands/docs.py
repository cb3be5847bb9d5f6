"""`kgroup docs`: the pages of the documentation, as this version carries them."""

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import kgroup
from kgroup.cli.declaring import argument
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.frame.options import make

INDEX = "README"


def pages() -> dict[str, Path]:
    """Return the file of each page by its name: docs/ of a checkout, or share/doc of a wheel."""
    from importlib.metadata import PackageNotFoundError, files

    folder = Path(kgroup.__file__).parents[1] / "docs"
    if not (folder / f"{INDEX}.md").is_file():
        try:
            installed = [file for file in files("kgroup") or () if file.match("share/doc/kgroup/README.md")]
        except PackageNotFoundError:
            installed = []
        if not installed:
            hint = "install a wheel of kgroup, or read docs/ of its sources"
            raise Failure(ExitCode.NOT_FOUND, "NO_PAGES", "this installation has no documentation", hint)
        folder = Path(str(installed[0].locate())).parent
    paths = {path.stem: path for path in sorted(folder.glob("*.md"))}
    return paths | {f"decisions/{path.stem}": path for path in sorted((folder / "decisions").glob("*.md"))}


@make(
    "docs",
    examples=(
        ("kgroup docs", "the index"),
        ("kgroup docs exit-codes", "a page"),
        ("kgroup docs decisions/0023", "a decision, by its number"),
    ),
    has_json=False,
)
def command(
    env: Env,
    page: Annotated[
        str, argument("[PAGE]", "A page that the index names.", autocompletion=lambda: pages())
    ] = INDEX,
) -> ExitCode:
    """Print a page of the documentation, in Markdown."""
    known = pages()
    stem = page.removeprefix("docs/").removesuffix(".md")
    matches = [name for name in known if name == stem or name.startswith(f"{stem}-") and "/" in stem]
    if not matches:
        near = get_close_matches(stem, known)
        hint = f"did you mean {', '.join(near)}?" if near else "the index names the pages: kgroup docs"
        raise Failure(ExitCode.NOT_FOUND, "NO_PAGE", f"there is no page {page!r}", hint)
    print(known[matches[0]].read_text(encoding="utf-8"), end="")
    return ExitCode.OK
