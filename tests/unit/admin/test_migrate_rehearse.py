"""A rehearsal: a copy of the group goes over and back, step by step, and the source stays as it is."""

from __future__ import annotations

from kgroup.admin.migrate.rehearsal_shard import copies_of
from kgroup.admin.migrate.rehearse import CONVERTED, NOT_NEEDED, REFUSED, Rehearsal, rehearse
from tests.unit.admin.written_log import COUNTS, NAMES, Written, classic, lived_in


def played(log: Written, **settings: str) -> Rehearsal:
    chosen = {f"group.consumer.{name.replace('_', '.')}": value for name, value in settings.items()}
    copy = copies_of(log, ["g"])["g"]
    return rehearse(copy, "g", settings=chosen, topic_names=NAMES, partition_counts=COUNTS)


def test_a_group_goes_over_and_back_with_its_offsets() -> None:
    log = lived_in([classic("i-0"), classic()])
    end = log.log.end_offset
    done = played(log)
    assert (done.upgrade, done.downgrade, done.offsets_kept) == (CONVERTED, CONVERTED, True)
    assert (done.copied, done.source, log.log.end_offset) == (end, "__consumer_offsets-0", end)
    assert {step.error_code for step in done.steps} == {None}
    types = [step.type for step in done.steps]
    assert types.index("consumer") > 0 and types[-1] == "classic"


def test_static_members_go_first_and_each_is_stopped_before_its_successor_starts() -> None:
    done = played(lived_in([classic(), classic("i-0")]))
    acts = [step.action for step in done.steps if step.phase == "upgrade"]
    assert acts[:2] == ["i-0 falls silent", "i-0 joins with the consumer protocol"]
    assert [act.split()[-1] for act in acts[2:]] == ["leaves", "protocol"]


def test_every_record_is_of_a_step() -> None:
    """What was in the copy before is none of the rehearsal's."""
    done = played(lived_in([classic()]))
    offsets = [record["offset"] for step in done.steps for record in step.records]
    assert offsets == list(range(done.copied, done.copied + len(offsets)))
    first = next(step for step in done.steps if step.type == "consumer")
    assert (first.epoch, first.assignment_epoch) != (0, None)


def test_a_policy_that_forbids_it_is_a_refusal_in_the_coordinator_s_words() -> None:
    done = played(lived_in([classic(), classic()]), migration_policy="disabled")
    assert (done.upgrade, done.downgrade, done.offsets_kept) == (REFUSED, NOT_NEEDED, True)
    last = done.steps[-1]
    assert (last.error_code, last.type) == ("GROUP_ID_NOT_FOUND", "classic")
    assert "online upgrade is disabled" in str(last.message)


def test_a_group_that_its_only_member_leaves_empty_converts_whatever_the_policy() -> None:
    assert played(lived_in([classic()]), migration_policy="disabled").upgrade == CONVERTED


def test_user_data_in_an_assignment_is_refused() -> None:
    done = played(lived_in([classic("i-0", user_data=b"x"), classic("i-1", user_data=b"x")]))
    assert (done.upgrade, done.downgrade, done.offsets_kept) == (REFUSED, NOT_NEEDED, True)
    assert done.steps[-1].error_code == "GROUP_ID_NOT_FOUND"


def test_an_empty_group_is_converted_as_execute_does() -> None:
    log = Written()
    log.commits("g", 5)
    done = played(log)
    assert (done.upgrade, done.downgrade, done.offsets_kept) == (CONVERTED, CONVERTED, True)
    assert [step.action.split()[1] for step in done.steps] == ["joins", "leaves", "joins", "leaves"]


def test_it_is_the_same_each_time() -> None:
    log = lived_in([classic("i-0"), classic()])
    assert played(log) == played(log)
