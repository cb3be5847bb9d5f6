"""The table `deliveries`: what replay-log reports of `__share_group_state`, whatever the cuts (KIP-932)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

pytest.importorskip("deltalake")

from confluent_kafka import AcknowledgeType, Producer, ShareConsumer

from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.domain import SHARE_STATE_TOPIC
from kgroup.durations import iso
from kgroup.errors import BrokerRefused, ErrorCode
from kgroup.history.decode.scan import Scanner
from kgroup.history.deliveries import add_deliveries
from kgroup.history.fold.events import Event
from kgroup.history.replay import replay
from kgroup.history.sources.live import LiveLog
from kgroup.history.sources.logs import logs_of, segments_of, state_logs_of, topic_names_near
from kgroup.pipeline.ask.replaying import as_story
from kgroup.pipeline.ask.sql import answered
from kgroup.pipeline.read.inputs import LiveCluster, live_topic
from kgroup.pipeline.spark.workers import InProcess
from kgroup.pipeline.tables.delivering import delivery_rows
from kgroup.pipeline.tables.ingest import fill
from kgroup.pipeline.tables.store import Store
from kgroup.pipeline.tables.upkeep import compact
from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served
from tests.pipeline import local_run
from tests.pipeline.conftest import INCIDENTS
from tests.ran import Ran

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
QUEUE = INCIDENTS / "share-group"


def replayed(source: Path) -> list[Event]:
    """What `replay-log --all-commits` reports of the topic, partition by partition."""
    look, names = segments_of([source]), topic_names_near([source])
    story = replay(logs_of(look), topic_names=names, runs=False)
    add_deliveries(story, state_logs_of(look), names, runs=False)
    found = [event for event in story.events if event.log_topic == SHARE_STATE_TOPIC]
    return sorted(found, key=lambda event: (event.log_partition, event.offset))


def stored(store: Store) -> list[dict[str, object]]:
    rows = answered(store, "select * exclude run from deliveries order by part, log_offset, seq").rows
    return [dict(row) for row in rows]


def expected(events: list[Event]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for part in sorted({event.log_partition for event in events}):
        table = delivery_rows([event for event in events if event.log_partition == part])
        rows += table.set_column(
            table.schema.get_field_index("ts"), "ts", table["ts"].cast("int64")
        ).to_pylist()
    return rows


def run(source: Path, out: Path) -> Store:
    local_run.run([source], Store(out), 4_000, 2)
    return Store(out)


def test_rows_are_what_replay_log_reports(tmp_path: Path) -> None:
    """Kafka 4.4.0: 5 was rejected, 7 was released until the limit of 3; then a reset, and a deletion."""
    told = replayed(QUEUE)
    store = run(QUEUE, tmp_path / "out")
    assert stored(store) == expected(told)
    look, names = segments_of([QUEUE]), topic_names_near([QUEUE])
    story = replay(logs_of(look), topic_names=names)
    add_deliveries(story, state_logs_of(look), names, runs=False)
    found = as_story(store, "queue")
    assert found.events == story.events and found.state_coverage == story.state_coverage
    assert found.stored("queue") is not None, "an empty answer is not an unknown one"
    assert {event.kind.value for event in told} >= {
        "delivery-state-created",
        "start-offset-moved",
        "records-acknowledged",
        "records-released",
        "records-archived",
        "start-offset-set",
        "delivery-state-deleted",
    }
    question = (
        "select topic, partition, unnest(delivered, recursive := true) from deliveries "
        "where event = 'records-archived' order by log_offset"
    )
    assert [tuple(row.values()) for row in answered(store, question).rows] == [
        ("jobs", 0, 5, 5, 1),
        ("jobs", 0, 7, 7, 3),
    ]


def test_rows_are_the_same_wherever_runs_end(tmp_path: Path) -> None:
    """Each time with one batch more; a compaction in between keeps where the fold stopped."""
    source = tmp_path / "in"
    shutil.copytree(QUEUE, source)
    (file,) = (f for f in source.glob(f"{SHARE_STATE_TOPIC}-*/*.log") if f.stat().st_size)
    data = file.read_bytes()
    ends = [header.end for header in Scanner(str(file)).headers(data, final=True)]
    assert len(ends) > 5
    for number, end in enumerate(ends):
        file.write_bytes(data[:end])
        store = run(source, tmp_path / "out")
        if number == 3:
            compact(store, InProcess())
    runs = len(store.manifest.runs)
    assert stored(store) == stored(run(QUEUE, tmp_path / "whole")) and stored(store)
    assert len(run(source, tmp_path / "out").manifest.runs) == runs, "nothing new is no run"


def test_a_deleted_segment_leaves_rows_and_proves_no_more(tmp_path: Path) -> None:
    """Brokers delete what lies before the newest snapshots: where the next run begins later, that is said."""
    source = tmp_path / "in"
    shutil.copytree(QUEUE, source)
    (file,) = (f for f in source.glob(f"{SHARE_STATE_TOPIC}-*/*.log") if f.stat().st_size)
    data = file.read_bytes()
    headers = list(Scanner(str(file)).headers(data, final=True))
    file.write_bytes(data[: headers[1].end])
    first = stored(run(source, tmp_path / "out"))
    file.unlink()
    later = headers[4]
    file.with_name(f"{later.base_offset:020d}.log").write_bytes(data[headers[3].end :])
    store = run(source, tmp_path / "out")
    assert stored(store)[: len(first)] == first
    (coverage,) = store.manifest.delivery_coverage()
    assert coverage.missing == later.base_offset - headers[1].last_offset - 1
    assert coverage.complete_from == later.base_offset


def test_damage_is_named_and_ends_with_5(kgroup: Callable[..., Ran], tmp_path: Path) -> None:
    source = tmp_path / "in"
    shutil.copytree(QUEUE, source)
    (file,) = (f for f in source.glob(f"{SHARE_STATE_TOPIC}-*/*.log") if f.stat().st_size)
    data = bytearray(file.read_bytes())
    second = list(Scanner(str(file)).headers(bytes(data), final=True))[1]
    data[second.end - 1] ^= 1
    file.write_bytes(data)
    told = kgroup("pipeline", "run", str(source), "--out", str(tmp_path / "out"), "-o", "json")
    assert told.code == 5
    assert any(str(file) in error["message"] for error in told.document["errors"])
    again = kgroup("pipeline", "run", str(source), "--out", str(tmp_path / "out"), "-o", "json")
    assert (again.code, again.data["run"]) == (5, None)


def test_the_commands_show_the_table_and_what_was_read(kgroup: Callable[..., Ran], tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    told = kgroup("pipeline", "run", str(QUEUE), "--out", out, "-o", "json")
    assert told.code == 0, told.err
    assert {row["table"]: row["rows"] for row in told.data["rows"]}["deliveries"] == len(replayed(QUEUE))
    assert {c["topic"] for c in told.data["coverage"]} == {"__consumer_offsets", SHARE_STATE_TOPIC}
    asked = ("pipeline", "query", "deliveries", out, "-o", "json")
    rows = kgroup(*asked, "--group", "queue").data["rows"]
    assert [row["event"] for row in rows] == [event.kind.value for event in replayed(QUEUE)]
    assert kgroup(*asked, "--group", "another").data["rows"] == []
    events = kgroup("pipeline", "events", out, "--group", "queue", "-o", "json")
    alone = kgroup("replay-log", "queue", "--files", str(QUEUE), "--all-commits", "-o", "json")
    assert events.code == 0 and events.data["events"] == alone.data["events"]
    first = min(event["timestamp_ms"] for event in alone.data["events"])
    assert kgroup("pipeline", "query", "members", out, "--at", str(iso(first - 1))).code == 0
    covered = kgroup("pipeline", "query", "coverage", out, "-o", "json").data["rows"]
    assert {row["log_topic"] for row in covered} == {"__consumer_offsets", SHARE_STATE_TOPIC}


def test_share_groups_without_their_deliveries_end_with_5(kgroup: Callable[..., Ran], tmp_path: Path) -> None:
    source = tmp_path / "in"
    shutil.copytree(QUEUE, source)
    for folder in source.glob(f"{SHARE_STATE_TOPIC}-*"):
        shutil.rmtree(folder)
    for run in (1, None):  # the second finds nothing new, and still has not seen them
        told = kgroup("pipeline", "run", str(source), "--out", str(tmp_path / "out"), "-o", "json")
        assert told.code == 5 and told.data["run"] == run
        (error,) = told.document["errors"]
        assert f"{SHARE_STATE_TOPIC}: there are share groups, and no segment" in error["message"]
        assert "both topics" in error["hint"]


@pytest.fixture
def client() -> Iterator[Client]:
    rules = {"group.share.heartbeat.interval.ms": "500", "group.share.min.heartbeat.interval.ms": "500"}
    with served(Cluster(config=rules, offsets_partitions=3)) as bootstrap:
        made = Client(bootstrap)
        made.create_topic("jobs", 1)
        yield made
        made.close()


def work(bootstrap: str, values: set[bytes]) -> None:
    """A share consumer of librdkafka gets these jobs, rejects the one that is bad, and leaves."""
    producer = Producer({"bootstrap.servers": bootstrap})
    settings = {"bootstrap.servers": bootstrap, "group.id": "workers", "log_level": 0}
    with ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"}) as consumer:
        consumer.subscribe(["jobs"])
        left = set(values)
        while left:
            # Without share.auto.offset.reset a group begins with what comes once its member reads.
            for value in left:
                producer.produce("jobs", value)
            producer.flush(30)
            for job in consumer.poll(1):
                assert job.error() is None
                bad = job.value() == b"bad"
                consumer.acknowledge(job, AcknowledgeType.REJECT if bad else AcknowledgeType.ACCEPT)
                left.discard(job.value() or b"")
            assert not [error for error in consumer.commit_sync(30).values() if error]


def test_a_live_topic_goes_on_where_the_run_before_stopped(client: Client, tmp_path: Path) -> None:
    live = LiveCluster(ConnectionSettings(parse_bootstrap(client.bootstrap)))
    store = Store(tmp_path / "out")
    for jobs in ({b"a", b"bad"}, {b"b", b"c"}):
        work(client.bootstrap, jobs)
        before = len(stored(store))
        report = fill(InProcess(), live, store, 4_000, 1)
        assert report.unread == () and len(stored(store)) > before
    with live_topic(live.connection, with_names=True) as topic:
        story = replay([LiveLog(topic, p) for p in topic.partitions], topic_names=topic.topic_names)
        found = live.state_logs({})
        assert found is not None and not found.unread
        for state in found.logs:
            with state.opened() as log:
                add_deliveries(story, [log], topic.topic_names, runs=False)
    told = [event for event in story.events if event.log_topic == SHARE_STATE_TOPIC]
    assert stored(store) == expected(told)
    assert [row["event"] for row in stored(store)].count("records-archived") >= 1
    assert fill(InProcess(), live, store, 4_000, 1).run is None


def test_a_topic_that_may_not_be_read_is_named_and_ends_with_5(
    kgroup: Callable[..., Ran], client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> NoReturn:
        raise BrokerRefused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the topic may not be read")

    client.commit("batch", "jobs", {0: 1})
    monkeypatch.setattr(LiveCluster, "state_logs", refused)
    told = kgroup("pipeline", "run", "--out", str(tmp_path / "out"), "-b", client.bootstrap, "-o", "json")
    assert told.code == 5
    (error,) = told.document["errors"]
    assert error["code"] == "TOPIC_AUTHORIZATION_FAILED" and SHARE_STATE_TOPIC in error["message"]
    assert {row["table"]: row["rows"] for row in told.data["rows"]}["commits"] == 1
