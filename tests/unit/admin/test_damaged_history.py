"""A history of which a batch cannot be read: it may be the newest, so nothing follows from the rest."""

from __future__ import annotations

import pytest

from kgroup.admin.diagnose.doctor import HEALTHY, SICK, UNKNOWN, Checkup
from kgroup.admin.migrate.evidence import read_logged
from kgroup.admin.migrate.static import recorded
from kgroup.admin.read.staleness import stale
from kgroup.admin.statuses import PartitionStatus
from kgroup.errors import DecodeError
from tests.unit.admin.doctor_logs import Held, commits, described, generation, remembering, scratched, written
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.test_doctor_checks import examine, groups_of

MEMBER = Held("a", "orders:0,1")
OTHER = Held("b", "orders:0,1")


def group(last: int) -> FakeCluster:
    """Members that came one after the other; the last one committed what there was up to here."""
    lots = [(1, [generation(1, [OTHER])]), commits(50, {0: 5, 1: 0}), (100, [generation(2, [MEMBER])])]
    lots += [commits(at, {0: at // 10, 1: 0}) for at in range(110, last * 10 + 1, 10)]
    fake = remembering(described(MEMBER), {"orders:0": last, "orders:1": 0}, *lots)
    groups = groups_of(fake)
    groups.starts = {"orders:0": 0, "orders:1": 0}
    groups.ends |= {"orders:0": 40, "orders:1": 0}
    return written(fake, {0: range(1, 401, 10)})


def checked(fake: FakeCluster) -> Checkup:
    return examine(fake.cluster(), "g", now_ms=405_000, patience_s=0)


@pytest.mark.parametrize(("last", "said"), [(39, HEALTHY), (20, SICK)])
def test_no_part_of_a_damaged_history_counts(last: int, said: str) -> None:
    """Members and commits that were lost made errors, an internal one, and hid others."""
    assert checked(group(last)).verdict == said
    for number in range(last - 7):
        checkup = checked(scratched(group(last), number))
        assert checkup.verdict == UNKNOWN
        assert "of __consumer_offsets-0 could not be read" in checkup.unseen[0].message
        undecided = [alike for alike in checkup.statuses if alike.status == PartitionStatus.UNKNOWN]
        assert [alike.partitions for alike in undecided] == ([("orders-0",)] if last < 39 else [])


def test_a_group_whose_newest_commit_is_damaged_is_not_stale() -> None:
    """`delete --stale-for` took what was before it for the newest, and planned to delete a group in use."""
    assert [*stale(group(39).cluster(), ["g"], 1).ages] == ["g"]
    ages, unsure, _ = stale(scratched(group(39), -1).cluster(), ["g"], 1)
    assert ages == {}
    assert [(error.item, error.code) for error in unsure] == [("g", "DECODEERROR")]


def test_plans_do_not_go_by_what_is_left_of_damage() -> None:
    fake = scratched(group(39), 2)
    assert isinstance(read_logged(fake.cluster(), ["g"])["g"], DecodeError)
    with pytest.raises(DecodeError, match="of __consumer_offsets-0 could not be read") as raised:
        recorded(fake.cluster(), "g")
    assert (raised.value.hint or "").startswith("make a replica with a sound copy the leader")
