"""A few states of the generated exam on a real Kafka; `make exam KAFKA=4.3.1 COUNT=300` plays them all."""

from __future__ import annotations

import pytest

from tests.exam.on_kafka import covering, examined_on_kafka
from tests.sampled import in_full

from .conftest import ASKED, require
from .server import JUDGE

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif("kafka" not in ASKED, reason="a real Kafka was not asked for"),
    # Its truth has times in it, which a machine that is shared misses now and then.
    in_full("`make exam KAFKA=4.3.1` has more of them"),
]
COUNT, LONGEST = 20, 20


def test_the_commands_say_what_is_true_of_states_on_a_real_kafka() -> None:
    """The same judges as in tests/exam; a state that did not come about as planned is not judged."""
    require("java", "javac", "mvn")
    states, _ = covering(COUNT, JUDGE, longest=LONGEST)
    played = list(examined_on_kafka(JUDGE, states, LONGEST))
    found = {
        f"{fault.judge}: {fault.why}\n  python -m tests.exam --kafka {JUDGE} --replay '{state}'"
        for state, bad, spoiled in played
        for fault in bad
        if not spoiled
    }
    assert not found, "\n".join(sorted(found))
    assert sum(not spoiled for _, _, spoiled in played) > COUNT // 2, [why for _, _, why in played]
