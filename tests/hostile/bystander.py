"""A real client as a process: one member of a group that reads and commits, and writes down what befalls it.

Its journal has a JSON array a line: ["commit", partition, offset], ["assigned", partitions], ["harm", text].
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

RUNNING = True


def end(*_: object) -> None:
    global RUNNING
    RUNNING = False


def librdkafka(bootstrap: str, group: str, protocol: str, topic: str, note: Callable[..., None]) -> None:
    from confluent_kafka import Consumer, KafkaException

    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "error_cb": lambda error: note("harm", f"error: {error}"),
    }
    if protocol == "classic":
        config |= {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000}
    consumer = Consumer(config)
    consumer.subscribe([topic], on_lost=lambda _, parts: note("harm", f"lost {len(parts)} partitions"))
    held = -1
    while RUNNING:
        if held != (held := len(consumer.assignment())):
            note("assigned", held)
        messages = consumer.consume(100, 0.5)
        for message in messages:
            if message.error() is not None:
                note("harm", f"read: {message.error()}")
        if any(message.error() is None for message in messages):
            try:
                for part in consumer.commit(asynchronous=False) or ():
                    if part.error is not None:
                        note("harm", f"commit: {part.error}")
                    elif part.offset >= 0:
                        note("commit", part.partition, part.offset)
            except KafkaException as error:
                note("harm", f"commit: {error}")
    consumer.close()


def kafka_python(bootstrap: str, group: str, topic: str, note: Callable[..., None]) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata

    class Told(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            pass

        def on_partitions_lost(self, lost: Any) -> None:
            note("harm", f"lost {len(lost)} partitions")

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=10_000,
        heartbeat_interval_ms=1000,
    )
    consumer.subscribe([topic], listener=Told())
    held = -1
    while RUNNING:
        if held != (held := len(consumer.assignment())):
            note("assigned", held)
        try:
            found = consumer.poll(500)
            ends = {
                part: OffsetAndMetadata(each[-1].offset + 1, "", -1) for part, each in found.items() if each
            }
            if ends:
                consumer.commit(ends)
                for part, upto in ends.items():
                    note("commit", part.partition, upto.offset)
        except Exception as error:
            note("harm", repr(error))
    consumer.close()


def main(client: str, bootstrap: str, group: str, topic: str, journal: str) -> None:
    signal.signal(signal.SIGTERM, end)
    with open(journal, "a", encoding="utf-8", buffering=1) as lines:

        def note(*what: object) -> None:
            lines.write(json.dumps([*what, round(time.time(), 2)]) + "\n")

        if client == "kafka-python":
            kafka_python(bootstrap, group, topic, note)
        else:
            librdkafka(bootstrap, group, client.rpartition(" ")[2], topic, note)


if __name__ == "__main__":
    main(*sys.argv[1:])
