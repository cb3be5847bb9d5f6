"""Two clients that nobody here wrote, librdkafka and kafka-python, by the same few verbs."""

from __future__ import annotations

from typing import Protocol

import confluent_kafka
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition
from kafka.structs import OffsetAndMetadata

from kgroup.testing import Cluster

PATIENCE_S = 60.0
REQUEST_MS = 30_000
"""After so long without an answer these producers send again: only a lost answer is to take so long."""


class Client(Protocol):
    """A producer, and a consumer that assigns itself what it reads."""

    def __init__(
        self, kafka: Cluster, name: str, *, idempotent: bool = False, request_ms: int = REQUEST_MS
    ) -> None: ...

    def send(self, topic: str, partition: int, value: bytes) -> int:
        """The offset of one record that was acknowledged; raises the client's own error."""
        ...

    def read(self, topic: str, partition: int, count: int) -> list[bytes]:
        """So many records from the beginning."""
        ...

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None: ...

    def committed(self, group: str, topic: str, partition: int) -> int | None: ...

    def close(self) -> None: ...


class Librdkafka:
    def __init__(
        self, kafka: Cluster, name: str, *, idempotent: bool = False, request_ms: int = REQUEST_MS
    ) -> None:
        self._common = {**kafka.client(), "client.id": name, "log_level": 0, "reconnect.backoff.max.ms": 200}
        self._producer = confluent_kafka.Producer(
            {
                **self._common,
                "enable.idempotence": idempotent,
                "request.timeout.ms": request_ms,
                "socket.timeout.ms": request_ms,
                "linger.ms": 0,
            }
        )

    def _consumer(self, group: str) -> confluent_kafka.Consumer:
        settings = {
            **self._common,
            "group.id": group,
            "enable.auto.commit": False,
            "fetch.error.backoff.ms": 10,
        }
        return confluent_kafka.Consumer(settings)

    def send(self, topic: str, partition: int, value: bytes) -> int:
        done: list[tuple[confluent_kafka.KafkaError | None, confluent_kafka.Message]] = []
        self._producer.produce(topic, value, partition=partition, on_delivery=lambda *told: done.append(told))
        assert self._producer.flush(PATIENCE_S) == 0
        error, message = done[0]
        if error is not None:
            raise confluent_kafka.KafkaException(error)
        offset = message.offset()
        assert offset is not None
        return offset

    def read(self, topic: str, partition: int, count: int) -> list[bytes]:
        consumer = self._consumer("of-no-matter")
        found: list[bytes] = []
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
            while len(found) < count:
                message = consumer.poll(PATIENCE_S)
                assert message is not None
                if message.error() is None:
                    found.append(message.value() or b"")
        finally:
            consumer.close()
        return found

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        consumer = self._consumer(group)
        try:
            consumer.commit(
                offsets=[confluent_kafka.TopicPartition(topic, partition, offset)], asynchronous=False
            )
        finally:
            consumer.close()

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        consumer = self._consumer(group)
        try:
            found = consumer.committed([confluent_kafka.TopicPartition(topic, partition)], PATIENCE_S)
        finally:
            consumer.close()
        return found[0].offset if found[0].offset >= 0 else None

    def close(self) -> None:
        self._producer.flush(0)


class KafkaPython:
    def __init__(
        self, kafka: Cluster, name: str, *, idempotent: bool = False, request_ms: int = REQUEST_MS
    ) -> None:
        self._common = {
            "bootstrap_servers": kafka.bootstrap,
            "client_id": name,
            "reconnect_backoff_max_ms": 200,
        }
        self._producer = KafkaProducer(
            **self._common,
            acks="all",
            enable_idempotence=idempotent,
            request_timeout_ms=request_ms,
            retries=1000,
            delivery_timeout_ms=60_000,
            max_in_flight_requests_per_connection=1,
        )

    def _consumer(self, group: str) -> KafkaConsumer:
        return KafkaConsumer(**self._common, group_id=group, enable_auto_commit=False)

    def send(self, topic: str, partition: int, value: bytes) -> int:
        offset: int = self._producer.send(topic, value, partition=partition).get(PATIENCE_S).offset
        return offset

    def read(self, topic: str, partition: int, count: int) -> list[bytes]:
        consumer = self._consumer("of-no-matter")
        found: list[bytes] = []
        try:
            where = KafkaPythonPartition(topic, partition)
            consumer.assign([where])
            consumer.seek(where, 0)
            while len(found) < count:
                for batch in consumer.poll(timeout_ms=500).values():
                    found += [record.value for record in batch]
        finally:
            consumer.close()
        return found

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        consumer = self._consumer(group)
        try:
            where = KafkaPythonPartition(topic, partition)
            consumer.assign([where])
            consumer.commit({where: OffsetAndMetadata(offset, "", -1)})
        finally:
            consumer.close()

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        consumer = self._consumer(group)
        try:
            where = KafkaPythonPartition(topic, partition)
            consumer.assign([where])
            found: int | None = consumer.committed(where)
        finally:
            consumer.close()
        return found

    def close(self) -> None:
        self._producer.close(timeout=1)


CLIENTS: tuple[type[Client], ...] = (Librdkafka, KafkaPython)
