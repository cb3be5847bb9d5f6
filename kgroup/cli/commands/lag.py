"""`kgroup lag`: how far groups are behind, in records and in time."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

from kgroup.admin.models import ItemError
from kgroup.admin.read.lag_report import LagReport
from kgroup.cli.commands.describe import Sort, Top, pick_of
from kgroup.cli.env import rest as by_rest
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.rest import Rest, elsewhere
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.env.zookeeper import ZooKeeper, refuse
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.frame.declaring import argument, option
from kgroup.cli.frame.options import command as make
from kgroup.cli.inputs.group_names import Named, expand
from kgroup.cli.output.parts import Answer, Ending, Part, show_parts
from kgroup.cli.output.tables import Table
from kgroup.cli.output.wording import exit_codes, of_seen
from kgroup.cli.views.description import Pick, held_open, unstable
from kgroup.cli.views.lagging import (
    Limit,
    Verdict,
    columns_of,
    documents,
    headline,
    no_verdict,
    notes,
    over_limit,
    rows_of,
    verdict_of,
)
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError


@make(
    "lag",
    examples=(
        ("kgroup lag orders -b broker:9092", "partition by partition, with the member that reads it"),
        ("kgroup lag 'pay*' --by-topic --time", "per topic, and how old the oldest unread record is"),
        ("kgroup lag orders --top 10", "the ten partitions that are furthest behind"),
        ("kgroup lag orders --rate 10s", "does it catch up, and when"),
        ("kgroup lag orders --fail-above 5m -q", "exit code 8 when something waits longer than that"),
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
        str | None, option("--fail-above N|DURATION", "Exit with 8 when a group's lag is above this.")
    ] = None,
    sort: Sort = None,
    top: Top = None,
    zookeeper: ZooKeeper = None,
    rest: Rest = None,
) -> ExitCode:
    """Show how far groups are behind, partition by partition and in total.

    A total with an unknown part is shown as "at least". With --fail-above the unknown never passes: exit code
    8 when partitions of a subscribed topic have no commit, or one beyond the end of the log, 5 or 6 when
    partitions could not be read. Partitions that no longer exist are named and left out. A name with * ? [ is
    a pattern; '[*]' is the group called *.
    """
    pick = pick_of(sort, top)
    limit = _limit(fail_above) if fail_above is not None else None
    interval_s = parse_duration(rate) if rate is not None else None
    if interval_s == 0:
        raise ConfigError("--rate 0 measures nothing", "write 5s or 1m")
    in_time = time or bool(limit and limit["unit"] == "ms")
    other = elsewhere(env, zookeeper, rest, longer_s=interval_s or 0.0)
    refuse(zookeeper, time=(time, _NO_TIMES), fail_above=(in_time, _NO_TIMES))
    by_rest.refuse(rest, time=(time, _NO_TIMES_BY_REST), fail_above=(in_time, _NO_TIMES_BY_REST))
    if other is not None:
        with other as opened:
            named = expand(opened.groups, group)
            measured = opened.groups.lag(named.groups, interval_s)
            where = opened.identity()
        return Shown(env, limit, by_topic, in_time, where, named).show(iter([measured]), pick)
    with open_admin(env) as admin:
        named = expand(admin, group)
        shown = Shown(env, limit, by_topic, in_time, identity(admin, env), named)
        if interval_s is not None:  # all groups are looked at twice, the same time apart
            return shown.show(iter([admin.lag(named.groups, times=in_time, interval_s=interval_s)]), pick)
        return shown.show(admin.lag_each(named.groups, times=in_time), pick)


_NO_TIMES = "brokers of that age keep no times of records: a limit in records, as in --fail-above 1000"


_NO_TIMES_BY_REST = "REST tells no times of records: a limit in records, as in --fail-above 1000"


def _limit(text: str) -> "Limit":
    """A bare number is records here, not milliseconds."""
    if text.strip().isdigit():
        return {"limit": int(text), "unit": "records"}
    return {"limit": int(parse_duration(text) * 1000), "unit": "ms"}


class Shown:
    """Prints reports one after the other; BAD_VERDICT when a group is over the limit, whatever else failed.

    A verdict that cannot be given is not a good one: BAD_VERDICT too where only partitions without a commit,
    or with one beyond the end of the log, stand in its way; else what could not be read decides.
    """

    def __init__(
        self,
        env: Env,
        limit: Limit | None,
        by_topic: bool,
        in_time: bool,
        where: Mapping[str, object] | None,
        named: Named,
    ) -> None:
        self._env, self._by_topic, self._in_time = env, by_topic, in_time
        self._where, self._named = where, named
        self._limit = limit
        self._verdict: Verdict | None = {**limit, "over": [], "unknown": []} if limit else None
        self._told: list[ItemError] = []
        self._errors: list[ItemError] = []
        self._absent: list[ItemError] = []
        self._measured = 0

    def show(self, reports: Iterator[LagReport], pick: Pick) -> ExitCode:
        """Print them all, of each group the rows that `pick` takes; the exit code."""
        self._pick = pick
        return show_parts(self._env, Answer("groups", self._where), map(self._part, reports), self._ending)

    def _part(self, measured: LagReport) -> Part:
        self._measured += len(measured.groups)
        self._errors += measured.errors
        self._absent += (error for error in measured.errors if error.item in measured.missing)
        self._judge(measured)
        for group in measured.groups:
            for line in notes(group):
                self._env.note(line)
        return Part(
            documents=lambda: documents(measured.groups),
            blocks=lambda: self._blocks(measured),
            main=lambda: self._table(measured),
            names=lambda: (group.group_id for group in measured.groups),
        )

    def _judge(self, measured: LagReport) -> None:
        if self._verdict is None or self._limit is None:
            return
        found = verdict_of(measured, self._limit)
        by_id = {group.group_id: group for group in measured.groups}
        self._verdict["over"] += found["over"]
        self._verdict["unknown"] += found["unknown"]
        self._told += [over_limit(by_id[group_id], found) for group_id in found["over"]]
        self._told += [no_verdict(by_id[told["group_id"]], told) for told in found["unknown"]]

    def _blocks(self, measured: LagReport) -> list[str | Table]:
        table = self._table(measured)
        lines: list[str | Table] = [
            line for group in measured.groups for line in (headline(group), *held_open(group.offsets))
        ]
        if not table.rows:
            return lines
        rows = sum(len(list(rows_of(group, self._by_topic))) for group in measured.groups)
        left = [] if len(table.rows) == rows else [f"{len(table.rows)} of {rows} rows shown"]
        return [*lines, "", table, *left]

    def _table(self, measured: LagReport) -> Table:
        rated = any(group.consumed_per_s is not None for group in measured.groups)
        several = len(self._named.groups) > len(self._absent) + 1
        held = any(unstable(row) for group in measured.groups for row in group.offsets)
        columns = columns_of(self._by_topic, self._in_time, rated, several, held)
        rows = (self._pick(list(rows_of(group, self._by_topic))) for group in measured.groups)
        return Table(columns, [row for of_group in rows for row in of_group])

    def _ending(self) -> Ending:
        unseen: Iterable[ItemError] = self._named.unseen
        code = of_seen(of_batch(exit_codes(self._absent), bool(self._measured)), [*self._errors, *unseen])
        if self._verdict is not None:
            unknown = self._verdict["unknown"]
            if self._verdict["over"] or any(
                told["never_committed"] or told["beyond_end"] for told in unknown
            ):
                code = ExitCode.BAD_VERDICT
            elif unknown:
                code = code or ExitCode.PARTIAL
        return Ending(
            errors=[*self._errors, *unseen, *self._told],
            exit_code=code,
            data={"verdict": self._verdict},
        )
