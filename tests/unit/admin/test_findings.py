"""Each finding, and that a healthy group has none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.codes import CODES
from kgroup.admin.diagnose.checks import diagnoses
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import Finding
from kgroup.admin.read.describe import describe
from kgroup.admin.read.findings import _CHECKS, some
from kgroup.admin.refusals import naming, refused
from kgroup.admin.statuses import PartitionStatus, Status
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member, consumer_group, consumer_member

HEALTHY = classic_group("g", classic_member("m1", "orders:0,1", "a"), classic_member("m2", "orders:2,3", "b"))
WAITS_FOR_NOBODY = (
    "m (client client-m on 10.0.0.1) waits for partitions orders-2 orders-3, which no other member holds: "
    "due with one of its next heartbeats"
)
COMMITTED = {f"orders:{p}": 1 for p in range(4)}


def found(group: object, committed: dict[str, int] | None = None, ends: int = 5) -> dict[str, str]:
    """The findings of one group on a cluster with the topic orders of 4 partitions: code → message."""
    fake = FakeCluster(topics={"orders": 4, "audit": 1, "__consumer_offsets": 50})
    groups = Groups(fake).add(group)  # type: ignore[arg-type]
    groups.committed["g"] = COMMITTED if committed is None else committed
    groups.ends = {f"orders:{p}": ends for p in range(4)}
    groups.starts = dict.fromkeys(groups.ends, 0)
    (described,) = describe(ClusterView(fake, retry=fake.retry()), ["g"]).groups
    assert all(finding.severity == CODES[finding.code].severity for finding in described.findings)
    return {finding.code: finding.message for finding in described.findings}


def test_a_healthy_group_has_no_findings() -> None:
    assert found(HEALTHY) == {}


@pytest.mark.parametrize(
    ("code", "group", "message"),
    [
        (
            "KG101",
            consumer_group("g", consumer_member("m", "orders:0,1,2,3", "orders:1,2,3", epoch=4)),
            "m (client client-m on 10.0.0.1) has to give up partition orders-0 and has not confirmed it",
        ),
        (
            "KG101",
            consumer_group("g", consumer_member("m", "orders:0,1", "orders:0,1,2,3")),
            WAITS_FOR_NOBODY,
        ),
        (
            "KG102",
            classic_group("g", classic_member("m"), state="PreparingRebalance"),
            "PreparingRebalance: the coordinator waits for members to rejoin; nothing is consumed until then",
        ),
        (
            "KG103",
            consumer_group("g", consumer_member("m", "orders:0,1", instance="pay-2", epoch=-2)),
            "pay-2 shut down without leaving for good: partitions orders-0 orders-1 wait for it",
        ),
        (
            "KG104",
            classic_group("g", classic_member("m", "orders:0,1,2")),
            "partition orders-3 is assigned to no member although the group is Stable",
        ),
        (
            "KG105",
            classic_group("g", classic_member("m1", "orders:0,1,2,3"), classic_member("m2")),
            "1 of 2 members have no partitions: m2, and m1 has 4",
        ),
        (
            "KG105",
            classic_group("g", classic_member("m1", "orders:0,1,2"), classic_member("m2", "orders:3")),
            "1 of 2 members have less than half of the most partitions: m2, and m1 has 3",
        ),
        (
            "KG106",
            classic_group(
                "g",
                classic_member("m1", "orders:0,1", client_id="app"),
                classic_member("m2", "orders:2,3", client_id="app"),
            ),
            "2 members share the client id 'app'",
        ),
        (
            "KG107",
            classic_group("g", classic_member("m1", "orders:0,1", "a"), classic_member("m2", "orders:2,3")),
            "1 static and 1 dynamic member: m2 dynamic",
        ),
        (
            "KG201",
            consumer_group(
                "g", consumer_member("m1", "orders:0,1"), consumer_member("m2", "orders:2,3", member_type=0)
            ),
            "1 of 2 members speak the classic protocol: m2",
        ),
        (
            "KG211",
            classic_group("g", classic_member("m", "orders:0,1,2,3", user_data=b"12345678")),
            "1 of 1 assignment carry user data (8 B)",
        ),
        (
            "KG303",
            classic_group("g", classic_member("m", "orders:0,1,2,3", topics=("orders", "gone"))),
            "subscribed topics that do not exist: gone",
        ),
    ],
)
def test_members_and_assignment(code: str, group: object, message: str) -> None:
    assert found(group)[code] == message


def test_offsets() -> None:
    empty = classic_group("g", state="Empty")
    reader = classic_group("g", classic_member("m", "orders:0,1,2,3"))
    assert found(reader, {"orders:0": 9})["KG301"] == "orders-0: 9 is 4 beyond the end 5"
    assert "partition gone-0, which does not exist" in found(reader, {"gone:0": 1})["KG302"]
    assert found(empty)["KG304"].startswith("no members, 4 committed offsets")
    assert found(reader, {**COMMITTED, "audit:0": 0})["KG305"].endswith("subscribes to: audit")
    assert "partition orders-3 has records" in found(reader, {f"orders:{p}": 1 for p in range(3)})["KG306"]


def test_what_a_member_that_left_will_have_is_absent_and_its_neighbours_are_not() -> None:
    """Statuses of one topic without an owner are shared: what awaits a member has its own."""
    away = consumer_member("a", "orders:0", "orders:0,1", "a", epoch=-2)
    fake = FakeCluster(topics={"orders": 4, "__consumer_offsets": 50})
    groups = Groups(fake).add(consumer_group("g", away))
    groups.committed["g"] = {f"orders:{number}": 1 for number in range(4)}
    groups.ends = {f"orders:{number}": 5 for number in range(4)}
    (described,) = describe(ClusterView(fake, retry=fake.retry()), ["g"]).groups
    assert [row.status and row.status.name for row in described.offsets] == ["absent"] * 2 + ["unread"] * 2


def test_records_that_a_pattern_covers_and_nobody_reads_are_named() -> None:
    """Its rows have the status unread, an error: a finding says so, too."""
    regex = consumer_group("g", consumer_member("m", "orders:0", regex="ord.*"))
    assert "orders-1" in found(regex)["KG104"]


def test_nothing_is_said_of_subscriptions_that_are_not_told() -> None:
    regex = consumer_group("g", consumer_member("m", "orders:0", regex="pay.*"))
    assert set(found(regex)) <= {"KG306"}
    assert "KG104" not in found(
        classic_group("g", classic_member("m", "orders:0"), state="CompletingRebalance")
    )


def test_every_check_has_a_code_with_a_meaning() -> None:
    assert _CHECKS.keys() <= CODES.keys()


def test_who_has_not_given_up_what_another_waits_for_is_named() -> None:
    waits = consumer_member("m", "orders:0,1", "orders:0,1,2")
    holder = consumer_member("n", "orders:2,3", "orders:3", epoch=4)
    group = consumer_group("g", waits, holder)
    fake = FakeCluster(topics={"orders": 4, "__consumer_offsets": 50})
    Groups(fake).add(group)
    (described,) = describe(ClusterView(fake, retry=fake.retry()), ["g"]).groups
    told = [each.message for each in described.findings if each.code == "KG101"]
    assert any(
        message.endswith("waits for partition orders-2, not yet given up by n (client client-n on 10.0.0.1)")
        for message in told
    )


def test_an_offset_beyond_the_end_is_set_back_to_where_nothing_is_left_out() -> None:
    """It proposed --to-latest, which drops what a topic that was created again has taken since."""
    fake = FakeCluster(topics={"orders": 4, "__consumer_offsets": 50})
    groups = Groups(fake).add(HEALTHY)
    groups.committed["g"] = {"orders:0": 9}
    (group,) = describe(ClusterView(fake, retry=fake.retry()), ["g"]).groups
    (beyond,) = [each for each in group.findings if each.code == "KG301"]
    assert beyond.hint is not None and beyond.hint.endswith("reset-offsets g --topic orders:0 --to-earliest")


WIDE = 300
"""Partitions, members and topics: more than a finding may list."""


def large(group: object, committed: dict[str, int], ends: int = 0) -> list[Finding]:
    """The findings of a group about very many partitions of one topic."""
    others = {f"other-{n}": 1 for n in range(WIDE)}
    fake = FakeCluster(topics={"orders": WIDE, "__consumer_offsets": 50, **others})
    groups = Groups(fake).add(group)  # type: ignore[arg-type]
    groups.committed["g"] = committed
    groups.ends = {f"orders:{p}": ends for p in range(WIDE)} | {f"{name}:0": 9 for name in others}
    groups.starts = dict.fromkeys(groups.ends, 0)
    (described,) = describe(ClusterView(fake, retry=fake.retry()), ["g"]).groups
    return list(described.findings)


EACH = {f"orders:{p}": 9 for p in range(WIDE)}
ONE_OWNER = classic_member("m", "orders:" + ",".join(map(str, range(WIDE))))


@pytest.mark.parametrize(
    ("code", "group", "committed", "ends", "hint"),
    [
        (
            "KG301",
            classic_group("g", state="Empty"),
            EACH,
            0,
            "reset-offsets g --topic orders:0-299 --to-earliest",
        ),
        (
            "KG302",
            classic_group("g", state="Empty"),
            {f"gone:{p}": 1 for p in range(WIDE)},
            0,
            "--topic gone",
        ),
        ("KG306", classic_group("g", ONE_OWNER), {}, 5, "auto.offset.reset"),
        (
            "KG104",
            classic_group("g", classic_member("m", "orders:0")),
            {"orders:0": 5},
            5,
            "metadata.max.age",
        ),
        (
            "KG305",
            classic_group("g", ONE_OWNER),
            EACH | {f"other-{n}:0": 1 for n in range(WIDE)},
            9,
            "offsets.retention",
        ),
        (
            "KG103",
            consumer_group(
                "g",
                *(consumer_member(f"m{n}", f"orders:{n}", instance=f"i{n}", epoch=-2) for n in range(WIDE)),
            ),
            EACH,
            9,
            "remove-members g --left-only",
        ),
        (
            "KG101",
            consumer_group(
                "g", *(consumer_member(f"m{n}", f"orders:{n}", "orders:0", epoch=4) for n in range(WIDE))
            ),
            EACH,
            9,
            "kgroup doctor g",
        ),
    ],
)
def test_one_cause_is_one_finding_however_wide_the_group(
    code: str, group: object, committed: dict[str, int], ends: int, hint: str
) -> None:
    """A recreated topic of a thousand partitions filled a thousand lines, and its command another."""
    found_ = large(group, committed, ends)
    ours = [each for each in found_ if each.code == code]
    assert len(ours) == (2 if code == "KG101" else 1), found_  # those that give up, and those that wait
    assert any(hint in (each.hint or "") for each in ours)
    assert all(len(each.message) < 400 and (code == "KG302" or len(each.hint or "") < 200) for each in found_)


def test_ranges_of_partitions_are_named_and_scattered_ones_counted() -> None:
    places = [TopicPartition("orders", p) for p in range(WIDE)] + [TopicPartition("pay", 3)]
    assert some(places) == "301 partitions orders:0-299 pay:3"
    assert some(places[::2]).endswith(" and 139 more ranges")
    assert some(places[:2]) == "partitions orders-0 orders-1"


def test_a_recreated_topic_is_one_finding_of_doctor() -> None:
    """The offsets beyond its end were a second one, with another command."""
    fake = FakeCluster(topics={"orders": WIDE, "__consumer_offsets": 50})
    groups = Groups(fake).add(classic_group("g", state="Empty"))
    groups.committed["g"] = EACH
    groups.ends = {f"orders:{p}": 5 for p in range(WIDE)}
    (group,) = describe(ClusterView(fake, retry=fake.retry()), ["g"]).groups
    recreated = Status(PartitionStatus.RECREATED, "error", "the topic's id is another one")
    rows = tuple(replace(row, status=recreated) if row.partition else row for row in group.offsets)
    seen = {each.code: each for each in diagnoses(Facts(replace(group, offsets=rows), 0, 0, 0.0))}
    assert seen["KG301"].message == "orders-0: 9 is 4 beyond the end 5"
    assert seen["KG319"].message.startswith("299 partitions orders:1-299: ")
    assert (seen["KG319"].hint or "").endswith("kgroup reset-offsets g --topic orders:1-299 --to-earliest")


def test_a_message_names_its_partition_once() -> None:
    """`lag` said "orders-1: orders-1: LEADER_NOT_AVAILABLE"."""
    place = TopicPartition("orders", 1)
    told = refused(ErrorCode.LEADER_NOT_AVAILABLE, str(place), "it has no leader now")
    assert naming(place, told.message) == told.message
    assert naming(place, "it timed out") == "orders-1: it timed out"
