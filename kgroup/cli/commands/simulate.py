"""`kgroup simulate`: the cost of a scenario for a group of each kind, and the replay of a random run."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgroup.cli.declaring import option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make
from kgroup.cli.output.bars import bar
from kgroup.cli.output.pages import write_page
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.domain import CLASSIC, CONSUMER, count_of
from kgroup.durations import parse_duration
from kgroup.errors import BrokerRefused, ConfigError, DecodeError, KgroupError
from kgroup.simulation.play.scenario import MOST_MEMBERS, MOST_PARTITIONS, Scenario, find

if TYPE_CHECKING:
    from kgroup.simulation.play.planning import MakePush, Size

PUSH = "push"
PROTOCOLS = (CLASSIC, CONSUMER, PUSH)
SCENARIOS = (
    *("rolling-bounce", "scale-out", "scale-in", "az-loss", "deploy-canary", "failover", "upgrade"),
    *("scale-out-10", "zone-loss", "rolling-start"),
)
_TIMEOUTS = ("session.timeout", "heartbeat.interval")
_COLUMNS = (
    Column("protocol"),
    Column("static"),
    Column("members", right=True),
    Column("partitions", right=True),
    Column("rebalances", right=True),
    Column("assignments", right=True),
    Column("stop_the_world_ms", "STOP-THE-WORLD-MS", right=True),
    Column("unowned_partition_ms", "UNOWNED-PARTITION-MS", right=True),
    Column("partitions_moved", "MOVED", right=True),
    Column("duplicates", right=True),
    Column("commits_only_relaxed_check_accepted", "ONLY-RELAXED", right=True),
    Column("commits_both_checks_refused", "BOTH-REFUSED", right=True),
    Column("messages_per_member_minute", "MSGS/MIN", right=True),
    Column("simulated_ms", wide=True, right=True),
)
_EXPECTS = Column("expects")


@make(
    "simulate",
    examples=(
        ("kgroup simulate --members 200 --partitions 400", "a rolling bounce, for each kind of group"),
        ("kgroup simulate --scenario az-loss --session-timeout 10s", "a third of the members is lost"),
        ("kgroup simulate --scenario examples/simulate-friday.yaml -o json", "a scenario of your own"),
        ("kgroup simulate --scenario zone-loss --expecting", "the same with hot standbys"),
        ("kgroup simulate --like payments --html plan.html -b broker:9092", "as large as a live group"),
        ("kgroup simulate --seed 4711", "replay one of the random runs that test the coordinator"),
    ),
)
def command(
    env: Env,
    scenario: Annotated[
        str | None,
        option(
            "--scenario NAME|FILE",
            "|".join(SCENARIOS) + f", or a YAML file.  [default: {SCENARIOS[0]}]",
            autocompletion=lambda: SCENARIOS,
        ),
    ] = None,
    protocol: Annotated[
        str | None, option("--protocol NAME", "|".join(PROTOCOLS) + " only [default: all]")
    ] = None,
    static: Annotated[
        bool | None, option("--static/--dynamic", "Only static or only dynamic members [default: both]")
    ] = None,
    members: Annotated[
        int | None, option("--members N", "Members of the group.  [default: 12]", min=1, max=MOST_MEMBERS)
    ] = None,
    partitions: Annotated[
        int | None,
        option(
            "--partitions N",
            "Partitions that the group reads.  [default: 4 a member]",
            min=1,
            max=MOST_PARTITIONS,
        ),
    ] = None,
    session_timeout: Annotated[
        str | None, option("--session-timeout DURATION", "Session timeout of the members.  [default: 45s]")
    ] = None,
    expecting: Annotated[
        bool,
        option("--expecting", "Each kind again with registered ids, or with standbys where some stand by."),
    ] = False,
    like: Annotated[
        str | None, option("--like GROUP", "Take members, partitions and timeouts from a live group.")
    ] = None,
    html: Annotated[Path | None, option("--html FILE", "Also write an HTML page with charts.")] = None,
    seed: Annotated[int | None, option("--seed N", "Only replay the random run of this seed.", min=0)] = None,
) -> ExitCode:
    """Play a scenario on a simulated group of each kind, and say what it costs.

    kgroup's own coordinator and members run in virtual time; only --like asks a cluster.
    """
    if seed is not None:
        shaped = {
            "--scenario": scenario,
            "--protocol": protocol,
            "--static": static,
            "--members": members,
            "--partitions": partitions,
            "--session-timeout": session_timeout,
            "--like": like,
            "--html": html,
            "--expecting": expecting or None,
        }
        # A random run has its own groups and sizes: options it would ignore are refused.
        given = [name for name, value in shaped.items() if value is not None]
        if given:
            raise ConfigError(
                f"--seed replays a random run, which has its own groups: {', '.join(given)} would be ignored",
                "leave it out, or leave --seed out",
            )
        return _replay(env, seed)
    from kgroup.simulation.play.planning import compare

    chosen = find(scenario or SCENARIOS[0])
    size = _size(env, chosen, members, partitions, session_timeout, like)
    kinds = _kinds(protocol, static)
    with _marked(env), bar(env, "groups", len(kinds)) as done:
        results = []
        for kind in kinds:
            results += compare(chosen, size, [kind], expecting=expecting)
            done(1)
    if html is not None:
        from kgroup.simulation.play.picture import page

        title = f"{chosen.name}: {count_of(size.members, 'member')}, {count_of(size.partitions, 'partition')}"
        write_page(html, page(title, chosen.summary, results))
    rows = [{name: of for name, of in asdict(result).items() if name != "history"} for result in results]
    data = {"scenario": chosen.name, "results": rows, "run": None}
    names = [f"{row['protocol']}-{'static' if row['static'] else 'dynamic'}" for row in rows]
    columns = (*_COLUMNS[:2], _EXPECTS, *_COLUMNS[2:]) if expecting else _COLUMNS
    # What the group was set to expect beforehand.
    expects = [
        f"size {r.target_size}" if r.target_size is not None else "ids" if r.registered else None
        for r in results
    ]
    table = Table(columns, [{**row, "expects": said} for row, said in zip(rows, expects, strict=True)])
    return show(env, Result(data, (table,), "results", names))


@contextmanager
def _marked(env: Env) -> Iterator[None]:
    """Mark what the simulated brokers log: their disks fail on purpose."""
    log = logging.getLogger("kgroup")
    handler = logging.NullHandler() if env.quiet else logging.StreamHandler()
    handler.setFormatter(logging.Formatter("simulated: %(message)s"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _kinds(protocol: str | None, static: bool | None) -> "list[tuple[str | MakePush, bool]]":
    if protocol is not None and protocol not in PROTOCOLS:
        raise ConfigError(f"--protocol {protocol!r} is unknown", "one of " + ", ".join(PROTOCOLS))
    protocols = PROTOCOLS if protocol is None else (protocol,)
    if protocol == PUSH and static:
        raise ConfigError("--protocol push has no static members", "leave --static out")
    made: dict[str, str | MakePush] = {name: name for name in protocols}
    if PUSH in made and not static:
        from kgroup.zookeeper.entry.simulate import PushStage

        made[PUSH] = PushStage
    kinds = (False, True) if static is None else (static,)
    return [(made[name], kind) for name in protocols for kind in kinds if not (name == PUSH and kind)]


def _size(
    env: Env,
    scenario: Scenario,
    members: int | None,
    partitions: int | None,
    session_timeout: str | None,
    like: str | None,
) -> "Size":
    """Return the group's size: the options first, then the live group, then the scenario's file."""
    from kgroup.simulation.play.planning import Size

    seen = Live() if like is None else _live(env, like)
    how_many = members or seen.members or scenario.members or Size().members
    timeout_ms = seen.session_timeout_ms or scenario.session_timeout_ms or Size().session_timeout_ms
    if session_timeout is not None:
        timeout_ms = round(parse_duration(session_timeout) * 1000)
    if timeout_ms < 1000:
        raise ConfigError(f"a session timeout of {timeout_ms} ms is too short", "at least 1s")
    logs = partitions or seen.partitions or scenario.partitions or 4 * how_many
    if how_many > MOST_MEMBERS or logs > MOST_PARTITIONS:
        raise ConfigError(
            f"{count_of(how_many, 'member')} and {count_of(logs, 'partition')}: more than can be simulated",
            f"at most {MOST_MEMBERS} and {MOST_PARTITIONS}: --members and --partitions give less",
        )
    return Size(
        members=how_many,
        partitions=logs,
        session_timeout_ms=timeout_ms,
        consumer_heartbeat_interval_ms=seen.heartbeat_interval_ms or Size().consumer_heartbeat_interval_ms,
    )


@dataclass(frozen=True, slots=True)
class Live:
    """The size and timeouts a live group shows; None for those it does not show."""

    members: int | None = None
    partitions: int | None = None
    session_timeout_ms: int | None = None
    heartbeat_interval_ms: int | None = None


def _live(env: Env, group_id: str) -> Live:
    """Return a live group's number of members, their assigned partitions, and the timeouts it shows."""
    from kgroup.admin.migrate.evidence import logged
    from kgroup.admin.read.describe import groups_only
    from kgroup.admin.settings import group_settings

    with open_admin(env) as admin:
        group = groups_only(admin, [group_id])[group_id]
        if isinstance(group, KgroupError):
            raise group
        if not group.members:
            raise ConfigError(
                f"group {group_id} has no members to be like", "give --members and --partitions"
            )
        session = heartbeat = None
        with suppress(BrokerRefused, DecodeError):
            if group.type == CONSUMER:
                values = {setting.name: setting.value for setting in group_settings(admin, group_id)}
                texts = (values.get(f"consumer.{name}.ms") for name in _TIMEOUTS)
                session, heartbeat = (int(text) if text else None for text in texts)
            elif seen := logged(admin, group_id):
                # Each classic member brings a session timeout, which only the group's record shows.
                session = max(seen.session_timeouts.values(), default=None)
    counts = [member.partition_count for member in group.members]
    partitions = None if None in counts else sum(count or 0 for count in counts)
    return Live(len(group.members), partitions or None, session, heartbeat)


def _replay(env: Env, seed: int) -> ExitCode:
    """Play the seed again and print it as replay-log would; exit code 8 if an invariant broke."""

    from kgroup.simulation.play.chaos import run
    from kgroup.simulation.play.trace import text_of, trace

    with _marked(env):
        result = run(seed)
    lines = trace(result)
    violation = None if result.violation is None else str(result.violation)
    counted = result.world.brokers.counters
    accepted, refused = counted.commits_only_relaxed_check_accepted, counted.commits_both_checks_refused
    summary = (
        f"seed {seed}: {count_of(result.steps, 'step')}, {result.simulated_ms / 1000:.0f} "
        f"s, {result.fingerprint}"
    )
    commits = (
        f"KIP-1251: {count_of(accepted, 'commit')} only the relaxed check accepted, "
        f"{refused} both checks refused"
    )
    verdict = (
        "every invariant held" if violation is None else f"VIOLATION at step {result.steps}: {violation}"
    )
    events = [asdict(line) for line in lines]
    replayed = {
        "seed": seed,
        "steps": result.steps,
        "simulated_ms": result.simulated_ms,
        "fingerprint": result.fingerprint,
        "violation": violation,
        "commits_only_relaxed_check_accepted": accepted,
        "commits_both_checks_refused": refused,
        "events": events,
    }
    return show(
        env,
        Result(
            {"scenario": None, "results": [], "run": replayed},
            (*text_of(lines).split("\n"), summary, commits, verdict),
            "run.events",
            exit_code=ExitCode.OK if violation is None else ExitCode.BAD_VERDICT,
            main=Table((Column("at_ms"), Column("group_id"), Column("kind"), Column("detail")), events),
        ),
    )
