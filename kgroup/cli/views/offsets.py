"""Plans of committed offsets and their outcome, as text, tables, CSV and JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, TypedDict

from kgroup.admin.as_json import declared, document
from kgroup.admin.change.offset_changes import PLAN_STALE, OffsetsExecution
from kgroup.admin.change.offset_plans import ABSENT, OffsetChange, OffsetsPlan, PlannedGroup
from kgroup.admin.change.unread import not_seen
from kgroup.admin.models import ChangeStatus, ItemError
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import UNKNOWN, absent, of_code_name, of_seen
from kgroup.cli.views.changes import RESULT, change, counts
from kgroup.domain import Document, first_of, grouped

_GROUP = Column("group_id", "GROUP")
_ROWS = (
    Column("topic"),
    Column("partition", right=True),
    Column("current_offset", "CURRENT", right=True),
    Column("new_offset", "NEW", right=True),
    Column("change", right=True),
)
_NON_EMPTY = "NON_EMPTY_GROUP"
_CSV = (Column("topic"), Column("partition"), Column("offset"))


class ChangedOffset(TypedDict):
    """One partition of a plan or of its outcome, as printed."""

    group_id: str
    topic: str
    partition: int
    current_offset: int | None
    new_offset: Annotated[int | None, "null: taken away"]
    change: int | None
    current_leader_epoch: int | None
    new_leader_epoch: int | None
    current_metadata: str | None
    new_metadata: str | None
    result: Annotated[ChangeStatus, ("planned", "unchanged", "done", "refused", "failed")]
    error_code: str | None
    effect: str
    lag: Annotated[int | None, "of `offsets delete`: unread records; null: unknown"]


def planned(plan: OffsetsPlan, where: Mapping[str, object] | None, *, csv: bool = False) -> Result:
    """Return the planned changes, and REFUSED with the reasons where they would be refused now."""
    refused = {group.group_id for group in plan.refused}
    counted = [item for item in plan.items if item.planned and item.group_id not in refused]
    failing = [item for item in plan.items if item.result.wrong]
    gone = _absent(plan, plan.items)
    errors = [
        *(ItemError(g.group_id, g.error_code or _NON_EMPTY, g.refusal or "", g.hint) for g in plan.refused),
        *map(_not_there, gone),
        *_errors(plan, failing),
    ]
    by_group = grouped((item.group_id, item) for item in counted)
    unread = [error for name, items in by_group.items() for error in not_seen(name, items)]
    unseen = [*plan.unsure, *unread]
    codes = [of_code_name(g.error_code) if g.error_code else ExitCode.REFUSED for g in plan.refused]
    codes += [ExitCode.NOT_FOUND] * len(gone)
    unchanged = [i for i in plan.items if i.result == ChangeStatus.UNCHANGED and i.group_id not in refused]
    groups = first_of([f"{group.group_id} ({_state(group)})" for group in plan.groups])
    head = f"PLAN  {plan.spec}: {groups or 'no group'}   plan {plan.id}"
    return change(
        _about(plan),
        None,
        _rows(plan.items),
        (head, *_tables(plan.items, with_results=bool(failing or unchanged)), *_cautions(plan)),
        "",
        to_do=bool(counted),
        names=[f"{item.topic}:{item.partition}" for item in counted],
        errors=[*errors, *unseen],
        exit_code=of_seen(of_batch([*codes, *map(_exit_code, failing)], bool(counted or unchanged)), unseen),
        cluster=where,
        main=_csv(plan, plan.items) if csv else None,
    )


def _state(group: PlannedGroup) -> str:
    if group.type:
        return f"{group.type}, {group.state}"
    return "does not exist" if group.state == ABSENT else f"state {group.state}"


def executed(
    done: OffsetsExecution,
    where: Mapping[str, object] | None,
    *,
    csv: bool = False,
    notes: Sequence[str] = (),
) -> Result:
    """Return the executed changes, item by item."""
    wrong = [item for item in done.items if item.result.wrong]
    gone = _absent(done.plan, done.items)
    codes = [*map(_exit_code, wrong), *[ExitCode.NOT_FOUND] * len(gone)]
    return change(
        _about(done.plan),
        done.journal_id,
        _rows(done.items),
        (*_tables(done.items, with_results=True), *_cautions(done.plan), *notes),
        counts(done.items),
        to_do=None,
        names=[f"{item.topic}:{item.partition}" for item in done.items if item.result.made],
        errors=[*_errors(done.plan, wrong), *map(_not_there, gone)],
        exit_code=of_batch(codes, _any_right(done.items)),
        cluster=where,
        main=_csv(done.plan, done.items) if csv else None,
    )


def _about(plan: OffsetsPlan) -> Document:
    return {
        "plan": {
            "id": plan.id,
            "spec": plan.spec,
            "actor": plan.actor,
            "reason": plan.reason,
            "undoes": plan.undoes,
        },
        "groups": [document(group) for group in plan.groups],
    }


def _rows(items: Iterable[OffsetChange]) -> Document:
    return {"items": [_row(item) for item in items]}


def _row(item: OffsetChange) -> ChangedOffset:
    before, after = item.before, item.after
    worded: Document = {
        "current_offset": before.offset if before else None,
        "new_offset": after.offset if after else None,
        "change": after.offset - before.offset if before and after else None,
        "current_leader_epoch": before.leader_epoch if before else None,
        "new_leader_epoch": after.leader_epoch if after else None,
        "current_metadata": before.metadata if before else None,
        "new_metadata": after.metadata if after else None,
    }
    return declared(ChangedOffset, item, worded)


def _cautions(plan: OffsetsPlan) -> list[str]:
    """Return what the change leaves behind, group by group."""
    return [f"! {group.caution}" for group in plan.groups if group.caution]


def _tables(items: Sequence[OffsetChange], *, with_results: bool) -> list[Table]:
    if not items:
        return []
    several = len({item.group_id for item in items}) > 1
    columns = ((_GROUP,) if several else ()) + _ROWS
    # A plan of `offsets delete` knows what it forgets; nothing else has a lag.
    if any(item.lag is not None or item.lag_error for item in items):
        columns += (Column("lag", right=True),)
    columns += (RESULT,) if with_results else ()
    if any(item.error_code for item in items):
        columns += (Column("error_code", "ERROR"),)
    if any(item.effect for item in items):
        columns += (Column("effect", "NOTE"),)
    rows = []
    for item in items:
        row: Document = {**_row(item)}
        if row["change"] is not None:
            row["change"] = f"{row['change']:+d}" if row["change"] else "0"
        if row["new_offset"] is None and item.result in (ChangeStatus.PLANNED, ChangeStatus.DONE):
            row["new_offset"] = "deleted"
            row["lag"] = UNKNOWN if item.lag is None else item.lag
        rows.append(row)
    return [Table(columns, rows)]


def _csv(plan: OffsetsPlan, items: Iterable[OffsetChange]) -> Table:
    """Return rows as Kafka's `--export` prints them: with the group when several were requested."""
    rows = [
        i
        for i in items
        if i.after is not None
        and i.result in (ChangeStatus.PLANNED, ChangeStatus.DONE, ChangeStatus.UNCHANGED)
    ]
    columns = ((Column("group"),) if len(plan.groups) > 1 else ()) + _CSV
    return Table(
        columns,
        [
            {"group": i.group_id, "topic": i.topic, "partition": i.partition, "offset": i.after.offset}
            for i in rows
            if i.after
        ],
    )


def _absent(plan: OffsetsPlan, items: Iterable[OffsetChange]) -> list[PlannedGroup]:
    """Return the absent groups for which nothing was to be done."""
    named = {item.group_id for item in items}
    return [group for group in plan.groups if group.state == ABSENT and group.group_id not in named]


def _any_right(items: Sequence[OffsetChange]) -> bool:
    """Return whether any offset is as wanted; one of a refused group does not count, as in its plan."""
    refused = {item.group_id for item in items if item.result == ChangeStatus.REFUSED}
    return any(
        item.result == ChangeStatus.DONE
        or (item.result == ChangeStatus.UNCHANGED and item.group_id not in refused)
        for item in items
    )


def _not_there(group: PlannedGroup) -> ItemError:
    return absent(group.group_id, group.hint) if group.hint else absent(group.group_id)


def _errors(plan: OffsetsPlan, wrong: Iterable[OffsetChange]) -> Iterator[ItemError]:
    """Yield one error for each reason: a refused group with a thousand partitions needs no thousand lines."""
    hints = {group.group_id: group.hint for group in plan.groups}
    reasons = grouped(((item.group_id, item.error_code, item.effect), item.tp) for item in wrong)
    for (group_id, code, effect), partitions in reasons.items():
        if code == _NON_EMPTY:
            yield ItemError(group_id, code, effect, hints.get(group_id))
        else:
            name = f"{group_id} {first_of(list(map(str, partitions)), 3)}"
            item = name if len(partitions) == 1 else group_id
            yield ItemError(item, code or "FAILED", f"{name}: {code}: {effect}")


def _exit_code(item: OffsetChange) -> ExitCode:
    if item.result == ChangeStatus.REFUSED or item.error_code == PLAN_STALE:
        return ExitCode.REFUSED
    return of_code_name(item.error_code or "")
