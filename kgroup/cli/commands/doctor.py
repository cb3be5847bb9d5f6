"""`kgroup doctor`: what is wrong with groups, and the evidence."""

from collections.abc import Sequence
from typing import Annotated

from kgroup.admin.statuses import LOOKS
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.config import LocalTarget
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, limit_of_many, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.group_names import every, expand
from kgroup.cli.inputs.locations import StorageOption
from kgroup.cli.output.result import show
from kgroup.cli.views.checkups import code_of, left_out_of, show_checkups
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError


@make(
    "doctor",
    examples=(
        ("kgroup doctor orders -b broker:9092", "who blocks, since when, what is about to be lost"),
        ("kgroup doctor 'pay*' -q || echo not healthy", "exit code 8 when a finding is an error"),
        ("kgroup doctor --all-groups --window 24h -o json", "with a day of history, for a script"),
        (
            "kgroup doctor orders --without history,settings",
            "with the right to see the group and its topics only",
        ),
        (
            "kgroup doctor orders --at 03:00 --files ./recording",
            "as it was at 03:00 UTC, by kgroup record",
        ),
        ("kgroup doctor --kafka 5", "what in the cluster stands against Kafka 5.0"),
        ("kgroup doctor orders --rights", "which commands this login can use on the group"),
        ("kgroup doctor orders --rights --for reset-offsets", "and the ACLs to ask for, as kafka-acls lines"),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str] | None, argument("[GROUP]…", "Group ids or globs.")] = None,
    all_groups: Annotated[bool, option("--all-groups", "Every group of the cluster.")] = False,
    at: Annotated[
        str | None,
        option("--at TIME", "As recorded at that time, UTC; with --files."),
    ] = None,
    files: Annotated[
        list[str] | None, option("--files DIR|URL", "With --at: the recording of kgroup record.")
    ] = None,
    storage_option: StorageOption = None,
    window: Annotated[str, option("--window DURATION", "How far back to read the history.")] = "1h",
    without: Annotated[
        str | None,
        option(
            "--without A,B,…", "Checks to leave out: " + ",".join(LOOKS) + ".", autocompletion=lambda: LOOKS
        ),
    ] = None,
    patience: Annotated[
        str,
        option(
            "--patience DURATION",
            "How long to look at a group that rebalances, or has offsets held open.",
        ),
    ] = "10s",
    top: Annotated[
        int | None, option("--top N", "Only the N worst findings of each group. Not in JSON.", min=1)
    ] = None,
    kafka: Annotated[
        str | None,
        option("--kafka RELEASE", "What stands against this release of Kafka (5)."),
    ] = None,
    rights: Annotated[bool, option("--rights", "Which commands this principal can use here.")] = False,
    for_: Annotated[
        list[str] | None,
        option("--for COMMAND", "With --rights: these only, and the ACLs to ask for."),
    ] = None,
    topic: Annotated[str | None, option("--topic TOPIC", "With --rights: for this topic only.")] = None,
    principal: Annotated[
        str | None, option("--principal TYPE:NAME", "With --rights: the principal to write into the ACLs.")
    ] = None,
) -> ExitCode:
    """Check groups: stuck rebalances, open transactions, absent members, lost and expiring offsets.

    A group is healthy (exit code 0) if everything was examined and no finding is an error; an error gives 8.
    Anything that could not be examined makes it unknown: 6 if rights are missing, 7 if no broker answers, 5
    otherwise, or if that is so for some groups only. Uses what describe shows, settings, and the history
    in __consumer_offsets.
    With --kafka 5 it checks the brokers and each group's plan instead: 8 if that release's default, the
    consumer protocol, would be refused.
    With --rights it checks what this principal may do: 6 if a command of --for lacks a right, 5 if unknown.
    """
    if at is not None or files:
        if at is None or kafka is not None or rights or without is not None:
            raise ConfigError(
                "--files with --at shows check-ups as they were recorded",
                "leave out --kafka, --rights and --without",
            )
        from kgroup.cli.inputs.recordings import recorded_at
        from kgroup.cli.views.recorded import examine_then

        _only_one(group, all_groups)
        return examine_then(env, group or (), recorded_at(env, at, files, storage_option), top)
    if kafka is not None:
        if rights:
            raise ConfigError("--kafka and --rights are two questions", "ask one after the other")
        return _against_release(env, kafka, group or ())
    if rights:
        return _rights(env, group or (), topic, for_ or (), principal)
    for option_, value in (("--for", for_), ("--topic", topic), ("--principal", principal)):
        if value is not None:
            raise ConfigError(f"{option_} is about rights", "add --rights")
    from kgroup.admin.diagnose.doctor import examine_all

    left_out = left_out_of(without)
    _only_one(group, all_groups)
    window_ms, patience_s = int(parse_duration(window) * 1000), parse_duration(patience)
    with open_admin(env, stop_after_s=limit_of_many(env)) as admin:
        named = every(admin) if all_groups else expand(admin, group or [])
        examined = examine_all(
            admin, named.groups, window_ms=window_ms, left_out=left_out, patience_s=patience_s
        )
        where = identity(admin, env)
    code = code_of(examined, named.unseen)
    return show_checkups(env, examined, named.unseen, code, top=top, left_out=left_out, cluster=where)


def _only_one(group: list[str] | None, all_groups: bool) -> None:
    """Raise ConfigError unless groups are named, or all are meant."""
    if bool(group) == all_groups:
        raise ConfigError("name the groups to check, or --all-groups", "kgroup list shows the groups")


def _against_release(env: Env, release: str, groups: Sequence[str]) -> ExitCode:
    """Show what blocks a release, of the cluster and of all groups, or of those named."""
    from kgroup.admin.migrate.fleet import plan_fleet
    from kgroup.admin.migrate.release import against_kafka_5
    from kgroup.cli.views.release import result_of

    if release not in ("5", "5.0"):
        raise ConfigError(f"--kafka {release!r} is unknown", "only: 5")
    with open_admin(env) as admin:
        named = expand(admin, groups) if groups else every(admin)
        fleet = plan_fleet(admin, named.groups)
        checks = against_kafka_5(admin, fleet)
        where = identity(admin, env)
    return show(env, result_of(checks, (*fleet.errors, *named.unseen), where))


def _rights(
    env: Env, groups: Sequence[str], topic: str | None, named: Sequence[str], another: str | None
) -> ExitCode:
    """Show what the principal of `env` can do, with a group or with it and its clone; changes nothing.

    `named` are the commands of interest, `another` the principal to write into the ACLs.
    """
    from kgroup.admin.rights.report import Asked, abilities
    from kgroup.cli.views.rights import chosen, result_of

    commands = chosen(named)
    if len(groups) > 2:
        raise ConfigError("--rights is about one group, or one and its clone", "name none for every group")
    group, clone = (*groups, None, None)[:2]
    asked = Asked(group, clone, topic)
    with open_admin(env) as admin:
        examined = abilities(admin, commands, asked)
        where = identity(admin, env)
    principal = another or _principal(env)
    result = result_of(examined, asked, principal, where, named=bool(named), for_another=another is not None)
    return show(env, result)


def _principal(env: Env) -> str | None:
    """Return the principal that brokers see; None where only they know, as with certificates and tokens."""
    from kgroup.client.auth.credentials import Password

    target = env.target()
    if isinstance(target, LocalTarget):
        return "User:ANONYMOUS"
    security = target.connection.security
    if security.protocol == "PLAINTEXT":
        return "User:ANONYMOUS"
    login = security.credentials
    # The owner of a delegation token differs from the token's id.
    return f"User:{login.username}" if isinstance(login, Password) and not login.is_token else None
