"""One broker without a socket, its clock moved by hand; in memory, or over a folder that survives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.unit.transactions.transactional_client import Broker

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "transaction.state.log.num.partitions": "3"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def open_broker(clock: ManualClock) -> Iterator[Callable[[Path | None], Broker]]:
    """Opens a broker over a folder, or in memory. One that is opened again finds what the last one wrote."""
    opened: list[Cluster] = []

    def start(folder: Path | None) -> Broker:
        for cluster in opened:
            cluster.close()
        opened.append(Cluster(folder, config=SETTINGS, offsets_partitions=2, seed=1, clock=clock))
        return Broker(EmbeddedTransport(opened[-1]))

    yield start
    for cluster in opened:
        cluster.close()


@pytest.fixture
def broker(open_broker: Callable[[Path | None], Broker]) -> Broker:
    made = open_broker(None)
    made.create_topic("a")
    return made
