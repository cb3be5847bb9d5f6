"""The data source `kafka_offsets_log`: batch and streaming reads show the same rows."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import kgroup.history.sources.logs as sources
from kgroup.errors import StorageError
from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.read.source import NAME, OffsetsLogSource, _StreamReader
from tests.pipeline.made_logs import made_batches

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def session(spark):
    spark.dataSource.register(OffsetsLogSource)
    return spark


def test_a_batch_read(session, made):
    read = session.read.format(NAME)
    whole = read.load(str(made))
    parts = read.option("splitBytes", 60_000).load(str(made))
    assert parts.rdd.getNumPartitions() > whole.rdd.getNumPartitions()
    assert whole.exceptAll(parts).count() == parts.exceptAll(whole).count() == 0
    assert read.option("table", "control").load(str(made)).where("key_type = 2").count() > 0


def test_an_unknown_table_is_refused(session, made):
    with pytest.raises(Exception, match="has no table 'nonsense'"):
        session.read.format(NAME).option("table", "nonsense").load(str(made)).count()


def test_a_stream_that_is_restarted(session, tmp_path: Path):
    """The log grows, cut inside a batch; every query starts anew from the checkpoint of the one before."""
    data = b"".join(made_batches(21, 300))
    log = tmp_path / "in" / "__consumer_offsets-3" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    for share in (0.4, 0.83, 1.0):
        log.write_bytes(data[: int(len(data) * share)])
        stream = session.readStream.format(NAME).load(str(tmp_path / "in"))
        query = (
            stream.writeStream.format("parquet")
            .option("path", out)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found = session.read.parquet(out)
    expected = session.read.format(NAME).load(str(tmp_path / "in"))
    assert found.count() == expected.count() > 0
    assert found.exceptAll(expected).count() == expected.exceptAll(found).count() == 0


def stream_of(folder: Path) -> _StreamReader:
    return _StreamReader(Segments.of([folder]), "commits", None)


@pytest.fixture
def looks(monkeypatch) -> list[int]:
    """How many partitions were in each look at whether segments are of one cluster."""
    made = []
    check = sources.check_one_cluster
    monkeypatch.setattr(
        sources, "check_one_cluster", lambda partitions: made.append(len(partitions)) or check(partitions)
    )
    return made


def test_a_batch_of_a_stream_looks_once_at_what_there_is(made, looks):
    reader = stream_of(made)
    end = reader.latestOffset()
    planned = reader.partitions({}, end)
    assert {p.split.part for p in planned} == {0, 7, 31} and looks == [3]
    assert reader.partitions(end, end) == [] and len(looks) == 1


def test_a_batch_that_was_planned_before_a_restart_is_planned_the_same(made, looks):
    before = stream_of(made)
    end = before.latestOffset()
    pieces = [p.split for p in before.partitions({}, end)]
    assert [p.split for p in stream_of(made).partitions({}, end)] == pieces and len(looks) == 2


def test_a_segment_that_is_gone_before_it_was_read_ends_the_stream(tmp_path):
    folder = tmp_path / "__consumer_offsets-3"
    folder.mkdir()
    segment, other = folder / f"{0:020d}.log", folder / f"{9_999:020d}.log"
    segment.write_bytes(b"".join(made_batches(21, 30)))
    other.write_bytes(b"")
    end = stream_of(tmp_path).latestOffset()
    segment.unlink()
    with pytest.raises(StorageError, match="is gone before all of it was read"):
        stream_of(tmp_path).partitions({}, end)
    assert stream_of(tmp_path).partitions(end, end) == [], "what was read may go"
