"""Documentation that is generated equals what the code says; links lead somewhere."""

import ast
import re
import runpy

import pytest

from kgroup.history.fold.events import Kind
from tests.house.repository import ROOT, modules, name_of, nodes

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"\[[^\]\[]*\]\(([^()\s]+)\)")


@pytest.mark.parametrize(
    ("script", "page"),
    [
        ("protocol_coverage.py", "protocol-coverage.md"),
        ("requirements_coverage.py", "requirements.md"),
        ("broker_versions.py", "broker-versions.md"),
        ("incidents.py", "incidents.md"),
        ("states.py", "states.md"),
        ("kafka_tools.py", "kafka-tools.md"),
        ("rights.py", "rights.md"),
        ("findings.py", "findings.md"),
        ("other_tools.py", "other-tools.md"),
        ("control_openapi.py", "control.openapi.json"),
    ],
)
def test_generated_tables_are_up_to_date(script, page):
    """Run `make docs` after changing what they tell of."""
    document = runpy.run_path(str(DOCS / script))["document"]
    assert (DOCS / page).read_text(encoding="utf-8") == document()


def test_pictures_show_the_sessions_of_the_pages():
    """Run `make pictures` after changing what commands print; tests/cli/test_readme.py plays the sessions."""
    pictures = runpy.run_path(str(DOCS / "pictures.py"))
    files = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "pictures").iterdir()}
    sessions = {
        pictures["name_of"](page, session): session
        for page in pictures["SESSIONS"]
        for session in pictures["blocks"]("console", page=page)
    }
    assert {name: pictures["shown"](picture) for name, picture in files.items()} == sessions
    assert max(len(line) for text in sessions.values() for line in text.splitlines()) <= pictures["COLUMNS"]
    texts = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert [name for name in files if f"pictures/{name}.svg)" not in texts] == []


def test_messages_and_help_name_pages_as_an_installed_user_opens_them():
    """By `kgroup docs PAGE`, and the page is there; docstrings of the code may name files."""
    named, files = set(), []
    for path in modules():
        told = path.is_relative_to(ROOT / "kgroup/cli/commands")
        prose = {id(n.value) for n in nodes(path) if isinstance(n, ast.Expr)} if not told else set()
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                files += [f"{name_of(path)}:{node.lineno}"] * ("docs/" in node.value and ".md" in node.value)
                named |= {*re.findall(r"kgroup docs ([a-z][\w/-]*)", node.value)}
    assert files == []
    assert len(named) > 4
    assert sorted(name for name in named if not [*DOCS.glob(f"{name}*.md")]) == []


def test_files_that_the_architecture_names_are_there():
    """In backticks, by the end of their path: `consumer/target.py` is in the room where the sentence is."""
    text = re.sub(r"```.*?```", "", (DOCS / "architecture.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    named = [name for name in re.findall(r"`([\w./-]+)`", text) if name.endswith((".py", "/"))]
    tree = [path.relative_to(ROOT) for path in (*ROOT.glob("kgroup/**/*"), *ROOT.glob("tests/**/*"))]
    ends = [f"/{path.as_posix()}{'/' if (ROOT / path).is_dir() else ''}" for path in tree]
    assert len(named) > 40
    assert [name for name in named if not any(end.endswith(f"/{name}") for end in ends)] == []


RECIPES = (
    (DOCS / "architecture.md").read_text(encoding="utf-8").partition("## Recipes")[2].partition("\n## ")[0]
)


@pytest.mark.parametrize("recipe", RECIPES.strip().split("\n\n"), ids=lambda text: text.split("**")[1])
def test_recipes_lead_to_what_they_name(recipe):
    """A name is followed by its file or folder: `RULES` of `admin/statuses.py` is defined there."""
    text = recipe.rpartition("**")[2]
    named = re.findall(r"`([A-Za-z_]\w*)`(?:\s+of\s+(?:a\s+module\s+of\s+)?`([\w./]+)`)?", text)
    assert [name for name, place in named if not place and not name.startswith("__")] == []
    assert [(name, place) for name, place in named if place and not defined(name, place)] == []
    assert named


def defined(name, place):
    """Return whether a module, or one of a folder, defines a name of its own or of a class."""
    for root in (ROOT, ROOT / "kgroup"):
        for path in (root / place).glob("*.py") if place.endswith("/") else (root / place,):
            if path.is_file() and name in names_in(ast.parse(path.read_text(encoding="utf-8"))):
                return True
    return False


def names_in(tree):
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_every_kind_of_event_has_its_proof_in_the_records():
    """`replay-log` and the tables print these names; a reader finds here what each of them means."""
    page = (DOCS / "replay-log.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|(.*?)\|", page.partition("## Events")[2].partition("\n## ")[0], re.M)
    explained = [name for row in rows for name in re.findall(r"`(.+?)`", row)]
    assert sorted(explained) == sorted(Kind)


MAKE = re.compile(r"`make ([a-z-]+)((?: [A-Z]+=[^`\s]+)*)`")


def test_make_targets_that_texts_name_are_there():
    """With the variables that they are given."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {
        *re.findall(r"^([a-z-]+):", makefile, re.M),
        *re.findall(r"^TOOLS := (.+)$", makefile, re.M)[0].split(),
    }
    texts = [*PAGES, *(path for top in ("kgroup", "tests") for path in (ROOT / top).rglob("*.py"))]
    named = {found for path in texts for found in MAKE.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 15
    assert [target for target, _ in named if target not in targets] == []
    variables = {name for _, given in named for name in re.findall(r"([A-Z]+)=", given)}
    assert [name for name in sorted(variables) if f"$({name})" not in makefile] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target for target in LINK.findall(text) if not re.match(r"[a-z]+:|#", target)]
    assert [t for t in targets if not (page.parent / t.partition("#")[0]).exists()] == []
