"""`kgroup upgrade`: from the classic to the consumer protocol, known before it is done."""

from pathlib import Path
from typing import Annotated

import typer

from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.migration import (
    AcceptUnknown,
    Group,
    Interval,
    Patterns,
    ReadLog,
    StuckAfter,
    Watching,
    Yes,
    show_plan,
)
from kgroup.cli.migration import execute as run_execute
from kgroup.cli.options import command as make
from kgroup.cli.options import group as subcommands


@make(
    "upgrade plan",
    examples=(
        ("kgroup upgrade plan orders -b broker:9092", "exit code 4 when the broker would refuse"),
        ("kgroup upgrade plan orders --pattern 'orders-.*' --read-log", "patterns and session timeouts too"),
        ("kgroup upgrade plan orders -o json", "each check with its evidence"),
    ),
)
def plan(env: Env, group: Group, pattern: Patterns = None, read_log: ReadLog = False) -> ExitCode:
    """Say whether the broker would let the group's clients change to the consumer protocol.

    The verdict is of this moment: a rebalance can change it. Nothing is changed.
    """
    return show_plan(env, group, "upgrade", pattern, read_log)


@make(
    "upgrade execute",
    examples=(
        ("kgroup upgrade execute orders --yes", "an empty group: converted at once, offsets proven the same"),
        (
            "kgroup upgrade execute orders --read-log",
            "a live group: whom to restart in which order, then watch",
        ),
        ("kgroup upgrade execute orders --no-watch -o json", "the order for a script"),
    ),
)
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
    """Convert an empty group to the consumer protocol, or guide the roll of a live one.

    An empty group is joined and left once by a member of its own; offsets are read before and after. A live
    group is converted by restarting its clients: this prints the order and watches.
    """
    return run_execute(
        env,
        group,
        "upgrade",
        yes=yes,
        accept_unknown=accept_unknown,
        read_log=read_log,
        watching=watch,
        interval=interval,
        stuck_after=stuck_after,
    )


@make(
    "upgrade watch",
    examples=(
        ("kgroup upgrade watch orders", "who has moved, who remains, what holds it up"),
        (
            "kgroup upgrade watch orders --stuck-after 2m -o ndjson",
            "an object a change; exit code 8 when stuck",
        ),
    ),
)
def watch(env: Env, group: Group, interval: Interval = "500ms", stuck_after: StuckAfter = "5m") -> ExitCode:
    """Follow a roll to the consumer protocol until all members have moved.

    Exit code 0 when done, 8 when nothing has changed for --stuck-after. Time without an owner is bounded by
    the looks before and after: shorter intervals tell it more closely.
    """
    from kgroup.cli.migration_watch import follow
    from kgroup.cli.session import open_admin

    with open_admin(env) as admin:
        return follow(env, admin, group, "upgrade", interval, stuck_after)


@make(
    "upgrade rehearse",
    examples=(
        ("kgroup upgrade rehearse orders -b broker:9092", "on a copy of its records: nothing is changed"),
        ("kgroup upgrade rehearse orders --files ./backup", "from segments, no broker needed"),
        (
            "kgroup upgrade rehearse orders --set group.consumer.migration.policy=upgrade",
            "as the broker would with another setting",
        ),
    ),
)
def rehearse(
    env: Env,
    group: Group,
    files: Annotated[
        list[Path] | None,
        typer.Option("--files", metavar="PATH", help="Segment files or folders, no broker; repeatable."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the coordinator; repeatable."),
    ] = None,
) -> ExitCode:
    """Upgrade a copy of the group and take it back, and show every record and epoch.

    Copies the group's records from __consumer_offsets into a coordinator in memory. Clients are stand-ins:
    each is stopped before its successor starts, static ones first. Exit code 4 when the copy refuses.
    """
    from kgroup.cli.rehearsal import rehearse as perform

    return perform(env, group, files or [], setting or [])


command = subcommands(
    "upgrade", "Move a group to the consumer protocol (KIP-848).", plan, execute, watch, rehearse
)
