"""A plan and its outcome have one form: counts, colours, the last line."""

from dataclasses import dataclass

import pytest

from kgroup.admin.change.offset_plans import OffsetChange, OffsetsPlan
from kgroup.admin.models import ChangeStatus, ItemError, PlannedItem
from kgroup.cli.frame.offset_changes import _grave
from kgroup.cli.output.messages import NOT_YET
from kgroup.cli.views.changes import RESULT, change, counts


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


@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("effect", ["", "in other words", "cannot be undone: so it said"])
def test_what_has_no_undo_is_a_value_of_the_item(lasting, effect):
    item = OffsetChange("g", "t", 0, None, None, ChangeStatus.PLANNED, effect=effect, lasting=lasting)
    plan = OffsetsPlan("1", "reset-offsets", "to-earliest", 0, "me", None, (), (item,))
    assert (_grave(plan) is not None) == lasting
