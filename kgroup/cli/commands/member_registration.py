"""`kgroup member register|unregister`: the instance ids that a group waits for."""

from typing import TYPE_CHECKING, Annotated

from kgroup.admin import shell
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.changes import Consent, Execute, Reason, Yes, undo_of_settings, with_undo
from kgroup.cli.frame.options import make
from kgroup.cli.output.result import show
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.change.registering import Registering

Group = Annotated[str, argument("GROUP", "The group; it need not exist yet.")]
InstanceIds = Annotated[
    list[str] | None, option("--instance-id ID", "By group.instance.id; repeatable, or comma-separated.")
]


@make(
    "member register",
    examples=(
        (
            "kgroup member register orders --instance-id orders-4,orders-5",
            "which members are present or missing",
        ),
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
        int | None, option("--target-size N", "How many members should be active.", min=1)
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
        ("kgroup member unregister orders --all --execute --yes", "wait for no member any more"),
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
    """Remove instance ids from the list of a group; nothing changes without --execute.

    Members that have these ids are removed at once, all of them in one rebalance.
    """
    from kgroup.admin.change.registering import Registering

    ids = shell.all_items(instance_id)
    if bool(ids) == all_:
        raise ConfigError("name the ids to unregister, or --all", "kgroup describe shows registered ids")
    return _change(env, group, Registering(ids, remove=True, all=all_), yes, execute, reason)


def _change(
    env: Env, group: str, requested: "Registering", yes: bool, execute: bool, reason: str | None
) -> ExitCode:
    from kgroup.admin.change.registering import execute_registration, plan_registration
    from kgroup.cli.views.registration import shown

    with open_admin(env) as admin:
        plan = plan_registration(admin, group, requested)
        where = identity(admin, env)
        journal_id = None
        if execute and plan.changes:
            Consent(execute, yes).ask(
                env, shown(plan, None, where), f"change the expected members of {group}?"
            )
            journal_id = execute_registration(admin, plan, reason)
    result = shown(plan, journal_id, where)
    if journal_id:
        own_before = {name: plan.before.get(name) for name in plan.changes}
        result = with_undo(result, undo_of_settings(env, group, own_before))
    return show(env, result)
