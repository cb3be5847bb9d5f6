"""The plan and the outcome of a removal as text, tables and JSON."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from kgroup.admin.models import ChangeStatus, ItemError, ItemResult, Plan
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.output.messages import NOT_YET
from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import UNKNOWN, of_code_name, ranges
from kgroup.domain import Document

_PLANNED = (
    Column("instance_id", "INSTANCE"),
    Column("member_id", "MEMBER"),
    Column("host"),
    Column("partitions"),
    Column("effect"),
)
_DONE = (
    Column("instance_id", "INSTANCE"),
    Column("member_id", "MEMBER"),
    Column(
        "result",
        style={ChangeStatus.REMOVED: "green", ChangeStatus.FAILED: "red", ChangeStatus.NOT_FOUND: "yellow"},
    ),
    Column("error_code", "ERROR"),
    Column("effect"),
)


def planned(plan: Plan, where: Mapping[str, object] | None) -> Result:
    """What would be done; NOT_FOUND when none of the members asked for is in the group."""
    absent = [item for item in plan.items if item.result == ChangeStatus.NOT_FOUND]
    count = len(plan.items) - len(absent)
    last = NOT_YET if count else "Nothing to do."
    seen = _members(plan)
    if seen:
        last = f"after: {len(seen) - count} of {len(seen)} members.   {last}"
    return Result(
        _data(plan, plan.items, None),
        (_headline(plan), Table(_PLANNED, [_planned_row(item, seen) for item in plan.items]), last),
        items="items",
        names=[_name(item) for item in plan.items if item.planned],
        errors=[_error(item) for item in absent],
        exit_code=ExitCode.NOT_FOUND if absent and not count else ExitCode.OK,
        cluster=where,
    )


def executed(
    plan: Plan, items: tuple[ItemResult, ...], journal_id: str | None, where: Mapping[str, object] | None
) -> Result:
    """What was done, item by item."""
    removed = [item for item in items if item.result == ChangeStatus.REMOVED]
    failed = [item for item in items if item.result != ChangeStatus.REMOVED]
    exit_code = of_batch([_exit_code(item) for item in failed], bool(removed))
    summary = f"{len(removed)} removed" + (f", {len(failed)} failed" if failed else "")
    if journal_id:
        summary += f"   journal {journal_id}"
    return Result(
        _data(plan, items, journal_id),
        (Table(_DONE, [asdict(item) for item in items]), summary),
        items="items",
        names=[_name(item) for item in removed],
        errors=[_error(item) for item in failed],
        exit_code=exit_code,
        cluster=where,
    )


def after_waiting(result: Result, waited: str | ItemError) -> Result:
    """The result, and how waiting for the group ended: in words, or as an error when the time ran out."""
    if isinstance(waited, str):
        return replace(result, blocks=(*result.blocks, waited))
    code = result.exit_code or ExitCode.UNREACHABLE
    return replace(result, errors=[*result.errors, waited], exit_code=code)


def _data(plan: Plan, items: tuple[ItemResult, ...], journal_id: str | None) -> Document:
    return {
        "group_id": plan.group_id,
        "plan": {"id": plan.id, "valid_while": dict(plan.valid_while)},
        "executed": journal_id is not None,
        "journal_id": journal_id,
        "items": [asdict(item) for item in items],
    }


def _headline(plan: Plan) -> str:
    valid = ", ".join(f"{name.replace('_', ' ')} = {value}" for name, value in plan.valid_while.items())
    seen = _members(plan)
    count = f", {len(seen)} members" if seen else ""
    return f"PLAN  {plan.group_id} ({plan.type}, {plan.state}{count})   plan {plan.id} · valid while {valid}"


def _members(plan: Plan) -> dict[str, Mapping[str, Any]]:
    """The members as they were when the plan was made; none for a plan that comes from a file."""
    members = plan.before.get("members")
    return {m["member_id"]: m for m in members} if isinstance(members, list | tuple) else {}


def _planned_row(item: ItemResult, seen: Mapping[str, Mapping[str, Any]]) -> Document:
    member = seen.get(item.member_id or "")
    told = member["assignment"] if member else ()
    owned = UNKNOWN if told is None else " ".join(f"{a['topic']}:{ranges(a['partitions'])}" for a in told)
    return {**asdict(item), "host": member and member["host"], "partitions": owned}


def _name(item: ItemResult) -> str:
    return item.instance_id or item.member_id or ""


def _exit_code(item: ItemResult) -> ExitCode:
    if item.result == ChangeStatus.NOT_FOUND:
        return ExitCode.NOT_FOUND
    return of_code_name(item.error_code or "")


def _error(item: ItemResult) -> ItemError:
    code = item.error_code or "UNKNOWN_MEMBER_ID"
    return ItemError(_name(item), code, f"{_name(item)}: {code} ({item.effect})", f"kgroup explain {code}")
