"""kafka-python."""

from __future__ import annotations

import functools
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import MemberToRemove
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.structs import OffsetAndMetadata

from .member import HEARTBEAT_MS, Member

POLL_MS = 500
# A poll that ends while the member joins is where 3.0.12 goes astray: an answer that comes before the next
# poll is dropped and the join begun again; and a leader that joins again since its topic's partitions are new
# to it takes that as done once it has sent SyncGroup, reads no answer and heartbeats no more.
JOIN_MS = 10_000
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class _Token(AbstractTokenProvider):
    """A token that was made beforehand."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._made = token

    def token(self) -> str:
        return self._made


def _with_provider(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with a token, if it has one, as this client takes it."""
    if "token" not in config:
        return config
    rest = {key: value for key, value in config.items() if key != "token"}
    return {**rest, "sasl_oauth_token_provider": _Token(config["token"])}


class Consumer(Member, ConsumerRebalanceListener):
    def open(self) -> None:
        request = self.request
        self.consumer = KafkaConsumer(
            bootstrap_servers=request["bootstrap"],
            group_id=request["group"],
            client_id=request["name"],
            group_instance_id=request["instance"],
            auto_offset_reset="earliest",
            metadata_max_age_ms=1000,
            reconnect_backoff_max_ms=500,
            session_timeout_ms=request["session_ms"],
            heartbeat_interval_ms=HEARTBEAT_MS,
            partition_assignment_strategy=[ASSIGNORS[request["assignor"]]],
            **{"enable_auto_commit": False, **_with_provider(request["config"])},
        )
        # joining before it knows the topics, it may take itself for the leader of nothing and stay so
        for topic in request["topics"] or ():
            self.consumer.partitions_for_topic(topic)
        coordinator = self.consumer._coordinator
        ensure = coordinator.ensure_active_group
        coordinator.ensure_active_group = lambda timeout_ms=None: ensure(JOIN_MS)
        self.consumer.subscribe(topics=request["topics"] or (), pattern=request["pattern"], listener=self)
        self._generation: int | None = None

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.note("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.note("revoked", revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        self.note("lost", lost)

    def poll(self) -> None:
        for batch in self.consumer.poll(timeout_ms=POLL_MS).values():
            self.read += [(each.topic, each.partition, each.offset, each.value.decode()) for each in batch]

    def membership(self) -> dict[str, Any]:
        # the client has no public way to tell its generation and member id
        known = self.consumer._coordinator._generation
        if known.generation_id != self._generation:
            self._generation = known.generation_id
            self.rebalances += 1
        held = [[each.topic, each.partition] for each in self.consumer.assignment()]
        return {"assignment": held, "generation": known.generation_id, "member_id": known.member_id}

    def commit(self, offsets: list[list[Any]] | None) -> None:
        if offsets is None:
            self.consumer.commit()
        else:
            self.consumer.commit({TopicPartition(t, p): OffsetAndMetadata(o, "", -1) for t, p, o in offsets})

    def committed(self, partitions: list[list[Any]]) -> list[list[Any]]:
        rows = [[*pair, self.consumer.committed(TopicPartition(*pair))] for pair in partitions]
        return [row for row in rows if row[2] is not None]

    def close(self) -> None:
        self.consumer.close(autocommit=False, timeout_ms=5000)


@functools.cache
def _admin(bootstrap: str) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=bootstrap)


def admin(op: str, request: dict[str, Any]) -> Any:
    """What KafkaAdminClient can tell of classic groups, and removal."""
    client = _admin(request["bootstrap"])
    if op == "list":
        return [
            {
                "group": each["group_id"],
                "type": each.get("group_type"),
                "state": each.get("group_state"),
            }
            for each in client.list_groups()
        ]
    group = request["group"]
    if op == "describe":
        return _description(client.describe_groups([group])[group])
    if op == "offsets":
        found = client.list_group_offsets([group])[group]
        return [[part.topic, part.partition, offset.offset] for part, offset in found.items()]
    if op == "remove":
        members = [MemberToRemove(group_instance_id=instance) for instance in request["instances"]]
        results = client.remove_group_members(group, members)
        return {instance: None if error.errno == 0 else error.message for instance, error in results.items()}
    raise ValueError(f"kafka-python has no {op}")


def _description(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "group": found["group_id"],
        "state": found["group_state"],
        "assignor": found["protocol_data"],
        "members": [
            {
                "member_id": each["member_id"],
                "instance": each["group_instance_id"],
                "client_id": each["client_id"],
                "host": each["client_host"],
                "assignment": [
                    [part["topic"], number]
                    for part in each["member_assignment"]["assigned_partitions"]
                    for number in part["partitions"]
                ],
            }
            for each in found["members"]
        ],
    }
