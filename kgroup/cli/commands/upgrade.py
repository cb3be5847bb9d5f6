"""`kgroup upgrade`: from the classic to the consumer protocol, known before it is done."""

from typing import Annotated

from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.declaring import option
from kgroup.cli.frame.migration import Group, Patterns, ReadLog, execute_command, show_plan, watch_command
from kgroup.cli.frame.options import command as make
from kgroup.cli.frame.options import group as subcommands
from kgroup.cli.inputs.locations import StorageOption


@make(
    "upgrade plan",
    examples=(
        ("kgroup upgrade plan orders -b broker:9092", "exit code 4 when the broker would refuse"),
        ("kgroup upgrade plan orders --pattern 'orders-.*' --read-log", "patterns and session timeouts too"),
        ("kgroup upgrade plan orders -o json", "each check with its evidence"),
    ),
)
def plan(env: Env, group: Group, pattern: Patterns = None, read_log: ReadLog = False) -> ExitCode:
    """Say whether the broker would let the group's clients move to the consumer protocol.

    The verdict holds at this moment: a rebalance can change it. Nothing is changed.
    """
    return show_plan(env, group, "upgrade", pattern, read_log)


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
        list[str] | None, option("--files PATH", "Segment files, folders or URLs; repeatable.")
    ] = None,
    setting: Annotated[
        list[str] | None, option("--set KEY=VALUE", "A setting of the coordinator; repeatable.")
    ] = None,
    storage_option: StorageOption = None,
) -> ExitCode:
    """Upgrade a copy of the group and downgrade it again; show the verdict and each step.

    Copies the group's records from __consumer_offsets into a coordinator in memory. Clients are stand-ins:
    each is stopped before its successor starts, static ones first. --verbose also
    shows every record. Exit code 4 if the copy refuses.
    """
    from kgroup.cli.views.rehearsal import rehearse as perform

    return perform(env, group, files or [], setting or [], storage_option)


command = subcommands(
    "upgrade",
    "Move a group to the consumer protocol (KIP-848).",
    plan,
    execute_command("upgrade"),
    watch_command("upgrade"),
    rehearse,
)
