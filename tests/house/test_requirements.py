"""Every requirement has a test that names it, or a line that says why it is not built."""

import re
import runpy

import pytest

from tests.house.repository import ROOT, modules, name_of
from tests.interop.zookeeper.test_legacy_machine import TAKEN
from tests.legacy_scenarios import ALL, NEED_NO_TREE, SCENARIOS, scenarios_of

COVERAGE = runpy.run_path(str(ROOT / "docs" / "requirements_coverage.py"))
NUMBERS = {
    "SM": range(1, 86),
    "CP": range(1, 68),
    "AE": range(1, 36),
    "LC": range(1, 91),
    # The open choices of the ZooKeeper era; those before them are answered by the other families.
    "OC": range(26, 43),
}
EXCUSED_OF_ITS_ERA = {10, 85}
"""Of the draft for 0.9, what a line may be written about in the place of a test."""


def not_built() -> set[str]:
    page = (ROOT / "docs" / "not-built.md").read_text(encoding="utf-8")
    table = page.partition("\n## Requirements not built\n")[2]
    cells = re.findall(r"^\| ([A-Z]{2}-[^|]*) \|[^|]*\|([^|]*)\|$", table, re.MULTILINE)
    return {each for ids, reason in cells if reason.strip() for each in COVERAGE["ids_in"](ids)}


@pytest.mark.parametrize("family", NUMBERS)
def test_a_requirement_is_shown_by_a_test_or_said_not_to_be_built(family):
    known = COVERAGE["tests_by_id"]().keys() | not_built()
    wanted = [f"{family}-{number:02}" for number in NUMBERS[family]]
    assert [each for each in wanted if each not in known] == []


def test_a_reason_that_names_a_requirement_leads_to_what_shows_it():
    """Comments and docstrings name requirements; a reader finds each in a test, or why it is not built."""
    known = COVERAGE["tests_by_id"]().keys() | not_built()
    nowhere = {
        f"{name_of(path)}: {each}"
        for path in modules()
        for each in COVERAGE["ids_in"](path.read_text(encoding="utf-8"))
        if each not in known
    }
    assert nowhere == set()


def test_nothing_else_of_the_draft_is_left_out():
    left_out = {int(each[3:]) for each in not_built() if each.startswith("LC-")}
    assert left_out == EXCUSED_OF_ITS_ERA


def test_every_scenario_of_the_draft_is_played_and_those_with_a_tree_on_a_real_one():
    places = [ROOT / "tests" / folder for folder in ("unit/legacy", "unit/broker", "interop/zookeeper")]
    texts = [path.read_text("utf-8") for place in places for path in place.glob("test_*.py")]
    played = {n for text in texts for n in scenarios_of(text)}
    played |= {n for _, scenario in SCENARIOS.values() for n in scenarios_of(scenario.__doc__)}
    assert played == ALL
    on_a_real_one = {n for function in TAKEN.values() for n in scenarios_of(function.__doc__)}
    assert on_a_real_one >= ALL - NEED_NO_TREE
