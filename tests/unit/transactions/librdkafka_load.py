"""A transactional producer of librdkafka that goes on whatever happens to its broker, and keeps the books."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

PATIENCE_S = 200.0
IMPATIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "log_level": 0,
    # librdkafka forgets its only broker otherwise, and then never sends the offsets it has announced
    "metadata.recovery.strategy": "none",
}


@dataclass
class Books:
    """Numbers of transactions by what their producer was told of them; unsure ones were told nothing."""

    committed: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    unsure: set[int] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)


class Load(threading.Thread):
    """Transaction n writes n to both partitions of `out` and commits the position n of `group` on `in`.

    Every third is aborted. A producer that fails for good is followed by one of the same name.
    """

    def __init__(self, bootstrap: str, group: str = "g") -> None:
        super().__init__(daemon=True)
        self.books = Books()
        self.stopped = threading.Event()
        self._address = bootstrap
        member: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": group, **IMPATIENT}
        self._consumer = Consumer(member)
        self._number = 0
        self._producer: Producer | None = None

    def run(self) -> None:
        while not self.stopped.is_set():
            self._number += 1
            try:
                self._one(self._number)
            except KafkaException as failure:
                self.books.failures.append(f"{self._number}: {failure.args[0].str()}")
                self._recover(failure)
        self._consumer.close()

    def _one(self, number: int) -> None:
        if self._producer is None:
            producer = Producer(
                {
                    "bootstrap.servers": self._address,
                    "transactional.id": "load",
                    "transaction.timeout.ms": 30_000,
                    "linger.ms": 0,
                    **IMPATIENT,
                }
            )
            producer.init_transactions(PATIENCE_S)
            self._producer = producer
        producer = self._producer
        self.books.unsure.add(number)
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce("out", str(number), partition=partition)
        position = TopicPartition("in", 0, number)
        producer.send_offsets_to_transaction([position], self._consumer.consumer_group_metadata(), PATIENCE_S)
        if number % 3 == 0:
            producer.abort_transaction(PATIENCE_S)
            self._know(number, self.books.aborted)
        else:
            producer.commit_transaction(PATIENCE_S)
            self._know(number, self.books.committed)

    def _recover(self, failure: KafkaException) -> None:
        error = failure.args[0]
        if self._producer is not None and error.txn_requires_abort():
            try:
                self._producer.abort_transaction(PATIENCE_S)
            except KafkaException:
                pass
            else:
                self._know(self._number, self.books.aborted)
                return
        self._producer = None

    def _know(self, number: int, fate: set[int]) -> None:
        self.books.unsure.discard(number)
        fate.add(number)


def committed_records(
    bootstrap: str, topic: str, partition: int, patience_s: float = PATIENCE_S
) -> list[int]:
    """What a read_committed consumer reads up to the end of the partition; it must get there."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            **IMPATIENT,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    seen: list[int] = []
    try:
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"{topic}-{partition} hangs behind {seen[-1:]}"
            error = message.error()
            if error is None:
                seen.append(int(message.value() or b""))
            elif error.name() == "_PARTITION_EOF":
                return seen
    finally:
        consumer.close()


def committed_position(bootstrap: str, group: str, topic: str) -> int:
    """The group's stable position on partition 0 of `topic`, -1001 for none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **IMPATIENT})
    try:
        found = consumer.committed([TopicPartition(topic, 0)], PATIENCE_S)[0]
        assert found.error is None, found.error
        return int(found.offset)
    finally:
        consumer.close()
