"""The brokers of the cluster, as ZooKeeper lists them (1), for metadata answers and Starts."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import Asks, Core, reason, uncertain
from kgroup.zookeeper.events import Level
from kgroup.zookeeper.store.operations import Children, Exists, Failure, Get, Node, Result, Stat
from kgroup.zookeeper.wire.messages import Broker

_INT32 = 2**31
OWN_LISTENER = "LEGACY://"
"""Prefix of a broker's endpoint where the coordinator has its own listener."""


class Directory:
    """A cache of /brokers/ids, kept current by watches; `known` says whether it has been read at all."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.brokers: tuple[Broker, ...] = ()
        self.known = False
        self._waiting: list[Callable[[], None]] = []
        self._reads = 0

    def read(self) -> None:
        """Read the brokers again and watch for changes (era 6.3)."""
        self._reads += 1
        reads = self._reads
        self._core.ask(
            (Children(paths.BROKER_IDS),), lambda results: self._listed(reads, results), watch=True
        )

    def once_known(self, action: Callable[[], None]) -> None:
        """Call `action` when the brokers are known, now or later."""
        if self.known:
            action()
        else:
            self._waiting.append(action)

    def fired(self, path: str) -> bool:
        """Return whether the watch was this directory's; if so, read it again."""
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
            self._core.ask(ops, lambda nodes: self._brokers_read(reads, listed, nodes), watch=True)

    def _found_after_all(self, results: Sequence[Result]) -> None:
        """Read again if a broker registered meanwhile: watching the node does not watch its children."""
        if isinstance(results[0], Stat):
            self.read()
        elif uncertain(results):
            self._core.when_connected(self.read)

    def _brokers_read(self, reads: int, names: tuple[str, ...], results: Sequence[Result]) -> None:
        if reads != self._reads:
            return
        if uncertain(results):
            self._failed(results)
            return
        brokers = []
        for name, node in zip(names, results, strict=True):
            broker = broker_of(name, node.data) if isinstance(node, Node) else None
            if broker is not None:
                brokers.append(broker)
            elif node is not Failure.NO_NODE:  # Gone is no broker; unreadable is logged.
                why = node.value if isinstance(node, Failure) else "its data is not that of a broker"
                self._core.log(Level.WARNING, f"broker {name} cannot be read from ZooKeeper: {why}")
        self._learnt(brokers)

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
    """Return the broker in a node's data, 0.7's form or JSON of version 1 to 5; None if there is none."""
    if not name.isdecimal() or int(name) >= _INT32:
        return None
    try:
        text = data.decode("utf-8")
        broker = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    if broker is None:
        # 0.7: creator:host:port, and the creator holds host and time.
        return _broker(int(name), text.rpartition(":")[0].rpartition(":")[2], text.rpartition(":")[2])
    endpoints = broker.get("endpoints")
    if isinstance(endpoints, list) and endpoints:
        named = [endpoint for endpoint in endpoints if isinstance(endpoint, str)]
        first = sorted(named, key=_rank)
        address = (first or [""])[0].rpartition("://")[2]
        host, _, port = address.rpartition(":")
        return _broker(int(name), host.strip("[]"), port)
    return _broker(int(name), broker.get("host"), broker.get("port"))


def _rank(endpoint: str) -> int:
    return 0 if endpoint.startswith(OWN_LISTENER) else 1 if endpoint.startswith("PLAINTEXT://") else 2


def _broker(broker_id: int, host: object, port: object) -> Broker | None:
    number = str(port)
    if not isinstance(host, str) or not host or not number.isdecimal() or not 0 < int(number) < 65_536:
        return None
    return Broker(broker_id, host, int(number))


Partitions = tuple[str, ...]
Found = Mapping[str, Partitions | Failure]
"""Each topic's partitions; NO_NODE for a missing topic, BAD_ARGUMENTS for data that make no sense."""
MAX_PARTITIONS = 100_000


class TopicReader:
    """Reads the partitions of topics; with `watch` it watches every node the answer came from."""

    def __init__(self, asks: Asks) -> None:
        self._asks = asks

    def read(self, names: Iterable[str], then: Callable[[Found], None], *, watch: bool = False) -> None:
        """Call `then` with what is known of each of these topics."""
        requested = list(names)
        if not requested:
            then({})
            return
        ops = [Get(paths.topic(name)) for name in requested]

        def read_all(results: Sequence[Result]) -> None:
            topics: dict[str, Partitions | Failure] = {}
            old = []
            for name, node in zip(requested, results, strict=True):
                if isinstance(node, Node):
                    if node.data.startswith(b"{"):
                        topics[name] = partitions_of(node.data)
                    else:
                        old.append(name)
                else:
                    topics[name] = node if isinstance(node, Failure) else Failure.BAD_ARGUMENTS
            self._read_old(old, topics, then, watch)

        self._asks.ask(ops, read_all, watch=watch)

    def _read_old(
        self,
        names: list[str],
        topics: dict[str, Partitions | Failure],
        then: Callable[[Found], None],
        watch: bool,
    ) -> None:
        """Read 0.7's form: one child per broker, which holds the number of that broker's partitions."""
        if not names:
            then(topics)
            return

        def listed(results: Sequence[Result]) -> None:
            brokers: list[tuple[str, str]] = []
            for name, children in zip(names, results, strict=True):
                if isinstance(children, tuple):
                    topics[name] = ()
                    brokers += [(name, broker) for broker in children]
                else:
                    topics[name] = children if isinstance(children, Failure) else Failure.BAD_ARGUMENTS
            if not brokers:
                then(topics)
                return
            ops = [Get(f"{paths.topic(name)}/{broker}") for name, broker in brokers]
            self._asks.ask(ops, lambda counts: counted(brokers, counts), watch=watch)

        def counted(brokers: list[tuple[str, str]], results: Sequence[Result]) -> None:
            for (name, broker), node in zip(brokers, results, strict=True):
                before = topics[name]
                if isinstance(before, Failure) or node is Failure.NO_NODE:
                    continue
                topics[name] = node if isinstance(node, Failure) else _with_broker(before, broker, node)
            then(topics)

        self._asks.ask([Children(paths.topic(name)) for name in names], listed, watch=watch)


def partitions_of(data: bytes) -> Partitions | Failure:
    """Return the partition names in a topic's JSON, in numeric order."""
    try:
        partitions = json.loads(data)["partitions"]
        names = sorted(partitions.keys(), key=int)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Failure.BAD_ARGUMENTS
    return tuple(names) if all(name.isdecimal() for name in names) else Failure.BAD_ARGUMENTS


def _with_broker(before: Partitions, broker: str, node: Result) -> Partitions | Failure:
    text = node.data.decode("ascii", "replace") if isinstance(node, Node) else ""
    if not broker.isdecimal() or not text.isdecimal() or int(text) > MAX_PARTITIONS:
        return Failure.BAD_ARGUMENTS
    return before + tuple(f"{broker}-{number}" for number in range(int(text)))
