"""What a run tells at once: late segments, a second writer, a topic that was created again, a full disk."""

import errno
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("deltalake")

from kgroup.durations import iso
from kgroup.errors import StorageError
from kgroup.pipeline.ask.story import story_in
from kgroup.pipeline.read.inputs import LiveCluster, Segments, Since
from kgroup.pipeline.spark import scratch as scratches
from kgroup.pipeline.spark.scratch import LOG, scratch, sweep
from kgroup.pipeline.spark.session import SparkFailed, _raised_as_one_sentence
from kgroup.pipeline.spark.workers import InProcess
from kgroup.pipeline.tables import place, writing
from kgroup.pipeline.tables.ingest import RunReport, fill
from kgroup.pipeline.tables.store import Store
from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served
from tests.pipeline.made_logs import made_batches, write_names
from tests.ran import Ran

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
BATCHES = made_batches(21, 90)


def put(root: Path, *ranges: tuple[int, int], keep: int = 1) -> None:
    """Segments with these batches, of each only every `keep`th, as compaction leaves them."""
    folder = root / "__consumer_offsets-6"
    folder.mkdir(parents=True, exist_ok=True)
    write_names(root)
    for first, last in ranges:
        base = int.from_bytes(BATCHES[first][:8], "big")
        (folder / f"{base:020d}.log").write_bytes(b"".join(BATCHES[first:last:keep]))


def read(out: Path, *roots: Path, since: Since | None = None) -> RunReport:
    return fill(InProcess(2), Segments.of(roots, since), Store(out), 1 << 20, 2)


def late(report: RunReport) -> list[int]:
    return [each.offset for each in report.late]


def test_a_segment_that_came_too_late_is_told_at_each_run(tmp_path: Path) -> None:
    """In a gap, and before the first offset; not those that were read, or hold nothing new."""
    out, at = tmp_path / "out", [int.from_bytes(batch[:8], "big") for batch in BATCHES]
    put(tmp_path / "in", (30, 45), (60, 75))
    assert late(read(out, tmp_path / "in")) == []
    put(tmp_path / "in", (45, 60))
    put(tmp_path / "in", (0, 30))
    put(tmp_path / "in", (75, 90))
    for _ in range(2):
        report = read(out, tmp_path / "in")
        assert late(report) == [at[0], at[45]]
        assert "holds records that the tables lack, from offset 0 on" in str(report.late[0])
    assert late(read(out, tmp_path / "in", since=Since(offset=at[30]))) == [at[45]]
    put(tmp_path / "week-2", (30, 45), (60, 90))
    assert late(read(out, tmp_path / "week-2")) == []


def test_a_fuller_copy_of_what_was_read_compacted_is_told(tmp_path: Path) -> None:
    out = tmp_path / "out"
    put(tmp_path / "compacted", (0, 45), keep=3)
    put(tmp_path / "compacted", (45, 90))
    assert late(read(out, tmp_path / "compacted")) == []
    put(tmp_path / "again", (0, 45), keep=3)
    put(tmp_path / "again", (45, 90))
    assert late(read(out, tmp_path / "again")) == []
    put(tmp_path / "fuller", (0, 45), (45, 90))
    assert late(read(out, tmp_path / "fuller")) == [int.from_bytes(BATCHES[1][:8], "big")]


def test_the_command_says_so_and_does_not_exit_with_0(tmp_path: Path, kgroup: Callable[..., Ran]) -> None:
    pytest.importorskip("pyspark")
    put(tmp_path / "in", (30, 60))
    words = ["pipeline", "run", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--master", "local[1]"]
    assert kgroup(*words).code == 0
    put(tmp_path / "in", (0, 30))
    said = kgroup(*words)
    assert said.code == 5
    assert f"{0:020d}.log holds records that the tables lack, from offset 0 on" in said.err
    assert "read all segments into a new folder" in said.err


def test_copies_that_add_nothing_are_noted(tmp_path: Path, kgroup: Callable[..., Ran]) -> None:
    pytest.importorskip("pyspark")
    put(tmp_path / "in" / "one", (0, 60))
    put(tmp_path / "in" / "other", (0, 45))
    said = kgroup(
        "pipeline", "run", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--master", "local[1]"
    )
    assert said.code == 0 and said.err.count("is not read, as") == 1
    assert f"{tmp_path / 'in' / 'other'}" in said.err.partition(" is not read, as ")[0]


def test_a_moment_before_the_log_is_unknown_and_not_empty(tmp_path: Path, kgroup: Callable[..., Ran]) -> None:
    """Only of the partitions that may hold the group, if one is named."""
    put(tmp_path / "in", (30, 60))
    read(tmp_path / "out", tmp_path / "in")
    store = Store(tmp_path / "out")
    (part, first, first_ms), *_ = store.manifest.beginnings()
    (group, *_) = {event.group for event in story_in(store).events if event.group}
    query = ("pipeline", "query", "state_at", str(tmp_path / "out"), "-o", "json")
    for more in ((), ("--group", group), ("--group", "*")):
        said = kgroup(*query, "--at", str(iso(first_ms - 1)), *more)
        (error,) = said.errors
        assert (said.code, error["code"], said.data["rows"]) == (5, "NOT_SEEN", [])
        assert f"__consumer_offsets-{part} begins at offset {first}" in error["message"]
    assert kgroup(*query, "--at", str(iso(first_ms))).code == 0
    put(tmp_path / "whole", (0, 60))
    read(tmp_path / "from-0", tmp_path / "whole")
    query = ("pipeline", "query", "state_at", str(tmp_path / "from-0"), "-o", "json")
    assert kgroup(*query, "--at", "2001-01-01").data["rows"] == []


def test_a_second_writer_is_told_before_anything_starts(
    tmp_path: Path, kgroup: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    put(tmp_path / "in", (0, 30))
    out = tmp_path / "out"
    read(out, tmp_path / "in")
    monkeypatch.setattr("kgroup.pipeline.spark.session.spark_context", None)  # is not reached
    with (out / "lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = kgroup("pipeline", "run", str(tmp_path / "in"), "--out", str(out))
    assert said.code == 2 and f"another run writes into {out}" in said.err


def test_a_topic_that_was_created_again_is_not_nothing_new(tmp_path: Path) -> None:
    with served(Cluster(offsets_partitions=1)) as bootstrap:
        client = Client(bootstrap)
        client.create_topic("orders", 1)
        client.commit("g", "orders", {0: 1})
        client.close()
        host, _, port = bootstrap.partition(":")
        from kgroup.pipeline.read.inputs import connection_of

        live = LiveCluster(connection_of({"bootstrap.servers": f"{host}:{port}"}))
        assert live.plan(1 << 20, {0: -1})
        with pytest.raises(StorageError, match=r"ends at offset \d+, and 999 was read"):
            live.plan(1 << 20, {0: 999})


class Py4JJavaError(Exception):
    """As py4j raises it."""

    __module__ = "py4j.protocol"


CALLED = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe."


@pytest.mark.parametrize("where", ["error", "log"])
def test_a_full_disk_of_sparks_is_named(tmp_path: Path, where: str) -> None:
    log = tmp_path / LOG
    reason = "java.io.IOException: No space left on device"
    log.write_text(f"12:00:00 ERROR Utils: {reason}\n" if where == "log" else "")
    cause = f": org.apache.spark.SparkException: Job aborted: {reason if where == 'error' else 'lost'}"
    with pytest.raises(SparkFailed) as failed, _raised_as_one_sentence(log):
        raise Py4JJavaError(f"{CALLED}\n{cause}\n\tat org.apache.spark")
    assert "no space left on the disk where Spark keeps what it sorts" in str(failed.value)
    assert str(tmp_path) in str(failed.value)
    assert "TMPDIR=DIR" in str(failed.value.hint) and str(log) in str(failed.value.hint)


def test_other_failures_are_told_by_their_cause_and_not_by_the_call(tmp_path: Path) -> None:
    said = "^Spark: org.apache.spark.SparkException: Job aborted$"
    with pytest.raises(SparkFailed, match=said), _raised_as_one_sentence(tmp_path / LOG):
        raise Py4JJavaError(f"{CALLED}\n: org.apache.spark.SparkException: Job aborted\n\tat x")


def test_a_full_disk_of_the_tables_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "in", (0, 60))
    out = tmp_path / "out"
    read(out, tmp_path / "in")
    before = story_in(Store(out)).events
    put(tmp_path / "in", (60, 90))

    class Full(writing.pq.ParquetWriter):  # type: ignore[misc, name-defined]
        def write_table(self, *args: object, **more: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(writing.pq, "ParquetWriter", Full)
        with pytest.raises(StorageError, match=rf"cannot write {out}/.*\.parquet: No space left on device"):
            read(out, tmp_path / "in")
    assert story_in(Store(out)).events == before
    assert read(out, tmp_path / "in").run == 2
    text = f"{CALLED}\nkgroup.errors.StorageError: cannot write x: No space left on device"
    full = pytest.raises(SparkFailed, match="cannot write .*No space left")
    with full as failed, _raised_as_one_sentence(tmp_path / LOG):
        raise Py4JJavaError(text)
    assert "free some space there" in str(failed.value.hint)


def left_by_a_kill(folder: Path) -> Path:
    """A scratch folder whose process was killed."""
    code = (
        "import os, signal, sys\n"
        "from kgroup.pipeline.spark.scratch import scratch\n"
        "with scratch() as folder:\n"
        "    (folder / 'local').mkdir()\n"
        "    print(folder, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
    )
    return Path(done.stdout.strip())


def test_what_a_killed_run_left_the_next_one_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what belongs to a process that lives, nor the log of a run that failed, for a day."""
    monkeypatch.setattr(scratches.tempfile, "tempdir", str(tmp_path))
    left, (log, old_log) = left_by_a_kill(tmp_path), (tmp_path / f"kgroup-pipeline-{n}" for n in "ab")
    assert left.is_dir() and left.parent == tmp_path
    for folder in (log, old_log):
        folder.mkdir()
        (folder / LOG).write_text("why")
    with scratch() as mine:
        sweep()
        assert left.is_dir()  # it is young: its process may be about to lock it
        hour, days = time.time() - 3_600, time.time() - 2 * 86_400
        for folder, at in ((left, hour), (log, hour), (old_log, days), (mine, hour)):
            os.utime(folder, (at, at))
        sweep()
        assert [path.name for path in sorted(tmp_path.iterdir())] == sorted([mine.name, log.name])
    assert not mine.exists()
    assert place.scratch is scratch
