"""RE2/J and our patterns accept the same and match the same."""

from __future__ import annotations

from random import Random

import pytest

from tests.interop.conftest import require

from .patterns import cases, pattern_of


@pytest.mark.interop
@pytest.mark.timeout(1200)
@pytest.mark.xdist_group("differential")
def test_made_up_patterns_are_read_as_kafka_reads_them() -> None:
    """`make differential-patterns` plays a hundred thousand."""
    require("java", "javac", "mvn")
    played = cases(range(1, 1_501))
    assert [case.difference for case in played if case.difference] == []
    assert {case.outcome for case in played} >= {"accepted", "rejected"}
    assert sum(case.matched for case in played) > len(played) // 2


def test_made_up_patterns_are_of_many_kinds() -> None:
    patterns = [pattern_of(Random(seed)) for seed in range(3_000)]
    for part in (r"\C", "{*", "(?P<n>", r"\p{", "(?i", "[[:", r"\Q", "é"):
        assert any(part in pattern for pattern in patterns), part
    assert max(map(len, patterns)) > 4_000
