"""`kgroup replay-log`: the history of groups, from the live topic or from segment files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgroup.cli.declaring import STOP_AFTER, argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import LEAST_S, stop_after_s
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.history_spark import SPARK, chosen_engine, show_on_spark
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.history import opened
from kgroup.cli.inputs.history_selection import Selection, note_span, without_paths
from kgroup.cli.inputs.locations import Files, StorageOption
from kgroup.cli.output.times import offset_or_time
from kgroup.cli.views.history_verdict import show_verdict
from kgroup.cli.views.scenarios import WantedScenario, wanted_scenario
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.read.source import Source


@make(
    "replay-log",
    examples=(
        ("kgroup replay-log orders -b broker:9092", "who joined and left, rebalances and why, rewinds"),
        (
            "kgroup replay-log 'pay-*' --since 2026-03-01T02:00 --until 2026-03-01T04:00",
            "what happened at 03:00",
        ),
        (
            "kgroup replay-log orders --files ./backup --at 2026-03-01T03:00",
            "the group as it was then, no broker",
        ),
        (
            "kgroup replay-log orders --events rewound,committed-outside -o ndjson",
            "one JSON object per event",
        ),
        ("kgroup replay-log orders --scenario incident.yaml", "last night's incident, for a test to play"),
        ("kgroup replay-log orders --verify", "exit code 8 if the log and the cluster disagree"),
    ),
)
def command(
    env: Env,
    group: Annotated[
        list[str] | None, argument("[GROUP]…", "Group ids or globs; all groups by default.")
    ] = None,
    files: Files = None,
    since: Annotated[
        str | None, option("--since TIME", "From this time on, UTC (ISO, 03:00, or 2h ago).")
    ] = None,
    until: Annotated[str | None, option("--until TIME", "Up to this time, UTC.")] = None,
    at: Annotated[
        str | None, option("--at TIME|OFFSET", "The state at that moment, as describe shows it.")
    ] = None,
    events: Annotated[str | None, option("--events A,B,…", "Only these kinds of events.")] = None,
    instance: Annotated[
        list[str] | None, option("--instance ID", "Only events about this instance id.")
    ] = None,
    group_glob: Annotated[
        list[str] | None, option("--group GLOB", "Same as the argument; repeatable.", hidden=True)
    ] = None,
    raw: Annotated[bool, option("--raw", "Every record, decoded.")] = False,
    follow: Annotated[bool, option("--follow -f", "Keep reading as new records arrive.")] = False,
    stop_after: Annotated[str | None, option(STOP_AFTER, "With --follow.")] = None,
    verify: Annotated[bool, option("--verify", "Compare with the cluster's state now.")] = False,
    collapse_commits: Annotated[
        bool, option("--collapse-commits/--all-commits", "Show runs of commits as one line.")
    ] = True,
    engine: Annotated[
        str | None, option("--engine NAME", "auto|local|spark; auto uses Spark for very large inputs.")
    ] = None,
    master: Annotated[str | None, option("--master URL", "Spark's master.  [default: local[*]]")] = None,
    html: Annotated[Path | None, option("--html FILE", "Write the timeline as an HTML page.")] = None,
    scenario: Annotated[
        Path | None, option("--scenario FILE", "Write one group's story as YAML for tests.")
    ] = None,
    replace_names: Annotated[
        bool, option("--replace-names", "With --scenario: other names for all it names.")
    ] = False,
    storage_option: StorageOption = None,
) -> ExitCode:
    """Show what happened to groups: members, rebalances and their causes, commits, rewinds, deletions.

    Reads __consumer_offsets. The topic is compacted, so every answer says from which point on it is complete.
    """
    from kgroup.cli.views import history as views

    group, files = without_paths(group or (), files or ())
    modes = sum(map(bool, (at, raw, follow, verify, scenario)))
    if engine == SPARK and (modes or not files):
        raise ConfigError("--engine spark prints the timeline of --files", "leave it out for all else")
    if stop_after is not None and not follow:
        raise ConfigError("--stop-after ends --follow", "leave it out; --timeout ends all else")
    if modes > 1:
        raise ConfigError("--at, --raw, --follow, --verify and --scenario exclude each other")
    if files and (follow or verify):
        raise ConfigError("--files has no cluster to follow or to compare with", "leave --files out")
    selection = Selection.of(
        groups=(*group, *(group_glob or ())),
        since=since,
        until=until,
        kinds=events,
        instances=tuple(instance or ()),
        collapse=collapse_commits,
    )
    requested = wanted_scenario(selection, scenario, replace_names=replace_names)
    note_span(env, selection)
    ends_s = stop_after_s(stop_after) if follow else None
    with opened(env, files, selection, storage_option, ends_s) as source:
        if raw:
            from kgroup.admin.read.stored import stored

            return views.show_raw(env, stored(source, selection), selection)
        if follow:
            from kgroup.admin.read.following import follow as news

            return views.show_news(env, news(source, selection, env.limit.left() - LEAST_S), selection)
        if verify:
            from kgroup.admin.read.verifying import compare

            return show_verdict(env, compare(source, selection), selection, source.cluster)
        if at is not None:
            from kgroup.history.replay import At

            moment = At(*offset_or_time(at))
            return views.show_state(env, source.replay(selection, moment), selection, moment, source.cluster)
        if chosen_engine(env, engine, source, plain=not (html or requested) and collapse_commits) == SPARK:
            return show_on_spark(env, files, selection, master, storage_option)
        return _show_timeline(env, source, selection, html, requested)


def _show_timeline(
    env: Env, source: "Source", selection: Selection, html: Path | None, scenario: WantedScenario | None
) -> ExitCode:
    """Show events in order, with what is complete; and, if requested, as a page and as a scenario."""
    from kgroup.cli.views.history import show_story

    story = source.replay(selection, keep_owners=html is not None, keep_notes=scenario is not None)
    if scenario is not None:
        scenario.write(env, story, selection)
    return show_story(env, story, selection, html, source.cluster)
