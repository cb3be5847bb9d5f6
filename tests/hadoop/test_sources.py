"""Segments in HDFS: as from a disk, row by row, and what goes wrong in one sentence."""

import getpass
import re
import time
from pathlib import Path

import pytest

from kgroup.errors import ConfigError, StorageChanged, StorageDenied, StorageMissing, StorageUnreachable
from kgroup.history.sources.capture import resume
from kgroup.history.sources.folders import RemoteFolder
from kgroup.pipeline.read.inputs import Segments
from kgroup.storage.location import Location
from kgroup.storage.opening import open_store
from kgroup.storage.options import StorageOptions
from kgroup.storage.store import Store
from tests.ran import ran
from tests.unit.history.test_capture import one

from .minicluster import Hadoop

pytestmark = [pytest.mark.hadoop, pytest.mark.timeout(600)]
UPGRADE = Path(__file__).resolve().parents[1] / "data" / "incidents" / "upgrade-and-back"


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> StorageOptions:
    # It is this variable that the library asks, so an option sets it, for the process.
    monkeypatch.setenv("HADOOP_USER_NAME", getpass.getuser())
    return StorageOptions.of({"HADOOP_USER_NAME": getpass.getuser()}, 60)


def opened(cluster: Hadoop, options: StorageOptions, folder: str) -> tuple[Store, Location]:
    at = Location.parse(f"{cluster.hdfs}/{folder}")
    return open_store(at, options), at


def filled(cluster: Hadoop, options: StorageOptions, folder: Path, name: str) -> Location:
    store, at = opened(cluster, options, name)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            store.write(at / path.relative_to(folder).as_posix(), path.read_bytes())
    return at


def test_files_are_listed_looked_at_read_in_ranges_written_and_deleted(
    cluster: Hadoop, options: StorageOptions
) -> None:
    store, at = opened(cluster, options, "all of it")
    assert list(store.walk(at)) == []
    made = store.write(at / "a/b.log", b"0123456789" * 100)
    store.write(at / "c.log", b"")
    assert sorted(store.walk(at))[0] == made == store.look(at / "a/b.log")
    assert len(list(store.walk(at))) == 2 and list(store.walk(at / "c.log")) == []
    assert (store.read(made, 5, 12), store.read(made, 995, 2000)) == (b"5678901", b"56789")
    time.sleep(0.01)  # the version is a time in ms
    store.write(at / "a/b.log", b"9876543210" * 100)
    with pytest.raises(StorageChanged, match=r"b\.log changed while it was read"):
        store.read(made, 5, 12)
    store.delete(at / "c.log")
    store.delete(at / "c.log")
    for missing in (at / "c.log", at / "a"):
        with pytest.raises(StorageMissing):
            store.look(missing)


def test_what_goes_wrong_is_one_sentence(cluster: Hadoop, options: StorageOptions) -> None:
    _, at = opened(cluster, options, "x")
    stranger = open_store(at, StorageOptions.of({"HADOOP_USER_NAME": "stranger"}, 60))
    with pytest.raises(StorageDenied, match="denies us access"):
        stranger.write(at, b"")
    nobody = Location.parse("hdfs://127.0.0.1:1/x")
    with pytest.raises(StorageUnreachable, match="did not answer within 1 s"):
        list(open_store(nobody, StorageOptions.of({}, 1)).walk(nobody))
    with pytest.raises(ConfigError, match="names no HDFS"):
        open_store(Location.parse("hdfs://no-such-service/x"), StorageOptions())


def test_the_configuration_names_the_cluster(cluster: Hadoop, options: StorageOptions) -> None:
    given = StorageOptions.of({**options.values, "HADOOP_CONF_DIR": str(cluster.conf)}, 60)
    at = Location.parse("hdfs:///by-configuration")
    assert open_store(at, given).write(at, b"1").size == 1


@pytest.mark.parametrize("command", ["replay-log", "offsets-topic stats"])
def test_what_is_told_is_the_same_from_hdfs(
    cluster: Hadoop, options: StorageOptions, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = filled(cluster, options, UPGRADE, "backup")
    there = ran(capsys, *command.split(), "--files", str(at), "-o", "json")
    here = ran(capsys, *command.split(), "--files", str(UPGRADE), "-o", "json")
    assert there.code == here.code == 0
    assert re.sub(r'"source": "[^"]*"', "", there.out) == re.sub(r'"source": "[^"]*"', "", here.out)


def test_a_capture_into_hdfs_goes_on(cluster: Hadoop, options: StorageOptions) -> None:
    _, at = opened(cluster, options, "history")
    for offset in (0, 1):
        part = resume(RemoteFolder(at, options), "__consumer_offsets-0")
        assert part.next_offset == (offset or -1)
        part.append(one(offset))
        part.flush()
    (log,) = Segments.of([at], options=options).logs
    assert log.size == len(one(0) + one(1)) and len(log.files) == 2


def test_the_same_tables_from_hdfs_and_from_a_disk(
    cluster: Hadoop, options: StorageOptions, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow", reason="the tables need the extra spark")
    from kgroup.pipeline.spark.workers import InProcess
    from kgroup.pipeline.tables.ingest import fill
    from tests.pipeline.local_run import run
    from tests.pipeline.made_logs import write_log
    from tests.pipeline.stored_rows import check_same

    for part in (0, 7):
        write_log(tmp_path / "made" / f"__consumer_offsets-{part}", seed=part, batches=300)
    at = filled(cluster, options, tmp_path / "made", "made")
    from kgroup.pipeline.tables.store import Store as Tables

    here, away = Tables(tmp_path / "here"), Tables(tmp_path / "away")
    run([tmp_path / "made"], here, 20_000, 2)
    there = Segments.of([at], options=options)
    fill(InProcess(), there, away, 20_000, 2)
    check_same(away, here)
