"""A test that raced its own consumer, as dd-trace-py#17794 has it, and its repaired form.

`python -m bench first_record` plays the repaired form 10,000 times at 0.3 of a core.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Message, Producer

from kgroup.testing import Cluster

TOPIC = "orders"


@contextmanager
def subscribed(kafka: Cluster) -> Iterator[Consumer]:
    consumer = Consumer({**kafka.client(), "group.id": "test_group", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def produce(kafka: Cluster) -> None:
    producer = Producer(kafka.client())
    producer.produce(TOPIC, b"test")
    producer.flush()


def racy(kafka: Cluster, consumer: Consumer) -> Message | None:
    """It takes the group for joined after a while, and a poll for enough."""
    produce(kafka)
    time.sleep(0.5)
    return consumer.poll(0.5)


def repaired(kafka: Cluster, consumer: Consumer) -> Message | None:
    """It waits for what it needs: a member that has its partitions, then a record."""
    kafka.until_stable("test_group", members=1, timeout_s=120)
    produce(kafka)
    return kafka.until(lambda: consumer.poll(0.1), group="test_group", timeout_s=120)


def slow_to_join(kafka: Cluster, *, count: int) -> None:
    kafka.fault(keys=["JoinGroup"], error="COORDINATOR_LOAD_IN_PROGRESS", count=count, must_fire=True)


def test_the_race_is_lost_where_joining_takes_long() -> None:
    with Cluster([TOPIC]) as kafka:
        slow_to_join(kafka, count=-1)
        with subscribed(kafka) as consumer:
            assert racy(kafka, consumer) is None


@pytest.mark.parametrize("refusals", [0, 3])
def test_the_repaired_form_has_its_record_however_long_it_takes(refusals: int) -> None:
    with Cluster([TOPIC]) as kafka:
        if refusals:
            slow_to_join(kafka, count=refusals)
        with subscribed(kafka) as consumer:
            record = repaired(kafka, consumer)
    assert record is not None and record.value() == b"test"
