"""`kgroup replay-log --engine spark`: the choice of the engine, and a timeline from Spark."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.inputs.pipeline_session import opened_spark, segments_at
from kgroup.errors import ConfigError
from kgroup.extras import extra_hint
from kgroup.pipeline.spark.session import check_installed

if TYPE_CHECKING:
    from kgroup.admin.read.source import Source

AUTO, LOCAL, SPARK = "auto", "local", "spark"
SPARK_FROM_BYTES = 8 << 30
"""Up to here one process is done before Spark would be: it needs some ten seconds to start."""


def chosen_engine(env: Env, asked: str | None, source: "Source", plain: bool) -> str:
    """Return a timeline's engine: the one requested, else Spark for very much input if installed.

    `plain`: nothing is requested that Spark does not show (single commits, a page with owners). Raise
    ConfigError for an engine that is unknown or cannot do it.
    """
    if asked not in (None, AUTO, LOCAL, SPARK):
        raise ConfigError(f"--engine {asked!r} is unknown", f"one of {AUTO}, {LOCAL}, {SPARK}")
    if asked == SPARK and not plain:
        raise ConfigError("--engine spark has neither --html nor --all-commits", "leave --engine out")
    if asked in (LOCAL, SPARK):
        return str(asked)
    if sum(source.sizes) < SPARK_FROM_BYTES or not plain:
        return LOCAL

    if find_spec("pyspark") is None:
        env.note(f"so much can be read on a cluster: --engine spark --master URL; {extra_hint('spark')}")
        return LOCAL
    env.note("reading with Spark, as there is much to read; --engine local does it in this process")
    return SPARK


def show_on_spark(
    env: Env,
    files: Sequence[str],
    selection: Selection,
    master: str | None,
    options: Sequence[str] | None = None,
) -> ExitCode:
    """Show the timeline of `replay-log`, folded by Spark; return the exit code."""
    from kgroup.cli.views.history import show_story

    check_installed()
    from kgroup.pipeline.ask.replaying import replay_on_spark

    # Omitted copies were reported when the files were examined.
    segments = segments_at(env, files, options)
    with opened_spark(env, master, sql=False) as context:
        story = replay_on_spark(context, segments, names=selection.names, wanted=selection.wanted)
    return show_story(env, story, selection)
