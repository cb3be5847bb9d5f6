"""KG322: a committed offset that was set back, or deleted and begun anew, and a look beyond a rebalance."""

from __future__ import annotations

import pytest

from kgroup.admin.diagnose.doctor import Checkup, examine_all
from kgroup.history.sources.live import LiveTopic
from kgroup.protocol import group_records as gr
from kgroup.protocol.messages import describe_groups as dg
from tests.unit.admin.doctor_logs import Held, commits, described, generation, remembering, written
from tests.unit.admin.groups import classic_group
from tests.unit.admin.test_doctor_checks import codes, examine, groups_of
from tests.unit.admin.test_doctor_stopped import SECONDS, A, B, both_until
from tests.unit.admin.test_in_sync import finding
from tests.unit.history.logs import commit

MEMBER = Held("a", "orders:0,1")
EMPTY = (gr.encode_key(gr.GroupMetadataKey(group="g")), gr.encode_value(gr.GroupMetadataValue(generation=2)))
GONE = (100, [(commit("orders", 0, 9, group="g")[0], None)])
"""The offset of partition 0 is deleted."""


def found(*lots: object, now_s: int, at: int, end: int = 9, empty: bool = False) -> Checkup:
    """The group was at 9 of 9 of partition 0; then these records; `at` is committed now."""
    fake = remembering(
        classic_group("g", state="Empty") if empty else described(MEMBER),
        {"orders:0": at, "orders:1": 4},
        (0, [generation(1, (MEMBER,))]),
        commits(90, {0: 9, 1: 4}),
        *lots,  # type: ignore[arg-type]
    )
    groups_of(fake).ends["orders:0"] = end
    return examine(
        written(fake, {0: [*range(8), now_s - 2], 1: [1, 2, 3, 4]}).cluster(), "g", now_ms=now_s * 1000
    )


def test_an_offset_that_was_set_back_is_told_with_who_did_it() -> None:
    """All were set back to 0 and everything was read again: the group was healthy, and nothing was found."""
    checkup = found((99, [EMPTY]), commits(100, {0: 0}), now_s=140, at=0, empty=True)
    told = finding(checkup, "KG322")
    assert told.severity == "warn"
    assert told.message == (
        "partition orders-0: the committed offset was set back, and up to 9 records are read again"
    )
    (shown,) = told.evidence
    assert shown == (
        "orders-0: committed 0, and 9 before 1970-01-01T00:01:40Z: written while the group had no members: "
        "reset by an admin tool, or by a consumer outside it"
    )


@pytest.mark.parametrize(
    ("lots", "now_s", "at", "end"),
    [
        ((commits(100, {0: 2}), commits(101, {0: 9})), 140, 9, 9),
        ((commits(100, {0: 2}),), 110, 2, 9),
        ((commits(100, {0: 2}),), 140, 2, 5),
        ((GONE,), 140, 0, 5),
    ],
    ids=[
        "it is past it",
        "a commit may have been overtaken",
        "the log is shorter",
        "and so after a deletion",
    ],
)
def test_what_is_not_read_again_is_not_told(lots: tuple[object, ...], now_s: int, at: int, end: int) -> None:
    assert "KG322" not in codes(found(*lots, now_s=now_s, at=at, end=end))


def test_one_that_a_member_set_back_is_told_after_half_a_minute() -> None:
    assert "KG322" in codes(found(commits(100, {0: 2}), now_s=140, at=2))


def test_a_reader_that_begins_anew_after_its_offset_was_deleted_is_told() -> None:
    """The records of a deletion and of the first commit after it are no rewind."""
    told = finding(found(GONE, commits(105, {0: 1}), now_s=140, at=1), "KG322")
    assert told.evidence[0].startswith("orders-0: committed 1, and 9 before 1970-01-01T00:01:40Z: ")


def test_an_offset_of_a_former_topic_went_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new topic's log was longer by then: up to 8 records were to be read again."""
    former, new, refresh = b"f" * 16, b"n" * 16, LiveTopic.refresh

    def named(topic: LiveTopic, names: object = None) -> None:
        refresh(topic)
        topic.topic_names = {new: "orders"}

    monkeypatch.setattr(LiveTopic, "refresh", named)
    after = (105, [commit("orders", 0, 1, group="g", commit_timestamp=105_000, topic_id=new)])
    for topic_id, told in ((former, False), (new, True)):
        before = (95, [commit("orders", 0, 9, group="g", commit_timestamp=95_000, topic_id=topic_id)])
        assert ("KG322" in codes(found(before, GONE, after, now_s=140, at=1))) == told


def test_what_its_members_do_is_seen_once_a_rebalance_has_ended() -> None:
    """It ended while doctor waited, and every partition with unread records was unknown, exit code 5."""
    fake = remembering(
        described(A, B), {"orders:0": 4, "orders:1": 2}, (0, [generation(1, (A, B))]), *both_until(60, 200)
    )
    settled = described(A, B)
    looks = iter([classic_group("g", *settled.members, state="PreparingRebalance")] * 2)

    def describe(node: int, request: dg.DescribeGroupsRequest) -> dg.DescribeGroupsResponse:
        return dg.DescribeGroupsResponse(groups=(next(looks, settled),))

    fake.on(dg.DescribeGroupsRequest, describe)
    checkup = examine(written(fake, SECONDS).cluster(), "g", now_ms=205_000, patience_s=30)
    assert (checkup.verdict, checkup.unseen) == ("sick", ())
    assert finding(checkup, "KG310").message.startswith("b has committed nothing for 2m 25s")


def test_a_cluster_that_is_gone_when_a_group_is_examined_anew_costs_only_that_group() -> None:
    fake = remembering(described(A, B), {"orders:0": 4, "orders:1": 4}, (0, [generation(1, (A, B))]))
    settled = described(A, B)
    looks = iter([classic_group("g", *settled.members, state="PreparingRebalance")] * 2)

    def describe(node: int, request: dg.DescribeGroupsRequest) -> dg.DescribeGroupsResponse:
        found = next(looks, settled)
        fake.down |= {1, 2} if found is settled else set()
        return dg.DescribeGroupsResponse(groups=(found,))

    fake.on(dg.DescribeGroupsRequest, describe)
    seen = examine_all(fake.cluster(), ["g"], now_ms=205_000, patience_s=30)
    assert (seen.checkups, [(each.item, each.code) for each in seen.errors]) == ((), [("g", "UNREACHABLE")])
