"""Writes docs/requirements.md from requirements.csv and the tests: `python docs/requirements_coverage.py`."""

import ast
import csv
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
    "LC": "Coordinator of the ZooKeeper era (draft for 0.9)",
    "OC": "Choices where a document is silent or contradicts Kafka",
}
HEAD = """# Requirements and the tests that name them

Each id is one requirement of a document; comments, tests and scenarios name ids. `make docs` writes this page
from [requirements.csv](requirements.csv) and from the tests that name an id in their name, their docstring or
the title of their scenario. The source is a KIP and its section; "Draft" is the design for 0.9 that [the
ZooKeeper era](zookeeper-era.md) describes. Where Apache Kafka 4.3.1 differs from the document, kgroup follows
Kafka: [the second table](#where-kafka-differs-from-the-document) lists these ids, and their tests show
Kafka's behaviour. [Not built](not-built.md#requirements-not-built) gives reasons.
"""
DIFFERENCES = """
## Where Kafka differs from the document

kgroup does what Kafka does.

| id | the document says | Kafka and kgroup | why |
|---|---|---|---|
"""
NAMED = re.compile(
    rf"(?<![A-Za-z])({'|'.join(FAMILIES)})[-_](\d{{2,}})(?: to \1-(\d{{2,}}))?(?!\d)", re.IGNORECASE
)
Place = tuple[str, str]
"""A file below tests/ and what in it: a function, a class, the title of a scenario; "" for all of it."""


def requirements() -> list[dict[str, str]]:
    """The rows of requirements.csv, in order; `kafka` and `why` are empty where Kafka does not differ."""
    with (HERE / "requirements.csv").open(encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def not_built() -> set[str]:
    """The ids that not-built.md gives a reason for."""
    page = (HERE / "not-built.md").read_text(encoding="utf-8")
    table = page.partition("\n## Requirements not built\n")[2]
    cells = re.findall(r"^\| ([A-Z]{2}-[^|]*) \|[^|]*\|([^|]*)\|$", table, re.MULTILINE)
    return {each for ids, reason in cells if reason.strip() for each in ids_in(ids)}


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
    rows, found, excused = requirements(), tests_by_id(), not_built()
    parts = [HEAD]
    for family, title in FAMILIES.items():
        parts.append(f"\n## {family}: {title}\n\n| id | what it requires, source | tests |\n|---|---|---|\n")
        for row in rows:
            if row["id"].startswith(family):
                shown = [_cell(found[row["id"]])] if row["id"] in found else []
                shown += ["[not built](not-built.md#requirements-not-built)"] * (row["id"] in excused)
                shown = shown or [f"those of {', '.join(ids_in(row['requirement']))}"]
                parts.append(
                    f"| {row['id']} | {row['requirement']} ({row['source']}) | {'; '.join(shown)} |\n"
                )
    parts.append(DIFFERENCES)
    parts += [
        f"| {row['id']} | {row['requirement']} | {row['kafka']} | {row['why']} |\n"
        for row in rows
        if row["kafka"]
    ]
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
