"""librdkafka through confluent-kafka."""

from __future__ import annotations

import functools
import time
from typing import Any

from confluent_kafka import (
    Consumer as Rdkafka,
)
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from .member import HEARTBEAT_MS, POLL_S, Member

_POLL_BATCH = 100


def _behind(fatal: KafkaError) -> KafkaError:
    """The broker's error behind a _FATAL one, which tells it in words only."""
    known = (KafkaError(code) for code in range(1, 130))
    return next((each for each in known if each.str() in fatal.str()), fatal)


class Consumer(Member):
    def open(self) -> None:
        request = self.request
        config: dict[str, Any] = {
            "bootstrap.servers": request["bootstrap"],
            "group.id": request["group"],
            "client.id": request["name"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1000,
            "reconnect.backoff.max.ms": 500,
            "group.protocol": request["protocol"],
        }
        if request["protocol"] == "classic":
            config |= {
                "session.timeout.ms": request["session_ms"],
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "partition.assignment.strategy": request["assignor"],
            }
        if request["instance"]:
            config["group.instance.id"] = request["instance"]
        config |= request["config"]
        self.poll_s = config.pop("poll_s", POLL_S)
        if token := config.pop("token", None):
            config["oauth_cb"] = lambda _: (token, time.time() + 3600)
        self.consumer = Rdkafka(config)
        topics = [request["pattern"]] if request["pattern"] else request["topics"]
        self.consumer.subscribe(
            topics,
            on_assign=self._assigned,
            on_revoke=lambda _, partitions: self.note("revoked", partitions),
            on_lost=lambda _, partitions: self.note("lost", partitions),
        )

    def _assigned(self, _consumer: Rdkafka, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        self.note("assigned", partitions)

    def poll(self) -> None:
        for message in self.consumer.consume(_POLL_BATCH, self.poll_s):
            error = message.error()
            if error is None:
                row = (message.topic(), message.partition(), message.offset(), message.value().decode())
                self.read.append(row)
            elif error.code() == KafkaError._FATAL or error.fatal():
                raise KafkaException(_behind(error))

    def membership(self) -> dict[str, Any]:
        held = [[each.topic, each.partition] for each in self.consumer.assignment()]
        return {"assignment": held, "member_id": self.consumer.memberid()}

    def commit(self, offsets: list[list[Any]] | None) -> None:
        if offsets is None:
            done = self.consumer.commit(asynchronous=False)
        else:
            rows = [TopicPartition(*row) for row in offsets]
            done = self.consumer.commit(offsets=rows, asynchronous=False)
        for each in done or ():
            if each.error is not None:
                raise KafkaException(each.error)

    def committed(self, partitions: list[list[Any]]) -> list[list[Any]]:
        found = self.consumer.committed([TopicPartition(*pair) for pair in partitions], timeout=20)
        return [[each.topic, each.partition, each.offset] for each in found if each.offset >= 0]

    def close(self) -> None:
        self.consumer.close()


@functools.cache
def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def admin(op: str, request: dict[str, Any]) -> Any:
    """What confluent-kafka's AdminClient can tell of groups."""
    client = _admin(request["bootstrap"])
    if op == "list":
        found = client.list_consumer_groups().result(20)
        return [
            {"group": each.group_id, "type": each.type.name.title(), "state": _title(each.state.name)}
            for each in found.valid
        ]
    group = request["group"]
    if op == "describe":
        return _description(client.describe_consumer_groups([group])[group].result(20))
    if op == "offsets":
        future = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group]
        return [[each.topic, each.partition, each.offset] for each in future.result(20).topic_partitions]
    raise ValueError(f"confluent-kafka has no {op}")


def _title(name: str) -> str:
    return name.title().replace("_", "")


def _description(found: Any) -> dict[str, Any]:
    return {
        "group": found.group_id,
        "type": _title(found.type.name),
        "state": _title(found.state.name),
        "assignor": found.partition_assignor,
        "members": [
            {
                "member_id": each.member_id,
                "instance": each.group_instance_id,
                "client_id": each.client_id,
                "host": each.host,
                "assignment": [[part.topic, part.partition] for part in each.assignment.topic_partitions],
            }
            for each in found.members
        ],
    }
