"""`kgroup upgrade`: from the classic to the consumer protocol, known before it is done."""

from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.migration import Group, Patterns, ReadLog, show_plan
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


command = subcommands("upgrade", "Move a group to the consumer protocol (KIP-848).", plan)
