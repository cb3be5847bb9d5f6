"""`kgroup upgrade`: from the classic to the consumer protocol, known before it is done."""

from pathlib import Path
from typing import Annotated

from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, limit_of_many, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.changes import Execute, Yes
from kgroup.cli.frame.migration import (
    Interval,
    Patterns,
    ReadLog,
    execute_command,
    show_plan,
    watch_command,
)
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.inputs.locations import StorageOption
from kgroup.cli.output.result import show
from kgroup.cli.views.fleet import Question
from kgroup.cli.views.migration import planned
from kgroup.errors import ConfigError


@make(
    "upgrade plan",
    examples=(
        ("kgroup upgrade plan orders -b broker:9092", "exit code 4 when the broker would refuse"),
        ("kgroup upgrade plan orders --pattern 'orders-.*' --read-log", "patterns and session timeouts too"),
        ("kgroup upgrade plan orders -o json", "each check with its evidence"),
        (
            "kgroup upgrade plan --all-groups --html plan.html",
            "every group, the least effort first, as a page",
        ),
        ("kgroup upgrade plan orders --static --read-log", "instance ids, and a session that fits restarts"),
        ("kgroup upgrade plan --all-groups --waves waves.yaml", "the ready groups as waves for upgrade run"),
        (
            "kgroup upgrade plan --topic orders --contexts prod,staging",
            "the groups of a topic in two clusters",
        ),
    ),
)
def plan(
    env: Env,
    group: Annotated[list[str] | None, argument("[GROUP]…", "Group ids or globs.")] = None,
    pattern: Patterns = None,
    read_log: ReadLog = False,
    all_groups: Annotated[bool, option("--all-groups", "Every group of the cluster.")] = False,
    topic: Annotated[
        str | None,
        option("--topic TOPIC", "Only groups that subscribe to this topic, own it or have committed it."),
    ] = None,
    contexts: Annotated[
        str | None, option("--contexts A,B,…", "In these clusters of the config file, one after the other.")
    ] = None,
    html: Annotated[Path | None, option("--html FILE", "Write the plans as an HTML page too.")] = None,
    waves: Annotated[
        Path | None,
        option("--waves FILE", "Write the ready groups as waves for `upgrade run`, the least risky first."),
    ] = None,
    wave_size: Annotated[
        int | None, option("--wave-size N", "Groups in a wave (10); the first has one.", min=1)
    ] = None,
    static: Annotated[
        bool, option("--static", "Plan the move from dynamic to static members instead (KIP-345).")
    ] = False,
) -> ExitCode:
    """Say whether the broker would let the groups' clients move to the consumer protocol.

    The verdict holds at this moment: a rebalance can change it. Nothing is changed. For one group all checks
    are shown; for several (globs, --all-groups, --topic) one row each, the least effort first. Exit code 4
    when one is blocked. Groups with no consumer protocol to move to (Kafka Connect, Kafka Streams, share
    groups) are excluded and named.
    """
    question = Question(
        group or (), all_groups, topic, contexts, pattern or (), read_log, html, waves, wave_size
    )
    one = question.one_group
    if static:
        if one is None or pattern:
            raise ConfigError("--static is about one group", "name that group alone")
        from kgroup.admin.migrate.static import plan_static

        with open_admin(env, stop_after_s=limit_of_many(env) if read_log else None) as admin:
            return show(env, planned(plan_static(admin, one, read_log=read_log), identity(admin, env)))
    if one is not None:
        return show_plan(env, one, "upgrade", pattern, read_log)
    from kgroup.cli.frame.fleet import plan_many

    return plan_many(env, question)


@make(
    "upgrade rehearse",
    examples=(
        ("kgroup upgrade rehearse orders -b broker:9092", "on a copy of its records: nothing is changed"),
        ("kgroup upgrade rehearse --all-groups", "every group on its copy, each partition read once"),
        ("kgroup upgrade rehearse orders --files ./backup", "from segments, no broker needed"),
        (
            "kgroup upgrade rehearse orders --set group.consumer.migration.policy=upgrade",
            "as the broker would with another setting",
        ),
    ),
)
def rehearse(
    env: Env,
    group: Annotated[list[str] | None, argument("[GROUP]…", "Group ids or globs.")] = None,
    all_groups: Annotated[bool, option("--all-groups", "Every group of the cluster.")] = False,
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
    shows every record. For several groups (globs, --all-groups) one row each, with the plan's verdict. Exit
    code 4 if a copy refuses.
    """
    from kgroup.cli.frame.rehearsal import rehearse_copies

    return rehearse_copies(env, group or (), all_groups, files or [], setting or [], storage_option)


@make(
    "upgrade run",
    examples=(
        ("kgroup upgrade run waves.yaml -b broker:9092", "where it would begin or resume; changes nothing"),
        ("kgroup upgrade run waves.yaml --execute", "plan, hook, watch, check, next; again to resume"),
        ("kgroup upgrade run waves.yaml --execute --hook-again", "the hook again, after the fix"),
    ),
)
def run(
    env: Env,
    waves: Annotated[Path, argument("WAVES.yaml", "The waves; `upgrade plan --waves FILE` writes them.")],
    state: Annotated[
        Path | None, option("--state FILE", "Where the state is stored (WAVES.yaml.state.json).")
    ] = None,
    hook_again: Annotated[
        bool | None,
        option("--hook-again/--no-hook-again", "Run the hook of the wave that stopped again, or not."),
    ] = None,
    interval: Interval = "500ms",
    execute: Execute = False,
    yes: Yes = False,
) -> ExitCode:
    """Move a fleet in waves: plan each, run its hook, watch until all have moved, check, continue or stop.

    Without --execute it shows where it would begin or resume, and what blocks. Empty groups are converted;
    live ones change over by what the hook, or another tool, deploys. A wave stops the run when a group is
    blocked or unknown, the hook fails, nothing moves, or a rule is broken: then the way back is printed. The
    state is stored at each step and poll: the same command resumes, after Ctrl-C or a crash too.
    """
    from kgroup.cli.frame.upgrade_run import Order, run_waves

    return run_waves(env, Order(waves, state, execute, yes, hook_again, interval))


command = subcommands(
    "upgrade",
    "Move a group to the consumer protocol (KIP-848).",
    plan,
    execute_command("upgrade"),
    watch_command("upgrade"),
    run,
    rehearse,
)
