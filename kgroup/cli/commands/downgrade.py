"""`kgroup downgrade`: from the consumer protocol back to the classic one."""

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
    "downgrade plan",
    examples=(
        ("kgroup downgrade plan orders -b broker:9092", "exit code 4 when the group would not convert"),
        ("kgroup downgrade plan orders -o json", "each check with its evidence"),
    ),
)
def plan(env: Env, group: Group, pattern: Patterns = None, read_log: ReadLog = False) -> ExitCode:
    """Say whether the group would become classic again when its clients go back.

    The verdict is of this moment. Nothing is changed.
    """
    return show_plan(env, group, "downgrade", pattern, read_log)


@make(
    "downgrade execute",
    examples=(
        (
            "kgroup downgrade execute orders --yes",
            "an empty group: converted at once, offsets proven the same",
        ),
        (
            "kgroup downgrade execute orders --read-log",
            "a live group: whom to restart in which order, then watch",
        ),
        ("kgroup downgrade execute orders --no-watch -o json", "the order for a script"),
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
    """Convert an empty group to the classic protocol, or guide the roll of a live one.

    An empty group is joined and left once by a member of its own; offsets are read before and after. A live
    group is converted by restarting its clients: this prints the order and watches.
    """
    return run_execute(
        env,
        group,
        "downgrade",
        yes=yes,
        accept_unknown=accept_unknown,
        read_log=read_log,
        watching=watch,
        interval=interval,
        stuck_after=stuck_after,
    )


@make(
    "downgrade watch",
    examples=(
        ("kgroup downgrade watch orders", "who has moved, who remains, what holds it up"),
        (
            "kgroup downgrade watch orders --stuck-after 2m -o ndjson",
            "an object a change; exit code 8 when stuck",
        ),
    ),
)
def watch(env: Env, group: Group, interval: Interval = "500ms", stuck_after: StuckAfter = "5m") -> ExitCode:
    """Follow a roll to the classic protocol until all members have moved.

    Exit code 0 when done, 8 when nothing has changed for --stuck-after. Time without an owner is bounded by
    the looks before and after: shorter intervals tell it more closely.
    """
    from kgroup.cli.migration_watch import follow
    from kgroup.cli.session import open_admin

    with open_admin(env) as admin:
        return follow(env, admin, group, "downgrade", interval, stuck_after)


command = subcommands("downgrade", "Move a group back to the classic protocol.", plan, execute, watch)
