"""Which aborted transactions a reader of a range has to know, against a look at every one of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgroup.log.memory import MemoryLog
from kgroup.log.transactions import transactions_in
from kgroup.protocol.batches import LogRecord, end_marker_record

STEPS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["data", "commit", "abort"])), max_size=40)


@given(STEPS)
def test_aborted_in_a_range(steps: list[tuple[int, str]]) -> None:
    log = MemoryLog()
    for producer_id, what in steps:
        record = LogRecord(None, b"x") if what == "data" else end_marker_record(what == "commit")
        log.append(
            [record], producer_id=producer_id, producer_epoch=0, transactional=True, control=what != "data"
        )
    found = transactions_in(log.batches())
    for start in range(log.end_offset + 1):
        for end in range(start, log.end_offset + 1):
            wanted = [each for each in found.aborted if each.last_offset >= start and each.first_offset < end]
            assert found.aborted_in(start, end) == wanted
