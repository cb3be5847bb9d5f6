"""`kgroup remove-members`: remove static or dynamic members from a group."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

from kgroup.admin import shell
from kgroup.admin.models import EMPTY, ChangeStatus, ItemError, ItemResult, Plan
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import begin_waiting, identity, open_admin
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.frame.changes import Consent, Execute, Reason, Yes, with_undo
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.files import read_plan, read_text, write_plan
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import UNKNOWN, of_code_name, of_seen
from kgroup.cli.views.changes import RESULT, change, counts
from kgroup.domain import Document, count_of, ranges
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.change.remove_members import Selection
    from kgroup.admin.discovery import ClusterView


_PANEL = "Members"
_NO_UNDO = "undo: none; a member whose client still runs rejoins by itself, others have to be started again"
GRAVE = "a removal of members cannot be undone"
"""Why a removal of members is confirmed."""
InstanceIds = Annotated[
    list[str] | None,
    option(
        "--instance-id --instance --group-instance-ids ID",
        "By group.instance.id; repeatable, or comma-separated ('\\,' is a comma in an id).",
        rich_help_panel=_PANEL,
    ),
]
MemberIds = Annotated[
    list[str] | None,
    option(
        "--member-id ID", "By member id; repeatable, or comma-separated as above.", rich_help_panel=_PANEL
    ),
]
FromFile = Annotated[
    str | None,
    option(
        "--from-file FILE", "Instance ids, one per line, taken literally; - is stdin.", rich_help_panel=_PANEL
    ),
]
Hosts = Annotated[
    list[str] | None, option("--host GLOB", "By host address; repeatable.", rich_help_panel=_PANEL)
]
LeftOnly = Annotated[
    bool,
    option(
        "--left-only", "Only static members that have left temporarily (epoch -2).", rich_help_panel=_PANEL
    ),
]
All = Annotated[bool, option("--all", "Every member.", rich_help_panel=_PANEL)]
GroupId = Annotated[str | None, option("--group-id", "As GROUP (KIP-345).", hidden=True)]
OfOldScript = Annotated[str | None, option("", "Ignored: of KIP-345's script.", hidden=True)]
PlanOut = Annotated[str | None, option("--plan-out FILE", "Write the plan to a file.")]
PlanIn = Annotated[str | None, option("--plan FILE", "Execute this plan; refused if the group has changed.")]
Wait = Annotated[str | None, option("--wait stable", "Then wait until the group is stable.")]


@make(
    "remove-members",
    examples=(
        ("kgroup remove-members orders --instance-id orders-1,orders-7", "show the plan, change nothing"),
        ("kgroup remove-members orders --left-only --execute --yes", "static members that left for now"),
        ("cut -f1 gone.tsv | kgroup remove-members orders --from-file - --execute --yes", "ids from a pipe"),
        ("kgroup remove-members orders --host '10.0.9.*' --plan-out plan.json", "plan now ..."),
        (
            "kgroup remove-members --plan plan.json --execute --yes --wait stable",
            "... and do exactly that later",
        ),
    ),
)
def command(
    env: Env,
    group: Annotated[str | None, argument("[GROUP]", "The group.")] = None,
    instance_id: InstanceIds = None,
    member_id: MemberIds = None,
    from_file: FromFile = None,
    host: Hosts = None,
    left_only: LeftOnly = False,
    all_: All = False,
    group_id: GroupId = None,
    zookeeper: OfOldScript = None,
    broker: OfOldScript = None,
    reason: Reason = None,
    execute: Execute = False,
    yes: Yes = False,
    plan_out: PlanOut = None,
    plan_in: PlanIn = None,
    wait: Wait = None,
) -> ExitCode:
    """Remove members from a group, by instance id, member id or host.

    Prints the plan and changes nothing without --execute. A member that is still running rejoins at once.
    """
    from kgroup.admin.change.remove_members import Selection, execute_removal, plan_document

    if wait not in (None, "stable"):
        raise ConfigError(f"--wait {wait!r} is unknown", "only: stable")
    if zookeeper or broker:
        env.note("--zookeeper and --broker are ignored: --bootstrap-server is all that is needed")
    listed = read_text(from_file).split("\n") if from_file else []
    literal = [line.strip() for line in listed if line.strip()]
    selection = Selection(
        instance_ids=tuple(dict.fromkeys([*shell.all_items(instance_id), *literal])),
        member_ids=shell.all_items(member_id),
        hosts=tuple(host or ()),
        left_only=left_only,
        all=all_,
    )
    with open_admin(env) as admin:
        plan = _plan(admin, group, group_id, selection, reason, plan_in)
        where = identity(admin, env)
        if plan_out:
            write_plan(plan_out, plan_document(plan))
        count = sum(item.planned for item in plan.items)
        result = planned(plan, where)
        if execute and count:
            question = f"remove {count_of(count, 'member')} of {plan.group_id}?"
            Consent(execute, yes).ask(env, result, question, grave=GRAVE)
            done = execute_removal(admin, plan)
            result = executed(plan, done.items, done.journal_id, where)
            result = with_undo(result, _NO_UNDO) if done.journal_id else result
        if execute and wait:  # where nothing was left to remove, too: a repeated script waits again
            result = after_waiting(result, _wait_stable(admin, plan.group_id, begin_waiting(env)))
    return show(env, result)


def _plan(
    admin: "ClusterView",
    group: str | None,
    group_id: str | None,
    selection: "Selection",
    reason: str | None,
    plan_in: str | None,
) -> Plan:
    from kgroup.admin.change.remove_members import plan_from, plan_removal

    if group and group_id and group != group_id:
        raise ConfigError("GROUP and --group-id name different groups")
    named = group or group_id
    if plan_in:
        if not selection.empty or reason is not None:
            raise ConfigError(
                "--plan names the members to remove and the reason", "leave the other options out"
            )
        plan = read_plan(plan_in, plan_from)
        if named and named != plan.group_id:
            raise ConfigError(f"the plan is for group {plan.group_id}, not {named}")
        return plan
    if not named:
        raise ConfigError("no group is named", "kgroup remove-members GROUP --instance-id ID")
    if selection.empty:
        raise ConfigError("no member is named", "--instance-id, --member-id, --host, --left-only or --all")
    return plan_removal(admin, named, selection, reason)


def _wait_stable(admin: "ClusterView", group_id: str, timeout_s: float) -> str | ItemError:
    """Return how the wait ended: in words, or as an error when the time ran out.

    Running members rejoin: Empty is an end only when none has rejoined in all that time.
    """
    from kgroup.admin.read.conditions import Condition, wait_for

    ((waited,), _) = wait_for(admin, [group_id], Condition("stable"), timeout_s)
    if waited.held:
        members = "members unknown" if waited.members is None else count_of(waited.members, "member")
        return f"{group_id} is Stable after {waited.waited_s:.1f} s, {members}"
    hint = shell.command("describe", group_id)
    if waited.unseen:
        return ItemError(group_id, "NOT_SEEN", f"{group_id} cannot be seen: {waited.unseen.message}", hint)
    if waited.state == EMPTY:
        return f"{group_id} is Empty after {waited.waited_s:.1f} s: no member has rejoined"
    return ItemError(group_id, "TIMED_OUT", f"{group_id} is still {waited.state} after {timeout_s:g} s", hint)


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
    RESULT,
    Column("error_code", "ERROR"),
    Column("effect"),
)


def planned(plan: Plan, where: Mapping[str, object] | None) -> Result:
    """Return the plan's effect; a failure when it has none."""
    wrong = [item for item in plan.items if item.result.wrong]
    unseen = [plan.unsure] if plan.unsure is not None else []
    count = len(plan.items) - len(wrong)
    members = plan.before.get("members")
    # A plan from a file has none.
    seen = {m["member_id"]: m for m in members} if isinstance(members, list | tuple) else {}
    after = f"after: {len(seen) - count} of {count_of(len(seen), 'member')}." if seen else ""
    size = f", {count_of(len(seen), 'member')}" if seen else ""
    valid = ", ".join(f"{name.replace('_', ' ')} = {value}" for name, value in plan.valid_while.items())
    head = f"PLAN  {plan.group_id} ({plan.type}, {plan.state}{size})   plan {plan.id} · valid while {valid}"
    rows = []
    for item in plan.items:
        member = seen.get(item.member_id or "")
        assignment = member["assignment"] if member else ()
        owned = (
            UNKNOWN
            if assignment is None
            else " ".join(f"{a['topic']}:{ranges(a['partitions'])}" for a in assignment)
        )
        rows.append({**asdict(item), "host": member and member["host"], "partitions": owned})
    return change(
        _about(plan),
        None,
        {"items": [asdict(item) for item in plan.items]},
        (head, Table(_PLANNED, rows)),
        after,
        to_do=bool(count),
        names=[_name(item) for item in plan.items if item.planned],
        errors=[*map(_error, wrong), *unseen],
        exit_code=of_seen(of_batch([_exit_code(item) for item in wrong], bool(count)), unseen),
        cluster=where,
    )


def _exit_code(item: ItemResult) -> ExitCode:
    if item.result == ChangeStatus.NOT_FOUND:
        return ExitCode.NOT_FOUND
    return of_code_name(item.error_code or "")


def executed(
    plan: Plan, items: tuple[ItemResult, ...], journal_id: str | None, where: Mapping[str, object] | None
) -> Result:
    """Return what was done, item by item."""
    removed = [item for item in items if item.result.made]
    failed = [item for item in items if item.result.wrong]
    codes = [_exit_code(item) for item in failed]
    rows = [asdict(item) for item in items]
    return change(
        _about(plan),
        journal_id,
        {"items": rows},
        (Table(_DONE, rows),),
        counts(items),
        to_do=None,
        names=[_name(item) for item in removed],
        errors=[_error(item) for item in failed],
        exit_code=of_batch(codes, bool(removed)),
        cluster=where,
    )


def after_waiting(result: Result, waited: str | ItemError) -> Result:
    """Return the result, and how waiting ended: in words, or as an error when time ran out."""
    if isinstance(waited, str):
        return replace(result, closing=(*result.closing, waited))
    code = result.exit_code or ExitCode.UNREACHABLE
    return replace(result, errors=[*result.errors, waited], exit_code=code)


def _about(plan: Plan) -> Document:
    return {"group_id": plan.group_id, "plan": {"id": plan.id, "valid_while": dict(plan.valid_while)}}


def _name(item: ItemResult) -> str:
    return item.instance_id or item.member_id or ""


def _error(item: ItemResult) -> ItemError:
    code = item.error_code or "UNKNOWN_MEMBER_ID"
    return ItemError(_name(item), code, f"{_name(item)}: {code} ({item.effect})", f"kgroup explain {code}")
