"""`kgroup pipeline sql`, and the upkeep of tables, `vacuum`."""

from typing import Annotated

from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.locations import StorageOption
from kgroup.cli.inputs.pipeline_session import opened_spark, opened_store
from kgroup.cli.output.result import Result, show
from kgroup.cli.views.pipeline_rows import sql_result
from kgroup.domain import count_of
from kgroup.durations import parse_duration


@make(
    "pipeline sql",
    examples=(
        (
            "kgroup pipeline sql 'select * from top_writers order by bytes desc' ./tables",
            "who writes most into the topic",
        ),
        (
            "kgroup pipeline sql \"select * from state_at(timestamp '2026-03-01')\" ./tables",
            "all committed offsets as they were then",
        ),
    ),
)
def sql(
    env: Env,
    question: Annotated[str, argument("SELECT", "One SELECT, as DuckDB takes it.")],
    tables: Annotated[str, argument("TABLES", "Tables filled by `pipeline run`.")],
    limit: Annotated[int, option("--limit N", "Print at most this many rows; 0 prints all.", min=0)] = 1000,
    storage_option: StorageOption = None,
) -> ExitCode:
    """Ask the tables in SQL, without Spark and Java; `kgroup docs sql` answers ten questions of an incident.

    There are commits, control, markers, batches, bad_ranges, events, deliveries, members, rebalances,
    top_writers, commit_rates, suspicious_commits, coverage, runs, and state_at(TIME). They can be read, and
    nothing else.
    """
    store = opened_store(env, tables, storage_option, "duckdb")
    from kgroup.pipeline.ask.sql import answered

    answer = answered(store, question, limit)
    if answer.more:
        env.note(f"there are more than {count_of(limit, 'row')}; --limit 0 shows all")
    return show(env, sql_result(answer.schema, answer.rows, answer.more))


@make(
    "pipeline vacuum",
    examples=(("kgroup pipeline vacuum ./tables --keep 30d", "what readers of the last 30 days need stays"),),
)
def vacuum(
    env: Env,
    tables: Annotated[str, argument("TABLES", "Tables filled by `pipeline run`.")],
    keep: Annotated[str, option("--keep DURATION", "How old a version can be and be read.")] = "30d",
    master: Annotated[
        str | None, option("--master URL", "Spark's master, whose tasks make the files; else this process.")
    ] = None,
    conf: Annotated[list[str] | None, option("--conf KEY=VALUE", "A Spark setting; repeatable.")] = None,
    storage_option: StorageOption = None,
) -> ExitCode:
    """Make small files into larger ones, and delete those that no version of the last days needs.

    What killed runs have left goes too. Readers of a version that is younger than --keep lose nothing.
    """
    store = opened_store(env, tables, storage_option)
    from kgroup.pipeline.spark.workers import InProcess, Shuffle
    from kgroup.pipeline.tables.upkeep import vacuum as done

    hours = int(parse_duration(keep) // 3600)
    if master is None and not conf:
        result = done(store, hours, InProcess())
    else:
        with opened_spark(env, master, conf, sql=False) as context:
            result = done(store, hours, Shuffle(context))
    data = {"files_before": result.before, "files_after": result.after, "deleted": result.deleted}
    line = (
        f"{count_of(result.before, 'file')} of rows became {result.after}; "
        f"{count_of(result.deleted, 'file')} deleted"
    )
    return show(env, Result(data, (line,)))
