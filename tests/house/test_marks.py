"""Marks in code, tests and documents lead somewhere: ids, sections, decisions, pages and their headings."""

import re
import runpy
from collections.abc import Iterator

import pytest

from tests.house.repository import ROOT, name_of, tracked

DOCS = ROOT / "docs"
COVERAGE = runpy.run_path(str(DOCS / "requirements_coverage.py"))
TEXTS = [
    path
    for path in tracked()
    if path.suffix in (".py", ".scenario", ".md", ".java", ".go", ".toml", "")
    and path.relative_to(ROOT).parts[0] not in ("release", "examples", "completions", "man")
]
NUMBER = r"\d+\.\d+"
RULES = {
    "coordinator": (re.compile(rf"(?<![-\w])coordinator ({NUMBER}(?:(?:, | to ){NUMBER})*)(?![.\d])"),),
    "era": (
        re.compile(r"\bera (\d+(?:\.\d+)?(?:(?:, | to )\d+(?:\.\d+)?)*)(?![.\d])"),
        re.compile(rf'\b(?:Violation|Fault)\(\s*"({NUMBER})\b'),
    ),
}
"""How a rule of docs/coordinator.md or docs/zookeeper-era.md is named."""
PAGES = {"coordinator": "coordinator.md", "era": "zookeeper-era.md"}
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
DECISION = re.compile(r"\bdecision\s+(\d+)", re.IGNORECASE)
PAGE = re.compile(r"\bdocs/([\w/-]+\.md)(?:#([\w-]+))?")
ELSEWHERE = re.compile(
    r"\.\./shared\b|(?<![\w/.])spec/[\w-]+\.md|\b[\w-]+\.md \d+\.\d|(?<!RFC \d{4}, )\bsection \d"
)
"""Forms that name a text which is not in the repository, or do not say in which text to look."""


def _text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def _numbered(page: str) -> set[str]:
    """The numbers of a page's headings, and of the rules that its lists begin with."""
    return {*re.findall(r"^(?:#+ |- \*\*)(\d+(?:\.\d+)?)(?: |\*\* )", _text(page), re.MULTILINE)}


def _anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in HEADING.findall(_text(page))
    }


REQUIREMENTS = {row["id"] for row in COVERAGE["requirements"]()}
RULES_OF = {kind: _numbered(page) for kind, page in PAGES.items()}
DECISIONS = {int(path.name[:4]) for path in (DOCS / "decisions").glob("[0-9]*.md")}


def leads_nowhere(text: str) -> Iterator[str]:
    """The marks of a text whose target is not there."""
    yield from (each for each in COVERAGE["ids_in"](text) if each not in REQUIREMENTS)
    for kind, forms in RULES.items():
        named = (
            number for form in forms for found in form.findall(text) for number in re.split(", | to ", found)
        )
        yield from (f"{kind} {number}" for number in named if number not in RULES_OF[kind])
    yield from (f"decision {number}" for number in DECISION.findall(text) if int(number) not in DECISIONS)
    for page, anchor in PAGE.findall(text):
        if not (DOCS / page).is_file() or (anchor and anchor not in _anchors(page)):
            yield f"docs/{page}#{anchor}"
    yield from ELSEWHERE.findall(text)


def test_marks_lead_somewhere():
    nowhere = {
        f"{name_of(path)}: {mark}"
        for path in TEXTS
        for mark in leads_nowhere(path.read_text(encoding="utf-8", errors="replace"))
    }
    assert nowhere == set()


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("SM-{}86", "SM-85"),
        ("LC-{}133", "LC-13"),
        ("coordinator 2.{}11", "coordinator 2.10, 6.1 to 6.7"),
        ("coordinator 2.2, 9.{}1", "group-coordinator 4.3"),
        ("era 7.{}12", "era 7.3 to 7.10"),
        ("era 1{}4", "era 12"),
        ('Violation("12.{}10 more")', 'Violation("12.1 one")'),
        ("deci{}sion 9999", "decision 20"),
        ("docs/no-{}such.md", "docs/coordinator.md"),
        ("docs/{}coordinator.md#no-such", "docs/coordinator.md#41-the-epochs"),
        ("sec{}tion 9, 61", "RFC 5802, section 5"),
        ("coordinator.{}md 2.5", "coordinator 2.5"),
        ("../sha{}red/x", "examples/shared"),
    ],
)
def test_a_mark_that_leads_nowhere_is_found(wrong, right):
    """The gap keeps this file itself clean."""
    assert len(list(leads_nowhere(wrong.format("")))) == 1
    assert list(leads_nowhere(right)) == []
