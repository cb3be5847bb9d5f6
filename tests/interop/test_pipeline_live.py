"""The pipeline over the live topic of a real Kafka: runs that go on, and a stream; transactions too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.history.replay import replay
from kgroup.history.sources.live import LiveLog

from .conftest import require
from .kafka import RealKafka
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    require("java", "mvn")
    with RealKafka(base=tmp_path_factory.mktemp("kafka")) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for made in admin.create_topics([NewTopic("orders", 4)]).values():
            made.result(30)
        yield running


def commits(kafka: RealKafka, numbers: range) -> None:
    """Commits from outside of several groups, and one offset committed in a transaction."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for number in numbers:
        places = [TopicPartition("orders", p, number) for p in range(4)]
        asked = [ConsumerGroupTopicPartitions(f"batch-{number % 5}", places)]
        # At first the coordinators are still loading, which is told partition by partition.
        eventually(lambda asked=asked: _committed(admin, asked), what="the commits are taken")
    _in_transaction(kafka, numbers.stop)


def _committed(admin: AdminClient, asked: list[ConsumerGroupTopicPartitions]) -> bool:
    (answer,) = admin.alter_consumer_group_offsets(asked).values()
    return all(place.error is None for place in answer.result(30).topic_partitions)


def _in_transaction(kafka: RealKafka, offset: int) -> None:
    from confluent_kafka import Consumer

    group = {"bootstrap.servers": kafka.bootstrap, "group.id": f"tx-{offset}"}
    member = Consumer(group)
    writer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"t-{offset}"})
    writer.init_transactions(30)
    writer.begin_transaction()
    places = [TopicPartition("orders", 1, offset)]
    writer.send_offsets_to_transaction(places, member.consumer_group_metadata(), 30)
    writer.commit_transaction(30)
    member.close()


def test_runs_and_streams_over_a_live_kafka(kafka: RealKafka, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from kgroup.pipeline.ask.story import story_in
    from kgroup.pipeline.read.inputs import LiveCluster, live_topic
    from kgroup.pipeline.read.source import NAME, OffsetsLogSource
    from kgroup.pipeline.spark.session import spark_session
    from kgroup.pipeline.tables.ingest import ingest
    from kgroup.pipeline.tables.store import Store

    live = LiveCluster(ConnectionSettings(parse_bootstrap(kafka.bootstrap)))
    with spark_session("local[1]", {"spark.sql.shuffle.partitions": "1"}) as spark:
        spark.dataSource.register(OffsetsLogSource)
        read: Any = spark.read.format(NAME).option("bootstrap.servers", kafka.bootstrap)

        def streamed() -> None:
            stream = spark.readStream.format(NAME).option("bootstrap.servers", kafka.bootstrap).load()
            sink = stream.writeStream.format("parquet").option("path", str(tmp_path / "commits"))
            made = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
            made.start().awaitTermination()

        for numbers in (range(30), range(30, 55)):
            commits(kafka, numbers)
            report = ingest(spark.sparkContext, live, Store(tmp_path / "out"), split_bytes=3_000)
            assert report.run is not None and report.rows["markers"] >= 1
            streamed()
        with live_topic(live.connection, with_names=True) as topic:
            told = replay([LiveLog(topic, p) for p in topic.partitions], topic_names=topic.topic_names)
        story = story_in(Store(tmp_path / "out"))
        assert story.events == told.events
        assert story.coverage == [c for c in told.coverage if c.records]
        found, expected = spark.read.parquet(str(tmp_path / "commits")), read.load()
        assert found.count() == expected.count() >= 4 * 55 + 2
        assert found.exceptAll(expected).count() == expected.exceptAll(found).count() == 0
