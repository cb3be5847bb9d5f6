"""`kgroup pipeline`: the history of every group as tables, made and asked by Spark."""

import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.models import ItemError
from kgroup.admin.refusals import code_name
from kgroup.cli.commands.pipeline_sql import sql, vacuum
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.inputs.history import before_the_log, coverage_text
from kgroup.cli.inputs.history_selection import Selection, note_span
from kgroup.cli.inputs.locations import StorageOption, storage_options
from kgroup.cli.inputs.pipeline_session import LOCAL, asked, opened_input, opened_spark, opened_store
from kgroup.cli.output.bars import bar
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.times import parse_time
from kgroup.cli.views.events import coverage_json
from kgroup.cli.views.pipeline_plot import drawing_for
from kgroup.cli.views.pipeline_rows import query_result
from kgroup.domain import TopicPartition, count_of
from kgroup.durations import parse_duration
from kgroup.errors import StorageError
from kgroup.pipeline.spark.package import build_package

if TYPE_CHECKING:
    from kgroup.pipeline.ask.timeline import Ends
    from kgroup.pipeline.tables.ingest import RunReport
    from kgroup.pipeline.tables.store import Store

_TABLES = argument("TABLES", "Tables filled by `pipeline run`: a folder or a URL.")
_MASTER = option("--master URL", "Spark's master: local[4], spark://…, yarn.  [default: local[*]]")
_ASKED = option(
    "--master URL",
    "Let Spark answer, on this master: local[4], spark://…, yarn.  [default: DuckDB answers, here]",
)
_CONF = option("--conf KEY=VALUE", "A Spark setting; repeatable.")
_REMOTE = option("--remote URL", "A Spark Connect server (sc://HOST:15002) that answers instead.")
_GROUP = option("--group GROUP", "Only this group.")


@make(
    "pipeline run",
    examples=(
        ("kgroup pipeline run ./backup --out ./tables", "read every segment below ./backup, fold all groups"),
        ("kgroup pipeline run ./backup --out ./tables --master spark://host:7077", "the same on a cluster"),
        (
            "kgroup pipeline run s3://kafka --out ./t --storage-option AWS_REGION=eu-west-1",
            "a backup in an object store",
        ),
        ("kgroup pipeline run ./history --out ./tables --follow", "continue with what `capture` records"),
        ("kgroup pipeline run --out ./tables -b broker:9092 --follow", "the live topic, as it grows"),
    ),
)
def run(
    env: Env,
    out: Annotated[str, option("--out DIR|URL", "Where the tables are.")],
    sources: Annotated[
        list[str] | None,
        argument(
            "[SOURCE]…", "Segment files, or folders to search, or URLs of them; by default the live topic."
        ),
    ] = None,
    since: Annotated[
        str | None, option("--since TIME|OFFSET", "Where the first run begins; by default the start.")
    ] = None,
    master: Annotated[str | None, _MASTER] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
    split_size: Annotated[
        int | None,
        option("--split-size MB", "What one task reads; 16 to 512 by the size of the input.", min=1),
    ] = None,
    follow: Annotated[bool, option("--follow -f", "Keep reading as new records arrive.")] = False,
    every: Annotated[str, option("--every DURATION", "How often --follow looks.")] = "10s",
    storage_option: StorageOption = None,
) -> ExitCode:
    """Read segments, or the live topic, into tables (Delta Lake), and fold every group into events.

    Run it again to read only what is new; folding continues where it stopped. A run that is cut short
    changes nothing. Damaged ranges are skipped and reported.
    """

    from kgroup.pipeline.spark.session import check_installed, is_local

    check_installed()
    from kgroup.pipeline.spark.following import follow as keep_following
    from kgroup.pipeline.spark.following import passes_by_itself
    from kgroup.pipeline.tables.delta import Overtaken
    from kgroup.pipeline.tables.ingest import ingest
    from kgroup.pipeline.tables.store import Store

    pause = max(0.1, parse_duration(every))
    source = opened_input(env, sources or [], since, storage_option)
    options = storage_options(env, storage_option)
    Store(out, options).check_free()
    noted = set[str]()
    with opened_spark(env, master, conf, sql=False) as context:

        def once() -> "RunReport":
            inputs = source.looked_at()
            for note in inputs.notes:
                if note not in noted:
                    noted.add(note)
                    env.note(note)
            return ingest(context, inputs, Store(out, options), split_bytes=split_size and split_size << 20)

        if follow:
            keep_following(
                once,
                pause_s=pause,
                report=_Notes(env),
                note=env.note,
                sleep=time.sleep,
                # `pipeline vacuum` may run at the same time.
                passes=passes_by_itself(context, Overtaken),
            )
        report = once()
    return show(env, _run_result(Store(out, options), report, hosts=not is_local(master or LOCAL)))


@dataclass(slots=True)
class _Notes:
    """Notes on each run that added something, and on each partition that begins to wait or lacks records."""

    env: Env
    noted: frozenset[str] = frozenset()

    def __call__(self, report: "RunReport") -> None:
        if report.run is not None:
            self.env.note(_summary(report))
        said = [str(item) for item in (*report.waiting, *report.late)]
        for text in said:
            if text not in self.noted:
                self.env.note(text)
        self.noted = frozenset(said)


def _summary(report: "RunReport") -> str:
    if report.run is None:
        return "nothing new"
    rows = ", ".join(f"{count} {name}" for name, count in report.rows.items())
    return f"run {report.run}: {report.bytes_read} bytes in {report.splits} splits → {rows}"


def _run_result(store: "Store", report: "RunReport", hosts: bool) -> Result:
    """Return a run's result; `hosts` adds in words which kgroup its hosts ran."""
    bad = store.bad_ranges()
    shared = store.manifest.delivery_coverage()
    coverage = [*store.manifest.coverage(bad), *shared]
    data = {
        "run": report.run,
        "bytes_read": report.bytes_read,
        "bytes_written": report.bytes_written,
        "splits": report.splits,
        "rows": [{"table": name, "rows": count} for name, count in report.rows.items()],
        "coverage": [coverage_json(covered) for covered in coverage],
        "workers": [
            {"host": worker.host, "kgroup": worker.home, "loops": worker.loops} for worker in report.workers
        ],
    }
    ran = [f"{w.host} ran {w.home}: {w.loops}" for w in report.workers if hosts]
    lines = [_summary(report), *ran, *(coverage_text(covered) for covered in coverage)]
    damaged = [*(damage for _, damage in bad), *(damage for covered in shared for damage in covered.bad)]
    errors = [ItemError("", b.code, str(b), "what comes before and after it was read") for b in damaged]
    errors += [ItemError("", "CORRUPT_MESSAGE", str(w), _WAITING) for w in report.waiting]
    errors += [ItemError("", "OFFSET_OUT_OF_RANGE", str(late), _LATE) for late in report.late]
    errors += [
        ItemError(
            "", code_name(error), f"deliveries of share groups: {partition}: {error.message}", error.hint
        )
        for partition, error in report.unread
    ]
    code = ExitCode.OK
    if errors:
        code = ExitCode.PARTIAL if coverage else ExitCode.FAILED
    return Result(data, lines, errors=errors, exit_code=code)


_LATE = "read all segments into a new folder to have them; take this one out to leave them missing"
_WAITING = "run again when the file is whole; if it stays so, remove it: what it lacks counts as missing"


@make(
    "pipeline query",
    examples=(
        ("kgroup pipeline query state_at ./tables --at 2026-03-01T03:00", "all offsets as they were then"),
        (
            "kgroup pipeline query members ./tables --group 'pay-*' -o csv",
            "who was a member from when to when",
        ),
        (
            "kgroup pipeline query rebalances ./tables --group orders",
            "when, why, and how long without an owner",
        ),
        ("kgroup pipeline query top_writers ./tables --limit 10", "who writes most into the topic"),
        ("kgroup pipeline query coverage ./tables", "what is complete from where"),
    ),
)
def query(
    env: Env,
    table: Annotated[str, argument("TABLE", "One of the tables; kgroup docs pipeline lists them.")],
    tables: Annotated[str, _TABLES],
    group: Annotated[str | None, option("--group GLOB", "Only groups whose id matches.")] = None,
    at: Annotated[
        str | None,
        option("--at TIME", "The moment (UTC) that state_at and members show; by default the end, or all."),
    ] = None,
    limit: Annotated[int, option("--limit N", "Print at most this many rows; 0 prints all.", min=0)] = 1000,
    master: Annotated[str | None, _ASKED] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
    storage_option: StorageOption = None,
    remote: Annotated[str | None, _REMOTE] = None,
) -> ExitCode:
    """Ask the tables: state_at, members, rebalances, top_writers, suspicious_commits, coverage, and others.

    Rows come in a fixed order; a note says if --limit left some out. DuckDB answers in this process; with
    --master, --conf or --remote Spark does.
    """
    at_ms = parse_time(at) if at else None
    by_spark = bool(master or conf or remote)
    store = opened_store(env, tables, storage_option, *(("pyspark",) if by_spark else ("duckdb",)))
    from kgroup.pipeline.ask.jobs import IN_MANIFEST, only_group, query_named, question, rows_in_manifest

    query = query_named(table, group, at_ms)
    if table in IN_MANIFEST:
        rows = rows_in_manifest(store, table)
    else:
        with asked(env, store, master, conf, remote) as ask:
            rows = ask(question(table, group, at_ms, limit and limit + 1))
    more = 0 < limit < len(rows)
    if more:
        env.note(f"there are more than {count_of(limit, 'row')}; --limit 0 shows all")
    result = query_result(table, query.schema, rows[:limit] if more else rows, at_ms, more)
    unknown = [] if at_ms is None else _unknown_then(store, only_group(group), at_ms)
    code = ExitCode.PARTIAL if unknown else ExitCode.OK
    return show(env, replace(result, errors=unknown, exit_code=code))


def _unknown_then(store: "Store", group: str | None, at_ms: int) -> list[ItemError]:
    """Return an error for each partition that the query reads and that begins after the moment."""
    parts = None if group is None else store.manifest.parts_of(group)
    return [
        before_the_log(part, first_offset, first_ms)
        for part, first_offset, first_ms in store.manifest.beginnings()
        if first_offset > 0 and at_ms < first_ms and (parts is None or part in parts)
    ]


@make(
    "pipeline events",
    examples=(
        ("kgroup pipeline events ./tables --group orders", "the timeline of one group, without Spark"),
        ("kgroup pipeline events ./tables --kinds rewound,committed-unowned", "what an audit looks at"),
    ),
)
def events(
    env: Env,
    tables: Annotated[str, _TABLES],
    group: Annotated[str | None, _GROUP] = None,
    since: Annotated[str | None, option("--since TIME", "From this time on, UTC.")] = None,
    until: Annotated[str | None, option("--until TIME", "Up to this time, UTC.")] = None,
    kinds: Annotated[str | None, option("--kinds A,B,…", "Only these kinds of events.")] = None,
    storage_option: StorageOption = None,
) -> ExitCode:
    """Show what happened to groups, as replay-log does, from existing tables."""
    from kgroup.cli.views.history import show_story

    store = opened_store(env, tables, storage_option)
    from kgroup.pipeline.ask.replaying import as_story

    selection = Selection.of(groups=(group,) if group else (), since=since, until=until, kinds=kinds)
    note_span(env, selection)
    # A name is looked up in the tables; the selection interprets patterns.
    (named,) = selection.names or (None,)
    return show_story(env, as_story(store, named), selection)


@make(
    "pipeline plot",
    examples=(
        ("kgroup pipeline plot orders ./tables --out orders.html", "commit rate and rebalances over time"),
        (
            "kgroup pipeline plot orders ./tables --out orders.png -b broker:9092",
            "with the distance from the logs' ends, as a picture",
        ),
    ),
    has_json=False,
)
def plot(
    env: Env,
    group: Annotated[str, argument("GROUP", "The group.")],
    tables: Annotated[str, _TABLES],
    out: Annotated[Path, option("--out FILE", "What to write: .html or .png.")],
    master: Annotated[str | None, _ASKED] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
    storage_option: StorageOption = None,
) -> ExitCode:
    """Draw a group over time: commits, rebalances, members, suspicious commits.

    When a cluster is named (-b, --context or --local), it also draws how far each commit was from the end of
    its log now: the lag was at most that. The ends of logs are not in this topic.
    """
    write = drawing_for(out)
    store = opened_store(env, tables, storage_option, *(("pyspark",) if master or conf else ("duckdb",)))
    from kgroup.pipeline.ask.recorded_timeline import timeline_in

    # Spark has a bar of its own.
    own = nullcontext() if master or conf else bar(env, "reading the tables", None)
    with asked(env, store, master, conf) as ask, own:
        shown, covered = timeline_in(store, group, ask, _log_ends_of(env))
    shown = replace(shown, remark=" · ".join(map(coverage_text, covered)))
    try:
        write(shown, out)
    except OSError as error:
        raise StorageError(f"cannot write {out}: {error.strerror}") from None
    env.note(f"wrote {out}")
    return ExitCode.OK


def _log_ends_of(env: Env) -> "Callable[[Iterable[TopicPartition]], Ends] | None":
    """Return a reader of log ends from the cluster that a flag names; None without such a flag.

    The current context may be another cluster than that of the tables.
    """
    if not {"bootstrap_server", "context", "local"} & set(env.flags):
        return None
    from kgroup.pipeline.ask.recorded_timeline import log_ends

    def ends(places: Iterable[TopicPartition]) -> "Ends":
        with open_admin(env) as admin:
            return log_ends(admin, places)

    return ends


@make(
    "pipeline package",
    examples=(
        ("kgroup pipeline package kgroup.zip", "for spark-submit --py-files kgroup.zip, and for notebooks"),
    ),
    has_json=False,
)
def package(env: Env, target: Annotated[Path, argument("FILE", "The zip file to write.")]) -> ExitCode:
    """Write kgroup as one zip file for Spark's executors; `pipeline run --master` ships it automatically."""
    try:
        build_package(target)
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror}") from None
    env.note(f"wrote {target}")
    return ExitCode.OK


_HELP = "Turn the history of every group into tables, and query them, with Spark."
command = subcommands("pipeline", _HELP, run, query, sql, events, plot, vacuum, package)
