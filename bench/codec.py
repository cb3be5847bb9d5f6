"""How fast is the codec? Requests both ways, beside kio and kafka-python on the same bytes.

    python -m bench codec

Microseconds of one core, medians of alternating rounds, each the best of several runs; ratios are ours to
theirs.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from statistics import median
from timeit import repeat

from bench.history import Ratio, kept
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

HEARTBEAT = HeartbeatRequest(group_id="group", generation_id=3, member_id="member-1", group_instance_id="i")
COMMIT = OffsetCommitRequest(
    group_id="group",
    generation_id_or_member_epoch=3,
    member_id="member-1",
    group_instance_id=None,
    topics=(
        OffsetCommitRequestTopic(
            name="topic",
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=p,
                    committed_offset=1000 + p,
                    committed_leader_epoch=-1,
                    committed_metadata="",
                )
                for p in range(10)
            ),
        ),
    ),
)
CASES: dict[str, tuple[Message, int]] = {
    "Heartbeat v4": (HEARTBEAT, 4),
    "OffsetCommit v8, 10 partitions": (COMMIT, 8),
}


def best(call: Callable[[], object], number: int = 5000) -> float:
    """Microseconds of the fastest of 3 runs."""
    return min(repeat(call, number=number, repeat=3)) / number * 1e6


def with_kgroup(request: Message, version: int, data: bytes) -> tuple[float, float]:
    """What we take to encode and to decode the request."""
    entity = type(request)
    return best(lambda: request.encode(version)), best(lambda: entity.decode(data, version))


def with_kio(request: Message, version: int, data: bytes) -> tuple[float, float]:
    """What kio takes to encode and to decode the request."""
    import importlib

    from kio.serial import entity_reader, entity_writer

    kind = type(request).__name__
    api = "heartbeat" if kind.startswith("Heartbeat") else "offset_commit"
    entity = getattr(importlib.import_module(f"kio.schema.{api}.v{version}.request"), kind)
    read, write = entity_reader(entity), entity_writer(entity)
    value, _ = read(data, 0)

    def encode() -> bytes:
        out = io.BytesIO()
        write(out, value)
        return out.getvalue()

    assert encode() == data
    return best(encode, 500), best(lambda: read(data, 0), 500)


def with_kafka_python(request: Message, version: int, data: bytes) -> tuple[float, float]:
    """What kafka-python takes to encode and to decode the request."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from kafka.protocol import consumer
    entity = getattr(consumer, type(request).__name__)
    value = entity.decode(data, version=version)
    value._header = None  # what its constructor does, and decode does not
    assert bytes(value.encode(version=version)) == data
    return best(lambda: value.encode(version=version), 500), best(
        lambda: entity.decode(data, version=version), 500
    )


def main(arguments: list[str]) -> None:
    """Print microseconds, and our ratio to each of the others with its spread."""
    rounds = int(arguments[0]) if arguments else 5
    peers = {"kgroup": with_kgroup, "kio": with_kio, "kafka-python": with_kafka_python}
    for name, (request, version) in CASES.items():
        data = request.encode(version)
        taken = [[measure(request, version, data) for measure in peers.values()] for _ in range(rounds)]
        for column, way in enumerate(("encode", "decode")):
            ours, *others = [[each[column] for each in times] for times in zip(*taken, strict=True)]
            print(f"{name}, {way}: {median(ours):.2f}")
            for peer, theirs in zip(list(peers)[1:], others, strict=True):
                ratio = kept(f"codec {name} {way} {peer}", Ratio.of(ours, theirs))
                print(f"    {peer:14}{median(theirs):8.2f}   {ratio}")
