"""One Spark session for all tests of a process, commands on it, and logs to read."""

import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from kgroup.history.sources.logs import TOPICS_FILE
from kgroup.pipeline.spark import session
from tests.interop.jvm import LIGHT_JVM
from tests.pipeline.made_logs import write_log
from tests.pipeline.processes import process
from tests.ran import Ran, ran
from tests.sampled import FULL

INCIDENTS = Path(__file__).resolve().parents[1] / "data" / "incidents"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a Spark of their own come first: a process has one, and `spark` stays to the end.

    Then the longest, so that of two processes none waits for the other in the end.
    """
    first = ("test_lost_executors.py", "test_connect.py", "test_live.py", "test_ingest.py")
    items.sort(key=lambda item: first.index(item.path.name) if item.path.name in first else len(first))


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """A session; but for the full run one that compiles no code of its own for queries of a few rows."""
    from pyspark.sql import SparkSession

    settings = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
    if FULL:
        with session.spark_session("local[2]", settings) as started:
            yield started
        return
    settings |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    with session.spark_context("local[2]", settings, None, " ".join(LIGHT_JVM)):
        yield SparkSession.builder.getOrCreate()


@pytest.fixture(scope="session", autouse=True)
def light_processes() -> Iterator[None]:
    """Each Spark that a test starts as a process compiles with less effort: it lives for seconds."""
    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            # The garbage collector is the session's own choice, and there may be one only.
            patch.setenv("SPARK_SUBMIT_OPTS", " ".join(each for each in LIGHT_JVM if "GC" not in each))
            for name in ("SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
                patch.setenv(name, " ".join(LIGHT_JVM))
        yield


@pytest.fixture
def kgroup(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Run a command on the Spark of all tests; in full as a process with its own."""
    if FULL:
        return process
    monkeypatch.setattr(session, "_started", lambda *_: spark.sparkContext)
    monkeypatch.setattr(session, "_stop", lambda _: None)
    return lambda *words: ran(capsys, *words)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three partitions of made-up history."""
    root = tmp_path_factory.mktemp("made")
    for partition in (0, 7, 31):
        write_log(root / f"__consumer_offsets-{partition}", seed=zlib.crc32(b"%d" % partition), batches=900)
    return root


@pytest.fixture(scope="session")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The recorded incidents as folders of one cluster: each is a partition of its own."""
    root, found = tmp_path_factory.mktemp("incidents"), []
    for number, folder in enumerate(sorted(path for path in INCIDENTS.iterdir() if path.is_dir())):
        (partition,) = folder.glob("__consumer_offsets-*")
        found.append(root / folder.name)
        shutil.copytree(partition, found[-1] / f"__consumer_offsets-{100 + number}")
        shutil.copy(folder / TOPICS_FILE, found[-1])
    return found
