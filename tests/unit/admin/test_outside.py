"""Plans that change offsets say when somebody commits without being a member of the group."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kgroup.admin.change.delete import plan_deletion
from kgroup.admin.change.reset import TO_LATEST, Scope, Spec, plan_reset
from kgroup.admin.discovery import ClusterView
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode
from kgroup.protocol.messages import fetch as f
from tests.unit.admin.doctor_logs import (
    Held,
    Record,
    commits,
    generation,
    in_transactions,
    remembering,
    scratched,
)
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import classic_group
from tests.unit.admin.test_doctor_checks import examine, groups_of

Lot = tuple[int, Iterable[Record]]
LONG_AGO = (100, [generation(1, (Held("a", "orders:0"),))])
LEFT = (9_700, [generation(2, ())])
NOW_S = 10_000
READS = [commits(second, {0: 3}) for second in range(9_800, 9_900, 5)]


def empty_group(*lots: Lot) -> FakeCluster:
    """A group without members, whose log has these records."""
    made = [(second, held if isinstance(held, list) else list(held)) for second, held in lots]
    fake = remembering(classic_group("g", state="Empty"), {"orders:0": 3}, *made)
    known = groups_of(fake)
    known.times[f"{OFFSETS_TOPIC}:0"] = tuple(second for second, records in made for _ in records)
    known.ends[f"{OFFSETS_TOPIC}:0"] = sum(len(records) for _, records in made)
    return fake


def said(fake: FakeCluster) -> set[str | None]:
    """What the plans of a reset and of a deletion say of commits from outside."""
    cluster = ClusterView(fake, fake.retry(), lambda: NOW_S * 1000)
    (group,) = plan_reset(cluster, ["g"], Spec(TO_LATEST), Scope(all_topics=True)).groups
    (item,), _ = plan_deletion(cluster, ["g"])
    assert item.planned
    _, _, effect = item.effect.partition(". ")
    return {group.caution, effect or None}


BEFORE = {
    "never": [],
    "long ago": [LONG_AGO],
    "of late and long ago": [LONG_AGO, LEFT],
    "of late": [LEFT],
}


@pytest.mark.parametrize("reads", [READS, in_transactions(*READS)], ids=["plainly", "in transactions"])
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_a_reader_without_a_membership_is_named(before: list[Lot], reads: list[Lot]) -> None:
    (text,) = said(empty_group(*before, *reads))
    assert text == (
        "offsets of orders-0 were committed by no member until 1970-01-01T02:44:55Z; a reader that assigns "
        "its partitions itself does not notice this change: stop it first"
    )


@pytest.mark.parametrize(
    "lots",
    [
        [],
        [LONG_AGO, *(commits(second, {0: 3}) for second in range(9_500, 9_700, 5)), LEFT],
        [LONG_AGO, *in_transactions(*(commits(second, {0: 3}) for second in range(9_500, 9_700, 5))), LEFT],
        [(100, [generation(1, ())]), commits(9_900, {0: 3})],
        [commits(second, {0: 3}) for second in range(9_000, 9_300, 5)],
    ],
    ids=[
        "nothing written",
        "members that left",
        "members with transactions that left",
        "one change of an admin",
        "long ago",
    ],
)
def test_nothing_is_said_where_nobody_does(lots: list[Lot]) -> None:
    assert said(empty_group(*lots)) == {None}


def test_it_is_unknown_where_the_log_cannot_be_read() -> None:
    fake = empty_group(*READS)

    def refuse(node: int, request: f.FetchRequest) -> f.FetchResponse:
        part = f.PartitionData(partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return f.FetchResponse(responses=(f.FetchableTopicResponse(topic=OFFSETS_TOPIC, partitions=(part,)),))

    fake.on(f.FetchRequest, refuse)  # type: ignore[arg-type]
    (text,) = said(fake)
    assert text is not None
    assert text.startswith("whether a reader commits from outside the membership is not known: ")
    assert "TOPIC_AUTHORIZATION_FAILED" in text


@pytest.mark.parametrize("lots", [READS[:1], READS], ids=["one commit", "many"])
def test_it_is_unknown_where_a_part_of_the_log_is_damaged(lots: list[Lot]) -> None:
    """What could not be read may be its commits, or the members whose commits the others are."""
    (text,) = said(scratched(empty_group(*lots), 0))
    assert "is not known: 1 damaged range" in (text or "")


@pytest.mark.parametrize(("silent_s", "goes_on"), [(30, True), (600, False)], ids=["goes on", "stopped"])
def test_what_waits_is_reported_once_who_read_it_without_a_membership_has_stopped(
    silent_s: int, goes_on: bool
) -> None:
    """A Flink job was dead for an hour: its offsets "are committed again and again", and nothing waited."""
    fake = empty_group(LONG_AGO, LEFT, *READS)
    groups_of(fake).starts[f"{OFFSETS_TOPIC}:0"] = 0
    checkup = examine(fake.cluster(), "g", now_ms=(9_895 + silent_s) * 1000)
    told = {each.code: each.message for each in checkup.findings}
    assert ("KG119" in told) != goes_on
    who = "committed again and again by no member of the group"
    until = "" if goes_on else ", until 1970-01-01T02:44:55Z"
    assert told["KG120"] == f"offsets of partition orders-0 {'are' if goes_on else 'were'} {who}{until}"
