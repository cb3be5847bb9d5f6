"""aiokafka; each member has an event loop in its own thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.helpers import create_ssl_context

from .member import HEARTBEAT_MS, POLL_S, Member

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class _Token(AbstractTokenProvider):  # type: ignore[misc]
    """A token that was made beforehand."""

    def __init__(self, token: str) -> None:
        self._made = token

    async def token(self) -> str:
        return self._made


def _with_objects(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration, its token and files of TLS as this client takes them."""
    found = dict(config)
    if token := found.pop("token", None):
        found["sasl_oauth_token_provider"] = _Token(token)
    files = {name: found.pop(f"ssl_{name}", None) for name in ("cafile", "certfile", "keyfile")}
    if files["cafile"]:
        found["ssl_context"] = create_ssl_context(**files)
    return found


class Consumer(Member, ConsumerRebalanceListener):  # type: ignore[misc]
    def open(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._wait(self._open(self.request))

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def _open(self, request: dict[str, Any]) -> None:
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=request["bootstrap"],
            group_id=request["group"],
            client_id=request["name"],
            group_instance_id=request["instance"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=1000,
            session_timeout_ms=request["session_ms"],
            heartbeat_interval_ms=HEARTBEAT_MS,
            partition_assignment_strategy=[ASSIGNORS[request["assignor"]]],
            **_with_objects(request["config"]),
        )
        self.consumer.subscribe(request["topics"] or (), request["pattern"], listener=self)
        await self.consumer.start()

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.rebalances += 1
        self.note("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.note("revoked", revoked)

    def poll(self) -> None:
        for batch in self._wait(self.consumer.getmany(timeout_ms=int(POLL_S * 1000))).values():
            self.read += [(each.topic, each.partition, each.offset, each.value.decode()) for each in batch]

    def membership(self) -> dict[str, Any]:
        # the client has no public way to tell its generation and member id
        coordinator = self.consumer._coordinator
        held = [[each.topic, each.partition] for each in self.consumer.assignment()]
        return {"assignment": held, "generation": coordinator.generation, "member_id": coordinator.member_id}

    def commit(self, offsets: list[list[Any]] | None) -> None:
        rows = None if offsets is None else {TopicPartition(t, p): offset for t, p, offset in offsets}
        self._wait(self.consumer.commit(rows))

    def committed(self, partitions: list[list[Any]]) -> list[list[Any]]:
        rows = [[*pair, self._wait(self.consumer.committed(TopicPartition(*pair)))] for pair in partitions]
        return [row for row in rows if row[2] is not None]

    def close(self) -> None:
        self._wait(self.consumer.stop())
        self.loop.close()


def admin(op: str, request: dict[str, Any]) -> Any:
    """What AIOKafkaAdminClient can tell of classic groups."""
    return asyncio.run(_ask(op, request))


async def _ask(op: str, request: dict[str, Any]) -> Any:
    client = AIOKafkaAdminClient(bootstrap_servers=request["bootstrap"])
    await client.start()
    try:
        if op == "list":
            return [{"group": each[0]} for each in await client.list_consumer_groups()]
        group = request["group"]
        if op == "describe":
            (response,) = await client.describe_consumer_groups([group])
            return _description(response.groups[0])
        if op == "offsets":
            found = await client.list_consumer_group_offsets(group)
            return [[part.topic, part.partition, offset.offset] for part, offset in found.items()]
        raise ValueError(f"aiokafka has no {op}")
    finally:
        await client.close()


def _description(found: Any) -> dict[str, Any]:
    _error, group, state, _type, assignor, members, *_ = found
    return {
        "group": group,
        "state": state,
        "assignor": assignor,
        "members": [_member(each) for each in members],
    }


def _member(found: Any) -> dict[str, Any]:
    member_id, *instance, client_id, host, _metadata, assignment = found
    decoded = ConsumerProtocolMemberAssignment.decode(assignment)
    return {
        "member_id": member_id,
        "instance": instance[0] if instance else None,
        "client_id": client_id,
        "host": host,
        "assignment": [[topic, number] for topic, numbers in decoded.assignment for number in numbers],
    }
