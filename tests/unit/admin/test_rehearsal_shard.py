"""The copy a rehearsal plays on: the group's own records, its transactions, and all of them or none."""

from __future__ import annotations

import pytest

from kgroup.admin.migrate.rehearsal_shard import copies_of
from kgroup.admin.models import CLASSIC
from kgroup.errors import Unreachable
from tests.unit.admin.written_log import Written, classic, staged


def committed(log: Written, group: str) -> list[int]:
    made = copies_of(log, [group])[group]
    copy, last_ms = made.log, made.last_ms
    stage = staged(copy, group, last_ms)
    return [p.committed_offset for topic in stage.offsets() for p in topic.partitions]


def test_the_records_of_other_groups_stay_where_they_are() -> None:
    log = Written()
    log.commits("g", 5)
    log.commits("other", 6)
    log.commits("g", 7)
    made = copies_of(log, ["g"])["g"]
    copy, count, last_ms = made.log, made.count, made.last_ms
    assert (count, last_ms, copy.end_offset) == (2, 7, 2)
    assert committed(log, "g") == [7]


@pytest.mark.parametrize(("commit", "offsets"), [(True, [9]), (False, [5])])
def test_offsets_of_a_transaction_count_as_it_ended(commit: bool, offsets: list[int]) -> None:
    log = Written()
    log.commits("g", 5)
    log.commits("g", 9, producer=7)
    log.commits("other", 3, producer=8)
    log.ends(8, True)
    log.ends(7, commit)
    made = copies_of(log, ["g"])["g"]
    copy, count = made.log, made.count
    assert (count, copy.end_offset) == (2, 3), "two commits, and the marker of the group's own transaction"
    assert committed(log, "g") == offsets


def test_many_groups_are_copied_in_one_pass_as_one_by_one() -> None:
    log = Written()
    log.commits("g", 5)
    log.commits("other", 6)
    log.commits("g", 9, producer=7)
    log.ends(7, True)
    many = copies_of(log, ["g", "other", "absent"])
    assert {name: (copy.count, copy.log.end_offset) for name, copy in many.items()} == {
        "g": (2, 3),
        "other": (1, 1),
    }


def test_a_group_without_a_record_has_no_copy() -> None:
    log = Written()
    log.commits("other", 6)
    assert copies_of(log, ["g"]) == {}


def test_half_of_a_log_is_no_copy() -> None:
    """What was read so far passed for the group, and the rehearsal told of a group that never was."""
    log = Written(cut=Unreachable("broker 1 broke off"))
    log.commits("g", 5)
    with pytest.raises(Unreachable, match="broke off"):
        copies_of(log, ["g"])


def test_time_passes_on_the_stage_deadline_by_deadline() -> None:
    """A member that falls silent is gone when its session is over, and not before."""
    client, log = classic(), Written()
    log.commits("g", 5)
    stage = staged(copies_of(log, ["g"])["g"].log, "g")
    client.join(stage)
    stage.pass_time(30_000)
    client.beat(stage)
    stage.pass_time(59_000)
    assert (stage.type, len(stage.group.members)) == (CLASSIC, 1)
    stage.pass_time(2_000)
    assert len(stage.group.members) == 0
