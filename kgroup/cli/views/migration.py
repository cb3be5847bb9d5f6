"""Plans of a migration, and their outcome, as text, tables and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from kgroup.admin.migrate.models import BLOCK, BLOCKED, UNKNOWN, Check, MigrationPlan
from kgroup.admin.models import ItemError
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Block, Column, Table
from kgroup.cli.output.wording import of_code_name
from kgroup.domain import CLASSIC, CONSUMER, count_of

if TYPE_CHECKING:
    from kgroup.admin.migrate.execute import Conversion, RollStep

_STATUS_STYLES = {"ok": "green", "warn": "yellow", "BLOCK": "bold red", "unknown": "magenta", "info": "dim"}
_CHECKS = (
    Column("status", style=_STATUS_STYLES),
    Column("check"),
    Column("message"),
    Column("hint"),
)
NEXT = {
    "upgrade": (CLASSIC, CONSUMER),
    "downgrade": (CONSUMER, CLASSIC),
    "static": ("dynamic", "static members"),
}
_ORDER = (
    Column("step", right=True),
    Column("instance_id", "INSTANCE"),
    Column("client_id", "CLIENT"),
    Column("host"),
    Column("is_leader", "LEADER"),
    Column("member_id", "MEMBER", wide=True),
)


def planned(plan: MigrationPlan, where: Mapping[str, object] | None) -> Result:
    """Return the plan as a result; exit code 4 when it is blocked, 5 or 6 when it is unknown."""
    lines, table = checks_shown(plan.checks)
    return Result(
        {"group_id": plan.group_id, "verdict": plan.verdict, "checks": [asdict(c) for c in plan.checks]},
        [headline(plan), "", *lines],
        items="checks",
        names=[check.code for check in plan.blockers],
        errors=_against(plan),
        exit_code=verdict_code(plan),
        cluster=where,
        main=table,
    )


def checks_shown(checks: Sequence[Check]) -> tuple[list[str], Table]:
    """Return checks as lines for a person, and as a table."""
    rows = [
        {"status": _shown(check), "check": check.code, "message": check.message, "hint": check.hint}
        for check in checks
    ]
    return [line for check in checks for line in _lines(check)], Table(_CHECKS, rows)


def _against(plan: MigrationPlan) -> list[ItemError]:
    """Return what keeps the plan from being ready, one line each: the checks show more."""
    if plan.verdict == BLOCKED:
        names = ", ".join(check.code.replace("_", " ") for check in plan.blockers)
        return [ItemError(plan.group_id, "BLOCKED", f"{plan.group_id}: blocked: {names}")]
    if plan.verdict != UNKNOWN:
        return []
    return [
        ItemError(
            check.code,
            check.reason or "NOT_KNOWN",
            f"{plan.group_id}: not known: {check.code.replace('_', ' ')}: {check.message}",
            check.hint,
        )
        for check in plan.unknowns
    ]


def verdict_code(plan: MigrationPlan) -> ExitCode:
    """Return 4 when blocked; for an unknown verdict by its reason: 6 for lack of rights, else 5."""
    if plan.verdict == UNKNOWN:
        reasons = {check.reason and of_code_name(check.reason) for check in plan.unknowns}
        return ExitCode.NOT_AUTHORISED if reasons == {ExitCode.NOT_AUTHORISED} else ExitCode.PARTIAL
    return ExitCode.REFUSED if plan.verdict == BLOCKED else ExitCode.OK


def headline(plan: MigrationPlan) -> str:
    """Return the group, its direction, and the verdict with its counts."""
    start, end = NEXT[plan.direction]
    counts = {"blocker": BLOCK, "warning": "warn"}
    unknown = len(plan.unknowns)
    tally = [f"{unknown} not known"] if unknown else []
    tally += [
        f"{count_of(n, word)}"
        for word, status in counts.items()
        if (n := sum(check.status == status for check in plan.checks))
    ]
    verdict = plan.verdict.upper() + (f" ({', '.join(tally)})" if tally else "")
    return f"{plan.group_id}   {start} → {end}   {plan.type}, {plan.state}      VERDICT  {verdict}"


def _shown(check: Check) -> str:
    return "BLOCK" if check.status == BLOCK else check.status


def _lines(check: Check) -> list[str]:
    """Return a check for a person: one line, and its remedy below when there is one."""
    lines = [f"  {_shown(check):<9}{check.code.replace('_', ' '):<22}{check.message}"]
    if check.hint and check.status != "ok":
        lines.append(f"  {'':<31}→ {check.hint}")
    return lines


def outcome(
    plan: MigrationPlan,
    action: str,
    where: Mapping[str, object] | None,
    done: "Conversion | None" = None,
    order: "Sequence[RollStep]" = (),
) -> Result:
    changed = done.offsets_changed if done else ()
    errors = _against(plan) if action == "none" else []
    errors += [
        ItemError(
            f"{c.topic}-{c.partition}",
            "OFFSET_CHANGED",
            f"{c.topic}-{c.partition}: its offset was {c.before} and is {c.after}",
            "the journal holds the offsets before: in between they were committed, or expired",
        )
        for c in changed
    ]
    # With --accept-unknown the outcome of the work decides.
    code = verdict_code(plan) if action == "none" else ExitCode.FAILED if changed else ExitCode.OK
    offsets = {"committed": done.offsets, "changed": [asdict(c) for c in changed]} if done else None
    table = Table(_ORDER, [{"step": n, **asdict(step)} for n, step in enumerate(order, 1)])
    return Result(
        {
            "group_id": plan.group_id,
            "verdict": plan.verdict,
            "action": action,
            "checks": [asdict(check) for check in plan.checks],
            "order": [asdict(step) for step in order],
            "offsets": offsets,
            "journal_id": done.journal_id if done else None,
        },
        _text_of(plan, action, done, table),
        items="order",
        names=[step.instance_id or step.member_id for step in order],
        errors=errors,
        exit_code=code,
        cluster=where,
        main=table,
    )


def _text_of(plan: MigrationPlan, action: str, done: "Conversion | None", table: Table) -> Sequence[Block]:
    if done is not None:
        kept = "the same before and after" if not done.offsets_changed else "NOT the same before and after"
        offsets = f"{count_of(done.offsets, 'committed offset')}, {kept}"
        now = f"{done.group_id} is a {done.type} group now, {done.state}"
        return (f"{now}. {offsets}.   journal {done.journal_id}",)
    if action != "roll":
        return (headline(plan), "", *(line for check in plan.checks for line in _lines(check)))
    new = NEXT[plan.direction][1]
    known = any(row["is_leader"] is not None for row in table.rows)
    leader = "the leader last" if known else "which member leads is unknown (--read-log shows it)"
    return (
        headline(plan),
        "",
        f"The group is live: no request converts it, restarting its clients with group.protocol={new} does.",
        f"One by one, each stopped before its successor starts; {leader}:",
        table,
    )
