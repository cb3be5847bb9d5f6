"""Writes the tests' column of docs/requirements.md: `python docs/requirements_coverage.py`."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "requirements.md"
TESTS = HERE.parent / "tests"
FAMILIES = ("SM", "CP", "AE", "LC", "OC")
ROW = re.compile(
    rf"^\| ((?:{'|'.join(FAMILIES)})-\d+) \| (.*?\.)(?: \(([^()]+)\))? \| (.*) \|$", re.MULTILINE
)
SOURCE = re.compile(r"^Source unless named: (.+)\.$", re.MULTILINE)
"""What a table says once of all its rows that name no source."""
DIFFERENCE = re.compile(r"^\| (\w\w-\d+) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
NAMED = re.compile(
    rf"(?<![A-Za-z])({'|'.join(FAMILIES)})[-_](\d{{2,}})(?: to \1-(\d{{2,}}))?(?!\d)", re.IGNORECASE
)


def requirements() -> list[dict[str, str]]:
    """Return the page's rows in order; `kafka` and `why` are empty where Kafka does not differ."""
    rows, _, differences = _page()
    kafka = {id_: (what, why) for id_, what, why in DIFFERENCE.findall(differences)}
    found = []
    for table in rows.split("\n## "):
        shared = "".join(SOURCE.findall(table))
        for id_, requirement, source, _ in ROW.findall(table):
            what, why = kafka.get(id_, ("", ""))
            found.append(
                {
                    "id": id_,
                    "requirement": requirement,
                    "source": source or shared,
                    "kafka": what,
                    "why": why,
                }
            )
    return found


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


def tests_by_id() -> dict[str, set[str]]:
    """Return the files below tests/ that name each id."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(TESTS.rglob("*")):
        if path.suffix not in (".py", ".scenario"):
            continue
        for requirement in ids_in(path.read_text(encoding="utf-8")):
            found[requirement].add(path.relative_to(TESTS).as_posix())
    return found


def document() -> str:
    """Return the page with its tests as they are."""
    found, excused = tests_by_id(), not_built()

    def with_tests(row: re.Match[str]) -> str:
        id_, requirement, source, _ = row.groups()
        shown = list(_grouped(found.get(id_, ())))
        shown += ["[not built](not-built.md#requirements-not-built)"] * (id_ in excused)
        shown = shown or [f"as {', '.join(ids_in(requirement))}"]
        named = f" ({source})" if source else ""
        return f"| {id_} | {requirement}{named} | {'<br>'.join(shown)} |"

    rows, *differences = _page()
    return "".join([ROW.sub(with_tests, rows), *differences])


def _page() -> tuple[str, str, str]:
    """The page up to its last table, that table's heading, and the table."""
    return PAGE.read_text(encoding="utf-8").partition("\n## Where Kafka differs")


def _grouped(names: Iterable[str]) -> Iterator[str]:
    """Files of one folder share a path: `classic/{join,leave}.scenario`."""
    folders: dict[tuple[Path, str], list[str]] = defaultdict(list)
    for path in map(Path, sorted(names)):
        folders[path.parent, path.suffix].append(path.stem)
    for (folder, suffix), stems in folders.items():
        name = f"{{{','.join(stems)}}}" if len(stems) > 1 else stems[0]
        yield f"`{folder.as_posix()}/{name}{suffix}`"


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
