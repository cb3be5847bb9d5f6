"""A Kafka of three brokers with many groups that have no members: what large clusters are measured on.

    python -m bench.three_brokers [groups=10000] [partitions=100] [topics=10]

serves one until Ctrl-C. Every group has committed each partition of one topic, and every partition holds
records, so that no offset lies beyond an end.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from bench.brokers import LENGTH, Kafka, create_topic, until_ready
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import Node, TopicDescription
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.protocol.batches import encode_batch
from kgroup.protocol.headers import decode_response, encode_request
from kgroup.protocol.log_records import LogRecord
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kgroup.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

BROKERS = 3
OFFSETS_PARTITIONS = 50
RECORDS = 1_000
"""In every partition, or more; the groups have committed somewhere among them."""
COMMIT_VERSION = 8
IN_FLIGHT = 16
NAMED_UNTIL = 12


class Follower(Kafka):
    """One more broker of the cluster whose controller is `first`."""

    def __init__(self, first: Kafka, number: int, overrides: Mapping[str, object]) -> None:
        super().__init__(overrides)
        self.overrides |= {
            "process.roles": "broker",
            "node.id": str(number),
            "controller.quorum.voters": f"1@127.0.0.1:{first.controller_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap}",
        }


@contextlib.contextmanager
def three_brokers() -> Iterator[list[Kafka]]:
    """Three brokers with Kafka's own JVM options; nothing is replicated."""
    overrides = {"offsets.topic.num.partitions": OFFSETS_PARTITIONS}
    with contextlib.ExitStack() as running:
        first = running.enter_context(Kafka(overrides))
        more = [running.enter_context(Follower(first, n, overrides)) for n in range(2, BROKERS + 1)]
        with connected(first.bootstrap) as transport:
            _until(lambda: len(transport.nodes()) == BROKERS)
        yield [first, *more]


@contextlib.contextmanager
def connected(bootstrap: str) -> Iterator[SocketTransport]:
    """A client of the cluster."""
    with SocketTransport(ConnectionSettings(parse_bootstrap(bootstrap))) as transport:
        yield transport


def filled(bootstrap: str, groups: int, partitions: int, topics: int) -> None:
    """Have groups `group-00000` and on, each at all partitions of one of the topics `topic-00` and on."""
    with connected(bootstrap) as transport:
        cluster = ClusterView(transport)
        names = [f"topic-{number:02}" for number in range(topics)]
        for name in names:
            create_topic(transport, name, partitions)
        _until(lambda: _led(cluster, names))
        _until(lambda: _produced(cluster, names))
    committed(bootstrap, [f"group-{number:05}" for number in range(groups)], names, partitions)


def committed(bootstrap: str, groups: Sequence[str], topics: Sequence[str], partitions: int) -> None:
    """Have each group commit all partitions of one of the topics, from outside it."""
    found: dict[str, Node] = {}
    with connected(bootstrap) as transport:
        cluster = ClusterView(transport)

        def all_found() -> bool:
            found.update({g: n for g, n in cluster.coordinators(groups).items() if isinstance(n, Node)})
            return len(found) == len(groups)

        _until(all_found)
    for node in set(found.values()):
        with connected(f"{node.host}:{node.port}") as transport:
            until_ready(transport, [next(group for group in groups if found[group] == node)])
        frames = [
            _commit(group, topics[number % len(topics)], partitions, RECORDS - number % 7)
            for number, group in enumerate(groups)
            if found[group] == node
        ]
        _send_all((node.host, node.port), frames)


def _led(cluster: ClusterView, names: Sequence[str]) -> bool:
    found = cluster.topics(names).values()
    return all(isinstance(t, TopicDescription) and all(p.leader > 0 for p in t.partitions) for t in found)


def _produced(cluster: ClusterView, names: Sequence[str]) -> bool:
    """Whether every partition has been given its records; a leader may not know yet that it is one."""
    batch = encode_batch([LogRecord(None, b"v")] * RECORDS, timestamp_ms=int(time.time() * 1000))
    codes: set[int] = set()
    by_leader: dict[int, dict[str, list[int]]] = {}
    for name, topic in cluster.topics(names).items():
        assert isinstance(topic, TopicDescription)
        for partition in topic.partitions:
            by_leader.setdefault(partition.leader, {}).setdefault(name, []).append(partition.partition)
    for leader, wanted in by_leader.items():
        data = tuple(
            TopicProduceData(
                name=name,
                partition_data=tuple(PartitionProduceData(index=n, records=batch) for n in numbers),
            )
            for name, numbers in wanted.items()
        )
        request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=data)
        answer = cluster.ask(leader, request, ProduceResponse, versions=(3, NAMED_UNTIL))
        codes |= {p.error_code for topic in answer.responses for p in topic.partition_responses}
    return codes == {0}


def _commit(group: str, topic: str, partitions: int, offset: int) -> bytes:
    each = tuple(
        OffsetCommitRequestPartition(partition_index=p, committed_offset=offset, committed_metadata="")
        for p in range(partitions)
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(OffsetCommitRequestTopic(name=topic, partitions=each),),
    )
    return encode_request(request, COMMIT_VERSION, 1, "bench")


def _send_all(address: tuple[str, int], frames: Sequence[bytes]) -> None:
    """Send requests with a few in flight; RuntimeError when one is not answered well."""
    with socket.create_connection(address) as link, link.makefile("rb") as answers:
        for sent in range(len(frames) + IN_FLIGHT):
            if sent < len(frames):
                link.sendall(frames[sent])
            if sent >= IN_FLIGHT:
                frame = answers.read(LENGTH.unpack(answers.read(4))[0])
                answer = decode_response(frame, OffsetCommitRequest.API, COMMIT_VERSION)[1]
                assert isinstance(answer, OffsetCommitResponse)
                if codes := {p.error_code for t in answer.topics for p in t.partitions} - {0}:
                    raise RuntimeError(f"a commit ended with {codes}")


def _until(holds, timeout_s: float = 120.0) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError("the cluster is not ready")
        time.sleep(0.2)


def main(arguments: list[str]) -> None:
    """Serve until interrupted; for use by hand."""
    options = {key: int(value) for key, value in (argument.split("=") for argument in arguments)}
    with three_brokers() as brokers:
        begun = time.perf_counter()
        filled(
            brokers[0].bootstrap,
            options.get("groups", 10_000),
            options.get("partitions", 100),
            options.get("topics", 10),
        )
        print(f"at {brokers[0].bootstrap}, filled in {time.perf_counter() - begun:.0f} s", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1:])
