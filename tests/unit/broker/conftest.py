"""A cluster in memory with a clock moved by hand, and the embedded way to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster

QUICK = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cluster(clock: ManualClock) -> Iterator[Cluster]:
    made = Cluster(None, brokers=3, config=QUICK, offsets_partitions=6, seed=1, clock=clock)
    yield made
    made.close()


@pytest.fixture
def transport(cluster: Cluster) -> EmbeddedTransport:
    return EmbeddedTransport(cluster)
