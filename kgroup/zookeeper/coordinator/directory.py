"""The brokers of the cluster, as ZooKeeper lists them (1), for metadata answers and Starts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import Core, reason, uncertain
from kgroup.zookeeper.coordinator.events import Level
from kgroup.zookeeper.store.operations import Children, Exists, Failure, Get, Node, Result, Stat
from kgroup.zookeeper.wire.messages import Broker

_INT32 = 2**31
OWN_LISTENER = "LEGACY://"
"""In front of a broker's endpoint where a host has the coordinator on a listener of its own."""


class Directory:
    """A cache of /brokers/ids, kept by watches; `known` says whether it has been read at all."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.brokers: tuple[Broker, ...] = ()
        self.known = False
        self._waiting: list[Callable[[], None]] = []
        self._reads = 0

    def read(self) -> None:
        """Read it anew, and watch for what changes (era 6.3)."""
        self._reads += 1
        reads = self._reads
        self._core.ask(
            (Children(paths.BROKER_IDS),), lambda results: self._listed(reads, results), watch=True
        )

    def once_known(self, action: Callable[[], None]) -> None:
        """Do it when the brokers are known, now or later."""
        if self.known:
            action()
        else:
            self._waiting.append(action)

    def fired(self, path: str) -> bool:
        """Whether a watch was ours; then it is read anew."""
        if path != paths.BROKER_IDS and not path.startswith(paths.BROKER_IDS + "/"):
            return False
        self.read()
        return True

    def _listed(self, reads: int, results: Sequence[Result]) -> None:
        (listed,) = results
        if reads != self._reads:
            return
        if listed is Failure.NO_NODE:
            self._core.ask((Exists(paths.BROKER_IDS),), self._found_after_all, watch=True)
            self._learnt([])
        elif not isinstance(listed, tuple):
            self._failed(results)
        elif not listed:
            self._learnt([])
        else:
            ops = [Get(paths.broker(name)) for name in listed]
            self._core.ask(ops, lambda nodes: self._told(reads, listed, nodes), watch=True)

    def _found_after_all(self, results: Sequence[Result]) -> None:
        """The first broker registered meanwhile: what watches the node does not watch its children."""
        if isinstance(results[0], Stat):
            self.read()
        elif uncertain(results):
            self._core.when_connected(self.read)

    def _told(self, reads: int, names: tuple[str, ...], results: Sequence[Result]) -> None:
        if reads != self._reads:
            return
        if uncertain(results):
            self._failed(results)
            return
        found = []
        for name, node in zip(names, results, strict=True):
            broker = broker_of(name, node.data) if isinstance(node, Node) else None
            if broker is not None:
                found.append(broker)
            elif node is not Failure.NO_NODE:  # One that is gone is none; one that cannot be read is said.
                why = node.value if isinstance(node, Failure) else "its data is not that of a broker"
                self._core.log(Level.WARNING, f"broker {name} cannot be read from ZooKeeper: {why}")
        self._learnt(found)

    def _failed(self, results: Sequence[Result]) -> None:
        if not uncertain(results):
            self._core.log(Level.ERROR, f"{paths.BROKER_IDS} cannot be read: {reason(results[0])}")
        self._core.when_connected(self.read)

    def _learnt(self, brokers: list[Broker]) -> None:
        self.brokers = tuple(sorted(brokers))
        self.known = True
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()


def broker_of(name: str, data: bytes) -> Broker | None:
    """The broker a node tells of, in 0.7's form or a JSON of version 1 to 5; None if it is none."""
    if not name.isdecimal() or int(name) >= _INT32:
        return None
    try:
        text = data.decode("utf-8")
        told = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    if told is None:
        # 0.7: creator:host:port, and the creator holds host and time.
        return _broker(int(name), text.rpartition(":")[0].rpartition(":")[2], text.rpartition(":")[2])
    endpoints = told.get("endpoints")
    if isinstance(endpoints, list) and endpoints:
        named = [endpoint for endpoint in endpoints if isinstance(endpoint, str)]
        first = sorted(named, key=_rank)
        address = (first or [""])[0].rpartition("://")[2]
        host, _, port = address.rpartition(":")
        return _broker(int(name), host.strip("[]"), port)
    return _broker(int(name), told.get("host"), told.get("port"))


def _rank(endpoint: str) -> int:
    return 0 if endpoint.startswith(OWN_LISTENER) else 1 if endpoint.startswith("PLAINTEXT://") else 2


def _broker(broker_id: int, host: object, port: object) -> Broker | None:
    number = str(port)
    if not isinstance(host, str) or not host or not number.isdecimal() or not 0 < int(number) < 65_536:
        return None
    return Broker(broker_id, host, int(number))
