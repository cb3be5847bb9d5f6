"""`kgroup pipeline`: the history of every group as tables, made and asked by Spark."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.options import command as make
from kgroup.cli.options import group as make_group
from kgroup.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from kgroup.cli.output import Result
    from kgroup.pipeline.ingest import RunReport

_TABLES = typer.Argument(help="Folder that `pipeline run` has filled.", metavar="TABLES")
_MASTER = typer.Option(
    "--master", metavar="URL", help="Spark's master: local[4], spark://…, yarn. Default local[*]."
)
_CONF = typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark's; repeatable.")
_GROUP = typer.Option("--group", metavar="GROUP", help="Only this group.")


@make(
    "pipeline run",
    examples=(
        ("kgroup pipeline run ./backup --out ./tables", "read every segment below ./backup, fold all groups"),
        ("kgroup pipeline run ./backup --out ./tables --master spark://host:7077", "the same on a cluster"),
        ("kgroup pipeline run ./history --out ./tables --follow", "go on with what `capture` records"),
        ("kgroup pipeline run --out ./tables -b broker:9092 --follow", "the live topic, as it grows"),
    ),
)
def run(
    env: Env,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the tables.")],
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Segments, or folders searched through; the live topic if left out.", metavar="[SOURCE]…"
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME|OFFSET", help="Where the first run begins; the start if left out."
        ),
    ] = None,
    master: Annotated[str | None, _MASTER] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
    split_size: Annotated[
        int, typer.Option("--split-size", metavar="MB", help="What one task reads.", min=1)
    ] = 64,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes.")] = False,
    every: Annotated[
        str, typer.Option("--every", metavar="DURATION", help="How often --follow looks.")
    ] = "10s",
) -> ExitCode:
    """Read segments, or the live topic, into Parquet tables, and fold every group into events.

    Run it again, and only what is new is read; the fold goes on where it stopped. A run that is cut short
    changes nothing. Damaged segments are read around and reported.
    """
    import time

    from kgroup.cli.env import parse_duration
    from kgroup.cli.output import show
    from kgroup.cli.pipeline_session import opened_input, opened_spark
    from kgroup.pipeline.session import check_installed

    check_installed()
    from kgroup.pipeline.ingest import ingest
    from kgroup.pipeline.store import Store

    pause = max(0.1, parse_duration(every))
    source = opened_input(env, sources or [], since)
    with opened_spark(env, master, conf) as spark:
        while True:
            report = ingest(spark, source, Store(out), split_bytes=split_size << 20)
            if not follow:
                break
            if report.run is not None:
                env.note(_told(report))
            time.sleep(pause)
    return show(env, _run_result(Store(out), report))


def _told(report: "RunReport") -> str:
    if report.run is None:
        return "nothing new"
    rows = ", ".join(f"{count} {name}" for name, count in report.rows.items())
    return f"run {report.run}: {report.bytes_read} bytes in {report.splits} splits → {rows}"


def _run_result(store: Any, report: "RunReport") -> "Result":
    from kgroup.cli.history import coverage_json, coverage_text
    from kgroup.cli.output import ItemError, Result

    bad = store.bad_ranges()
    coverage = store.manifest.coverage(bad)
    data = {
        "run": report.run,
        "bytes_read": report.bytes_read,
        "bytes_written": report.bytes_written,
        "splits": report.splits,
        "rows": [{"table": name, "rows": count} for name, count in report.rows.items()],
        "coverage": [coverage_json(covered) for covered in coverage],
    }
    lines = [_told(report), *(coverage_text(covered) for covered in coverage)]
    errors = [ItemError("CORRUPT_MESSAGE", str(b), "what lies before and behind it was read") for _, b in bad]
    code = ExitCode.OK
    if bad:
        code = ExitCode.PARTIAL if coverage else ExitCode.FAILED
    return Result(data, ("\n".join(lines),), errors=errors, exit_code=code)


@make(
    "pipeline state",
    examples=(
        ("kgroup pipeline state ./tables --at 2026-03-01T03:00", "every group's offsets as they were then"),
        ("kgroup pipeline state ./tables --group orders -o csv", "one group, now"),
    ),
)
def state(
    env: Env,
    tables: Annotated[Path, _TABLES],
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="The moment; the end if left out.")
    ] = None,
    group: Annotated[str | None, _GROUP] = None,
    master: Annotated[str | None, _MASTER] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
) -> ExitCode:
    """Show the committed offsets of all groups at a moment."""
    from kgroup.cli.output import Result, show
    from kgroup.cli.pipeline_session import opened_spark, opened_store
    from kgroup.cli.tables import Column, Table
    from kgroup.cli.times import iso, parse_time

    time_ms = parse_time(at) if at else None
    store = opened_store(tables)
    from kgroup.pipeline.jobs import in_ms, state_at

    with opened_spark(env, master, conf) as spark:
        found = state_at(spark, store, time_ms)
        if group is not None:
            found = found.where(found.group_id == group)
        rows = [row.asDict() for row in in_ms(found.orderBy("group_id", "topic", "partition")).collect()]
    offsets = [
        {
            "group_id": row["group_id"],
            "topic": row["topic"],
            "partition": row["partition"],
            "committed_offset": row["offset"],
            "leader_epoch": row["leader_epoch"],
            "metadata": row["metadata"] or "",
            "commit_timestamp_ms": row["commit_ts"],
            "commit_timestamp": iso(-1 if row["commit_ts"] is None else row["commit_ts"]),
            "log_offset": row["log_offset"],
        }
        for row in rows
    ]
    columns = (
        Column("group_id", "GROUP"),
        Column("topic"),
        Column("partition", right=True),
        Column("committed_offset", "OFFSET", right=True),
        Column("commit_timestamp", "COMMITTED (UTC)"),
        Column("log_offset", right=True, wide=True),
        Column("metadata", wide=True),
    )
    data = {"at_ms": time_ms, "at": iso(time_ms) if time_ms is not None else None, "offsets": offsets}
    names = sorted({row["group_id"] for row in offsets})
    return show(env, Result(data, (Table(columns, offsets),), "offsets", names))


@make(
    "pipeline events",
    examples=(
        ("kgroup pipeline events ./tables --group orders", "the timeline of one group, without Spark"),
        ("kgroup pipeline events ./tables --kinds rewound,committed-unowned", "what an audit looks at"),
    ),
)
def events(
    env: Env,
    tables: Annotated[Path, _TABLES],
    group: Annotated[str | None, _GROUP] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="From this time on.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Up to this time.")] = None,
    kinds: Annotated[
        str | None, typer.Option("--kinds", metavar="A,B,…", help="Only these kinds of events.")
    ] = None,
) -> ExitCode:
    """Tell what happened to groups, as replay-log does, from tables that hold it already."""
    from kgroup.cli.history import Selection
    from kgroup.cli.history_views import show_story
    from kgroup.cli.pipeline_session import opened_store

    store = opened_store(tables)
    from kgroup.pipeline.replaying import as_story

    selection = Selection.of(groups=(group,) if group else (), since=since, until=until, kinds=kinds)
    return show_story(env, as_story(store, group), selection)


@make(
    "pipeline stats",
    examples=(
        ("kgroup pipeline stats ./tables --limit 10", "who writes most into the topic, and how often"),
    ),
)
def stats(
    env: Env,
    tables: Annotated[Path, _TABLES],
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="How many groups.", min=1)] = 20,
    master: Annotated[str | None, _MASTER] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
) -> ExitCode:
    """List the groups that write most: bytes, records, commits, tombstones, commits a minute."""
    from kgroup.cli.output import Result, show
    from kgroup.cli.pipeline_session import opened_spark, opened_store
    from kgroup.cli.tables import Column, Table

    store = opened_store(tables)
    from kgroup.pipeline.jobs import in_ms, top_writers

    with opened_spark(env, master, conf) as spark:
        found = [row.asDict() for row in in_ms(top_writers(spark, store).limit(limit)).collect()]
    rows = []
    for row in found:
        span = row.pop("last_ts") - row.pop("first_ts")
        rate = round(row["commits"] * 60_000 / span, 1) if span >= 1000 else None
        rows.append({**row, "commits_per_minute": rate})
    columns = (
        Column("group_id", "GROUP"),
        Column("bytes", right=True),
        Column("records", right=True),
        Column("commits", right=True),
        Column("commits_per_minute", "COMMITS/MIN", right=True),
        Column("tombstones", right=True),
    )
    names = [row["group_id"] for row in rows]
    return show(env, Result({"groups": rows}, (Table(columns, rows),), "groups", names))


@make(
    "pipeline plot",
    examples=(
        ("kgroup pipeline plot orders ./tables --out orders.html", "commit rate and rebalances over time"),
    ),
    has_json=False,
)
def plot(
    env: Env,
    group: Annotated[str, typer.Argument(help="The group.", metavar="GROUP")],
    tables: Annotated[Path, _TABLES],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page to write (.html).")],
    master: Annotated[str | None, _MASTER] = None,
    conf: Annotated[list[str] | None, _CONF] = None,
) -> ExitCode:
    """Draw a group over time: commits a minute, rebalances, members, suspicious commits."""
    from kgroup.cli.exit_codes import Failure
    from kgroup.cli.history import coverage_text
    from kgroup.cli.pipeline_session import opened_spark, opened_store

    if out.suffix != ".html":
        raise ConfigError(f"--out {out} is not an HTML file", "name it FILE.html")
    store = opened_store(tables)
    from kgroup.pipeline.jobs import commit_rates, in_ms
    from kgroup.pipeline.plot import page
    from kgroup.pipeline.story import story_in

    story = story_in(store, group)
    own = {event.log_partition for event in story.events if event.group == group}
    if not own:
        raise Failure(ExitCode.NOT_FOUND, "GROUP_ID_NOT_FOUND", f"no record of group {group} in {tables}")
    with opened_spark(env, master, conf) as spark:
        every = commit_rates(spark, store)
        rates = in_ms(every.where(every.group_id == group).orderBy("start")).collect()
    minutes = [(row.start, row.commits) for row in rates]
    remark = " · ".join(coverage_text(c) for c in story.coverage if c.partition in own)
    try:
        out.write_text(page(group, story.events, minutes, remark), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {out}: {error.strerror}") from None
    env.note(f"wrote {out}")
    return ExitCode.OK


@make(
    "pipeline package",
    examples=(
        ("kgroup pipeline package kgroup.zip", "for spark-submit --py-files kgroup.zip, and for notebooks"),
    ),
    has_json=False,
)
def package(
    env: Env,
    target: Annotated[Path, typer.Argument(help="The zip file to write.", metavar="FILE")],
) -> ExitCode:
    """Write kgroup as one zip file for Spark's executors; `pipeline run --master` ships it by itself."""
    from kgroup.pipeline.package import build_package

    try:
        build_package(target)
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror}") from None
    env.note(f"wrote {target}")
    return ExitCode.OK


_HELP = "The history of every group as tables, made and asked by Spark."
command = make_group("pipeline", _HELP, run, state, events, stats, plot, package)
