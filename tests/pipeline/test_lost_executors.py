"""Executors that are killed, and tasks that run twice, in every stage of a run: the tables stay the same."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow.parquet as pq

from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.read.posting import Posted
from kgroup.pipeline.spark.session import spark_context
from kgroup.pipeline.spark.workers import Fold, Pieces, R, Read, Shuffle, Work
from kgroup.pipeline.tables.ingest import ROWS, fill
from kgroup.pipeline.tables.store import Store
from tests.interop.jvm import LIGHT_JVM
from tests.pipeline import local_run
from tests.pipeline.processes import cluster
from tests.pipeline.test_ingest import check_equal, in_process
from tests.sampled import in_full

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
SPLIT_BYTES = 30_000
SHARES = 2
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "500m",
    "spark.executor.extraJavaOptions": " ".join(LIGHT_JVM),
}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "100ms",
}
Disturb = Callable[[str], None]
"""Called in a worker, with a name for the stage, when a piece's rows are made and not all handed on."""


class Disturbed:
    """`Shuffle`, but one task of both stages meets `disturb` behind its last row."""

    def __init__(self, shuffle: Shuffle, disturb: Disturb, marks: Path) -> None:
        self.shuffle = shuffle
        self.disturb = disturb
        self.marks = marks

    def tasks(self, size: int) -> int:
        return 2

    def __call__(self, read: Read, fold: Fold[R], pieces: Pieces, tasks: int, /) -> list[R]:
        disturb = self.disturb
        first, second = (str(self.marks / f"stage-{number}") for number in range(2))

        def reading(numbers: Iterator[int]) -> Iterator[Posted]:
            mine = list(numbers)
            yield from read(iter(mine))
            if 0 in mine:
                disturb(first)

        def folding(rows: Iterator[Posted]) -> Iterator[R]:
            tasks = set[int]()

            def seen() -> Iterator[Posted]:
                for row in rows:
                    tasks.add(row[0][0])
                    yield row

            yield from fold(seen())
            if 0 in tasks:
                disturb(second)

        return self.shuffle(reading, folding, pieces, tasks)

    def each(self, work: Work[R], count: int) -> list[R]:
        return self.shuffle.each(work, count)


@contextmanager
def disturbed(folder: Path, hosts: Sequence[str], disturb: Disturb, **settings: str) -> Iterator[Disturbed]:
    """A cluster with a worker at each of `hosts`, whose stages are all disturbed."""
    for name in ("cluster", "marks"):
        (folder / name).mkdir()
    with cluster(folder / "cluster", hosts) as url, spark_context(url, {**SETTINGS, **settings}) as context:
        # Executors have no tests: what is defined here travels by value.
        yield Disturbed(Shuffle(context), disturb, folder / "marks")


def rows(store: Store, table: str) -> Counter[str]:
    """The rows of a table with how often they are there, whatever the files."""
    found: Counter[str] = Counter()
    for path in store.files(table):
        # Not a data set: folders on the way are columns to that.
        found.update(str(row) for row in pq.ParquetFile(path).read().to_pylist())
    return found


def check_same(store: Store, made: Path, folder: Path) -> None:
    """The tables are those of a run that nothing has disturbed, row by row."""
    calm = Store(folder / "calm")
    local_run.run([made], calm, SPLIT_BYTES, SHARES)
    for table in (*ROWS, "events"):
        assert rows(store, table) == rows(calm, table), table
    check_equal(store, in_process(made))


def test_an_executor_killed_in_the_middle_of_each_stage_changes_nothing(made, tmp_path):
    def kill_executor(mark: str) -> None:
        """The JVM above this worker's daemon goes, once a stage, when files are written and nobody knows."""
        try:
            file = os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return
        stat = Path(f"/proc/{os.getppid()}/stat").read_text()
        executor = int(stat.rpartition(")")[2].split()[1])
        os.write(file, b"%d" % executor)
        os.close(file)
        os.kill(executor, signal.SIGKILL)
        time.sleep(300)  # until the end of the executor is ours

    with disturbed(tmp_path, ("127.0.0.1", "127.0.0.1"), kill_executor) as move:
        report = fill(move, Segments.of([made]), Store(tmp_path / "out"), SPLIT_BYTES, SHARES)
    assert report.splits > 2
    killed = [int(mark.read_text()) for mark in (tmp_path / "marks").iterdir()]
    assert len(set(killed)) == 2
    check_same(Store(tmp_path / "out"), made, tmp_path)


@in_full("a second cluster, where speculation is off by default")
def test_tasks_that_run_twice_at_once_change_nothing(made, tmp_path):
    def wait_for_the_other(mark: str) -> None:
        """The first attempt has written its files and lingers, until a speculative one has done the same."""
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            Path(f"{mark}-again").touch()
            return
        while not Path(f"{mark}-again").exists():
            time.sleep(0.1)

    # A copy of a task never runs at the host of the first.
    with disturbed(tmp_path, ("127.0.0.1", "127.0.0.2"), wait_for_the_other, **SPECULATION) as move:
        fill(move, Segments.of([made]), Store(tmp_path / "out"), SPLIT_BYTES, SHARES)
    assert sorted(mark.name for mark in (tmp_path / "marks").iterdir()) == [
        "stage-0",
        "stage-0-again",
        "stage-1",
        "stage-1-again",
    ]
    check_same(Store(tmp_path / "out"), made, tmp_path)
