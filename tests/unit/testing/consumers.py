"""Consumers of librdkafka in the thread of a test, with all that their rebalance listeners hear."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, TopicPartition

from kgroup.testing import Cluster

PATIENCE_S = 120.0
TOPIC = "orders"
PARTITIONS = 6


class Consumers:
    """Consumers of one group, called orders-0 on; `heard` is (consumer, callback, partitions), in order."""

    def __init__(self, kafka: Cluster, group: str, protocol: str, count: int, **settings: object) -> None:
        self.kafka, self.group, self.protocol = kafka, group, protocol
        self.heard: list[tuple[int, str, list[int]]] = []
        self.records: list[bytes | None] = []
        # The consumer protocol has both of these at the brokers.
        timings = {"heartbeat.interval.ms": 100, "session.timeout.ms": 45_000}
        self.of = [
            Consumer(
                {
                    **kafka.client(),
                    **(timings if protocol == "classic" else {}),
                    "group.id": group,
                    "client.id": f"{TOPIC}-{number}",
                    "group.protocol": protocol,
                    "auto.offset.reset": "earliest",
                    "log_level": 2,
                    **settings,
                }
            )
            for number in range(count)
        ]
        for number, each in enumerate(self.of):
            told = (
                lambda consumer, partitions, n=number, what=what: self._note(n, what, partitions)
                for what in ("assigned", "revoked", "lost")
            )
            assigned, revoked, lost = told
            each.subscribe([TOPIC], on_assign=assigned, on_revoke=revoked, on_lost=lost)

    def _note(self, number: int, what: str, partitions: list[TopicPartition]) -> None:
        self.heard.append((number, what, sorted(p.partition for p in partitions)))

    def poll(self) -> bool:
        """Poll each once; always True, to stand in a condition."""
        for each in self.of:
            record = each.poll(0.01)
            if record is not None and record.error() is None:
                self.records.append(record.value())
        return True

    def hear(self, *expected: tuple[int, str]) -> None:
        """Poll until these consumers have heard that, since `heard` was last empty."""
        self.kafka.until(
            lambda: self.poll() and {*expected} <= {(number, what) for number, what, _ in self.heard},
            group=self.group,
            timeout_s=PATIENCE_S,
        )

    def owned(self, *numbers: int) -> list[int]:
        """The partitions that these consumers have, once for each that has one."""
        return sorted(p.partition for n in numbers for p in self.of[n].assignment())

    def share_all(self, *numbers: int) -> None:
        """Poll until these consumers, each of them, have all partitions between them."""
        everything = list(range(PARTITIONS))
        self.kafka.until(
            lambda: self.poll() and self.owned(*numbers) == everything and all(map(self.owned, numbers)),
            group=self.group,
            timeout_s=PATIENCE_S,
        )


@contextmanager
def consumers(
    kafka: Cluster, group: str, protocol: str, count: int, **settings: object
) -> Iterator[Consumers]:
    """Consumers that share all partitions, and are closed at the end."""
    made = Consumers(kafka, group, protocol, count, **settings)
    try:
        made.share_all(*range(count))
        yield made
    finally:
        for each in made.of:
            each.close()
