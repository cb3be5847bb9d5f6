"""`kgroup downgrade`: from the consumer protocol back to the classic one."""

from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.migration import Group, Patterns, ReadLog, execute_command, show_plan, watch_command
from kgroup.cli.frame.options import make, subcommands


@make(
    "downgrade plan",
    examples=(
        ("kgroup downgrade plan orders -b broker:9092", "exit code 4 when the group would not convert"),
        ("kgroup downgrade plan orders -o json", "each check with its evidence"),
    ),
)
def plan(env: Env, group: Group, pattern: Patterns = None, read_log: ReadLog = False) -> ExitCode:
    """Say whether the group would become classic again if its clients went back.

    The verdict holds at this moment. Nothing is changed.
    """
    return show_plan(env, group, "downgrade", pattern, read_log)


command = subcommands(
    "downgrade",
    "Move a group back to the classic protocol.",
    plan,
    execute_command("downgrade"),
    watch_command("downgrade"),
)
