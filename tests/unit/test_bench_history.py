"""The benchmarks' memory: what a run is told of those before it."""

import json
from pathlib import Path

import pytest

from bench.history import ENOUGH, LOOKED_AT, Ratio, keep


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "bench" / "history.jsonl"


def test_the_first_runs_have_nothing_to_be_compared_with(history: Path) -> None:
    ratios = [0.8 * 2**number for number in range(ENOUGH)]
    assert [keep("commit kafka", ratio, history) for ratio in ratios] == [""] * ENOUGH
    assert [json.loads(line)["ratio"] for line in history.read_text().splitlines()] == ratios


def test_a_fifth_more_is_told(history: Path) -> None:
    for ratio in (0.7, 0.8, 0.9):
        keep("commit kafka", ratio, history)
    assert keep("commit kafka", 0.95, history) == "before: 0.80"
    assert keep("commit kafka", 1.2, history) == "SLOWER: 1.41 times the 0.85 of the last 4 runs"


def test_what_has_another_name_is_another_matter(history: Path) -> None:
    for _ in range(ENOUGH):
        keep("commit kfake", 0.1, history)
    assert keep("commit kafka", 0.8, history) == ""


def test_only_the_newest_runs_count(history: Path) -> None:
    keep("commit kafka", 100.0, history)
    for _ in range(LOOKED_AT):
        keep("commit kafka", 0.8, history)
    assert keep("commit kafka", 1.0, history).startswith("SLOWER")


def test_a_ratio_has_its_spread() -> None:
    ratio = Ratio.of([1.0, 3.0, 2.0], [10.0, 10.0, 40.0])
    assert ratio == Ratio(0.2, 0.05, 0.3)
    assert str(ratio) == "0.200 (0.050..0.300)"


def test_a_ratio_is_of_rounds_in_turns() -> None:
    with pytest.raises(ValueError):
        Ratio.of([1.0], [1.0, 2.0])
