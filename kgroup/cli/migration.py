"""Plans of a migration as text, tables and JSON, and the commands both directions share."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgroup.admin.migrate.models import ALREADY, BLOCK, BLOCKED, UNKNOWN, Check, MigrationPlan
from kgroup.cli.changes import Consent, Yes
from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.lazy import KgroupCommand
from kgroup.cli.options import command as make
from kgroup.cli.output import ItemError, Result, show
from kgroup.cli.rendering import of_code_name
from kgroup.cli.tables import Column, Table

if TYPE_CHECKING:
    from kgroup.admin.migrate.execute import Conversion, RollStep

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
AcceptUnknown = Annotated[
    bool,
    typer.Option(
        "--accept-unknown", help="Go on although something that decides is not known, at your own risk."
    ),
]
Watching = Annotated[
    bool, typer.Option("--watch/--no-watch", help="Go on and watch the roll of a live group.")
]
Interval = Annotated[str, typer.Option("--interval", metavar="DURATION", help="Time between two looks.")]
StuckAfter = Annotated[
    str,
    typer.Option("--stuck-after", metavar="DURATION", help="Exit 8 after so long without change."),
]
_STATUS_STYLES = {"ok": "green", "warn": "yellow", "BLOCK": "bold red", "unknown": "magenta", "info": "dim"}
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
    from kgroup.cli.session import identity, open_admin

    with open_admin(env) as admin:
        made = admin.plan_migration(group, direction, patterns=tuple(patterns or ()), read_log=read_log)
        where = identity(admin, env)
    return show(env, planned(made, where))


def planned(plan: MigrationPlan, where: Mapping[str, Any] | None) -> Result:
    """The plan as a result; exit code 4 when it is blocked, 5 or 6 when it is unknown."""
    rows = [_row(check) for check in plan.checks]
    blocks: list[str | Table] = [headline(plan), ""]
    blocks += [line for check in plan.checks for line in _lines(check)]
    return Result(
        {"group_id": plan.group_id, "verdict": plan.verdict, "checks": [asdict(c) for c in plan.checks]},
        blocks,
        items="checks",
        names=[check.code for check in plan.blockers],
        errors=_against(plan),
        exit_code=verdict_code(plan),
        cluster=where,
        main=Table(_CHECKS, rows),
    )


def _against(plan: MigrationPlan) -> list[ItemError]:
    """What keeps the plan from being ready, in a line each: the checks say more."""
    if plan.verdict == BLOCKED:
        names = ", ".join(check.code.replace("_", " ") for check in plan.blockers)
        return [ItemError("BLOCKED", f"{plan.group_id}: blocked: {names}", None, plan.group_id)]
    if plan.verdict != UNKNOWN:
        return []
    return [
        ItemError(
            check.reason or "NOT_KNOWN",
            f"{plan.group_id}: not known: {check.code.replace('_', ' ')}: {check.message}",
            check.hint,
            check.code,
        )
        for check in plan.unknowns
    ]


def verdict_code(plan: MigrationPlan) -> ExitCode:
    """4 when blocked; for an unknown verdict why it is unknown: 6 for lack of rights, else 5."""
    if plan.verdict == UNKNOWN:
        reasons = {check.reason and of_code_name(check.reason) for check in plan.unknowns}
        return ExitCode.NOT_AUTHORISED if reasons == {ExitCode.NOT_AUTHORISED} else ExitCode.PARTIAL
    return ExitCode.REFUSED if plan.verdict == BLOCKED else ExitCode.OK


def headline(plan: MigrationPlan) -> str:
    """The group, the way it would go, and the verdict with its counts."""
    start, end = _NEXT[plan.direction]
    counts = {"blocker": BLOCK, "warning": "warn"}
    unknown = len(plan.unknowns)
    told = [f"{unknown} not known"] if unknown else []
    told += [
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
    lines = [f"  {_shown(check):<9}{check.code.replace('_', ' '):<22}{check.message}"]
    if check.hint and check.status != "ok":
        lines.append(f"  {'':<31}→ {check.hint}")
    return lines


_ORDER = (
    Column("step", right=True),
    Column("instance_id", "INSTANCE"),
    Column("client_id", "CLIENT"),
    Column("host"),
    Column("is_leader", "LEADER"),
    Column("member_id", "MEMBER", wide=True),
)


def execute_command(direction: str) -> KgroupCommand:
    """`upgrade execute` or `downgrade execute`: they differ by a word."""

    def execute(
        env: Env,
        group: Group,
        yes: Yes = False,
        accept_unknown: AcceptUnknown = False,
        read_log: ReadLog = False,
        watch: Watching = True,
        interval: Interval = "500ms",
        stuck_after: StuckAfter = "5m",
    ) -> ExitCode:
        choices = Choices(yes, accept_unknown, read_log, watch, interval, stuck_after)
        return _execute(env, group, direction, choices)

    new = _NEXT[direction][1]
    execute.__doc__ = f"""Convert an empty group to the {new} protocol, or guide the roll of a live one.

    An empty group is joined and left once by a member of its own; offsets are read before and after. A live
    group is converted by restarting its clients: this prints the order and watches.
    """
    line = f"kgroup {direction} execute orders"
    examples = (
        (f"{line} --yes", "an empty group: converted at once, offsets proven the same"),
        (f"{line} --read-log", "a live group: whom to restart in which order, then watch"),
        (f"{line} --no-watch -o json", "the order for a script"),
    )
    return make(f"{direction} execute", examples=examples)(execute)


def watch_command(direction: str) -> KgroupCommand:
    """`upgrade watch` or `downgrade watch`."""

    def watch(
        env: Env, group: Group, interval: Interval = "500ms", stuck_after: StuckAfter = "5m"
    ) -> ExitCode:
        from kgroup.cli.migration_watch import follow
        from kgroup.cli.session import open_admin

        with open_admin(env) as admin:
            return follow(env, admin, group, direction, interval, stuck_after)

    watch.__doc__ = f"""Follow a roll to the {_NEXT[direction][1]} protocol until all members have moved.

    Exit code 0 when done, 8 when nothing has changed for --stuck-after. Time without an owner is bounded by
    the looks before and after: shorter intervals tell it more closely.
    """
    stuck = f"kgroup {direction} watch orders --stuck-after 2m -o ndjson"
    examples = (
        (f"kgroup {direction} watch orders", "who has moved, who remains, what holds it up"),
        (stuck, "an object a change; exit code 8 when stuck"),
    )
    return make(f"{direction} watch", examples=examples)(watch)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the options of `execute` ask for."""

    yes: bool
    accept_unknown: bool
    read_log: bool
    watching: bool
    interval: str
    stuck_after: str


def _execute(env: Env, group: str, direction: str, choices: Choices) -> ExitCode:
    """Convert an empty group; for a live one say how its clients are to be rolled, and watch that."""
    from kgroup.admin.migrate.execute import roll_order
    from kgroup.admin.migrate.plan import plan_of
    from kgroup.admin.models import EMPTY
    from kgroup.cli.migration_watch import follow
    from kgroup.cli.session import identity, open_admin

    with open_admin(env) as admin:
        found = admin.evidence(group, read_log=choices.read_log)
        plan = plan_of(found, direction)
        where = identity(admin, env)
        if plan.verdict == BLOCKED:
            return show(env, _outcome(plan, "none", where))
        if plan.verdict == ALREADY or (plan.verdict == UNKNOWN and not choices.accept_unknown):
            return show(env, _outcome(plan, "none", where))
        if found.group.state == EMPTY:
            Consent(True, choices.yes).ask(
                f"convert the empty group {group} to the {_NEXT[direction][1]} protocol?"
            )
            done = admin.convert_empty(plan)
            return show(env, _outcome(plan, "converted", where, done))
        order = roll_order(found, direction)
        streams = choices.watching and env.output.format in ("table", "wide", "ndjson")
        code = ExitCode.OK
        if env.output.format != "ndjson" or not streams:
            code = show(env, _outcome(plan, "roll", where, order=order))
        if not streams:
            return code
        return follow(env, admin, group, direction, choices.interval, choices.stuck_after)


def _outcome(
    plan: MigrationPlan,
    action: str,
    where: Mapping[str, Any] | None,
    done: "Conversion | None" = None,
    order: "Sequence[RollStep]" = (),
) -> Result:
    changed = done.offsets_changed if done else ()
    errors = _against(plan) if action == "none" else []
    errors += [
        ItemError(
            "OFFSET_CHANGED",
            f"{c.topic}-{c.partition}: offset {c.before} before, {c.after} after",
            "the journal holds the offsets before: somebody committed, or they expired, in between",
            f"{c.topic}-{c.partition}",
        )
        for c in changed
    ]
    # Who accepts what is not known gets the outcome of the work.
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
        _told(plan, action, done, table),
        items="order",
        names=[step.instance_id or step.member_id for step in order],
        errors=errors,
        exit_code=code,
        cluster=where,
        main=table,
    )


def _told(plan: MigrationPlan, action: str, done: "Conversion | None", table: Table) -> Sequence[str | Table]:
    if done is not None:
        kept = "the same before and after" if not done.offsets_changed else "NOT the same before and after"
        plural = "" if done.offsets == 1 else "s"
        offsets = f"{done.offsets} committed offset{plural}, {kept}"
        now = f"{done.group_id} is a {done.type} group now, {done.state}"
        return (f"{now}. {offsets}.   journal {done.journal_id}",)
    if action != "roll":
        return (headline(plan), "", *(line for check in plan.checks for line in _lines(check)))
    new = _NEXT[plan.direction][1]
    known = any(row["is_leader"] is not None for row in table.rows)
    leader = "the leader last" if known else "which member leads is not known (--read-log tells)"
    return (
        headline(plan),
        "",
        f"The group is live: no request converts it, restarting its clients with group.protocol={new} does.",
        f"One after the other, each stopped before its successor starts; {leader}:",
        table,
    )
