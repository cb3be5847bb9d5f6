"""`kgroup wait`: until a group is as wanted, for scripts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

from kgroup.admin import shell
from kgroup.admin.models import ItemError
from kgroup.admin.read.conditions import Condition, Waited
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.group_names import expand
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import UNKNOWN, lag_text, of_seen
from kgroup.domain import count_of
from kgroup.durations import parse_duration


@make(
    "wait",
    examples=(
        ("kgroup wait orders --for empty --stop-after 5m", "once all its members have stopped"),
        (
            "kgroup wait orders --for stable --stop-after 2m",
            "after a rollout; exit code 7 when it takes longer",
        ),
        ("kgroup wait orders --for lag=0 --stop-after 1h -q", "until everything is read"),
        (
            "kgroup wait orders --for member=orders-3 --stop-after 5m",
            "until that instance has joined and settled",
        ),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str], argument("GROUP…", "Group ids or globs.")],
    for_: Annotated[
        str, option("--for CONDITION", "stable|empty|gone|static|lag=N|members=N|member=ID (instance or id).")
    ],
    interval: Annotated[str, option("--interval DURATION", "How often to poll.")] = "500ms",
    stop_after: Annotated[
        str | None, option("--stop-after DURATION", "Stop waiting after this long.  [default: --timeout]")
    ] = None,
) -> ExitCode:
    """Wait until a condition holds for all the groups; exit code 7 if time runs out.

    A group that does not exist counts as empty and as gone; for other conditions it is waited for. Outages
    are survived. Exit code 5 means that a group was not visible by the end, or that a pattern may match
    groups that are not visible; 6 is the same for missing rights. A name with * ? [ is a pattern; '[*]' is
    the group called *.
    """
    from kgroup.admin.read.conditions import Condition, wait_for

    condition = Condition.parse(for_)
    every_s = max(parse_duration(interval), 0.01)
    limit_s = env.settings().timeout_s() if stop_after is None else parse_duration(stop_after)
    with open_admin(env, stop_after_s=limit_s) as admin:

        def find() -> tuple[Sequence[str], Sequence[ItemError]]:
            named = expand(admin, group, waiting=True)
            return named.groups, named.unseen

        ended, unseen = wait_for(admin, find, condition, limit_s, every_s, env.note)
        where = identity(admin, env, ask=False)
    return show(env, result(ended, unseen, condition, for_.strip(), limit_s, where))


def result(
    ended: Sequence[Waited],
    unseen: Sequence[ItemError],
    condition: Condition,
    words: str,
    limit_s: float,
    where: Mapping[str, object] | None,
) -> Result:
    """Return the report; `exit_code` says whether time was up or something was not seen.

    `words` are the requested condition.
    """
    rows = [asdict(waited) for waited in ended]
    # Unknown values of a group are shown as unknown, never as zero.
    unknown = {"members": UNKNOWN, "total_lag": UNKNOWN}
    shown = [
        row
        if row["state"] == "absent"
        else {name: unknown.get(name) if value is None else value for name, value in row.items()}
        for row in rows
    ]
    late = [waited for waited in ended if not waited.held]
    columns = (
        Column("group_id", "GROUP"),
        Column("held", "AS WANTED"),
        Column("state"),
        Column("members", right=True),
        *((Column("total_lag", "LAG", right=True),) if condition.needs_offsets else ()),
        Column("waited_s", "SECONDS", right=True),
    )
    return Result(
        {"condition": words, "groups": rows},
        (Table(columns, shown),),
        items="groups",
        names=[waited.group_id for waited in ended if waited.held],
        errors=[*(_late(waited, condition, words, limit_s) for waited in late), *unseen],
        exit_code=exit_code(late, unseen),
        cluster=where,
    )


def exit_code(late: Iterable[Waited], unseen: Sequence[ItemError]) -> ExitCode:
    """Return UNREACHABLE if time was up for a visible group, else the code of what was not seen."""
    dark = list(unseen)
    for waited in late:
        if waited.state is not None and not waited.never_known:
            return ExitCode.UNREACHABLE
        dark.append(waited.unseen or ItemError(waited.group_id, "NOT_SEEN", "never seen"))
    return of_seen(ExitCode.OK, dark)


def _late(waited: Waited, condition: Condition, words: str, limit_s: float) -> ItemError:
    name, lost = waited.group_id, waited.unseen
    why = f"; it cannot be seen now: {lost.message}" if lost else ""
    if waited.state is None:
        text = f"{name} was not seen once in {limit_s:g} s, so whether it is {words} is not known{why}"
        return ItemError(name, "NOT_SEEN", text, lost.hint if lost else None)
    if lost and waited.never_known:
        text = f"{name} is {waited.state}; whether it is {words} cannot be seen: {lost.message}"
        return ItemError(name, lost.code, text, lost.hint)
    count = "its members are unknown" if waited.members is None else count_of(waited.members, "member")
    if condition.needs_offsets:
        count += ", " + lag_text(waited.total_lag, waited.lag_at_least, 0, 0)
    verb = "was last seen" if lost else "is still"
    text = f"{name} {verb} {waited.state} ({count}) after {limit_s:g} s, not {words}{why}"
    return ItemError(name, "TIMED_OUT", text, shell.command("doctor", name))
