"""Connect's, Streams' and Schema Registry's bytes, written short for tests.

Layouts are Kafka's; tests/data/embedded-bytes.jsonl has what Kafka itself writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

Units = Sequence[tuple[str, int]]
"""Connectors (-1) and tasks, by connector and number."""
LEADER = ("leader-1", "http://leader:8083/")


def connect_metadata(version: int, url: str, config_offset: int, before: Units | None = None) -> bytes:
    """A worker as it joins; `before` is what it runs, None to send no allocation."""
    head = struct.pack(">h", version) + _string(url) + struct.pack(">q", config_offset)
    if version == 0:
        return head
    return head + (_bytes(None) if before is None else _bytes(connect_assignment(version, given=before)))


def connect_assignment(
    version: int,
    given: Units = (),
    revoked: Units = (),
    delay_ms: int = 0,
    config_offset: int = 7,
    leader: tuple[str, str] = LEADER,
) -> bytes:
    """What a worker is given, by a leader's member id and URL."""
    head = struct.pack(">hh", version, 0) + _string(leader[0]) + _string(leader[1])
    head += struct.pack(">q", config_offset) + _units(given)
    return head if version == 0 else head + _units(revoked) + struct.pack(">i", delay_ms)


def streams_subscription(
    process: int, tasks: Iterable[tuple[int, int, int]] = (), version: int = 11
) -> bytes:
    """A thread as it joins, of 9 or later: subtopology, partition and sum of offsets of what it had."""
    rows = list(tasks)
    data = struct.pack(">ii", version, 11) + process.to_bytes(16, "big") + _bytes(b"")
    data += struct.pack(">i", len(rows))
    for subtopology, partition, total in rows:
        data += struct.pack(">iiqh", subtopology, partition, total, -1)
    return data + struct.pack(">bii", 0, 0, 0)


def streams_assignment(
    active: Sequence[tuple[int, int]], standby: Sequence[tuple[int, int]] = (), next_ms: int = (1 << 63) - 1
) -> bytes:
    """What a thread is given, in version 11, without hosts."""
    data = struct.pack(">iii", 11, 11, len(active))
    data += b"".join(struct.pack(">iii", *task, 0) for task in active)
    data += struct.pack(">i", len(standby)) + b"".join(struct.pack(">iiii", *task, 0, 0) for task in standby)
    return data + struct.pack(">iiiiq", 0, 0, 0, 0, next_ms)


def _units(units: Units) -> bytes:
    by_connector: dict[str, list[int]] = {}
    for connector, number in units:
        by_connector.setdefault(connector, []).append(number)
    data = struct.pack(">i", len(by_connector))
    for connector, numbers in by_connector.items():
        data += _string(connector) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return data


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
