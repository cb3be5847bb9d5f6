"""A plan and its outcome have one form: counts, colours, the last line."""

from dataclasses import dataclass

import pytest

from kgroup.admin.change.offset_plans import (
    CommittedOffset,
    OffsetChange,
    OffsetsPlan,
    plan_document,
    plan_from,
)
from kgroup.admin.models import ChangeStatus, ItemError, PlannedItem
from kgroup.cli.frame.offset_changes import _grave
from kgroup.cli.output.messages import NOT_YET
from kgroup.cli.output.wording import of_code_name
from kgroup.cli.views.changes import RESULT, change, counts
from kgroup.cli.views.offsets import planned


@dataclass(frozen=True)
class Item(PlannedItem):
    result: ChangeStatus


def shown(to_do, journal_id=None, summary="", errors=()):
    return change(
        {}, journal_id, {"items": []}, ("head",), summary, to_do=to_do, names=(), cluster=None, errors=errors
    )


@pytest.mark.parametrize("status", ChangeStatus)
def test_every_status_is_planned_made_unchanged_or_wrong_and_counted(status):
    """A status that is none of them would be in no list of names and no error."""
    item = Item(status)
    assert [item.planned, status.made, status == ChangeStatus.UNCHANGED, status.wrong].count(True) == 1
    assert counts([item, item]) == f"2 {status.replace('_', ' ')}"
    assert (status in RESULT.style) != item.planned


@pytest.mark.parametrize(
    ("result", "last"),
    [
        (shown(True, summary="after: 2 of 3."), f"after: 2 of 3.   {NOT_YET}"),
        (shown(True), NOT_YET),
        (shown(False), "Nothing to do."),
        (shown(False, errors=[ItemError("g", "NOT_FOUND", "g: no such group")]), "Nothing changed."),
        (shown(None, "j-1", "2 done"), "2 done   journal j-1"),
        (shown(None, None, "2 unchanged"), "2 unchanged"),
    ],
)
def test_the_last_line(result, last):
    assert result.shown == ("head", last)
    assert result.data["executed"] == (result.data["journal_id"] is not None)


def refused(partition: int) -> OffsetChange:
    why = "a member subscribes to the topic: would be refused"
    failed = ChangeStatus.FAILED
    return OffsetChange("g", "t", partition, None, None, failed, "GROUP_SUBSCRIBED_TO_TOPIC", why)


def test_partitions_that_are_refused_for_one_reason_are_one_error():
    plan = OffsetsPlan("1", "offsets delete", "delete", 0, "me", None, (), tuple(map(refused, range(5))))
    (error,) = planned(plan, None).errors
    assert error.item == "g"
    assert error.message == (
        "g t-0, t-1, t-2 and 2 more: GROUP_SUBSCRIBED_TO_TOPIC: "
        "a member subscribes to the topic: would be refused"
    )


def test_a_plan_ends_in_no_success_where_nobody_sees_whether_it_can_be_stored():
    hidden = ItemError("min.insync.replicas", "TOPIC_AUTHORIZATION_FAILED", "may not be read")
    item = OffsetChange("g", "t", 0, None, CommittedOffset(3), ChangeStatus.PLANNED)
    plan = OffsetsPlan("1", "reset-offsets", "to-latest", 0, "me", None, (), (item,), unsure=(hidden,))
    result = planned(plan, None)
    assert (result.errors, result.exit_code) == ([hidden], of_code_name(hidden.code))
    assert plan_from(plan_document(plan)).unsure == ()


@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("effect", ["", "in other words", "cannot be undone: so it said"])
def test_what_has_no_undo_is_a_value_of_the_item(lasting, effect):
    item = OffsetChange("g", "t", 0, None, None, ChangeStatus.PLANNED, effect=effect, lasting=lasting)
    plan = OffsetsPlan("1", "reset-offsets", "to-earliest", 0, "me", None, (), (item,))
    assert (_grave(plan) is not None) == lasting
