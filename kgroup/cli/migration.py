"""Plans of a migration as text, tables and JSON, and the commands both directions share."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from kgroup.admin.migrate_models import BLOCK, BLOCKED, Check, MigrationPlan
from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.output import Result, show
from kgroup.cli.tables import Column, Table

Group = Annotated[str, typer.Argument(help="The group.", metavar="GROUP")]
Patterns = Annotated[
    list[str] | None,
    typer.Option("--pattern", metavar="REGEX", help="A pattern the clients subscribe with; repeatable."),
]
ReadLog = Annotated[
    bool,
    typer.Option(
        "--read-log", help="Read the group's records too: session timeouts, leader (needs READ on the topic)."
    ),
]
_STATUS_STYLES = {"ok": "green", "warn": "yellow", "BLOCK": "bold red", "info": "dim"}
_CHECKS = (
    Column("status", style=_STATUS_STYLES),
    Column("check"),
    Column("message"),
    Column("hint"),
)
_NEXT = {"upgrade": ("classic", "consumer"), "downgrade": ("consumer", "classic")}


def show_plan(
    env: Env, group: str, direction: str, patterns: Sequence[str] | None, read_log: bool
) -> ExitCode:
    """Make the plan and print it; REFUSED when it is blocked."""
    from kgroup.admin.migrate import plan
    from kgroup.cli.session import identity, open_admin

    with open_admin(env) as admin:
        made = plan(admin.cluster, group, direction, patterns=tuple(patterns or ()), read_log=read_log)
        where = identity(admin, env)
    return show(env, planned(made, where))


def planned(plan: MigrationPlan, where: Mapping[str, Any] | None) -> Result:
    """The plan as a result; exit code 4 when it is blocked."""
    rows = [_row(check) for check in plan.checks]
    blocks: list[str | Table] = [headline(plan), ""]
    blocks += [line for check in plan.checks for line in _lines(check)]
    return Result(
        {"group_id": plan.group_id, "verdict": plan.verdict, "checks": [asdict(c) for c in plan.checks]},
        blocks,
        items="checks",
        names=[check.code for check in plan.blockers],
        exit_code=ExitCode.REFUSED if plan.verdict == BLOCKED else ExitCode.OK,
        cluster=where,
        main=Table(_CHECKS, rows),
    )


def headline(plan: MigrationPlan) -> str:
    """The group, the way it would go, and the verdict with its counts."""
    start, end = _NEXT[plan.direction]
    counts = {"blocker": "block", "warning": "warn"}
    told = [
        f"{n} {word}{'s' if n > 1 else ''}"
        for word, status in counts.items()
        if (n := sum(check.status == status for check in plan.checks))
    ]
    verdict = plan.verdict.upper() + (f" ({', '.join(told)})" if told else "")
    return f"{plan.group_id}   {start} → {end}   {plan.type}, {plan.state}      VERDICT  {verdict}"


def _row(check: Check) -> dict[str, Any]:
    return {"status": _shown(check), "check": check.code, "message": check.message, "hint": check.hint}


def _shown(check: Check) -> str:
    return "BLOCK" if check.status == BLOCK else check.status


def _lines(check: Check) -> list[str]:
    """A check as a person reads it: one line, and its remedy below when there is something to do."""
    lines = [f"  {_shown(check):<6}{check.code.replace('_', ' '):<22}{check.message}"]
    if check.hint and check.status != "ok":
        lines.append(f"  {'':<28}→ {check.hint}")
    return lines
