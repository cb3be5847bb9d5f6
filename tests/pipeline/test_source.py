"""The data source `kafka_offsets_log`: batch and streaming reads show the same rows."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from made_logs import made_batches

from kgroup.pipeline.source import NAME, OffsetsLogSource

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


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
