"""Tables in the open format: cut short anywhere, written and read by strangers, kept small, hostile."""

import fcntl
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("deltalake")

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from kgroup.errors import ConfigError, StorageDenied, StorageError, StorageMissing
from kgroup.history.replay import Story
from kgroup.pipeline.ask.sql import answered
from kgroup.pipeline.ask.story import story_in
from kgroup.pipeline.schemas import TABLES
from kgroup.pipeline.spark.workers import InProcess, Shuffle
from kgroup.pipeline.tables import delta, lease, upkeep
from kgroup.pipeline.tables import record as record_module
from kgroup.pipeline.tables.manifest import FORMATS
from kgroup.pipeline.tables.store import KEPT, Store
from kgroup.storage.options import StorageOptions
from tests.pipeline import local_run
from tests.pipeline.made_logs import made_batches, write_names
from tests.pipeline.stored_rows import rows
from tests.pipeline.test_ingest import check_equal, in_process
from tests.sampled import FULL

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


class Log:
    """A log that grows, in `root`/in, and what a replay of it tells."""

    def __init__(self, root: Path, seed: int = 11, batches: int = 120) -> None:
        self.source = root / "in"
        self.file = self.source / "__consumer_offsets-6" / f"{0:020d}.log"
        self.file.parent.mkdir(parents=True)
        self.data = b"".join(made_batches(seed, batches))
        write_names(self.source)

    def grow(self, share: float) -> Story:
        self.file.write_bytes(self.data[: int(len(self.data) * share)])
        return in_process(self.source)


def run(log: Log, out: Path) -> None:
    local_run.run([log.source], Store(out), 4_000, 2)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def killed_after(seconds: float, source: Path, out: Path | str, options: dict[str, str]) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
    local_run.run([source], Store(out, StorageOptions.of(options)), 4_000, 2)
    os._exit(0)


def deaths(
    count: int, log: Log, took: float, chance: random.Random, out: Path | str, options: dict[str, str]
) -> Iterator[tuple[Story, int | None]]:
    """What the log tells, each time it has grown, and how the run ended that was to read it."""
    process = multiprocessing.get_context("forkserver")
    process.set_forkserver_preload([__name__])
    for number in range(count):
        new = log.grow(0.14 + 0.8 * number / count)
        seconds = chance.uniform(0.02, 1.5) * took
        child = process.Process(target=killed_after, args=(seconds, log.source, out, options))
        child.start()
        child.join()
        yield new, child.exitcode


def test_killed_at_twenty_moments_the_last_version_is_read_and_the_next_run_completes_it(tmp_path, log):
    """Each time the log has grown; what is there is what was before, or all of what is new."""
    chance, out = random.Random(22), tmp_path / "out"
    known = log.grow(0.1)
    started = time.monotonic()
    run(log, out)
    took = time.monotonic() - started
    codes = []
    for new, code in deaths(20, log, took, chance, out, {}):
        codes.append(code)
        found = story_in(Store(out))
        assert found.events in (known.events, new.events)
        if chance.random() < 0.3:
            run(log, out)
            check_equal(Store(out), new)
        known = new if story_in(Store(out)).events == new.events else known
    assert -signal.SIGKILL in codes
    whole = log.grow(1.0)
    run(log, out)
    check_equal(Store(out), whole)
    rows = DeltaTable(out / "commits").to_pyarrow_table(columns=["log_offset"])
    assert len(set(rows["log_offset"].to_pylist())) == rows.num_rows


def test_killed_behind_its_last_commit_a_run_keeps_its_files(tmp_path, log):
    """Its record is there, and the file `lock` still has its token."""
    out = tmp_path / "out"
    known = log.grow(0.4)
    run(log, out)
    token = Store(out).manifest.runs[-1]["token"]
    (out / "lock").write_text(token)
    run(log, out)
    check_equal(Store(out), known)
    new = log.grow(0.8)
    run(log, out)
    check_equal(Store(out), new)


class Cut(BaseException):
    pass


@contextmanager
def cut_short(monkeypatch, commits):
    """The run inside ends when it has made so many commits."""
    left, commit = iter(range(commits)), delta.committed

    def cut(*args, **kwargs):
        if next(left, None) is None:
            raise Cut
        return commit(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(delta, "committed", cut)
        with pytest.raises(Cut):
            yield


@pytest.mark.parametrize("commits", range(9))
def test_cut_short_between_its_commits_a_run_changes_nothing(tmp_path, log, monkeypatch, commits):
    """Some tables have the run, no record says so: readers see the run before, the next one is whole."""
    out = tmp_path / "out"
    before = log.grow(0.4)
    run(log, out)
    now = log.grow(0.8)
    with cut_short(monkeypatch, commits):
        run(log, out)
    check_equal(Store(out), before)
    run(log, out)
    check_equal(Store(out), now)
    for table in ("commits", "events", "folds", "events_open"):
        newest = DeltaTable(out / table)
        store = Store(out)
        assert {Path(uri).name for uri in newest.file_uris()} == {Path(n).name for n in store.names(table)}


def test_of_two_runs_at_once_the_second_to_commit_is_told(tmp_path, log, monkeypatch):
    """Where there is no lock: what the first has committed stays, whatever the second had written."""
    out = tmp_path / "out"
    log.grow(0.4)
    run(log, out)
    now = log.grow(0.8)
    record, overtaken = record_module.record, []

    def after_another(*args):
        if not overtaken:
            overtaken.append(True)
            (out / "lock").unlink()  # another machine knows nothing of it
            run(log, out)
        return record(*args)

    monkeypatch.setattr("kgroup.pipeline.tables.store.record", after_another)
    with pytest.raises(delta.Overtaken, match="another run wrote into"):
        run(log, out)
    check_equal(Store(out), now)
    local_run.run([log.source], Store(out), 4_000, 2)
    check_equal(Store(out), now)


def test_a_run_whose_last_answer_was_lost_has_succeeded(tmp_path, log, monkeypatch):
    now, record = log.grow(0.5), record_module.record

    def lost(place, rows, version):
        record(place, rows, version)
        return record(place, rows, version)

    monkeypatch.setattr("kgroup.pipeline.tables.store.record", lost)
    run(log, tmp_path / "out")
    check_equal(Store(tmp_path / "out"), now)


def test_tables_of_another_program_are_refused(tmp_path, log):
    log.grow(0.5)
    write_deltalake(tmp_path / "one" / "runs", pa.table({"x": [1]}))
    write_deltalake(tmp_path / "two" / "commits", pa.table({"x": [1]}))
    write_deltalake(tmp_path / "three", pa.table({"x": [1]}))
    for name in ("one", "two", "three"):
        with pytest.raises(ConfigError, match="table of another program"):
            run(log, tmp_path / name)
    assert DeltaTable(tmp_path / "three").version() == 0


def test_what_another_program_changed_is_not_taken_back(tmp_path, log):
    out = tmp_path / "out"
    before = log.grow(0.5)
    run(log, out)
    DeltaTable(out / "commits").delete("log_offset = 3")
    check_equal(Store(out), before)
    log.grow(0.8)
    with pytest.raises(StorageError, match="was changed by delta-rs"):
        run(log, out)


def test_another_format_is_refused(tmp_path, log, monkeypatch):
    log.grow(0.5)
    with monkeypatch.context() as patch:
        patch.setattr("kgroup.pipeline.tables.record.FORMATS", {**FORMATS, "runs": 3})
        patch.setattr("kgroup.pipeline.tables.record.OLDEST", 3)
        patch.setattr("kgroup.__version__", "9.1")
        run(log, tmp_path / "out")
    with pytest.raises(ConfigError, match=r"by another version, kgroup 9\.1 \(format 3 of runs\)$"):
        Store(tmp_path / "out")


def test_a_protocol_of_the_future_is_refused(tmp_path, log):
    log.grow(0.5)
    run(log, out := tmp_path / "out")
    protocol = {"minReaderVersion": 99, "minWriterVersion": 99}
    newest = DeltaTable(out / "runs").version()
    (out / "runs" / "_delta_log" / f"{newest + 1:020d}.json").write_text(json.dumps({"protocol": protocol}))
    with pytest.raises((ConfigError, StorageError), match="runs"):
        Store(out)


def test_a_file_that_is_gone_is_said(tmp_path, log):
    log.grow(0.5)
    run(log, out := tmp_path / "out")
    Path(Store(out).files("events")[0]).unlink()
    with pytest.raises(StorageError, match=r"events/.* cannot be read"):
        story_in(Store(out))


def rows_of(table: pa.Table, names: list[str]) -> list[str]:
    plain = table.select(names)
    for at, field in enumerate(plain.schema):
        if pa.types.is_timestamp(field.type):
            plain = plain.set_column(at, field.name, plain[field.name].cast(pa.timestamp("ms", "UTC")))
    return sorted(map(repr, plain.to_pylist()))


def test_readers_that_know_nothing_of_kgroup_read_the_same_rows(tmp_path, log):
    """Delta's own reader, and DuckDB and pyarrow by the files that the log names."""
    duckdb = pytest.importorskip("duckdb")
    for share in (0.4, 0.7, 1.0):
        log.grow(share)
        run(log, out := tmp_path / "out")
    store = Store(out)
    for table in ("commits", "control", "markers", "batches", "events", "bad_ranges"):
        read = DeltaTable(out / table)
        names = [field.name for field in read.schema().fields if field.name != "date"]
        ours = pa.concat_tables(
            store.read(name).append_column(
                "part", pa.repeat(pa.scalar(6, pa.int32()), store.read(name).num_rows)
            )
            for name in store.names(table)
        )
        told = rows_of(ours, names)
        assert told
        assert rows_of(read.to_pyarrow_table(), names) == told
        files = read.file_uris()
        assert rows_of(pq.ParquetDataset(files).read(), [n for n in names if n != "part"]) == rows_of(
            ours, [n for n in names if n != "part"]
        )
        by_duckdb = duckdb.sql(f"select * from read_parquet({files}, hive_partitioning = true)")
        by_duckdb = by_duckdb.to_arrow_table()
        at = by_duckdb.column_names.index("part")
        by_duckdb = by_duckdb.set_column(at, "part", by_duckdb["part"].cast(pa.int32()))
        assert rows_of(by_duckdb, names) == told


def test_a_log_keeps_bounds_by_which_readers_pass_files_over(tmp_path, log):
    log.grow(1.0)
    run(log, out := tmp_path / "out")
    for table in ("commits", "events", "control"):
        known = pa.table(DeltaTable(out / table).get_add_actions(flatten=True)).to_pylist()
        for file in known:
            rows = pq.ParquetFile(out / table / file["path"]).read(columns=["log_offset", "ts"])
            offsets, times = rows["log_offset"].to_pylist(), rows["ts"].to_pylist()
            assert (file["num_records"], file["min.log_offset"], file["max.log_offset"]) == (
                len(offsets),
                min(offsets),
                max(offsets),
            )
            assert (file["min.ts"], file["max.ts"]) == (min(times), max(times))


def test_every_table_and_column_has_a_comment(tmp_path, log):
    log.grow(0.3)
    run(log, out := tmp_path / "out")
    for table in (*KEPT, "runs"):
        opened = DeltaTable(out / table)
        assert opened.metadata().description, table
        fields = opened.schema().fields
        assert [f.name for f in fields if not f.metadata.get("comment")] == [], table
        assert len({f.metadata["comment"] for f in fields}) == len(fields)


def aged(folder: Path, hours: float) -> None:
    for path in folder.rglob("*.parquet"):
        at = path.stat().st_mtime - hours * 3600
        os.utime(path, (at, at))


def test_vacuum_compacts_and_takes_away_what_no_kept_version_needs(tmp_path, log):
    out = tmp_path / "out"
    for share in (0.2, 0.4, 0.6, 0.8, 1.0):
        told = log.grow(share)
        run(log, out)
    pinned = Store(out)
    check_equal(pinned, told)
    left = out / "commits" / "part=6" / "left-by-a-killed-run.parquet"
    left.write_bytes(b"PAR1")
    young = shutil.copy(left, left.with_name("of-a-run-on-its-way.parquet"))
    os.utime(left, (0, 0))
    kept = upkeep.vacuum(Store(out), 24, InProcess())
    assert kept.after < kept.before
    assert not left.exists() and young.exists()
    check_equal(pinned, told)
    check_equal(Store(out), told)
    run(log, out)
    check_equal(Store(out), told)
    with pytest.raises(ConfigError, match="less than an hour"):
        upkeep.vacuum(Store(out), 0, InProcess())


def test_after_its_time_a_version_is_gone_and_the_newest_is_whole(tmp_path, log, monkeypatch):
    out = tmp_path / "out"
    for share in (0.3, 0.6, 1.0):
        told = log.grow(share)
        run(log, out)
    files = set(out.rglob("*.parquet"))
    monkeypatch.setattr(upkeep, "LEAST_HOURS", 0)
    aged(out, 1)
    assert upkeep.vacuum(Store(out), 0, InProcess()).deleted > 0
    assert not files <= set(out.rglob("*.parquet"))
    check_equal(Store(out), told)
    run(log, out)
    check_equal(Store(out), told)


def test_many_runs_leave_few_records(tmp_path, log, monkeypatch):
    monkeypatch.setattr(record_module, "_MANY", 4)
    monkeypatch.setattr(upkeep, "_OFTEN", 5)
    monkeypatch.setattr(upkeep, "_MANY", 1)
    out = tmp_path / "out"
    for number in range(12):
        told = log.grow(0.2 + number * 0.06)
        run(log, out)
    store = Store(out)
    check_equal(store, told)
    assert len(DeltaTable(out / "runs").file_uris()) < 5
    assert [entry["run"] for entry in store.manifest.runs] == list(range(1, len(store.manifest.runs) + 1))
    assert "compaction" in {entry["kind"] for entry in store.manifest.runs}


def test_a_run_that_another_one_keeps_from_compacting_has_ended_well(tmp_path, log, monkeypatch):
    """What it read is committed by then; the tables are compacted some other time."""
    out = tmp_path / "out"
    log.grow(0.5)
    run(log, out)
    monkeypatch.setattr(upkeep, "_OFTEN", 1)
    monkeypatch.setattr(upkeep, "_MANY", 1)
    packs = upkeep._packs
    with (out / "lock").open("a+") as lock:

        def another_begins(store: Store, large: bool) -> list[list[str]]:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return packs(store, large)

        monkeypatch.setattr(upkeep, "_packs", another_begins)
        told = log.grow(1.0)
        run(log, out)
    check_equal(Store(out), told)
    assert [entry["kind"] for entry in Store(out).manifest.runs] == ["run", "run"]
    monkeypatch.setattr(upkeep, "_packs", packs)
    assert upkeep.compact(Store(out), InProcess())[1] < len(list(out.rglob("*.parquet")))
    check_equal(Store(out), told)


def test_compaction_by_tasks_leaves_a_file_a_partition_and_day_and_changes_no_row(tmp_path, log, spark):
    """Streams of a table pass it over: its log says that no data changed."""
    out = tmp_path / "out"
    for share in (0.2, 0.4, 0.6, 0.8, 1.0):
        told = log.grow(share)
        run(log, out)
    plain = TABLES.keys() - {"deliveries"}
    known = {table: rows(Store(out), table) for table in plain}
    before, after = upkeep.compact(Store(out), Shuffle(spark.sparkContext))
    store = Store(out)
    check_equal(store, told)
    assert {table: rows(store, table) for table in plain} == known
    assert after == sum(len(store.names(table)) for table in KEPT) < before
    for table in KEPT:
        folders = [Path(name).parent for name in store.names(table)]
        assert len(folders) == len(set(folders)), table
    newest = DeltaTable(out / "commits").version()
    actions = (out / "commits" / "_delta_log" / f"{newest:020d}.json").read_text().splitlines()
    found = [action for line in actions for action in json.loads(line).values()]
    changes = [action["dataChange"] for action in found if "dataChange" in action]
    assert len(changes) > 2 and not any(changes)


def test_states_that_no_run_goes_on_from_are_deleted_without_being_asked(tmp_path, log, monkeypatch):
    """Rows of earlier versions stay, as `vacuum --keep` has them; their states do not."""
    monkeypatch.setattr(upkeep, "_OFTEN", 3)
    monkeypatch.setattr(upkeep, "_MANY", 1)
    monkeypatch.setattr(upkeep, "STATE_HOURS", 0)
    out = tmp_path / "out"
    for share in (0.3, 0.6, 1.0):
        told = log.grow(share)
        run(log, out)
    store = Store(out)
    assert [entry["kind"] for entry in store.manifest.runs] == ["run"] * 3 + ["compaction"]
    states, commits = (set((out / table).rglob("*.parquet")) for table in ("folds", "commits"))
    assert states == {out / name for name in store.names("folds")}
    assert commits > {out / name for name in store.names("commits")}
    check_equal(store, told)
    run(log, out)
    check_equal(Store(out), told)


@pytest.mark.parametrize("sizes", [[1000] * 1000, [50_000] + [500] * 999, [1 + n % 97 for n in range(1000)]])
def test_compaction_after_every_run_writes_a_byte_again_a_few_times(sizes):
    """As often as the number of runs has binary digits, and no more files than that are left."""
    files, written = dict[str, int](), 0
    for number, size in enumerate(sizes):
        files[f"{number}"] = size
        gone = upkeep._without_large(list(files), files)
        if len(gone) > 1:
            merged = sum(files.pop(name) for name in gone)
            files[f"{number}-merged"] = merged
            written += merged
    assert sum(files.values()) == sum(sizes)
    assert len(files) <= len(sizes).bit_length()
    assert 0 < written <= sum(sizes) * len(sizes).bit_length()


def at_s3(s3, url: str) -> Store:
    return Store(url, StorageOptions.of(s3.options))


def run_at(s3, log: Log, url: str) -> None:
    local_run.run([log.source], at_s3(s3, url), 4_000, 2)


def test_tables_in_an_object_store_are_those_of_a_folder(tmp_path, log, s3):
    """Row by row."""
    url, out = f"s3://{s3.bucket()}/some/tables", tmp_path / "out"
    for share in (0.4, 1.0):
        told = log.grow(share)
        run(log, out)
        run_at(s3, log, url)
    here, there = Store(out), at_s3(s3, url)
    check_equal(there, told)
    assert there.names("deliveries") == here.names("deliveries") == [], "the log has no share groups"
    for table in (*(TABLES.keys() - {"deliveries"}), "events_open", "folds"):
        found = [pa.concat_tables(map(store.read, store.names(table))) for store in (here, there)]
        assert found[0].num_rows
        names = [name for name in found[0].column_names if name != "state"]
        assert rows_of(found[0], names) == rows_of(found[1], names)
    question = (
        "select group_id, count(*) as n, max(ts) as last from commits group by group_id order by group_id"
    )
    assert answered(there, question).rows == answered(here, question).rows
    assert upkeep.vacuum(there, 1, InProcess()).after < upkeep.vacuum(here, 1, InProcess()).before
    check_equal(at_s3(s3, url), told)


@pytest.mark.parametrize("commits", [0, 1, 4, 7])
def test_cut_short_in_an_object_store_a_run_changes_nothing(log, monkeypatch, s3, commits):
    url = f"s3://{s3.bucket()}/tables"
    before = log.grow(0.4)
    run_at(s3, log, url)
    now = log.grow(0.8)
    with cut_short(monkeypatch, commits):
        run_at(s3, log, url)
    check_equal(at_s3(s3, url), before)
    run_at(s3, log, url)
    check_equal(at_s3(s3, url), now)


def test_killed_at_random_moments_an_object_store_has_the_last_version(log, s3):
    """As in a folder; nothing there knows that the other was killed."""
    chance, url = random.Random(22), f"s3://{s3.bucket()}/tables"
    known = log.grow(0.1)
    started = time.monotonic()
    run_at(s3, log, url)
    took = time.monotonic() - started
    codes = []
    for new, code in deaths(20 if FULL else 6, log, took, chance, url, s3.options):
        codes.append(code)
        found = story_in(at_s3(s3, url)).events
        assert found in (known.events, new.events)
        known = new if found == new.events else known
    assert -signal.SIGKILL in codes
    whole = log.grow(1.0)
    run_at(s3, log, url)
    check_equal(at_s3(s3, url), whole)


@pytest.fixture
def impatient(monkeypatch):
    """A lease that is renewed all the time, and whose owner counts as killed after a moment."""
    monkeypatch.setattr(lease, "RENEWED_S", 0.01)
    monkeypatch.setattr(lease, "_POLL_S", 0.01)


def test_a_second_run_into_an_object_store_is_refused_at_once(log, s3, impatient):
    """It read everything, and was refused at its last commit."""
    now, url = log.grow(0.4), f"s3://{s3.bucket()}/tables"
    run_at(s3, log, url)
    store = at_s3(s3, url)
    log.grow(0.8)
    with lease.leased(store.place):
        for refused in (store.check_free, lambda: run_at(s3, log, url)):
            with pytest.raises(
                lease.Occupied, match=f"another run writes into {url}: process {os.getpid()} of"
            ):
                refused()
    check_equal(at_s3(s3, url), now)
    assert not store.place.has(lease.NAME)


@pytest.mark.parametrize("where", ["elsewhere", "here"])
def test_a_lease_whose_owner_was_killed_does_not_last(log, s3, impatient, monkeypatch, where):
    """Of this machine at once; of another one as soon as nothing renews it."""
    now, url = log.grow(0.5), f"s3://{s3.bucket()}/tables"
    gone = multiprocessing.get_context("forkserver").Process(target=os.getpid)
    gone.start()
    gone.join()
    monkeypatch.setattr(lease, "PATIENCE_S", 0.05 if where == "elsewhere" else 3_600)
    host = socket.gethostname() if where == "here" else where
    s3.put(f"{url}/{lease.NAME}", f"{host} {gone.pid} 1".encode())
    run_at(s3, log, url)
    check_equal(at_s3(s3, url), now)
    assert not at_s3(s3, url).place.has(lease.NAME)


def test_of_two_runs_into_an_object_store_the_second_to_commit_is_told(log, s3, monkeypatch):
    """A lease that was lost, of a run that hung, costs nothing but time."""
    url = f"s3://{s3.bucket()}/tables"
    log.grow(0.4)
    run_at(s3, log, url)
    now = log.grow(0.8)
    record, overtaken = record_module.record, []

    def after_another(*args):
        if not overtaken:
            overtaken.append(True)
            at_s3(s3, url).place.delete([lease.NAME])
            run_at(s3, log, url)
        return record(*args)

    monkeypatch.setattr("kgroup.pipeline.tables.store.record", after_another)
    with pytest.raises(delta.Overtaken, match="another run wrote into"):
        run_at(s3, log, url)
    check_equal(at_s3(s3, url), now)
    run_at(s3, log, url)
    check_equal(at_s3(s3, url), now)


def test_a_bucket_that_is_not_there_and_a_key_that_is_not_let_in(log, s3):
    log.grow(0.3)
    with pytest.raises(StorageMissing, match="there is no bucket nowhere"):
        run_at(s3, log, "s3://nowhere/tables")
    url = f"s3://{s3.bucket()}/tables"
    with s3.locked(), pytest.raises(StorageDenied, match="denies us access"):
        run_at(s3, log, url)
