"""Topics and their partitions in ZooKeeper, in 0.7's form and in that of 0.8 and later (era 1, 6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import Asks
from kgroup.zookeeper.store.operations import Children, Failure, Get, Node, Result

Partitions = tuple[str, ...]
Found = Mapping[str, Partitions | Failure]
"""Each topic's partitions; NO_NODE for one that is not there, BAD_ARGUMENTS for data that make no sense."""
MAX_PARTITIONS = 100_000


class TopicReader:
    """Reads the partitions of topics; with `watch` it leaves one on all that the answer came from."""

    def __init__(self, asks: Asks) -> None:
        self._asks = asks

    def read(self, names: Iterable[str], then: Callable[[Found], None], *, watch: bool = False) -> None:
        """Have `then` called with what is known of each of these topics."""
        wanted = list(names)
        if not wanted:
            then({})
            return
        ops = [Get(paths.topic(name)) for name in wanted]

        def told(results: Sequence[Result]) -> None:
            found: dict[str, Partitions | Failure] = {}
            old = []
            for name, node in zip(wanted, results, strict=True):
                if isinstance(node, Node):
                    if node.data.startswith(b"{"):
                        found[name] = partitions_of(node.data)
                    else:
                        old.append(name)
                else:
                    found[name] = node if isinstance(node, Failure) else Failure.BAD_ARGUMENTS
            self._read_old(old, found, then, watch)

        self._asks.ask(ops, told, watch=watch)

    def _read_old(
        self,
        names: list[str],
        found: dict[str, Partitions | Failure],
        then: Callable[[Found], None],
        watch: bool,
    ) -> None:
        """0.7: a child for each broker, and in it how many partitions that broker has."""
        if not names:
            then(found)
            return

        def listed(results: Sequence[Result]) -> None:
            brokers: list[tuple[str, str]] = []
            for name, children in zip(names, results, strict=True):
                if isinstance(children, tuple):
                    found[name] = ()
                    brokers += [(name, broker) for broker in children]
                else:
                    found[name] = children if isinstance(children, Failure) else Failure.BAD_ARGUMENTS
            if not brokers:
                then(found)
                return
            ops = [Get(f"{paths.topic(name)}/{broker}") for name, broker in brokers]
            self._asks.ask(ops, lambda counts: counted(brokers, counts), watch=watch)

        def counted(brokers: list[tuple[str, str]], results: Sequence[Result]) -> None:
            for (name, broker), node in zip(brokers, results, strict=True):
                before = found[name]
                if isinstance(before, Failure) or node is Failure.NO_NODE:
                    continue
                found[name] = node if isinstance(node, Failure) else _with_broker(before, broker, node)
            then(found)

        self._asks.ask([Children(paths.topic(name)) for name in names], listed, watch=watch)


def partitions_of(data: bytes) -> Partitions | Failure:
    """The partition names in a topic's JSON, in order of number."""
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
