"""The scenarios of the machine that need a tree, as they stand in tests/unit/legacy, on a real ZooKeeper.

The same functions, clocks and consumers; only what answers the machine's calls is another.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.legacy_scenarios import NEED_NO_TREE, scenarios_of
from tests.unit.zookeeper import (
    stage,
    test_legacy_election,
    test_legacy_failover,
    test_legacy_offsets,
    test_legacy_pings,
    test_legacy_rebalances,
    test_legacy_registration,
    test_legacy_topics,
)

from .era import ZooKeeperServer
from .real_tree import RealTree

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
MODULES = (
    test_legacy_election,
    test_legacy_failover,
    test_legacy_offsets,
    test_legacy_pings,
    test_legacy_rebalances,
    test_legacy_registration,
    test_legacy_topics,
)
TAKEN = {
    name: function
    for module in MODULES
    for name, function in vars(module).items()
    if name.startswith("test_") and scenarios_of(function.__doc__) - NEED_NO_TREE
}
globals().update(TAKEN)


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeperServer]:
    """Sessions of it outlast a test that computes for seconds."""
    with ZooKeeperServer(settings={"tickTime": 2000}) as running:
        yield running


@pytest.fixture(autouse=True)
def on_a_real_tree(zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LC-17, LC-18: sessions, ephemerals, versions and watches are those of ZooKeeper itself."""
    made: list[RealTree] = []

    def tree() -> RealTree:
        made.append(RealTree(zookeeper.bootstrap))
        return made[-1]

    monkeypatch.setattr(stage, "Tree", tree)
    yield
    for each in made:
        each.close()
