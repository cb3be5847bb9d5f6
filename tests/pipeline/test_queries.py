"""Questions to a store: the same answers as the history gives in process."""

from collections import Counter

import pytest

pytest.importorskip("pyspark")

from kgroup.history.fold.events import Kind
from kgroup.history.replay import At, replay
from kgroup.history.sources.logs import segment_logs, topic_names_near
from kgroup.history.stats import scan
from kgroup.pipeline.ask.jobs import progress
from kgroup.pipeline.ask.queries import in_ms, table
from kgroup.pipeline.ask.replaying import replay_on_spark
from kgroup.pipeline.ask.spark_views import derived, rows_of
from kgroup.pipeline.ask.sql import answered
from kgroup.pipeline.ask.story import story_in
from kgroup.pipeline.tables.ingest import ingest
from kgroup.pipeline.tables.store import Store
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord, encode_batch

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def store(spark, made, tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))
    ingest(spark.sparkContext, [made], store)
    return store


@pytest.mark.parametrize("share", [0.2, 0.77, None])
def test_state_at_a_moment(spark, made, store, share):
    """Equal to `replay-log --at`: transactions by their markers, tombstones, never half a batch."""
    logs = segment_logs([made])
    end = max(h.max_timestamp_ms for log in logs for _, headers in log.batches() for h in headers)
    start = min(h.base_timestamp_ms for log in logs for _, headers in log.batches() for h in headers)
    moment = None if share is None else int(start + (end - start) * share)
    story = replay(logs, at=None if moment is None else At(time_ms=moment))
    expected = {
        (part, state.group_id, place.topic, place.partition): (commit.offset, commit.log_offset)
        for part, state in story.states
        for place, commit in state.offsets.items()
    }
    rows = derived(spark, store, "state_at", at_ms=moment).collect()
    found = {(r.part, r.group_id, r.topic, r.partition): (r.offset, r.log_offset) for r in rows}
    assert found == expected and len(found) == len(rows)


@pytest.mark.parametrize("moment", [900, 1000, 2999, 5000, 2**41, None])
def test_one_batch_with_a_wrong_time_freezes_no_state(spark, tmp_path, moment):
    """One producer's clock was far ahead, another's behind: the order of the log decides."""
    stamps = [1000, 2000, 2**42, 3000, 500, 4000, 5000, 2**42, 6000]
    log = tmp_path / "in" / "__consumer_offsets-3" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    with log.open("wb") as file:
        for offset, stamp in enumerate(stamps):
            key = r.encode_key(r.OffsetCommitKey(group="g", topic="t", partition=offset % 4))
            value = r.encode_value(r.OffsetCommitValue(offset=offset, commit_timestamp=stamp), 3)
            file.write(encode_batch([LogRecord(key, value, timestamp_ms=stamp)], base_offset=offset))
    ingest(spark.sparkContext, [tmp_path / "in"], store := Store(tmp_path / "out"))
    last = max((n for n, ms in enumerate(stamps) if moment is None or ms <= moment), default=-1)
    expected = {offset % 4: offset for offset in range(last + 1)}
    story = replay(segment_logs([tmp_path / "in"]), at=None if moment is None else At(time_ms=moment))
    assert {p.partition: c.offset for _, s in story.states for p, c in s.offsets.items()} == expected
    found = derived(spark, store, "state_at", at_ms=moment).collect()
    assert {row.partition: row.offset for row in found} == expected
    at = "null" if moment is None else f"make_timestamp({moment} * 1000)"
    rows = answered(store, f"select s.partition, s.offset from state_at({at}) s").rows
    assert {row["partition"]: row["offset"] for row in rows} == expected


def test_top_writers(spark, made, store):
    told = scan(segment_logs([made]))
    expected = {
        name: (tally.size, tally.records, tally.tombstones) for name, tally in told.by_group().items()
    }
    rows = derived(spark, store, "top_writers").collect()
    assert {r.group_id: (r.bytes, r.records, r.tombstones) for r in rows} == expected


def test_commit_rates(spark, store):
    rates = derived(spark, store, "commit_rates").collect()
    commits = table(spark, store, "commits").where("not is_tombstone")
    assert sum(r.commits for r in rates) == commits.count()
    assert len({(r.group_id, r.start) for r in rates}) == len(rates)


def test_progress_of_a_group(spark, store):
    """Per partition the last offset of the whole time is that of the state, and every commit is counted."""
    group = next(
        r.group_id for r in derived(spark, store, "state_at").collect() if r.group_id.startswith("simple")
    )
    rows = rows_of(spark, store, progress(group, 10**12))
    last = {(r["topic"], r["partition"]): r["offset"] for r in rows}
    state = derived(spark, store, "state_at").where(f"group_id = '{group}'").collect()
    assert {(r.topic, r.partition): r.offset for r in state}.items() <= last.items()
    assert len(last) == len(rows)


def test_events_as_tables(spark, store):
    story = story_in(store)
    rows = table(spark, store, "events").collect()
    assert Counter(r.event for r in rows) == Counter(str(e.kind) for e in story.events)
    suspicious = [e for e in story.events if e.suspicious or (e.kind is Kind.REWOUND and not e.proven)]
    assert any(e.suspicious for e in suspicious)
    assert derived(spark, store, "suspicious_commits").count() == len(suspicious)
    done = [e for e in story.events if e.kind == "rebalance-completed"]
    found = derived(spark, store, "rebalances").collect()
    assert sorted((r.group_id, r.log_offset) for r in found) == sorted((e.group, e.offset) for e in done)


def test_a_replay_on_spark(spark, made):
    names = ["classic-0-0", "consumer-0-1", *(f"simple-{n}-1" for n in range(97))]
    logs = segment_logs([made])
    expected = replay(logs, topic_names=topic_names_near([made]), names=names)
    story = replay_on_spark(spark.sparkContext, [made], names=names)
    assert story.events == expected.events
    assert story.coverage == expected.coverage


def test_times_beyond_any_calendar_break_no_question(spark, tmp_path):
    """As a garbled record may have them under a sound checksum; Spark counts in microseconds."""
    key = r.encode_key(r.OffsetCommitKey(group="g", topic="t", partition=0))
    value = r.encode_value(r.OffsetCommitValue(offset=5, commit_timestamp=2**63 - 1), 3)
    records = [LogRecord(key, value, timestamp_ms=ms) for ms in (2**52, 2**53)]
    log = tmp_path / "in" / "__consumer_offsets-3" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(encode_batch(records[:1], base_offset=0) + encode_batch(records[1:], base_offset=1))
    ingest(spark.sparkContext, [tmp_path / "in"], store := Store(tmp_path / "out"))
    (row,) = in_ms(table(spark, store, "commits")).collect()
    assert (row.log_offset, row.ts, row.offset, row.commit_ts) == (0, 2**52, 5, None)
    assert [found.offset for found in in_ms(derived(spark, store, "state_at")).collect()] == [5]
    (bad,) = store.bad_ranges()
    assert "no such offset or time" in bad[1].reason
    assert [w.commits for w in in_ms(derived(spark, store, "top_writers")).collect()] == [1]
