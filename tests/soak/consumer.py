"""One librdkafka consumer as a process: reads, commits, and writes down what was acknowledged."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaException


def main(bootstrap: str, group: str, protocol: str, instance: str, journal: str, topic: str) -> None:
    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "reconnect.backoff.max.ms": 500,
    }
    if protocol == "classic":
        config |= {
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 1000,
            "partition.assignment.strategy": "range",
        }
    if instance:
        config["group.instance.id"] = instance
    running = True

    def end(*_: object) -> None:
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, end)
    consumer = Consumer(config)
    consumer.subscribe([topic])
    with open(journal, "a", encoding="utf-8", buffering=1) as lines:
        while running:
            messages = [m for m in consumer.consume(200, 0.5) if m.error() is None]
            if not messages:
                continue
            try:
                done = consumer.commit(asynchronous=False)
            except KafkaException as error:
                if error.args[0].fatal():
                    break
                continue
            for each in done or ():
                if each.error is None and each.offset >= 0:
                    lines.write(json.dumps([group, each.partition, each.offset]) + "\n")
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
