"""The plan of a change of a group's expected members, as text, tables and JSON."""

from collections.abc import Mapping
from dataclasses import asdict

from kgroup.admin.change.registering import RegistrationPlan
from kgroup.admin.models import ChangeStatus, ItemError
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.views.changes import RESULT, change
from kgroup.cli.views.expected import wait_text
from kgroup.coordinator.roster import TARGET_SIZE, WAIT
from kgroup.domain import count_of

_COLUMNS = (
    Column("instance_id", "INSTANCE"),
    Column("member_id", "MEMBER"),
    Column("registered"),
    RESULT,
    Column("effect"),
)
_SETTINGS = (Column("setting"), Column("before", right=True), Column("after", right=True))


def shown(plan: RegistrationPlan, journal_id: str | None, where: Mapping[str, object] | None) -> Result:
    """Return the plan, or once journalled its outcome; NOT_FOUND if no id was registered."""
    done = ChangeStatus.PLANNED if journal_id is None else ChangeStatus.DONE
    rows = [
        {**asdict(row), "result": done if row.result == ChangeStatus.PLANNED else row.result}
        for row in plan.registrants
    ]
    absent = [row for row in plan.registrants if row.result == ChangeStatus.NOT_FOUND]
    after = plan.after
    settings = [
        {"setting": name, "before": plan.before.get(name), "after": after.get(name)} for name in plan.changes
    ]
    return change(
        {"group_id": plan.group_id},
        journal_id,
        {"instances": rows, "missing": list(plan.missing), "settings": settings},
        (
            _headline(plan),
            *([Table(_COLUMNS, rows)] if rows else []),
            *([Table(_SETTINGS, settings)] if settings else []),
        ),
        _after(plan),
        to_do=bool(plan.changes) if journal_id is None else None,
        items="instances",
        names=[row.instance_id for row in plan.registrants if row.result == ChangeStatus.PLANNED],
        errors=[
            ItemError(
                row.instance_id,
                "NOT_REGISTERED",
                f"{row.instance_id} is not registered in {plan.group_id}",
                "kgroup describe shows registered ids",
            )
            for row in absent
        ],
        exit_code=ExitCode.NOT_FOUND if absent and not plan.changes else ExitCode.OK,
        cluster=where,
    )


def _headline(plan: RegistrationPlan) -> str:
    group = plan.group
    what = "no such group yet" if group is None else f"{group.type}, {group.state}"
    if group is not None and group.members is not None:
        what += f", {count_of(len(group.members), 'member')}"
    after = plan.after
    wait = after.get(WAIT)
    parts = [f"PLAN  {plan.group_id} ({what})"]
    if any(row.registered for row in plan.registrants):
        parts.append(f"waits up to {wait_text(None if wait is None else int(wait))}")
    if TARGET_SIZE in after:
        parts.append(f"target size {after[TARGET_SIZE]}")
    return "   ".join(parts)


def _after(plan: RegistrationPlan) -> str:
    if not plan.changes:
        return ""
    registered = sum(row.registered for row in plan.registrants)
    text = f"after: {registered} registered, {len(plan.missing)} missing"
    removed = sum(
        row.member_id is not None and row.result == ChangeStatus.PLANNED and not row.registered
        for row in plan.registrants
    )
    return f"{text}, {removed} removed" if removed else text
