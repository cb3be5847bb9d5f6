"""`kgroup lag`: how far groups are behind, in records and in time."""

from typing import TYPE_CHECKING, Annotated

from kgroup.cli.commands.describe import Sort, Top, pick_of
from kgroup.cli.declaring import argument, option
from kgroup.cli.env import rest as by_rest
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.rest import Rest, elsewhere
from kgroup.cli.env.session import identity, limit_of_many, open_admin
from kgroup.cli.env.zookeeper import ZooKeeper, refuse
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.group_names import expand
from kgroup.cli.inputs.locations import StorageOption
from kgroup.durations import duration_ms, parse_duration
from kgroup.errors import ConfigError
from kgroup.numbers import is_whole, whole_number

if TYPE_CHECKING:
    from kgroup.cli.views.lagging import Limit


@make(
    "lag",
    examples=(
        ("kgroup lag orders -b broker:9092", "partition by partition, with the member that reads it"),
        ("kgroup lag 'pay*' --by-topic --time", "per topic, and how old the oldest unread record is"),
        ("kgroup lag orders --top 10", "the ten partitions that are furthest behind"),
        ("kgroup lag orders --rate 10s", "does it catch up, and when"),
        ("kgroup lag orders --fail-above 5m -q", "exit code 8 when something waits longer than that"),
        ("kgroup lag orders --at 03:00 --files ./recording", "as it was at 03:00 UTC, by kgroup record"),
        ("kgroup lag orders --zookeeper zk:2181/kafka", "a group of Kafka 0.8 to 1.1"),
        ("kgroup lag orders --rest https://rest:8082", "by Confluent's REST API v3"),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str], argument("GROUP…", "Group ids or globs.")],
    by_topic: Annotated[bool, option("--by-topic", "One row per topic.")] = False,
    rate: Annotated[
        str | None, option("--rate DURATION", "Measure twice, this far apart, to show rates.")
    ] = None,
    time: Annotated[
        bool, option("--time", "Also show lag in time: the age of the oldest unread record.")
    ] = False,
    fail_above: Annotated[
        str | None,
        option(
            "--fail-above N|DURATION",
            "Exit with 8 when a group's lag is above this: 300 is records, 300s or 5m is time.",
        ),
    ] = None,
    at: Annotated[str | None, option("--at TIME", "As recorded at that time, UTC; with --files.")] = None,
    files: Annotated[
        list[str] | None, option("--files DIR|URL", "With --at: the recording of kgroup record.")
    ] = None,
    storage_option: StorageOption = None,
    sort: Sort = None,
    top: Top = None,
    zookeeper: ZooKeeper = None,
    rest: Rest = None,
) -> ExitCode:
    """Show how far groups are behind, partition by partition and in total.

    A total with an unknown part is shown as "at least". With --fail-above the unknown never passes: exit code
    8 when partitions of a subscribed topic have no commit, or one beyond the end of the log, 5 or 6 when
    partitions could not be read. Partitions that no longer exist are named and left out. A name with * ? [ is
    a pattern; '[*]' is the group called *. With --at, commits and ends are those of the recorder's last look;
    what none shows is unknown: 5.
    """
    from kgroup.admin.read.lag_report import measure, measure_each
    from kgroup.cli.views.lag_parts import Shown

    pick = pick_of(sort, top)
    limit: Limit | None = None
    if fail_above is not None and is_whole(fail_above):
        limit = {"limit": whole_number(fail_above, "--fail-above"), "unit": "records"}
    elif fail_above is not None:
        limit = {"limit": duration_ms(fail_above, "--fail-above"), "unit": "ms"}
    interval_s = parse_duration(rate) if rate is not None else None
    if interval_s == 0:
        raise ConfigError("--rate 0 measures nothing", "write 5s or 1m")
    in_time = time or bool(limit and limit["unit"] == "ms")
    if at is not None or files:
        if at is None or rate is not None or zookeeper is not None or rest is not None:
            hint = "leave out --rate, --zookeeper and --rest"
            raise ConfigError("--files with --at shows lag as it was recorded", hint)
        from kgroup.cli.inputs.recordings import recorded_at
        from kgroup.cli.views.recorded import lag_then

        past = recorded_at(env, at, files, storage_option, with_lag=True)
        return lag_then(env, group, past, limit, by_topic, in_time, pick)
    other = elsewhere(env, zookeeper, rest, longer_s=interval_s or 0.0)
    refuse(zookeeper, time=(time, _NO_TIMES), fail_above=(in_time, _NO_TIMES))
    by_rest.refuse(rest, time=(time, _NO_TIMES_BY_REST), fail_above=(in_time, _NO_TIMES_BY_REST))
    if other is not None:
        with other as opened:
            named = expand(opened.groups, group)
            measured = opened.groups.lag(named.groups, interval_s)
            where = opened.identity()
        return Shown(env, limit, by_topic, in_time, where, named).show(iter([measured]), pick)
    with open_admin(env, stop_after_s=limit_of_many(env)) as admin:
        named = expand(admin, group)
        shown = Shown(env, limit, by_topic, in_time, identity(admin, env), named)
        if interval_s is not None:  # all groups are polled twice, the same time apart
            return shown.show(
                iter([measure(admin, named.groups, times=in_time, interval_s=interval_s)]), pick
            )
        return shown.show(measure_each(admin, named.groups, times=in_time), pick)


_NO_TIMES = "brokers of that age keep no times of records: a limit in records, as in --fail-above 1000"


_NO_TIMES_BY_REST = "REST reports no times of records: a limit in records, as in --fail-above 1000"
