"""Writes docs/requirements.md from the ids that tests name: `python docs/requirements_coverage.py`."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
FAMILIES = {
    "SM": "Static membership (KIP-345)",
    "CP": "Consumer rebalance protocol (KIP-848)",
    "AE": "Assignment epochs (KIP-1251)",
    "LC": "Legacy coordinator (draft for 0.9)",
    "OC": "Open choices",
}
HEAD = """# Requirements and the tests that name them

Written by `docs/requirements_coverage.py`; `make docs` refreshes it and a test holds it to the tests. A test
names an id in its name, its docstring or the title of its scenario. Requirements that are not built, and
why, are in [not-built.md](not-built.md#requirements-not-built).
"""
NAMED = re.compile(rf"(?<![A-Za-z])({'|'.join(FAMILIES)})[-_](\d\d)(?: to \1-(\d\d))?(?!\d)", re.IGNORECASE)
Place = tuple[str, str]
"""A file below tests/ and what in it: a function, a class, the title of a scenario; "" for all of it."""


def ids_in(text: str) -> Iterator[str]:
    """The ids a text names; `SM-09 to SM-14` are six of them."""
    for family, first, last in NAMED.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield f"{family.upper()}-{number:02}"


def tests_by_id() -> dict[str, set[Place]]:
    """Every id that is named anywhere in tests/, and where."""
    found: dict[str, set[Place]] = defaultdict(set)
    for path in sorted(TESTS.rglob("*")):
        if path.suffix not in (".py", ".scenario"):
            continue
        name = path.relative_to(TESTS).as_posix()
        places = _titles if path.suffix == ".scenario" else _definitions
        lines = path.read_text(encoding="utf-8").splitlines()
        for line, place in zip(lines, places(lines), strict=True):
            for requirement in ids_in(line):
                found[requirement].add((name, place))
    return found


def _titles(lines: list[str]) -> Iterator[str]:
    title = ""
    for line in lines:
        if line.startswith("== "):
            title = line[3:].partition(" (")[0]
        yield title


def _definitions(lines: list[str]) -> list[str]:
    """For each line the innermost function or class it belongs to; a decorator belongs to what it adorns."""
    places = [""] * len(lines)

    def visit(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{outer}.{child.name}" if outer else child.name
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)]) - 1
                last = child.end_lineno or child.lineno
                places[first:last] = [name] * (last - first)
            visit(child, name)

    visit(ast.parse("\n".join(lines)), "")
    return places


def document() -> str:
    """The whole page."""
    found = tests_by_id()
    parts = [HEAD]
    for family, title in FAMILIES.items():
        mine = sorted(requirement for requirement in found if requirement.startswith(family))
        if mine:
            parts.append(f"\n## {family}: {title}\n\n| id | tests |\n|---|---|\n")
            parts += [f"| {requirement} | {_cell(found[requirement])} |\n" for requirement in mine]
    return "".join(parts)


def _cell(places: set[Place]) -> str:
    by_file: dict[str, list[str]] = defaultdict(list)
    for name, what in sorted(places):
        by_file[name] += [what] if what else []
    return "<br>".join(
        f"[{name}](../tests/{name})" + (": " + "; ".join(what) if what else "")
        for name, what in by_file.items()
    )


if __name__ == "__main__":
    (HERE / "requirements.md").write_text(document(), encoding="utf-8")
