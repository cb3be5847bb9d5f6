"""A Spark session for a command: quiet on stdout, a progress bar on a terminal."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgroup.cli.env.invocation import Env
from kgroup.errors import ConfigError
from kgroup.shell import word

if TYPE_CHECKING:
    from kgroup.pipeline.read.inputs import Input, Since
    from kgroup.pipeline.tables.store import Store

LOCAL = "local[*]"


@contextmanager
def opened_spark(
    env: Env, master: str | None, conf: Sequence[str] | None = None, *, sql: bool = True
) -> Iterator[Any]:
    """A SparkSession, without `sql` a SparkContext, on `master` (all cores of this machine by default).

    `conf` are Spark's own settings.
    """
    import sys

    from kgroup.pipeline.spark import session

    start: Any = session.spark_session if sql else session.spark_context
    settings = dict(_setting(text) for text in conf or ())
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


def opened_input(env: Env, sources: Sequence[Path], since: str | None) -> "Input":
    """What a run reads: `sources`, else the topic of the cluster that `env` names.

    An embedded cluster that nobody serves is read from its folder.
    """
    from kgroup.cli.env.session import connection_of
    from kgroup.pipeline.read.inputs import LiveCluster, Segments

    begin = _since(since) if since else None
    if sources:
        return Segments.of(sources, begin)
    found = connection_of(env)
    return Segments.of([found], begin) if isinstance(found, Path) else LiveCluster(found, begin)


def _since(text: str) -> "Since":
    from kgroup.cli.output.times import parse_time
    from kgroup.pipeline.read.inputs import Since

    if text.isdigit() and len(text) < 13:
        return Since(offset=int(text))
    return Since(time_ms=parse_time(text))


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise ConfigError(f"--conf {text!r} is not a Spark setting", "as in spark.executor.memory=4g")
    return name, value


def opened_store(folder: Path) -> "Store":
    """The tables in `folder`; ConfigError when there are none, or the extra is missing."""
    from kgroup.pipeline.spark.session import check_installed

    check_installed()
    from kgroup.pipeline.tables.store import Store

    store = Store(folder)
    if store.empty:
        hint = f"kgroup pipeline run SEGMENTS --out {word(str(folder))} makes them"
        raise ConfigError(f"{folder} holds no tables of the pipeline", hint)
    return store
