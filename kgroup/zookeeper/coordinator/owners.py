"""The owners of a group's partitions as ZooKeeper has them, and what is kept beside them (1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import Asks, Then
from kgroup.zookeeper.coordinator.registries import Group
from kgroup.zookeeper.store.operations import Children, Failure, Get, Node, Read, Result, Sync
from kgroup.zookeeper.wire.messages import Partition

_INT32 = 2**31


@dataclass(slots=True)
class Owners:
    """Threads by partition; `session_timeout_ms` None if it is not told, `data` None if there is no node.

    `starting`: consumers that are no owners yet may have been started, so that waiting for the owners is not
    enough.
    """

    threads: dict[Partition, str] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    data: bytes | None = None
    session_timeout_ms: int | None = None
    starting: bool = False


def data_of(session_timeout_ms: int, *, starting: bool) -> bytes:
    """What the owners node holds: the largest session of the group, and whether others are being started."""
    told: dict[str, int | bool] = {"version": 1, "session_timeout_ms": session_timeout_ms}
    if starting:
        told["starting"] = True
    return json.dumps(told, separators=(",", ":")).encode()


def _told(data: bytes) -> tuple[int | None, bool]:
    """The session timeout, None if it is not told, and whether others may have been started."""
    if not data:
        return None, False
    try:
        told = json.loads(data)
        session, starting = told.get("session_timeout_ms"), told.get("starting", False)
    except (ValueError, AttributeError, RecursionError):
        return None, False
    valid = type(session) is int and 0 < session < _INT32
    return session if valid else None, starting is not False


def read_owners(asks: Asks, group: Group, then: Callable[[Owners | Failure], None]) -> None:
    """Have `then` called with a group's owners, seeing all writes done before; note which nodes are there."""
    _Reading(asks, group, then).begin()


class _Reading:
    """Three rounds of questions: the group and its topics, their partitions, and who owns each."""

    def __init__(self, asks: Asks, group: Group, then: Callable[[Owners | Failure], None]) -> None:
        self._asks, self._group, self._then = asks, group, then
        self._path = paths.owners(group.group_id)
        self._owners = Owners()
        self._partitions: list[Partition] = []

    def begin(self) -> None:
        group_path = paths.group(self._group.group_id)
        self._ask((Sync(self._path), Get(group_path), Get(self._path), Children(self._path)), self._whole)

    def _ask(self, ops: Sequence[Read], told: Then) -> None:
        """Go on with `told`, or end with a failure or, where nothing is to be asked, with the owners."""

        def answered(results: Sequence[Result]) -> None:
            failures = (result for result in results if isinstance(result, Failure))
            failed = next((failure for failure in failures if failure is not Failure.NO_NODE), None)
            if failed is None:
                told(results)
            else:
                self._then(failed)

        if ops:
            self._asks.ask(ops, answered)
        else:
            self._then(self._owners)

    def _whole(self, results: Sequence[Result]) -> None:
        _, whole, node, topics = results
        group, owners = self._group, self._owners
        # What somebody deleted by hand meanwhile is not there any more.
        group.there = {known for known in group.there if not known.startswith(self._path)}
        if isinstance(whole, Node):
            group.there.add(paths.group(group.group_id))
        if isinstance(node, Node):
            group.there.add(self._path)
            owners.data = node.data
            owners.session_timeout_ms, owners.starting = _told(node.data)
        owners.topics = topics if isinstance(topics, tuple) else ()
        self._ask([Children(paths.owners_of(group.group_id, topic)) for topic in owners.topics], self._listed)

    def _listed(self, results: Sequence[Result]) -> None:
        group_id = self._group.group_id
        for topic, names in zip(self._owners.topics, results, strict=True):
            if isinstance(names, tuple):
                self._group.there.add(paths.owners_of(group_id, topic))
                self._partitions += [Partition(topic, name) for name in names]
        self._ask([Get(paths.owner(group_id, partition)) for partition in self._partitions], self._owned)

    def _owned(self, nodes: Sequence[Result]) -> None:
        for partition, node in zip(self._partitions, nodes, strict=True):
            if isinstance(node, Node):
                self._group.there.add(paths.owner(self._group.group_id, partition))
                self._owners.threads[partition] = node.data.decode("utf-8", "replace")
        self._then(self._owners)
