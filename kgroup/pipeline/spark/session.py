"""A Spark session that starts on any machine with Python, is quiet, and leaves no process behind."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgroup.errors import ConfigError, KgroupError
from kgroup.extras import require_extra
from kgroup.interrupts import uninterrupted
from kgroup.pipeline.spark.java import java_home
from kgroup.pipeline.spark.package import build_package
from kgroup.pipeline.spark.scratch import LOG, scratch, sweep
from kgroup.repeating import repeating

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession as SparkSession

Watch = Callable[[int, int], None]
"""Called with the tasks done and the tasks known while a job runs."""
_POLL_S = 0.2
_STOP_S = 10
_QUERIES = "-XX:+UseParallelGC"
# The work is done in Python: a JVM that distributes it gains nothing from compiling with more effort.
_TASKS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_LOG4J = """status = error
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
"""
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "false",
    "spark.log.level": "WARN",
}


_HADOOP = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def is_local(master: str) -> bool:
    """Return whether everything runs on this machine in one JVM, so that nothing has to be shipped."""
    return master.startswith("local")


def check_installed() -> None:
    """Raise ConfigError that says what to install, if the extra is missing."""
    require_extra("spark", "the pipeline", "pyspark", "pyarrow", "numpy", "deltalake")


class SparkFailed(KgroupError):
    """Spark, or a job on it, has failed; the hint names its log, which is kept."""


@contextmanager
def spark_session(
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> Iterator[SparkSession]:
    """Yield a session on `master`; when it ends, its JVM is gone.

    `settings` are Spark's and override ours. Spark's log goes to a file, which is kept and named in the error
    if a job fails. ConfigError without Java or the extra; KgroupError when Spark or a job fails.
    """
    with spark_context(master, settings, watch, _QUERIES):
        from pyspark.sql import SparkSession

        yield SparkSession.builder.getOrCreate()


@contextmanager
def spark_context(
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    watch: Watch | None = None,
    java_options: str = _TASKS,
) -> Iterator[SparkContext]:
    """As `spark_session`, for jobs without SQL: it starts in two thirds of the time.

    `java_options` are the driver's.
    """
    check_installed()
    if master == "yarn":
        # Spark would find no cluster: YARN's address is only in Hadoop's files.
        folders = [Path(os.environ[name]) for name in _HADOOP if os.environ.get(name)]
        if not folders:
            raise ConfigError(
                f"--master yarn needs {' or '.join(_HADOOP)}, and neither is set",
                "set one to the folder with the cluster's core-site.xml and yarn-site.xml",
            )
        if not any((folder / "yarn-site.xml").is_file() for folder in folders):
            where = " and ".join(map(str, folders))
            raise ConfigError(f"there is no yarn-site.xml in {where}", f"{_HADOOP[0]} must name its folder")
    sweep()
    with scratch(_leaves_a_log) as folder:
        log, context = folder / LOG, None
        try:
            with _environment(java_home(os.environ, folder), python_of(settings or {})):
                context = _started(master, settings or {}, folder, log, java_options)
            with _raised_as_one_sentence(log), _quiet_logging(), _watched(context, watch):
                yield context
        finally:
            _stop(context)


def _leaves_a_log(error: Exception) -> bool:
    return isinstance(error, SparkFailed) or not isinstance(error, KgroupError)


def python_of(settings: Mapping[str, str]) -> str:
    """Return the interpreter of the executors: the driver's path, or the one in the settings."""
    return settings.get("spark.pyspark.python") or sys.executable


@contextmanager
def _environment(home: Path, python: str) -> Iterator[None]:
    """Set what the launched JVM and its workers inherit; restore it afterwards."""
    import pyspark

    ours = {
        "JAVA_HOME": str(home),
        # With a Python driver Spark reads only this: the setting is for drivers that spark-submit starts.
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # An installation of Spark elsewhere would be another version than the Python side.
        "SPARK_HOME": str(Path(str(pyspark.__file__)).parent),
    }
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _started(
    master: str, settings: Mapping[str, str], folder: Path, log: Path, java_options: str
) -> SparkContext:
    from pyspark import SparkConf, SparkContext

    config = folder / "log4j2.properties"
    config.write_text(_LOG4J.format(log=log), encoding="utf-8")
    local = {
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={config.as_uri()} {java_options}",
        "spark.pyspark.python": sys.executable,
    }
    if is_local(master):
        local |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    conf = SparkConf().setMaster(master).setAppName("kgroup")
    conf.setAll(list({**_SETTINGS, **local, **settings}.items()))
    with _stderr_to(log), _ended_if_cut_short(), _raised_as_one_sentence(log):
        context = SparkContext(conf=conf)
    if not is_local(master):
        context.addPyFile(str(build_package(folder / "kgroup.zip")))
    return context


@contextmanager
def _ended_if_cut_short() -> Iterator[None]:
    """End the JVM if its launch fails or is interrupted: pyspark would leave it running."""
    from pyspark import java_gateway

    module: Any = java_gateway
    launched: list[Any] = []
    popen = module.Popen

    def recorded(*args: Any, **kwargs: Any) -> Any:
        with uninterrupted():
            launched.append(popen(*args, **kwargs))
        return launched[-1]

    module.Popen = recorded
    try:
        yield
    except BaseException:
        for process in launched:
            process.kill()
            process.wait()
        raise
    finally:
        module.Popen = popen


@contextmanager
def _raised_as_one_sentence(log: Path) -> Iterator[None]:
    """Raise SparkFailed for Spark's errors. Their text comes from the JVM, so before that is stopped."""
    try:
        yield
    except Exception as error:
        if not is_spark(error):
            raise
        text, hint = f"Spark: {first_line(error)}", f"its log is {log}"
        if _own_lines(error):
            if _DISK_FULL in text:
                hint = f"free some space there, or write elsewhere: the tables are as before; {hint}"
        elif _is_disk_full(error, log):
            text = f"there is no space left on the disk where Spark keeps what it sorts: {log.parent}"
            hint = f"free some, or name another folder: TMPDIR=DIR, or --conf spark.local.dir=DIR; {hint}"
        raise SparkFailed(text, hint) from error


@contextmanager
def _quiet_logging() -> Iterator[None]:
    """Silence py4j: an interrupted call to the JVM is ours to report, but py4j would log its traceback."""
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        yield
    finally:
        root.removeHandler(silent)


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Give the JVM launched meanwhile this file as stderr, for its life and that of its workers."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _watched(context: SparkContext, watch: Watch | None) -> Iterator[None]:
    if watch is None:
        yield
        return
    tracker = context.statusTracker()

    def poll() -> None:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [info for info in stages if info is not None]
        if known:
            watch(sum(info.numCompletedTasks for info in known), sum(info.numTasks for info in known))

    with repeating(poll, _POLL_S, "spark-progress", join_s=_STOP_S):
        yield


def _stop(context: SparkContext | None) -> None:
    """Stop what started, context and session, and wait for the JVM to be gone, by force if need be."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    holder: Any = SparkContext
    gateway = holder._gateway
    process = getattr(gateway, "proc", None)
    started: Any = context
    server = getattr(started, "_accumulatorServer", None)
    if server is not None:
        # There are no accumulators, and their server checks only once a second whether it is to end.
        started._accumulatorServer = None
        # The JVM ends before it does, and it would print that its connection was lost.
        server.handle_error = lambda *_: None
        threading.Thread(target=server.shutdown, name="spark-accumulators", daemon=True).start()
    with suppress(Exception):
        running: Any = SparkSession._instantiatedSession or context
        if running is not None:
            running.stop()
    with suppress(Exception):
        gateway.shutdown()
    holder._gateway = holder._jvm = None
    if process is None:
        return
    # The JVM watches its stdin and ends when that is closed.
    process.stdin.close()
    try:
        process.wait(_STOP_S)
    except Exception:
        process.kill()
        process.wait()


def is_spark(error: Exception) -> bool:
    """Return whether Spark has raised it."""
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j")


_DISK_FULL = "No space left on device"
_LOG_BYTES = 1 << 20


def _is_disk_full(error: Exception, log: Path) -> bool:
    """Return whether a full disk is the cause: Spark often says so only at the end of its log."""
    if _DISK_FULL in str(error):
        return True
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_BYTES))
        return _DISK_FULL.encode() in file.read()
    return False


def _own_lines(error: Exception) -> list[str]:
    """Return what kgroup says in an error of Spark's, which has the traceback of a task."""
    lines = [line.strip() for line in str(error).splitlines()]
    return [line.partition(": ")[2] for line in lines if line.startswith("kgroup.errors.")]


def first_line(error: Exception) -> str:
    """Return the text for an error of Spark's: kgroup's own words in it, or else what Spark says first."""
    if ours := _own_lines(error):
        return ours[-1]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # The first line of a call into the JVM names the call, the second why it failed.
    reasons = [line for line in lines if not line.startswith("An error occurred while calling")]
    return (reasons or lines or [type(error).__name__])[0].removeprefix(": ")
