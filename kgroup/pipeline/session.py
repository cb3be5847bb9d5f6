"""A Spark session that starts on any machine with Python, is quiet, and leaves no process behind."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgroup.errors import ConfigError, KgroupError
from kgroup.pipeline.java import java_home
from kgroup.pipeline.package import build_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Watch = Callable[[int, int], None]
"""Told the tasks done and the tasks known of, while a job runs."""
_POLL_S = 0.2
_STOP_S = 10
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


def is_local(master: str) -> bool:
    """Whether everything runs on this machine in one JVM, so that nothing has to be shipped."""
    return master.startswith("local")


def check_installed() -> None:
    """ConfigError that says what to install, if the extra is missing."""
    missing = [name for name in ("pyspark", "pyarrow", "numpy") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"the pipeline needs {', '.join(missing)}", "install the extra: pip install 'kgroup[spark]'"
        )


@contextmanager
def spark_session(
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    watch: Watch | None = None,
) -> Iterator[SparkSession]:
    """A session on `master`; when it ends, its JVM is gone.

    `settings` are Spark's and win over ours. Spark's log goes to a file, which is kept and named in the
    error if a job fails. ConfigError without Java or the extra; KgroupError when Spark or a job fails.
    """
    check_installed()
    scratch = Path(tempfile.mkdtemp(prefix="kgroup-spark-"))
    log = scratch / "spark.log"
    failed = False
    spark = None
    try:
        with _environment(java_home(os.environ, scratch)):
            spark = _started(master, settings or {}, scratch, log)
        with _watched(spark, watch):
            yield spark
    except Exception as error:
        failed = not isinstance(error, KgroupError)
        if _is_spark(error):
            # Its text is asked of the JVM, so before that is stopped.
            raise KgroupError(f"Spark: {_first_line(error)}", f"its log is {log}") from error
        raise
    finally:
        _stop(spark)
        if failed and log.exists():
            for path in scratch.iterdir():
                if path != log:
                    shutil.rmtree(path, ignore_errors=True)
        else:
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _environment(home: Path) -> Iterator[None]:
    """What the launched JVM and its workers inherit; put back afterwards."""
    ours = {
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # An installation of Spark elsewhere would be another version than the Python side.
        "SPARK_HOME": str(Path(_pyspark_file()).parent),
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


def _pyspark_file() -> str:
    import pyspark

    return str(pyspark.__file__)


def _started(master: str, settings: Mapping[str, str], scratch: Path, log: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    config = scratch / "log4j2.properties"
    config.write_text(_LOG4J.format(log=log), encoding="utf-8")
    local = {
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={config.as_uri()} -XX:+UseParallelGC",
        "spark.pyspark.python": sys.executable,
    }
    if is_local(master):
        local |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.master(master).appName("kgroup")
    for name, value in {**_SETTINGS, **local, **settings}.items():
        builder = builder.config(name, value)
    with _stderr_to(log):
        spark = builder.getOrCreate()
    if not is_local(master):
        spark.sparkContext.addPyFile(str(build_package(scratch / "kgroup.zip")))
    return spark


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """The JVM launched meanwhile keeps this file as its stderr, for all its life and that of its workers."""
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
def _watched(spark: SparkSession, watch: Watch | None) -> Iterator[None]:
    if watch is None:
        yield
        return
    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def poll() -> None:
        while not ended.wait(_POLL_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [info for info in stages if info is not None]
            if known:
                watch(sum(info.numCompletedTasks for info in known), sum(info.numTasks for info in known))

    thread = threading.Thread(target=poll, name="spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_STOP_S)


def _stop(spark: SparkSession | None) -> None:
    """Stop the session, if it came up, and wait for its JVM to be gone, by force if need be."""
    from pyspark import SparkContext

    holder: Any = SparkContext
    gateway = holder._gateway
    process = getattr(gateway, "proc", None)
    with suppress(Exception):
        if spark is not None:
            spark.stop()
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


def _is_spark(error: Exception) -> bool:
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j")


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("kgroup.errors.")]
    return ours[-1].partition(": ")[2] if ours else (lines[0] if lines else type(error).__name__)
