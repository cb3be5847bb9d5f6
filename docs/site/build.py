"""Build the documents as a site in build/site, without a network: `make site`.

The site has what links lead to from README.md on, under the same names: a link leads there where it leads in
a checkout. The paths in `MADE` have pages that no file holds.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath

from kgroup.cli.frame.described import described, shared_options
from kgroup.cli.frame.generated import man_name
from kgroup.cli.frame.lazy import OF_EVERY_COMMAND, KgroupCommand, walk
from kgroup.cli.frame.registry import COMMANDS, PANELS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build"
PAGES, SITE = BUILD / "pages", BUILD / "site"
# A link, and before it what holds no links: blocks and spans of code.
LINK = re.compile(r"^```.*?^```$|`[^`\n]+`|(!?)\[([^\]\[]*)\]\(([^()\s]+)\)", re.M | re.S)
ELSEWHERE = re.compile(r"[a-z]+:|#")
AS_THEY_ARE = {".svg", ".json", ".ipynb"}
SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def commands_page() -> str:
    """Return the list of the commands."""
    lines = ["# Commands", ""]
    for panel in PANELS:
        lines += [f"## {panel.capitalize()}", "", "| command | does |", "|---|---|"]
        for command in walk():
            if COMMANDS[command.path.split()[0]].panel == panel:
                page = f"[kgroup {command.path}]({man_name(command.path)}.1)"
                lines.append(f"| {page} | {_cell(described(command)['summary'])} |")
        lines.append("")
    lines += _parameters("Options of every command", "option", shared_options())
    return "\n".join(lines)


def command_page(command: KgroupCommand) -> str:
    """Return a command's page, of what its help and its man page say."""
    of = described(command)
    lines = [f"# kgroup {command.path}", "", _text(of["summary"]), "", "```", of["usage"], "```", ""]
    lines += [_text(of["description"] or ""), ""]
    for kind in ("arguments", "options"):
        lines += _parameters(kind.capitalize(), kind[:-1], of[kind])
    lines += [f"{_text(OF_EVERY_COMMAND.rpartition(':')[0])}: [options of every command](../man).", ""]
    lines += ["## Examples", "", "```sh"]
    lines += [f"# {each['comment']}\n{each['line']}" for each in of["examples"]]
    return "\n".join([*lines, "```", ""])


def _parameters(title: str, kind: str, found: list[dict[str, str]]) -> Iterator[str]:
    if found:
        yield from (f"## {title}", "", f"| {kind} | meaning |", "|---|---|")
        yield from (f"| `{each['usage']}` | {_cell(each['help'])} |" for each in found)
        yield ""


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|").replace("\n", " ")


def _text(text: str) -> str:
    """Return help as Markdown: what is in backticks is code, other characters stand for themselves."""
    return re.sub(
        r"(`[^`\n]+`)|(<)|([\\`*_\[\]#])",
        lambda found: found[1] or (found[2] and "&lt;") or f"\\{found[3]}",
        text,
    )


def api_page(title: str, *names: str) -> str:
    """Return the reference of these names, from their docstrings."""
    return "\n\n".join([f"# {title}", *(f"::: {name}" for name in names)])


MADE = {
    "man": commands_page,
    "kgroup/testing": lambda: api_page("kgroup.testing", "kgroup.testing.Cluster"),
    "kgroup/api.py": lambda: api_page("kgroup.connect", "kgroup.connect", "kgroup.api"),
    **{f"man/{man_name(c.path)}.1": lambda c=c: command_page(c) for c in walk()},
}


def markdown(path: str) -> str:
    """Return the Markdown of a path of the repository: a page, a list of a folder, or a file's text."""
    if path in MADE:
        return MADE[path]()
    place = ROOT / path
    if place.suffix == ".md":
        return place.read_text(encoding="utf-8").replace("<details>", '<details markdown="1">')
    if place.is_dir():
        entries = (f"- {_entry(place / name)}" for name in _tracked(path))
        return "\n".join([f"# {place.name.capitalize()}", "", *entries])
    return f"# {place.name}\n\n```{place.suffix[1:]}\n{place.read_text(encoding='utf-8')}```\n"


def _tracked(folder: str) -> list[str]:
    found = subprocess.run(["git", "ls-files", folder], cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted({PurePosixPath(line).relative_to(folder).parts[0] for line in found.stdout.splitlines()})


def _entry(place: Path) -> str:
    title = place.name
    if place.suffix == ".md":
        title = place.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return f"[{title}]({place.name})"


def page_of(path: str) -> str:
    """Return the page behind a path of the repository, or the file itself."""
    place = ROOT / path
    if place.is_dir():
        return f"{path}/README.md"
    if place.suffix in {".md", *AS_THEY_ARE}:
        return path
    return f"{path.removesuffix('.1')}.md"


def staged(start: str) -> dict[str, str]:
    """Return the paths that links lead to from a page on, and the Markdown of their pages."""
    found: dict[str, str] = {}
    left = [start]
    while left:
        path = left.pop()
        if path not in found and PurePosixPath(path).suffix not in AS_THEY_ARE:
            found[path] = LINK.sub(lambda link, path=path: _mapped(link, path, left), markdown(path))
        else:
            found.setdefault(path, "")
    return found


def _mapped(link: re.Match[str], path: str, left: list[str]) -> str:
    """Return a link as it leads to the target's page, and remember the target."""
    picture, text, to = link.groups()
    if to is None:
        # GitHub wants a bar escaped in the code of a table; here it would show.
        return link[0].replace("\\|", "|")
    if ELSEWHERE.match(to):
        return link[0]
    name, _, anchor = to.partition("#")
    folder = path if (ROOT / path).is_dir() else str(PurePosixPath(path).parent)
    target = normpath(f"{folder}/{name}")
    left.append(target)
    up = "../" * len(PurePosixPath(page_of(path)).parent.parts)
    there = f"{up}{page_of(target)}{'#' if anchor else ''}{anchor}"
    if not picture:
        return f"[{text}]({there})"
    size = SIZE.search((ROOT / target).read_text(encoding="utf-8"))
    assert size is not None, target
    # On a narrow screen it is scrolled, so it has to take the focus: it is a link to itself.
    width, height = (round(float(each)) for each in size.groups())
    return f"[![{text}]({there}){{ width={width} height={height} }}]({there}){{ .picture }}"


def navigation(pages: dict[str, str]) -> str:
    """Return the pages in the order of docs/README.md, as literate-nav reads it."""
    titles = {page_of(path): text.partition("\n")[0].removeprefix("# ") for path, text in pages.items()}
    lines = ["- [Home](README.md)", "- [All documents](docs/README.md)"]
    for section in pages["docs/README.md"].split("\n## ")[1:]:
        lines.append(f"- {section.partition(':')[0].partition(chr(10))[0]}")
        for page in _linked("docs/README.md", section):
            lines.append(f"    - [{titles[page]}]({page})")
            folder = page.removesuffix("/README.md")
            inside = _linked(page, pages[folder]) if folder in {"man", "docs/decisions"} else ()
            lines += [f"        - [{titles[each]}]({each})" for each in inside]
    return "\n".join(lines)


def _linked(page: str, text: str) -> Iterator[str]:
    """Yield the pages that a page's text links to."""
    for link in LINK.finditer(text):
        if link[3] and not ELSEWHERE.match(link[3]):
            yield normpath(f"{PurePosixPath(page).parent}/{link[3].partition('#')[0]}")


def build() -> int:
    """Write the pages to build/pages, and the site to build/site; return the exit code."""
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    pages = staged("README.md")
    for path, text in pages.items():
        to = PAGES / page_of(path)
        to.parent.mkdir(parents=True, exist_ok=True)
        if to.suffix in AS_THEY_ARE:
            shutil.copy(ROOT / path, to)
        else:
            to.write_text(text, encoding="utf-8")
    (PAGES / ".nav.md").write_text(navigation(pages), encoding="utf-8")
    for name in ("site.css", "site.js"):
        shutil.copy(HERE / name, PAGES)
    shutil.copy(HERE / "zensical.toml", BUILD)
    done = subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=BUILD)
    for path in pages:
        if path.endswith(".md"):
            shutil.copy(ROOT / path, SITE / path)
    shutil.copy(ROOT / "llms.txt", SITE)
    return done.returncode


if __name__ == "__main__":
    sys.exit(build())
