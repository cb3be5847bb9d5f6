"""The hash by which a group notices that its topics changed (KIP-1101).

XXH3-64 over little-endian integers. A string is its UTF-16 code units followed by their number, as
hash4j, which Kafka uses, writes it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import xxhash

from kgroup.coordinator.state import State
from kgroup.domain import Topic

MAGIC = b"\0"
_LONG = struct.Struct("<q")
_INT = struct.Struct("<i")


def hash_of(state: State, names: Iterable[str]) -> int:
    """Return the metadata hash of the topics that exist among `names`; 0 for none."""
    hashes: dict[str, int] = {}
    for name in names:
        topic = state.image.by_name.get(name)
        if topic is None:
            continue
        cached = state.topic_hashes.get(name)
        if cached is None or cached[0] is not topic:
            cached = state.topic_hashes[name] = (topic, topic_hash(topic))
        hashes[name] = cached[1]
    return group_hash(hashes)


def topic_hash(topic: Topic) -> int:
    """Return the signed 64-bit hash of a topic's id, name, partition count and racks by partition.

    Racks count though Kafka's assignors ignore them: the user's own may not (KIP-881, KIP-1101).
    """
    data = bytearray(MAGIC)
    data += topic.topic_id[7::-1]
    data += topic.topic_id[:7:-1]
    data += _string(topic.name)
    data += _INT.pack(topic.partitions)
    for partition in range(topic.partitions):
        data += _INT.pack(partition)
        racks = topic.racks[partition] if partition < len(topic.racks) else ()
        for rack in sorted(racks, key=_code_units):
            data += _INT.pack(len(_code_units(rack)) // 2)
            data += _string(rack)
    return _signed(xxhash.xxh3_64_intdigest(bytes(data)))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """Return the signed 64-bit hash of a group's topics, given as topic name → `topic_hash`; 0 for none."""
    if not topic_hashes:
        return 0
    ordered = (topic_hashes[name] for name in sorted(topic_hashes))
    return _signed(xxhash.xxh3_64_intdigest(b"".join(map(_LONG.pack, ordered))))


def _code_units(text: str) -> bytes:
    """Return UTF-16, big-endian so that bytes sort as Java sorts strings."""
    return text.encode("utf-16-be", "surrogatepass")


def _string(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
