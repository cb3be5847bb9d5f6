"""The migration commands that both directions share: plan, execute, watch."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.migrate.models import ALREADY, BLOCKED, UNKNOWN
from kgroup.admin.models import EMPTY
from kgroup.admin.read.conditions import raised
from kgroup.admin.read.visibility import unseen_offsets
from kgroup.cli.declaring import STOP_AFTER, argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, limit_of_many, open_admin, stop_after_s
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.changes import Consent, Yes, undo_line, with_undo
from kgroup.cli.frame.lazy import KgroupCommand
from kgroup.cli.frame.options import make
from kgroup.cli.output.result import show
from kgroup.cli.views.migration import NEXT, outcome, planned
from kgroup.durations import parse_duration

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView
    from kgroup.cli.views.migration_watch import Pace

Group = Annotated[str, argument("GROUP", "The group.")]
Patterns = Annotated[
    list[str] | None, option("--pattern REGEX", "A pattern the clients subscribe with; repeatable.")
]
ReadLog = Annotated[
    bool,
    option("--read-log", "Read the group's records too: session timeouts, leader (needs READ on the topic)."),
]
AcceptUnknown = Annotated[
    bool, option("--accept-unknown", "Go on even if something decisive is unknown, at your own risk.")
]
Watching = Annotated[bool, option("--watch/--no-watch", "Then watch the rolling restart of a live group.")]
Interval = Annotated[str, option("--interval DURATION", "Time between two polls.")]
StopAfter = Annotated[str | None, option(STOP_AFTER, "Stop watching after this long; exit code 7.")]
StuckAfter = Annotated[str, option("--stuck-after DURATION", "Exit with 8 after this long without a change.")]
_STREAMS = ("table", "wide", "ndjson")
"""The output formats that show a migration as it happens."""


def show_plan(
    env: Env, group: str, direction: str, patterns: Sequence[str] | None, read_log: bool
) -> ExitCode:
    """Make the plan and print it; REFUSED when it is blocked."""
    from kgroup.admin.migrate.plan import plan_migration

    with open_admin(env, stop_after_s=limit_of_many(env) if read_log else None) as admin:
        made = plan_migration(admin, group, direction, patterns=tuple(patterns or ()), read_log=read_log)
        where = identity(admin, env)
    return show(env, planned(made, where))


def execute_command(direction: str) -> KgroupCommand:
    """Return `upgrade execute` or `downgrade execute`: they differ by a word."""

    def execute(
        env: Env,
        group: Group,
        yes: Yes = False,
        accept_unknown: AcceptUnknown = False,
        read_log: ReadLog = False,
        watch: Watching = True,
        interval: Interval = "500ms",
        stuck_after: StuckAfter = "5m",
        stop_after: StopAfter = None,
    ) -> ExitCode:
        choices = Choices(yes, accept_unknown, read_log, watch, interval, stuck_after, stop_after)
        return _execute(env, group, direction, choices)

    new = NEXT[direction][1]
    execute.__doc__ = f"""Convert an empty group to the {new} protocol, or guide the restarts of a live one.

    kgroup joins and leaves an empty group once, and reads the offsets before and after. A live group is
    converted by restarting its clients: this prints the order and watches.
    """
    line = f"kgroup {direction} execute orders"
    examples = (
        (f"{line} --yes", "an empty group: converted at once, offsets proven the same"),
        (f"{line} --read-log", "a live group: the restart order, then watch"),
        (f"{line} --no-watch -o json", "the order for a script"),
    )
    return make(f"{direction} execute", examples=examples)(execute)


def watch_command(direction: str) -> KgroupCommand:
    """Return `upgrade watch` or `downgrade watch`."""

    def watch(
        env: Env,
        group: Group,
        interval: Interval = "500ms",
        stuck_after: StuckAfter = "5m",
        stop_after: StopAfter = None,
    ) -> ExitCode:
        from kgroup.cli.views.migration_watch import Pace

        with open_admin(env, stop_after_s=stop_after_s(stop_after)) as admin:
            return _follow(env, admin, group, direction, Pace(interval, stuck_after, stop_after))

    watch.__doc__ = f"""Follow a rolling restart to the {NEXT[direction][1]} protocol until all have moved.

    Exit code 0 when done, 8 when nothing has changed for --stuck-after, 7 at the end of --stop-after. How
    long partitions had no owner is known to within an --interval or two: a shorter one narrows it down.
    """
    stuck = f"kgroup {direction} watch orders --stuck-after 2m -o ndjson"
    examples = (
        (f"kgroup {direction} watch orders", "who has moved, who remains, what holds it up"),
        (stuck, "one object per change; exit code 8 when stuck"),
    )
    return make(f"{direction} watch", examples=examples)(watch)


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of `execute`."""

    yes: bool
    accept_unknown: bool
    read_log: bool
    watching: bool
    interval: str
    stuck_after: str
    stop_after: str | None


def _execute(env: Env, group: str, direction: str, choices: Choices) -> ExitCode:
    """Convert an empty group; for a live one print how to roll its clients, and watch that."""
    from kgroup.admin.migrate.evidence import gather
    from kgroup.admin.migrate.execute import convert_empty, roll_order
    from kgroup.admin.migrate.plan import plan_of
    from kgroup.admin.read.visibility import sees_every_topic
    from kgroup.cli.views.migration_watch import Pace

    ends_s = limit_of_many(env) if choices.read_log else None
    if choices.watching:
        ends_s = stop_after_s(choices.stop_after)
    with open_admin(env, stop_after_s=ends_s) as admin:
        gathered = gather(admin, group, read_log=choices.read_log)
        plan = plan_of(gathered, direction)
        where = identity(admin, env)
        unknown = plan.verdict == UNKNOWN and not choices.accept_unknown
        if unknown or plan.verdict in (BLOCKED, ALREADY):
            return show(env, outcome(plan, "none", where))
        if gathered.group.state == EMPTY:
            if not choices.accept_unknown and not sees_every_topic(admin):
                # Offsets are proven the same, or nothing is converted.
                raise raised(unseen_offsets(group))
            Consent(True, choices.yes).ask(
                env,
                planned(plan, where),
                f"convert the empty group {group} to the {NEXT[direction][1]} protocol?",
            )
            done = convert_empty(admin, plan)
            back = "downgrade" if direction == "upgrade" else "upgrade"
            result = outcome(plan, "converted", where, done)
            return show(env, with_undo(result, undo_line(env, f"{back} execute", group)))
        order = roll_order(gathered, direction)
        streams = choices.watching and env.output.format in _STREAMS
        code = ExitCode.OK
        if env.output.format != "ndjson" or not streams:
            code = show(env, outcome(plan, "roll", where, order=order))
        if not streams:
            return code
        pace = Pace(choices.interval, choices.stuck_after, choices.stop_after)
        return _follow(env, admin, group, direction, pace)


def _follow(env: Env, admin: "ClusterView", group: str, direction: str, pace: "Pace") -> ExitCode:
    """Watch the group: look by look, or for formats of one document its last look."""
    from kgroup.admin.migrate.watch import watch_migration
    from kgroup.cli.views.migration_watch import result_of, show_looks

    looks = watch_migration(
        admin,
        group,
        direction,
        interval_s=parse_duration(pace.interval),
        stuck_after_s=parse_duration(pace.stuck_after),
        stop_after_s=stop_after_s(pace.stop_after),
    )
    if env.output.format in _STREAMS:
        return show_looks(env, looks, pace)
    last = deque(looks, maxlen=1).pop()
    return show(env, result_of(last, pace, identity(admin, env)))
