"""`kgroup doctor`: what is wrong with a group, and what shows it."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgroup.cli.env import Env, parse_duration
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.options import command as make

if TYPE_CHECKING:
    from kgroup.admin.doctor import Checkup

_MARKS = {"info": "·", "warn": "!", "error": "!!"}


@make(
    "doctor",
    examples=(
        ("kgroup doctor orders -b broker:9092", "who blocks, since when, what is about to be lost"),
        ("kgroup doctor 'pay*' -q || echo not healthy", "exit code 8 when a finding is an error"),
        ("kgroup doctor orders --window 24h -o json", "with a day of history, for a script"),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str], typer.Argument(help="Group ids or globs.", metavar="GROUP…")],
    window: Annotated[
        str, typer.Option("--window", metavar="DURATION", help="How far back history counts. Default 1h.")
    ] = "1h",
) -> ExitCode:
    """Check groups: blocked rebalances, absent members, flapping ids, lost and expiring offsets; exit code 8.

    Uses what describe shows, the broker's settings, and the group's history in __consumer_offsets where that
    may be read; what could not be looked at is said. Only findings of severity error make a bad verdict.
    """
    from kgroup.admin.doctor import examine
    from kgroup.cli.exit_codes import of_error
    from kgroup.cli.group_names import resolve
    from kgroup.cli.output import ItemError, Result, show
    from kgroup.cli.session import identity, open_admin
    from kgroup.cli.tables import Column, Table
    from kgroup.errors import KgroupError

    window_ms = int(parse_duration(window) * 1000)
    checkups, errors, codes = [], [], []
    with open_admin(env) as admin:
        for name in resolve(admin, group):
            try:
                checkups.append(examine(admin.cluster, name, window_ms=window_ms))
            except KgroupError as error:
                errors.append(ItemError.of(error, name))
                codes.append(of_error(error))
        where = identity(admin, env)
    for checkup in checkups:
        for reason in checkup.skipped:
            env.note(f"{checkup.group.group_id}: not looked at: {reason}")
    sick = [checkup for checkup in checkups if not checkup.healthy]
    columns = (Column("group_id", "GROUP"), Column("code"), Column("severity"), Column("message"))
    rows = [{"group_id": c.group.group_id, **asdict(found)} for c in checkups for found in c.findings]
    return show(
        env,
        Result(
            {"groups": [_json(checkup) for checkup in checkups]},
            ["\n\n".join("\n".join(_text(checkup)) for checkup in checkups)] if checkups else [],
            items="groups",
            names=[checkup.group.group_id for checkup in sick],
            errors=errors,
            exit_code=ExitCode.BAD_VERDICT if sick else of_batch(codes, bool(checkups)),
            cluster=where,
            main=Table(columns, rows),
        ),
    )


def _json(checkup: "Checkup") -> dict[str, Any]:
    return {
        "group_id": checkup.group.group_id,
        "type": checkup.group.type,
        "state": checkup.group.state,
        "healthy": checkup.healthy,
        "findings": [asdict(found) for found in checkup.findings],
        "skipped": list(checkup.skipped),
    }


def _text(checkup: "Checkup") -> Iterator[str]:
    group = checkup.group
    verdict = "healthy" if checkup.healthy else "NOT HEALTHY"
    yield f"{group.group_id}   {group.type}   {group.state}   {verdict}"
    if not checkup.findings:
        yield "nothing found"
    for found in checkup.findings:
        yield f"{_MARKS[found.severity]} {found.code} {found.message}"
        yield from (f"     {fact}" for fact in found.evidence)
        if found.hint:
            yield f"     → {found.hint}"
