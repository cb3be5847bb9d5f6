"""KG313: offsets that went with their topic; and groups of which doctor does not see all."""

from __future__ import annotations

import pytest

from kgroup.protocol import group_records as gr
from tests.unit.admin.doctor_logs import Held, commits, described, generation, remembering
from tests.unit.admin.test_doctor_checks import READ, examine

A = Held("a", "orders:0,1")


def tombstone(topic: str) -> tuple[bytes, None]:
    return gr.encode_key(gr.OffsetCommitKey(group="g", topic=topic, partition=0)), None


@pytest.mark.parametrize("exists", [False, True])
def test_offsets_of_a_deleted_topic(exists: bool) -> None:
    """The reader dropped the topic from its subscription, and doctor was silent."""
    from tests.unit.history.logs import commit

    fake = remembering(
        described(A),
        READ,
        (0, [generation(1, [A]), commit("pay", 0, 7, group="g", commit_timestamp=0)]),
        commits(1, {0: 4, 1: 4}),
        (5, [tombstone("pay")]),
    )
    if exists:
        fake.topics["pay"] = 1
    checkup = examine(fake.cluster(), "g", now_ms=20_000)
    told = [each for each in checkup.findings if each.code == "KG313"]
    assert bool(told) != exists
    for each in told:
        assert each.severity == "warn"
        assert each.message == ("topic pay was deleted, and the committed offsets of partition pay-0 with it")
