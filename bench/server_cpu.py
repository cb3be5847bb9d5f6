"""What does a request cost the broker? Processor time per request of ours, of Kafka and of kfake, in turns.

    python -m bench server_cpu [heartbeat|consumer|commit|fetch …] [requests=20000] [rounds=5]

Four connections, one group with one member each; 16 requests in flight on each connection, then one at
a time. Kafka is warmed up first. Commits and fetches name 10 partitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from statistics import median

from bench.brokers import Pipeline, brokers, connected, cpu_s, create_topic, run, until_ready
from bench.history import Ratio, keep
from kgroup.client.transport import SocketTransport
from kgroup.domain import uuid_text
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.subscription import Subscription
from tests.interop.server import Server

CONNECTIONS = 4
WINDOWS = (16, 1)
PARTITIONS = 10
TOPIC = "bench"
SESSION_MS = 300_000
WARM_UP = 60_000


def joined(transport: SocketTransport, group: str) -> tuple[str, int]:
    """A stable classic group of one: its member id and generation."""
    member = transport.request(
        None,
        JoinGroupRequest(
            group_id=group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id="",
            group_instance_id="bench",
            protocol_type="consumer",
            protocols=(
                JoinGroupRequestProtocol(name="range", metadata=Subscription(topics=(TOPIC,)).encode(1)),
            ),
        ),
    )
    generation, member_id = member.generation_id, member.member_id  # type: ignore[attr-defined]
    transport.request(
        None,
        SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id="bench",
            protocol_type="consumer",
            protocol_name="range",
        ),
    )
    return member_id, generation


def heartbeat(transport: SocketTransport, group: str) -> tuple[Message, int]:
    member_id, generation = joined(transport, group)
    request = HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member_id, group_instance_id="bench"
    )
    return request, 4


def consumer(transport: SocketTransport, group: str) -> tuple[Message, int]:
    """A heartbeat that has nothing to say, as nearly all have not."""
    member_id = uuid_text(group.encode().ljust(16, b"-")[:16])
    join = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=SESSION_MS,
        subscribed_topic_names=(TOPIC,),
        topic_partitions=(),
    )
    epoch = transport.request(None, join).member_epoch  # type: ignore[attr-defined]
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=-1,
        subscribed_topic_names=None,
        topic_partitions=None,
    ), 1


def commit(transport: SocketTransport, group: str) -> tuple[Message, int]:
    member_id, generation = joined(transport, group)
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=p, committed_offset=1_000, committed_metadata="")
        for p in range(PARTITIONS)
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id="bench",
        topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=partitions),),
    ), 9


def fetch(transport: SocketTransport, group: str) -> tuple[Message, int]:
    request, version = commit(transport, group)
    transport.request(None, request, max_version=version)
    topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=tuple(range(PARTITIONS))),)
    return OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=topics),)), 9


KINDS: dict[str, Callable[[SocketTransport, str], tuple[Message, int]]] = {
    "heartbeat": heartbeat,
    "consumer": consumer,
    "commit": commit,
    "fetch": fetch,
}


def group_name(kind: str, window: int, number: int) -> str:
    """The group of one connection of one measurement."""
    return f"{kind}-{window}-{number}"


def pipelines(server: Server, kind: str, window: int) -> list[Pipeline]:
    """The connections of one measurement, each with a group of its own."""
    made = []
    with connected(server) as transport:
        for number in range(CONNECTIONS):
            request, version = KINDS[kind](transport, group_name(kind, window, number))
            made.append(Pipeline(("127.0.0.1", server.port), request, version, window))
    return made


def errors(answer: Message) -> set[str]:
    """The error codes in an answer, at whatever depth, but for NONE."""
    return set(re.findall(r"error_code=([^,)]+)", repr(answer))) - {"0", "<ErrorCode.NONE: 0>"}


def measured(server: Server, connections: list[Pipeline], count: int) -> float:
    """Microseconds of the broker's processor time per request."""
    before = cpu_s(server.pid)
    run(connections, count // CONNECTIONS)
    return (cpu_s(server.pid) - before) / count * 1e6


def compare(servers: dict[str, Server], kind: str, window: int, count: int, rounds: int) -> None:
    """Print a line for each peer: the medians, the ratio, the spread of all rounds, and how it was before."""
    connections = {name: pipelines(server, kind, window) for name, server in servers.items()}
    for name, opened in connections.items():
        run(opened, (WARM_UP if name == "kafka" else 2_000) // CONNECTIONS)
        if told := errors(opened[0].answer()):
            raise RuntimeError(f"{name} refuses {kind}: {sorted(told)}")
    taken: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, server in servers.items():
            taken[name].append(measured(server, connections[name], count))
    for opened in connections.values():
        for pipeline in opened:
            pipeline.close()
    ours = taken.pop("kgroup")
    for name, theirs in taken.items():
        ratio = Ratio.of(ours, theirs)
        each = f"{median(ours):8.1f}{median(theirs):8.1f}  {ratio!s:22}"
        spread = f"{min(ours):5.1f}-{max(ours):<5.1f} / {min(theirs):5.1f}-{max(theirs):<5.1f}"
        said = keep(f"server_cpu {kind} {window} {name}", ratio.middle)
        print(f"{kind:10}{window:4} in flight  {name:6}{each}    {spread}  {said}", flush=True)


def main(arguments: list[str]) -> None:
    """Print a table of microseconds of processor time per request."""
    options = dict(argument.split("=") for argument in arguments if "=" in argument)
    kinds = [argument for argument in arguments if "=" not in argument] or list(KINDS)
    count, rounds = int(options.get("requests", 20_000)), int(options.get("rounds", 5))
    with brokers() as servers:
        for server in servers.values():
            with connected(server) as transport:
                create_topic(transport, TOPIC, PARTITIONS)
                until_ready(
                    transport,
                    [group_name(k, w, n) for k in kinds for w in WINDOWS for n in range(CONNECTIONS)],
                )
        print(f"{'':25}{'peer':6}{'kgroup':>8}{'peer':>8}  {'ratio':22}    spread of both")
        for kind in kinds:
            for window in WINDOWS:
                compare(servers, kind, window, count, rounds)
