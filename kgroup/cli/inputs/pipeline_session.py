"""A Spark session for a command: quiet on stdout, a progress bar on a terminal."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgroup.admin.shell import word
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import connection_of
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.inputs.locations import storage_options
from kgroup.cli.output.times import offset_or_time
from kgroup.errors import ConfigError
from kgroup.extras import require_extra
from kgroup.storage.location import Location

if TYPE_CHECKING:
    from kgroup.pipeline.ask.jobs import Question
    from kgroup.pipeline.read.inputs import Input, Segments, Since
    from kgroup.pipeline.schemas import Row
    from kgroup.pipeline.tables.store import Store

LOCAL = "local[*]"


@contextmanager
def asked(
    env: Env, store: "Store", master: str | None, conf: Sequence[str] | None, remote: str | None = None
) -> "Iterator[Callable[[Question], list[Row]]]":
    """Yield what answers questions: DuckDB in this process, or Spark if any of its options is given."""
    if master is None and not conf and remote is None:
        from kgroup.pipeline.ask import sql

        yield lambda question: sql.rows_of(store, question)
        return
    with opened_sql(env, master, conf, remote) as spark:
        from kgroup.pipeline.ask import spark_views

        yield lambda question: spark_views.rows_of(spark, store, question)


@contextmanager
def opened_sql(env: Env, master: str | None, conf: Sequence[str] | None, remote: str | None) -> Iterator[Any]:
    """Open a SparkSession for queries: on the Spark Connect server `remote`, else as `opened_spark`."""
    if remote is None:
        with opened_spark(env, master, conf) as spark:
            yield spark
        return
    if master or conf:
        hint = "the settings of Spark Connect's server apply there"
        raise ConfigError("--remote goes with neither --master nor --conf", hint)
    from kgroup.pipeline.spark.remote import ConnectDenied, remote_session

    try:
        with remote_session(remote) as spark:
            yield spark
    except ConnectDenied as error:
        raise Failure(ExitCode.NOT_AUTHORISED, "NOT_AUTHORISED", str(error), error.hint) from error


@contextmanager
def opened_spark(
    env: Env, master: str | None, conf: Sequence[str] | None = None, *, sql: bool = True
) -> Iterator[Any]:
    """Open a SparkSession, without `sql` a SparkContext, on `master` (default: all cores here).

    `conf` are Spark's own settings.
    """

    from kgroup.pipeline.spark import session

    start: Any = session.spark_session if sql else session.spark_context
    settings = {}
    for text in conf or ():
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise ConfigError(f"--conf {text!r} is not a Spark setting", "as in spark.executor.memory=4g")
        settings[name] = value
    if env.quiet or not sys.stderr.isatty():
        with start(master or LOCAL, settings) as spark:
            yield spark
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=None)

        def watch(done: int, known: int) -> None:
            bar.update(task, description="tasks", completed=done, total=known)

        with start(master or LOCAL, settings, watch) as spark:
            yield spark


def segments_at(
    env: Env, sources: Sequence[str], options: Sequence[str] | None, since: "Since | None" = None
) -> "Segments":
    """Return the segments at these paths and URLs, reached by `options`."""
    from kgroup.pipeline.read.inputs import Segments

    return Segments.of(list(map(Location.parse, sources)), since, storage_options(env, options))


def opened_input(
    env: Env, sources: Sequence[str], since: str | None, options: Sequence[str] | None = None
) -> "Input":
    """Yield the input of a run: `sources`, reached by `options`, else the topic of `env`'s cluster.

    An embedded cluster that is not served is read from its folder.
    """
    from kgroup.pipeline.read.inputs import LiveCluster, Segments, Since

    begin = Since(*offset_or_time(since)) if since else None
    if sources:
        return segments_at(env, sources, options, begin)
    source = connection_of(env)
    return Segments.of([source], begin) if isinstance(source, Path) else LiveCluster(source, begin)


def opened_store(env: Env, tables: str, options: Sequence[str] | None, *needs: str) -> "Store":
    """Return the tables at a path or URL; raise ConfigError without tables, or without the extra.

    `needs` are packages that the question needs, besides those that read tables.
    """
    require_extra("sql", "reading the pipeline's tables", *needs, "deltalake", "pyarrow", "numpy")
    from kgroup.pipeline.tables.store import Store

    store = Store(tables, storage_options(env, options))
    if store.empty:
        where = store.place.uri()
        hint = f"kgroup pipeline run SEGMENTS --out {word(where)} makes them"
        raise ConfigError(f"{where} holds no tables of the pipeline", hint)
    return store
