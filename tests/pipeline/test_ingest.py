"""Segments → a store: the same events as a replay in process, whatever the splits, damage and restarts."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgroup.admin.recording.lines import Began
from kgroup.admin.recording.observed import Observed
from kgroup.domain import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from kgroup.errors import ConfigError, KgroupError
from kgroup.history.fold.events import Event
from kgroup.history.replay import Story, replay
from kgroup.history.sources import logs as sources
from kgroup.history.sources.folders import LocalFolder
from kgroup.history.sources.logs import segment_logs, topic_names_near
from kgroup.pipeline.ask.story import story_in
from kgroup.pipeline.tables import ingest as ingest_module
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import Store
from kgroup.protocol.batches import LogRecord, encode_batch
from tests.pipeline import local_run
from tests.pipeline.made_logs import START_MS, World, made_batches, write_log, write_names
from tests.sampled import FULL, in_full

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
INCIDENTS = Path(__file__).resolve().parents[1] / "data" / "incidents"
NAMES = sorted(folder.name for folder in INCIDENTS.iterdir() if folder.is_dir())


def in_process(*paths: Path) -> Story:
    return replay(segment_logs(paths), topic_names=topic_names_near(paths))


def check_equal(store: Store, expected: Story) -> None:
    """Deliveries of share groups, which are in another topic, are compared in test_deliveries."""
    found = story_in(store)
    found.events = [event for event in found.events if event.log_topic == OFFSETS_TOPIC]
    found.coverage = [covered for covered in found.coverage if SHARE_STATE_TOPIC not in covered.source]
    assert [line(e) for e in found.events] == [line(e) for e in expected.events]
    assert found.events == expected.events
    assert found.coverage == [c for c in expected.coverage if c.records]


def line(event: Event) -> str:
    return (
        f"{event.log_partition}:{event.offset}-{event.end_offset} {event.group} {event.kind} {event.detail}"
    )


@given(
    seed=st.integers(0, 10_000),
    split_bytes=st.integers(300, 20_000),
    shares=st.integers(1, 4),
    cuts=st.lists(st.floats(0.05, 0.95), max_size=2),
)
@example(seed=211, split_bytes=300, shares=1, cuts=[])  # a step is open where a gap begins
@settings(max_examples=40 if FULL else 8, deadline=None)
def test_any_cut_tells_the_same_story(seed, split_bytes, shares, cuts):
    """Any split size and number of shares, and a log that grows between runs; without Spark, to try many."""
    data = b"".join(made_batches(seed, 90))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        log = root / "in" / "__consumer_offsets-6" / f"{0:020d}.log"
        log.parent.mkdir(parents=True)
        write_names(root / "in")
        for share in (*sorted(cuts), 1.0):
            log.write_bytes(data[: int(len(data) * share)])
            local_run.run([root / "in"], Store(root / "out"), split_bytes, shares)
        check_equal(Store(root / "out"), in_process(root / "in"))


def test_of_a_recorders_folder_the_log_is_read_and_none_that_was_set_aside(tmp_path):
    name = f"__consumer_offsets-6/{0:020d}.log"
    logs = (tmp_path / "in" / name, tmp_path / "in" / "former-2024-10-04T000000Z" / name)
    for seed, log in enumerate(logs, 21):
        log.parent.mkdir(parents=True)
        log.write_bytes(b"".join(made_batches(seed, 90)))
    Observed(LocalFolder(tmp_path / "in")).append([Began(0, "0.1.0", None, False, 0)], 0)
    local_run.run([tmp_path / "in"], Store(tmp_path / "out"), 1 << 20, 1)
    check_equal(Store(tmp_path / "out"), in_process(logs[0].parent))


def test_a_run_looks_once_whether_its_segments_are_of_one_cluster(tmp_path, monkeypatch):
    """A look reads copies of a partition, and a run has many questions about what it found."""
    data = b"".join(made_batches(21, 90))
    for copy in ("one", "two"):
        log = tmp_path / "in" / copy / "__consumer_offsets-6" / f"{0:020d}.log"
        log.parent.mkdir(parents=True)
        log.write_bytes(data)
    looks, check = [], sources.check_one_cluster
    monkeypatch.setattr(sources, "check_one_cluster", lambda found: looks.append(found) or check(found))
    for runs in (1, 2):
        local_run.run([tmp_path / "in"], Store(tmp_path / "out"), 1 << 20, 1)
        assert len(looks) == runs


@pytest.mark.parametrize("seed", range(12 if FULL else 4))
def test_a_fold_goes_on_with_names_learned_later(tmp_path, seed):
    """Run day by day, topic names known from the second day on: what is told from there on is as in one run.

    What the first day told stays as it was told, by id: nobody knew the name.
    """
    world, batches, base = World(seed), [], 0
    for step in range(40):
        pairs = world.change("consumer-late-0", START_MS + step * 60_000)
        records = [LogRecord(key, value, timestamp_ms=START_MS + step * 60_000) for key, value in pairs]
        batches.append(encode_batch(records, base_offset=base))
        base += len(records)
    log = tmp_path / "in" / "__consumer_offsets-6" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    cut = 15 + seed % 7
    log.write_bytes(b"".join(batches[:cut]))
    local_run.run([tmp_path / "in"], by_day := Store(tmp_path / "by-day"), 700, 2)
    write_names(tmp_path / "in")
    log.write_bytes(b"".join(batches))
    local_run.run([tmp_path / "in"], by_day := Store(tmp_path / "by-day"), 700, 2)
    local_run.run([tmp_path / "in"], at_once := Store(tmp_path / "at-once"), 700, 2)
    found, expected = story_in(by_day).events, story_in(at_once).events
    assert [(e.offset, e.kind) for e in found] == [(e.offset, e.kind) for e in expected]
    last = int.from_bytes(batches[cut - 1][:8], "big")
    assert [e for e in found if e.offset >= last] == [e for e in expected if e.offset >= last]
    assert found != expected and expected == in_process(tmp_path / "in").events


@pytest.mark.parametrize("name", NAMES)
def test_any_cut_of_an_incident(tmp_path, name):
    for split_bytes in (150, 1_000, 1 << 20):
        store = Store(tmp_path / str(split_bytes))
        local_run.run([INCIDENTS / name], store, split_bytes, 2)
        check_equal(store, in_process(INCIDENTS / name))


@in_full("test_an_incident has two of them on Spark, test_any_cut_of_an_incident all without")
def test_all_incidents(spark, tmp_path, incidents):
    ingest(spark.sparkContext, incidents, store := Store(tmp_path), split_bytes=12_000)
    check_equal(store, in_process(*incidents))


def test_tables_are_of_one_cluster(tmp_path):
    """Folders of several are refused, and what is read later has to be of the same one."""
    store, names = Store(tmp_path / "tables"), ("deletion", "upgrade-and-back")
    for name in names:
        shutil.copytree(INCIDENTS / name, tmp_path / name)
        (tmp_path / name / "meta.properties").write_text(f"version=1\ncluster.id={name}\n")
    with pytest.raises(ConfigError, match="are of different clusters"):
        local_run.run([tmp_path / name for name in names], store, 12_000, 1)
    assert store.empty
    local_run.run([tmp_path / "deletion"], store, 12_000, 1)
    with pytest.raises(ConfigError, match="the tables are of cluster deletion"):
        local_run.run([tmp_path / "upgrade-and-back"], store, 12_000, 1)


@pytest.mark.parametrize("name", ["transactions", "upgrade-and-back"])
def test_an_incident(spark, tmp_path, name):
    ingest(spark.sparkContext, [INCIDENTS / name], store := Store(tmp_path), split_bytes=2_000, shares=3)
    check_equal(store, in_process(INCIDENTS / name))


@pytest.mark.parametrize(("split_bytes", "shares"), [(1 << 30, 1), (50_000, 3)])
def test_events_do_not_depend_on_splits_and_shares(spark, made, tmp_path, split_bytes, shares):
    store = Store(tmp_path)
    ingest(spark.sparkContext, [made], store, split_bytes=split_bytes, shares=shares)
    check_equal(store, in_process(made))


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> tuple[Path, Story]:
    """Logs of some megabytes (KGROUP_PIPELINE_MB), and what a replay in process tells."""
    root = tmp_path_factory.mktemp("large")
    wanted = float(os.environ.get("KGROUP_PIPELINE_MB", "20" if FULL else "3")) * 2**20
    sample = len(b"".join(made_batches(5, 400))) / 400
    for partition in (3, 44):
        folder = root / f"__consumer_offsets-{partition}"
        write_log(folder, seed=partition, batches=int(wanted / 2 / sample), segments=4)
    return root, in_process(root)


@pytest.mark.parametrize("split_bytes", [64 << 20, 1 << 20, 150_000])
def test_large_logs_do_not_depend_on_splits(spark, large, tmp_path, split_bytes):
    """`spark` is local[2]."""
    source, expected = large
    report = ingest(spark.sparkContext, [source], store := Store(tmp_path), split_bytes=split_bytes)
    assert report.splits >= 2 * report.bytes_read // (3 * split_bytes)
    check_equal(store, expected)


def test_running_again_adds_nothing(spark, made, tmp_path):
    first = ingest(spark.sparkContext, [made], Store(tmp_path))
    before = Store(tmp_path).manifest
    again = ingest(spark.sparkContext, [made], Store(tmp_path))
    assert (first.run, again.run, again.rows) == (1, None, {})
    assert Store(tmp_path).manifest == before


def test_a_log_that_grows_folds_on(spark, tmp_path):
    """Three runs over one growing file, cut inside batches, are one run over the whole."""
    data = b"".join(made_batches(11, 400))
    log = tmp_path / "in" / "__consumer_offsets-6" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    write_names(log.parent.parent)
    for share in (0.3, 0.71, 1.0):
        log.write_bytes(data[: int(len(data) * share)])
        ingest(spark.sparkContext, [tmp_path / "in"], Store(tmp_path / "out"), split_bytes=30_000, shares=2)
    check_equal(Store(tmp_path / "out"), in_process(tmp_path / "in"))
    rows = spark.read.parquet(*Store(tmp_path / "out").files("commits")).drop("run")
    whole = Store(tmp_path / "whole")
    ingest(spark.sparkContext, [tmp_path / "in"], whole)
    expected = spark.read.parquet(*whole.files("commits")).drop("run")
    assert rows.exceptAll(expected).count() == expected.exceptAll(rows).count() == 0
    assert rows.select("log_offset").distinct().count() == rows.count()


def test_bad_segments_do_not_stop_the_job(spark, tmp_path):
    source = tmp_path / "in"
    write_log(source / "__consumer_offsets-2", seed=3, batches=120)
    files = sorted((source / "__consumer_offsets-2").glob("*.log"))
    damaged = bytearray(files[1].read_bytes())
    damaged[1000:1400] = os.urandom(400)
    files[1].write_bytes(damaged)
    (source / "__consumer_offsets-9").mkdir()
    (source / "__consumer_offsets-9" / f"{0:020d}.log").write_bytes(b"not a log" * 500)
    store = Store(tmp_path / "out")
    ingest(spark.sparkContext, [source], store, split_bytes=8_000)
    bad = store.bad_ranges()
    assert {(part, Path(b.source).name) for part, b in bad} == {(2, files[1].name), (9, f"{0:020d}.log")}
    expected = in_process(source)
    check_equal(store, expected)
    assert sorted(map(str, (b for _, b in bad if _ == 2))) == sorted(
        str(b) for c in expected.coverage if c.partition == 2 for b in c.bad
    )


def test_a_run_cut_short_leaves_the_old_tables(spark, made, tmp_path, monkeypatch):
    source = tmp_path / "in"
    write_log(source / "__consumer_offsets-2", seed=3, batches=60, segments=2)
    late = sorted((source / "__consumer_offsets-2").glob("*.log"))[1]
    data = late.read_bytes()
    late.unlink()
    ingest(spark.sparkContext, [source], Store(tmp_path / "out"))
    before, files = Store(tmp_path / "out").manifest, sorted((tmp_path / "out").rglob("*.parquet"))
    late.write_bytes(data)

    def fails(*_: object) -> None:
        raise KgroupError("cut short")

    with monkeypatch.context() as patch:
        patch.setattr(ingest_module, "_check_unchanged", fails)
        with pytest.raises(KgroupError, match="cut short"):
            ingest(spark.sparkContext, [source], Store(tmp_path / "out"))
    assert Store(tmp_path / "out").manifest == before
    assert sorted((tmp_path / "out").rglob("*.parquet")) == files
    ingest(spark.sparkContext, [source], Store(tmp_path / "out"))
    check_equal(Store(tmp_path / "out"), in_process(source))


def test_copies_of_one_partition_are_read_once(spark, tmp_path):
    """Two replicas' folders of one partition hold the same offsets."""
    write_log(tmp_path / "a" / "__consumer_offsets-2", seed=3, batches=90)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    store = Store(tmp_path / "out")
    ingest(spark.sparkContext, [tmp_path / "a", tmp_path / "b"], store, split_bytes=15_000)
    check_equal(store, in_process(tmp_path / "a", tmp_path / "b"))
    commits = spark.read.parquet(*store.files("commits"))
    assert commits.count() == commits.select("log_offset").distinct().count()


def test_two_runs_at_once_are_refused(made, tmp_path):
    with Store(tmp_path).run(), pytest.raises(ConfigError, match="another run"), Store(tmp_path).run():
        pass
