"""`kgroup wait`: until a group is as wanted, for scripts."""

from dataclasses import asdict
from typing import Annotated

import typer

from kgroup import shell
from kgroup.cli.env import Env, parse_duration
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.options import command as make


@make(
    "wait",
    examples=(
        ("kgroup wait orders --for empty --stop-after 5m", "once all its members have stopped"),
        (
            "kgroup wait orders --for stable --stop-after 2m",
            "after a rollout; exit code 7 when it takes longer",
        ),
        ("kgroup wait orders --for lag=0 -q", "until everything is read"),
        ("kgroup wait orders --for member=orders-3", "until that instance is in and settled"),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str], typer.Argument(help="Group ids or globs.", metavar="GROUP…")],
    for_: Annotated[
        str,
        typer.Option(
            "--for", metavar="CONDITION", help="stable|empty|gone|lag=N|members=N|member=ID (instance or id)."
        ),
    ],
    interval: Annotated[
        str, typer.Option("--interval", metavar="DURATION", help="How often to look. Default 500ms.")
    ] = "500ms",
    stop_after: Annotated[
        str | None, typer.Option("--stop-after", metavar="DURATION", help="At most so long. Default 30s.")
    ] = None,
) -> ExitCode:
    """Wait until a condition holds for all the groups; exit code 7 when time is up.

    A group that does not exist counts as empty, and is waited for otherwise.
    """
    from kgroup.admin.conditions import Condition, wait_for
    from kgroup.cli.group_names import resolve
    from kgroup.cli.output import ItemError, Result, show
    from kgroup.cli.session import identity, open_admin
    from kgroup.cli.tables import Column, Table

    condition = Condition.parse(for_)
    every_s = max(parse_duration(interval), 0.01)
    limit_s = 30.0 if stop_after is None else parse_duration(stop_after)
    with open_admin(env) as admin:
        ended = wait_for(admin.cluster, resolve(admin, group), condition, limit_s, every_s)
        where = identity(admin, env)
    rows = [asdict(waited) for waited in ended]
    late = [waited for waited in ended if not waited.held]
    errors = [
        ItemError(
            "TIMED_OUT",
            f"{w.group_id} is still {w.state} ({w.members} members) after {limit_s:g} s, not {for_}",
            shell.command("doctor", w.group_id),
            w.group_id,
        )
        for w in late
    ]
    columns = (
        Column("group_id", "GROUP"),
        Column("held", "AS WANTED"),
        Column("state"),
        Column("members", right=True),
        *((Column("total_lag", "LAG", right=True),) if condition.needs_offsets else ()),
        Column("waited_s", "SECONDS", right=True),
    )
    return show(
        env,
        Result(
            {"condition": for_, "groups": rows},
            (Table(columns, rows),),
            items="groups",
            names=[w.group_id for w in ended if w.held],
            errors=errors,
            exit_code=ExitCode.UNREACHABLE if late else ExitCode.OK,
            cluster=where,
        ),
    )
