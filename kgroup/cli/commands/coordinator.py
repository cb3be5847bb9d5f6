"""`kgroup coordinator`: where a group lives."""

from typing import Annotated, Any

import typer

from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode, of_batch, of_error
from kgroup.cli.options import command as make
from kgroup.cli.output import ItemError, Result, show
from kgroup.cli.tables import Column, Table
from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of
from kgroup.errors import KgroupError

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
    group: Annotated[list[str], typer.Argument(help="Group ids.", metavar="GROUP…")],
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            help="Partitions of __consumer_offsets (offsets.topic.num.partitions): computed offline.",
        ),
    ] = None,
) -> ExitCode:
    """Show which broker and which partition of __consumer_offsets hold a group.

    With --partitions the partition is computed as the broker does it: abs(hash(group)) mod partitions.
    """
    if partitions is None:
        return _ask(env, group)
    groups = [
        {"group_id": g, "offsets_partition": offsets_partition_of(g, partitions), "coordinator": None}
        for g in group
    ]
    rows = [{**g, "broker": None, "address": None} for g in groups]
    return show(env, Result({"groups": groups}, (Table(_COLUMNS[:2], rows),), "groups", group))


def _ask(env: Env, group_ids: list[str]) -> ExitCode:
    from kgroup.admin.models import Node
    from kgroup.cli.session import identity, open_cluster

    groups: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    failed: dict[str, KgroupError] = {}
    with open_cluster(env) as cluster:
        found = cluster.coordinators(group_ids)
        offsets_topic = cluster.topics([OFFSETS_TOPIC])[OFFSETS_TOPIC]
        where = identity(cluster, env)
    partitions = None if isinstance(offsets_topic, KgroupError) else len(offsets_topic.partitions)
    for group_id, node in found.items():
        if not isinstance(node, Node):
            failed[group_id] = node
            continue
        partition = offsets_partition_of(group_id, partitions) if partitions else None
        groups.append(
            {
                "group_id": group_id,
                "offsets_partition": partition,
                "coordinator": {"id": node.id, "host": node.host, "port": node.port},
            }
        )
        rows.append({**groups[-1], "broker": node.id, "address": f"{node.host}:{node.port}"})
    return show(
        env,
        Result(
            {"groups": groups},
            (Table(_COLUMNS, rows),),
            items="groups",
            names=[g["group_id"] for g in groups],
            errors=[ItemError.of(error, item) for item, error in failed.items()],
            exit_code=of_batch([of_error(error) for error in failed.values()], bool(groups)),
            cluster=where,
        ),
    )
