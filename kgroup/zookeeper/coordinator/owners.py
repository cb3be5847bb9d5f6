"""The owners of a group's partitions as ZooKeeper has them, and what is kept beside them (1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import Asks
from kgroup.zookeeper.coordinator.registries import Group
from kgroup.zookeeper.store.operations import Children, Failure, Get, Node, Result, Sync
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


class OwnersReader:
    """Reads the owners of groups, and notes which nodes are there."""

    def __init__(self, asks: Asks) -> None:
        self._asks = asks

    def read(self, group: Group, then: Callable[[Owners | Failure], None]) -> None:
        """Have `then` called with the owners, seeing every write that was done before."""
        path, group_path = paths.owners(group.group_id), paths.group(group.group_id)

        def told(results: Sequence[Result]) -> None:
            _, whole, node, topics = results
            failed = _failure(results[1:])
            if failed is not None:
                then(failed)
                return
            # What somebody deleted by hand meanwhile is not there any more.
            group.there = {known for known in group.there if not known.startswith(path)}
            if isinstance(whole, Node):
                group.there.add(group_path)
            owners = Owners()
            if isinstance(node, Node):
                group.there.add(path)
                owners.data = node.data
                owners.session_timeout_ms, owners.starting = _told(node.data)
            if isinstance(topics, tuple) and topics:
                owners.topics = topics
                self._read_topics(group, owners, then)
            else:
                then(owners)

        self._asks.ask((Sync(path), Get(group_path), Get(path), Children(path)), told)

    def _read_topics(self, group: Group, owners: Owners, then: Callable[[Owners | Failure], None]) -> None:
        def told(results: Sequence[Result]) -> None:
            failed = _failure(results)
            if failed is not None:
                then(failed)
                return
            partitions = []
            for topic, names in zip(owners.topics, results, strict=True):
                if isinstance(names, tuple):
                    group.there.add(paths.owners_of(group.group_id, topic))
                    partitions += [Partition(topic, name) for name in names]
            self._read_partitions(group, owners, partitions, then)

        self._asks.ask([Children(paths.owners_of(group.group_id, topic)) for topic in owners.topics], told)

    def _read_partitions(
        self,
        group: Group,
        owners: Owners,
        partitions: list[Partition],
        then: Callable[[Owners | Failure], None],
    ) -> None:
        if not partitions:
            then(owners)
            return

        def told(results: Sequence[Result]) -> None:
            failed = _failure(results)
            if failed is not None:
                then(failed)
                return
            for partition, node in zip(partitions, results, strict=True):
                if isinstance(node, Node):
                    group.there.add(paths.owner(group.group_id, partition))
                    owners.threads[partition] = node.data.decode("utf-8", "replace")
            then(owners)

        self._asks.ask([Get(paths.owner(group.group_id, partition)) for partition in partitions], told)


def _failure(results: Sequence[Result]) -> Failure | None:
    """What kept a read from telling; a node that is not there has been told of."""
    failures = (result for result in results if isinstance(result, Failure))
    return next((failure for failure in failures if failure is not Failure.NO_NODE), None)
