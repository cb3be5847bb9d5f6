"""A real broker cleans `__consumer_offsets`, and what a crash loop left there is gone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from kgroup.domain import OFFSETS_TOPIC
from tests.own_home import environment

from .conftest import require
from .kafka import RealKafka
from .kgroup_server import EXECUTABLE
from .waiting import eventually

pytestmark = pytest.mark.interop
GROUP, TOPIC = "billing", "orders"
SICK, UNKNOWN = 8, 5
SETTINGS = {"log.cleaner.backoff.ms": "100", "offsets.topic.num.partitions": "1"}
CLEANED = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}


def test_a_crash_loop_whose_ends_are_cleaned_is_unknown(tmp_path: Path) -> None:
    """It was healthy, with exit code 0: only members that are still on record were counted."""
    require("java", "mvn")
    (tmp_path / "kafka").mkdir()
    with RealKafka(SETTINGS, base=tmp_path / "kafka") as kafka:
        where: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap, "log_level": 0}

        def doctor() -> tuple[int, Any]:
            argv = [str(EXECUTABLE), "doctor", GROUP, "-b", kafka.bootstrap, "-o", "json"]
            done = subprocess.run(argv, env=environment(tmp_path), capture_output=True, text=True, timeout=90)
            (group,) = json.loads(done.stdout)["data"]["groups"]
            return done.returncode, group

        admin = AdminClient(where)
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(60)
        producer = Producer(where)
        for number in range(4):
            producer.produce(TOPIC, str(number))
        assert producer.flush(60) == 0
        for first in (True, False, False, False):
            _read_and_fail(where, commits=first)
        eventually(lambda: doctor()[0] == SICK)

        resource = ConfigResource(
            ResourceType.TOPIC,
            OFFSETS_TOPIC,
            incremental_configs=[
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                for name, value in CLEANED.items()
            ],
        )
        admin.incremental_alter_configs([resource])[resource].result(60)
        others = Consumer({**where, "group.id": "others"})

        def cleaned() -> Any:
            # Segments are rolled when something is written.
            others.commit(offsets=[Place(TOPIC, 0, 1)], asynchronous=False)
            code, group = doctor()
            assert code in (SICK, UNKNOWN), group
            return group if code == UNKNOWN else None

        group = eventually(cleaned, every=0.5)
        assert [why for why in group["skipped"] if "whether members came and went" in why], group
        assert [why for why in group["skipped"] if "compaction left only a part" in why], group
        others.close()


def _read_and_fail(where: Mapping[str, Any], *, commits: bool) -> None:
    """Let a member get the record at which all end, and end there."""
    settings = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**where, **settings})
    consumer.subscribe([TOPIC])
    eventually(lambda: consumer.poll(0.1))
    if commits:
        consumer.commit(offsets=[Place(TOPIC, 0, 2)], asynchronous=False)
    consumer.close()
