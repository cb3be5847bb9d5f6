"""What the commands that change committed offsets share: options, asking, executing, showing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kgroup.cli.changes import Consent, write_plan
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, Failure

if TYPE_CHECKING:
    from kgroup.admin.admin import Admin
    from kgroup.admin.change.offset_plans import CommittedOffset, OffsetsPlan
    from kgroup.admin.models import ItemError
    from kgroup.cli.output.result import Result
    from kgroup.domain import TopicPartition

WaitEmpty = Annotated[
    bool, typer.Option("--wait-empty", help="Before --execute, wait until the groups have no members.")
]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="T[:0,1]", help="Only this topic, or these partitions; repeatable."),
]


def run(
    env: Env,
    admin: "Admin",
    make_plan: Callable[[], "OffsetsPlan"],
    *,
    execute: bool,
    yes: bool,
    wait_empty: bool = False,
    groups: Sequence[str] = (),
    plan_out: str | None = None,
    before: Callable[[], Sequence[str]] = tuple,
    unseen: "Sequence[ItemError]" = (),
) -> ExitCode:
    """Show the plan, or with `execute` wait, ask, do it and show what became of each position.

    `unseen` says what the plan may lack, groups or positions. `before` does what has to happen first and says
    what it did; the plan is made after it and after the wait, because members commit when they close.
    """
    from kgroup.admin.change.offset_plans import plan_document
    from kgroup.cli.env.session import identity
    from kgroup.cli.output.result import show
    from kgroup.cli.views.offsets import executed, planned

    csv = env.output.format == "csv"
    where = identity(admin, env)
    notes: Sequence[str] = ()
    if execute:
        notes = before()
        if wait_empty:
            wait_until_empty(env, admin, groups)
    plan = make_plan()
    if plan_out:
        write_plan(plan_out, plan_document(plan))
    count = sum(item.result == "planned" for item in plan.items)
    if not execute or not count:
        return show(env, _with_unseen(planned(plan, where, csv=csv), unseen))
    names = ", ".join(dict.fromkeys(item.group_id for item in plan.items))
    Consent(execute, yes).ask(f"{plan.spec}: change {count} position(s) of {names}?")
    done = admin.execute_offsets(plan)
    return show(env, _with_unseen(executed(done, where, csv=csv, notes=notes), unseen))


def unseen_of(admin: "Admin", groups: Iterable[str]) -> "Sequence[ItemError]":
    """Groups that may have offsets of topics which this principal may not see: all of them, or none."""
    from kgroup.admin.read.visibility import unseen_offsets

    return () if admin.sees_every_topic() else [unseen_offsets(group) for group in groups]


def _with_unseen(result: "Result", unseen: "Sequence[ItemError]") -> "Result":
    from dataclasses import replace

    from kgroup.cli.output.wording import of_seen, shown_errors

    errors = [*result.errors, *shown_errors(unseen)]
    return replace(result, errors=errors, exit_code=of_seen(result.exit_code, unseen))


def import_plan(
    admin: "Admin",
    wanted: "Mapping[str, Mapping[TopicPartition, CommittedOffset]]",
    spec: str,
    reason: str | None,
) -> "OffsetsPlan":
    """The plan that gives groups exactly these offsets and leaves their others alone.

    Offsets of partitions that do not exist are failed items of it.
    """
    from kgroup.admin.change.offset_plans import make_plan

    drafts = admin.import_drafts(wanted)
    return make_plan("offsets import", spec, admin.look(wanted), drafts, reason=reason)


def wait_until_empty(env: Env, admin: "Admin", groups: Sequence[str]) -> None:
    """Wait until no group has members; Failure (timed out) with who is left."""
    from kgroup.admin.read.conditions import Condition, raised

    timeout_s = env.settings().timeout_s()
    env.note(f"waiting up to {timeout_s:g} s for {', '.join(groups)} to be empty")
    ended, _ = admin.wait_for(groups, Condition("empty"), timeout_s, note=env.note)
    for waited in ended:
        if waited.unseen:
            raise raised(waited.unseen)
        if not waited.held:
            count = "members not told" if waited.members is None else f"{waited.members} members"
            raise Failure(
                ExitCode.UNREACHABLE,
                "TIMED_OUT",
                f"{waited.group_id} is still {waited.state} ({count}) after {timeout_s:g} s",
                "stop its members, or give them longer with --timeout",
                waited.group_id,
            )
