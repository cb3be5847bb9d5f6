"""The live topic as a source: streams that are killed, runs that go on, and where a first run begins."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow.parquet as pq
from jsonschema import validate

from kgroup.cli.schemas import schema_for
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.tls import values
from kgroup.errors import ConfigError
from kgroup.history.replay import Story, replay
from kgroup.history.sources.live import LiveLog
from kgroup.history.sources.logs import segment_logs
from kgroup.pipeline.read.inputs import LiveCluster, Segments, Since, connection_of, live_topic
from kgroup.pipeline.read.source import NAME, OffsetsLogSource
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import Store
from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served
from tests.pipeline.live_query import started
from tests.pipeline.made_logs import write_log
from tests.pipeline.test_ingest import check_equal

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
HERE = Path(__file__).resolve().parent


@pytest.fixture
def client() -> Iterator[Client]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with served(Cluster(config=settings, offsets_partitions=3)) as bootstrap:
        client = Client(bootstrap)
        client.create_topic("orders", 6)
        yield client
        client.close()


def live(client: Client, since: Since | None = None) -> LiveCluster:
    return LiveCluster(ConnectionSettings(parse_bootstrap(client.bootstrap)), since)


def grow(client: Client, rounds: range) -> None:
    for offset in rounds:
        client.commit(f"batch-{offset % 7}", "orders", {offset % 6: offset, (offset + 1) % 6: offset})


def in_process(client: Client) -> Story:
    with live_topic(live(client).connection, with_names=True) as topic:
        return replay([LiveLog(topic, p) for p in topic.partitions], topic_names=topic.topic_names)


def test_runs_over_the_live_topic_go_on(spark, client, tmp_path):
    """Small splits; groups with members; what came since the run before; nothing twice."""
    store = tmp_path / "out"
    client.classic_group("classic", "orders", {"a": [0, 1], "b": [2, 3, 4, 5]})
    grow(client, range(60))
    first = ingest(spark.sparkContext, live(client), Store(store), split_bytes=2_000)
    client.consumer_member("modern", "orders", "pay-0")
    grow(client, range(60, 90))
    second = ingest(spark.sparkContext, live(client), Store(store), split_bytes=1_000)
    assert (first.run, second.run) == (1, 2) and first.splits > 3 and first.bytes_read > 4_000
    assert ingest(spark.sparkContext, live(client), Store(store)).run is None
    check_equal(Store(store), in_process(client))
    commits = spark.read.parquet(*Store(store).files("commits"))
    assert (
        commits.count()
        == commits.select("group_id", "topic", "partition", "offset").distinct().count()
        == 180
    )


def test_a_followed_topic_is_readable_while_it_grows(client, tmp_path):
    """The command itself: what is committed is in the tables of the run behind it, with the events so far."""
    out = tmp_path / "out"
    command = ["pipeline", "run", "--out", str(out), "-b", client.bootstrap, "--follow", "--every", "1s"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "kgroup", *command, "--master", "local[2]"], stderr=log, stdout=log
        )
    try:
        for rounds in (range(20), range(20, 30), range(30, 45)):
            grow(client, rounds)
            while committed(Store(out)) < 2 * rounds.stop:
                assert process.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.2)
            assert committed(Store(out)) == 2 * rounds.stop
            check_equal(Store(out), in_process(client))
        process.send_signal(signal.SIGINT)
        assert process.wait(900) == 130
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in (tmp_path / "log").read_text()


def committed(store: Store) -> int:
    """How many rows of commits are readable."""
    return sum(pq.ParquetFile(path).metadata.num_rows for path in store.files("commits"))


def test_a_killed_stream_goes_on_from_its_checkpoint(spark, client, tmp_path):
    """Killed with -9 between commits and restarted: the table is that of one batch read."""
    done = tmp_path / "checkpoint" / "commits"
    command = [sys.executable, str(HERE / "live_query.py"), client.bootstrap, str(tmp_path)]
    folders = os.pathsep.join(map(str, [HERE.parents[1], HERE]))
    # What is killed cannot tidy up.
    environ = {**os.environ, "PYTHONPATH": folders, "TMPDIR": str(tmp_path)}
    grow(client, range(20))
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, env=environ, start_new_session=True)
    try:
        offset, deadline = 20, time.monotonic() + 240
        while (batches := len(list(done.glob("[0-9]*")))) < 3:
            assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "log").read_text()
            if offset < 25 * batches:
                grow(client, range(offset, offset + 5))
                offset += 5
            time.sleep(0.05)
        grow(client, range(offset, offset + 30))
        offset += 30
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    grow(client, range(offset, offset + 50))
    # Where a batch had begun, Spark ends the first of these runs behind it.
    for _ in range(2):
        started(spark, client.bootstrap, str(tmp_path), availableNow=True).awaitTermination()
    found = spark.read.parquet(str(tmp_path / "commits"))
    read = spark.read.format(NAME).option("bootstrap.servers", client.bootstrap)
    expected = read.option("splitBytes", 8_000).load()
    assert found.count() == expected.count() == 2 * (offset + 50)
    assert found.exceptAll(expected).count() == expected.exceptAll(found).count() == 0


def test_a_first_run_may_begin_later(client, tmp_path):
    """At an offset or a time, live and in segments; an offset read before goes on from there."""
    grow(client, range(50))
    with live_topic(live(client).connection) as topic:
        parts = topic.partitions
        headers = {p: [h for _, hs in LiveLog(topic, p).batches() for h in hs] for p in parts}
    part = max(parts, key=lambda p: len(headers[p]))
    middle = headers[part][len(headers[part]) // 2]
    for since in (Since(offset=middle.base_offset), Since(time_ms=middle.max_timestamp_ms)):
        plan = [s for s in live(client, since).plan(10**9, {}) if s.part == part]
        offsets = [h.base_offset for split in plan for _, hs in split.reader().chunks() for h in hs]
        stamped = next(h for h in headers[part] if h.max_timestamp_ms >= middle.max_timestamp_ms)
        begin = middle if since.offset is not None else stamped
        assert offsets == [h.base_offset for h in headers[part] if h.base_offset >= begin.base_offset]
        known = live(client, since).plan(10**9, {part: middle.last_offset})
        assert min(s.start for s in known if s.part == part) == middle.last_offset + 1


def test_segments_from_a_time_on(tmp_path):
    write_log(tmp_path / "__consumer_offsets-2", seed=8, batches=90, segments=4)
    (log,) = segment_logs([tmp_path])
    headers = [h for _, hs in log.batches() for h in hs]
    for moment in (0, headers[40].max_timestamp_ms, headers[-1].max_timestamp_ms, 10**15):
        plan = Segments.of([tmp_path], Since(time_ms=moment)).plan(4_000, {})
        found = [h.base_offset for split in plan for _, hs in split.reader().chunks() for h in hs]
        assert found == [h.base_offset for h in headers if h.max_timestamp_ms >= moment]


def test_the_command_reads_a_cluster(client, tmp_path, kgroup):
    grow(client, range(30))
    where = ["--out", str(tmp_path), "-b", client.bootstrap, "--master", "local[1]"]
    done = kgroup("pipeline", "run", *where, "--since", "1h", "-o", "json")
    assert (done.code, done.err) == (0, "")
    validate(done.document, schema_for("pipeline run"))
    rows = {row["table"]: row["rows"] for row in done.data["rows"]}
    assert rows["commits"] == 60
    assert {c["source"] for c in done.data["coverage"]} <= {f"__consumer_offsets-{p}" for p in range(3)}


def test_settings_have_confluent_kafkas_names():
    found = connection_of(
        {
            "bootstrap.servers": "a:1,b",
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "u",
            "sasl.password": "p",
            "ssl.ca.location": "ca.pem",
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    assert found.bootstrap == (("a", 1), ("b", 9092)) and found.security.protocol == "SASL_SSL"
    tls = found.security.tls
    assert tls is not None and not tls.endpoint_identification
    assert tls.trust == values.Store("ca.pem", "ssl.ca.location", "PEM")
    with pytest.raises(ConfigError, match="no broker address"):
        connection_of({})


def test_a_source_needs_a_path_or_a_cluster(spark):
    spark.dataSource.register(OffsetsLogSource)
    with pytest.raises(Exception, match="needs a path or a cluster"):
        spark.read.format(NAME).load().count()
