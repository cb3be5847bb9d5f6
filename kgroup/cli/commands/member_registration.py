"""`kgroup member register|unregister`: the instance ids that a group waits for."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

from kgroup.admin import shell
from kgroup.admin.change.registering import Registering, RegistrationPlan
from kgroup.admin.models import ChangeStatus, ItemError
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.changes import Consent, Execute, Reason, Yes, undo_of_settings, with_undo
from kgroup.cli.frame.declaring import argument, option
from kgroup.cli.frame.options import command as make
from kgroup.cli.output.messages import NOT_YET
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.views.expected import wait_text
from kgroup.coordinator.roster import TARGET_SIZE, WAIT
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError

Group = Annotated[str, argument("GROUP", "The group; it need not exist yet.")]
InstanceIds = Annotated[
    list[str] | None, option("--instance-id ID", "By group.instance.id; repeatable, or comma-separated.")
]


@make(
    "member register",
    examples=(
        ("kgroup member register orders --instance-id orders-4,orders-5", "who is there, who is missing"),
        (
            "kgroup member register orders --instance-id o-4,o-5 --wait 2m --execute",
            "one rebalance, once both have come or two minutes have passed",
        ),
        ("kgroup member register orders --target-size 6 --execute", "further members stay standbys"),
    ),
)
def register(
    env: Env,
    group: Group,
    instance_id: InstanceIds = None,
    wait: Annotated[
        str | None,
        option(
            "--wait DURATION", "How long to wait for missing ids.  [default: the group's rebalance timeout]"
        ),
    ] = None,
    target_size: Annotated[
        int | None, option("--target-size N", "How many members shall be active.", min=1)
    ] = None,
    execute: Execute = False,
    yes: Yes = False,
    reason: Reason = None,
) -> ExitCode:
    """Have a group of an embedded cluster expect instance ids; nothing changes without --execute.

    The group rebalances once, when all registered ids are there or the wait is over. A broker of Kafka
    knows no registered ids: nothing is changed there.
    """
    from kgroup.admin.change.registering import Registering

    ids = shell.all_items(instance_id)
    if not ids and wait is None and target_size is None:
        raise ConfigError(
            "no option says what to register", "--instance-id ID, --wait DURATION or --target-size N"
        )
    wait_ms = None if wait is None else round(parse_duration(wait) * 1000)
    return _change(
        env, group, Registering(ids, wait_ms=wait_ms, target_size=target_size), yes, execute, reason
    )


@make(
    "member unregister",
    examples=(
        ("kgroup member unregister orders --instance-id orders-4,orders-5", "who would be removed now"),
        ("kgroup member unregister orders --all --execute --yes", "wait for nobody any more"),
    ),
)
def unregister(
    env: Env,
    group: Group,
    instance_id: InstanceIds = None,
    all_: Annotated[bool, option("--all", "Every registered id, and the wait.")] = False,
    execute: Execute = False,
    yes: Yes = False,
    reason: Reason = None,
) -> ExitCode:
    """Take instance ids off the list of a group; nothing changes without --execute.

    Members that have these ids are removed at once, all of them in one rebalance.
    """
    from kgroup.admin.change.registering import Registering

    ids = shell.all_items(instance_id)
    if bool(ids) == all_:
        raise ConfigError("name the ids to unregister, or --all", "kgroup describe shows registered ids")
    return _change(env, group, Registering(ids, remove=True, all=all_), yes, execute, reason)


def _change(
    env: Env, group: str, wanted: "Registering", yes: bool, execute: bool, reason: str | None
) -> ExitCode:
    with open_admin(env) as admin:
        plan = admin.plan_registration(group, wanted)
        where = identity(admin, env)
        journal_id = None
        if execute and plan.changes:
            Consent(execute, yes).ask(env, shown(plan, None, where), f"change whom {group} expects?")
            journal_id = admin.execute_registration(plan, reason)
    result = shown(plan, journal_id, where)
    if journal_id:
        own_before = {name: plan.before.get(name) for name in plan.changes}
        result = with_undo(result, undo_of_settings(env, group, own_before))
    return show(env, result)


_COLUMNS = (
    Column("instance_id", "INSTANCE"),
    Column("member_id", "MEMBER"),
    Column("registered"),
    Column("result", style={ChangeStatus.DONE: "green", ChangeStatus.NOT_FOUND: "yellow"}),
    Column("effect"),
)
_SETTINGS = (Column("setting"), Column("before", right=True), Column("after", right=True))


def shown(plan: RegistrationPlan, journal_id: str | None, where: Mapping[str, object] | None) -> Result:
    """The plan, or once it is journalled what was done; NOT_FOUND if none of the ids was registered."""
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
    data = {
        "group_id": plan.group_id,
        "executed": journal_id is not None,
        "journal_id": journal_id,
        "instances": rows,
        "missing": list(plan.missing),
        "settings": settings,
    }
    return Result(
        data,
        (
            _headline(plan),
            *([Table(_COLUMNS, rows)] if rows else []),
            *([Table(_SETTINGS, settings)] if settings else []),
            _last(plan, journal_id),
        ),
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
        what += f", {len(group.members)} members"
    after = plan.after
    wait = after.get(WAIT)
    parts = [f"PLAN  {plan.group_id} ({what})"]
    if any(row.registered for row in plan.registrants):
        parts.append(f"waits up to {wait_text(None if wait is None else int(wait))}")
    if TARGET_SIZE in after:
        parts.append(f"target size {after[TARGET_SIZE]}")
    return "   ".join(parts)


def _last(plan: RegistrationPlan, journal_id: str | None) -> str:
    if not plan.changes:
        return "Nothing to do."
    registered = sum(row.registered for row in plan.registrants)
    told = f"after: {registered} registered, {len(plan.missing)} missing"
    removed = sum(
        row.member_id is not None and row.result == ChangeStatus.PLANNED and not row.registered
        for row in plan.registrants
    )
    if removed:
        told += f", {removed} removed"
    return f"{told}   " + (f"journal {journal_id}" if journal_id else NOT_YET)
