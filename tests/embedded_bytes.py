"""Bytes that Kafka's own classes wrote, with what they mean, against our decoders.

The lines are those of tests/interop/foreign/java/…/Embedded.java; some of them are kept in tests/data.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kgroup.protocol.embedded import connect, streams
from kgroup.protocol.embedded.undecoded import Undecoded

Line = dict[str, Any]


def compare(line: Line) -> None:
    """AssertionError unless our decoder finds in the bytes what Kafka put there."""
    data, means = bytes.fromhex(line["hex"]), line["means"]
    assert _DECODERS[line["kind"]](data, line["version"]) == means, line


def _connect_metadata(data: bytes, version: int) -> Line:
    worker, undecoded = connect.worker(data, b"")
    assert worker is not None and undecoded == (), undecoded
    assert (worker.version, worker.running, worker.assignment) == (version, None, None)
    told: Line = {"url": worker.url, "config_offset": worker.config_offset}
    if version:
        assert worker.before is not None
        told["before"] = _plain(asdict(worker.before))
    return told


def _connect_assignment(data: bytes, version: int) -> Line:
    found = connect.assignment_of(data)
    assert not isinstance(found, Undecoded), found
    told = _plain(asdict(found))
    assert told.pop("version") == version
    return told


def _streams_metadata(data: bytes, version: int) -> Line:
    thread, undecoded = streams.thread("", data, None)
    assert thread.subscription is not None and undecoded == (), undecoded
    told = _plain(asdict(thread.subscription))
    told["client_tags"] = {tag["key"]: tag["value"] for tag in told["client_tags"]}
    told["previous"] = {task.pop("task"): task for task in told["previous"]}
    return told


def _streams_assignment(data: bytes, version: int) -> Line:
    thread, undecoded = streams.thread("", None, data)
    assert thread.assignment is not None and undecoded == (), undecoded
    told = _plain(asdict(thread.assignment))
    assert told["active"] == sorted(told["active"], key=streams.task_order)
    told |= {role: sorted(told[role]) for role in ("active", "standby")}
    hosts = told.pop("hosts")
    for role in ("active", "standby"):
        named = {f"{host['host']}:{host['port']}": _partitions(host[role]) for host in hosts}
        told[f"{role}_hosts"] = {host: found for host, found in named.items() if found}
    return told


def _partitions(topics: list[Line]) -> list[str]:
    return sorted(f"{each['topic']}-{number}" for each in topics for number in each["partitions"])


def _plain(value: Any) -> Any:
    """As JSON has it: lists for tuples."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


_DECODERS = {
    "connect-metadata": _connect_metadata,
    "connect-assignment": _connect_assignment,
    "streams-metadata": _streams_metadata,
    "streams-assignment": _streams_assignment,
}
