"""`kgroup coordinator`: the broker and partition of a group."""

from dataclasses import asdict
from typing import Annotated

from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import UNKNOWN, of_seen
from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of

_COLUMNS = (
    Column("group_id", "GROUP"),
    Column("offsets_partition", "OFFSETS-PARTITION", right=True),
    Column("broker", right=True),
    Column("address"),
)


@make(
    "coordinator",
    examples=(
        ("kgroup coordinator orders -b broker:9092", "ask the cluster"),
        ("kgroup coordinator orders --partitions 50", "work it out, no cluster needed"),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str], argument("GROUP…", "Group ids.")],
    partitions: Annotated[
        int | None,
        option(
            "--partitions",
            "Partitions of __consumer_offsets (offsets.topic.num.partitions); computes offline.",
            min=1,
        ),
    ] = None,
) -> ExitCode:
    """Show which broker and which partition of __consumer_offsets hold a group.

    With --partitions the partition is computed as the broker does it: abs(hash(group)) mod partitions.
    """
    from kgroup.admin.discovery import locate
    from kgroup.admin.read.visibility import may_not_see

    if partitions is not None:
        computed = [
            {"group_id": g, "offsets_partition": offsets_partition_of(g, partitions), "coordinator": None}
            for g in group
        ]
        offline = [{**g, "broker": None, "address": None} for g in computed]
        return show(env, Result({"groups": computed}, (Table(_COLUMNS[:2], offline),), "groups", group))
    with open_admin(env) as admin:
        groups = [asdict(coordinator) for coordinator in locate(admin, group)]
        unseen = may_not_see(admin, OFFSETS_TOPIC)
        where = identity(admin, env)
    rows = [
        {**g, "broker": g["coordinator"]["id"], "address": "{host}:{port}".format(**g["coordinator"])}
        for g in groups
    ]
    if unseen:
        rows = [{**row, "offsets_partition": UNKNOWN} for row in rows]
    names = [g["group_id"] for g in groups]
    return show(
        env,
        Result(
            {"groups": groups},
            (Table(_COLUMNS, rows),),
            "groups",
            names,
            errors=unseen,
            exit_code=of_seen(ExitCode.OK, unseen),
            cluster=where,
        ),
    )
