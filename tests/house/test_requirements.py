"""Every requirement is a sentence, and has a test that names it or a line that says why it is not built."""

import re
import runpy

from tests.house.repository import ROOT
from tests.interop.zookeeper.test_legacy_machine import TAKEN
from tests.legacy_scenarios import ALL, NEED_NO_TREE, SCENARIOS, scenarios_of

COVERAGE = runpy.run_path(str(ROOT / "docs" / "requirements_coverage.py"))
REQUIREMENTS = COVERAGE["requirements"]()
EXCUSED_OF_ITS_ERA = {10, 85}
"""Of the draft for 0.9, what a line may be written about in the place of a test."""


def test_requirements_are_numbered_without_a_gap():
    ids = [row["id"] for row in REQUIREMENTS]
    counts = {family: sum(each.startswith(family) for each in ids) for family in COVERAGE["FAMILIES"]}
    assert ids == [f"{family}-{n:02}" for family, count in counts.items() for n in range(1, count + 1)]


def test_a_requirement_is_shown_by_a_test_or_said_not_to_be_built():
    """A choice may be shown by the tests of the requirements that its sentence names."""
    known = COVERAGE["tests_by_id"]().keys() | COVERAGE["not_built"]()
    unknown = {
        row["id"]: {*COVERAGE["ids_in"](row["requirement"])} for row in REQUIREMENTS if row["id"] not in known
    }
    assert [id_ for id_, named in unknown.items() if id_[:2] != "OC" or not named or named - known] == []


def test_a_requirement_is_a_sentence_with_its_source():
    """And where Kafka differs, with the reason; a bar would end the table's cell."""
    assert [
        row["id"]
        for row in REQUIREMENTS
        if not (row["requirement"].endswith(".") and row["source"])
        or bool(row["kafka"]) != bool(row["why"])
        or "|" in "".join(row.values())
    ] == []


def test_nothing_else_of_the_draft_is_left_out():
    left_out = {int(each[3:]) for each in COVERAGE["not_built"]() if each.startswith("LC-")}
    assert left_out == EXCUSED_OF_ITS_ERA


def test_every_scenario_of_the_draft_is_played_and_those_with_a_tree_on_a_real_one():
    places = [ROOT / "tests" / folder for folder in ("unit/zookeeper", "interop/zookeeper")]
    texts = [path.read_text("utf-8") for place in places for path in place.glob("test_*.py")]
    played = {n for text in texts for n in scenarios_of(text)}
    played |= {n for _, scenario in SCENARIOS.values() for n in scenarios_of(scenario.__doc__)}
    assert played == ALL
    page = (ROOT / "docs" / "zookeeper-era.md").read_text(encoding="utf-8").partition("\n### 13 ")[2]
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == ALL
    on_a_real_one = {n for function in TAKEN.values() for n in scenarios_of(function.__doc__)}
    assert on_a_real_one >= ALL - NEED_NO_TREE
