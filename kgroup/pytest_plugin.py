"""Pytest plugin: fixtures with a cluster, unique names, and the history of groups when a test fails.

Pytest imports this at every start, so nothing else of kgroup is imported before a fixture is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kgroup.testing.cluster import Cluster

MARKER = "kafka_cluster"
USED = pytest.StashKey["dict[str, tuple[Cluster, int]]"]()
"""The clusters of a test, by fixture name, and since when, in ms of the cluster's clock."""
MOST_GROUPS = 10


def pytest_configure(config: pytest.Config) -> None:
    what = "arguments of kgroup.testing.Cluster for the `kafka_fresh` of a test"
    config.addinivalue_line("markers", f"{MARKER}(**arguments): {what}")


@pytest.fixture(scope="session")
def kafka_session() -> Iterator[Cluster]:
    """Yield the cluster behind `kafka`: one per process of pytest."""
    from kgroup.testing.cluster import Cluster

    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def kafka(request: pytest.FixtureRequest, kafka_session: Cluster) -> Cluster:
    """Return a cluster shared by the tests of this process: take names from `unique_name`."""
    if request.node.get_closest_marker(MARKER) is not None:
        pytest.fail(f"{MARKER} is for kafka_fresh: the cluster of `kafka` is shared", pytrace=False)
    return _noted(request, "kafka", kafka_session)


@pytest.fixture
def kafka_fresh(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Yield a cluster for this test alone, with the arguments of its marker `kafka_cluster`."""
    from kgroup.testing.cluster import Cluster

    marker = request.node.get_closest_marker(MARKER)
    if marker is not None and marker.args:
        pytest.fail(f"{MARKER} takes arguments by name: {MARKER}(brokers=3)", pytrace=False)
    with Cluster(**(marker.kwargs if marker else {})) as cluster:
        yield _noted(request, "kafka_fresh", cluster)


@pytest.fixture
def unique_name(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Return a function that makes names of groups and topics no other test has: unique_name("orders")."""
    import secrets

    def name(prefix: str) -> str:
        test = re.sub(r"[^\w.-]", "-", request.node.name, flags=re.ASCII)[:60]
        return f"{prefix}-{test}-{secrets.token_hex(4)}"

    return name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose rule that must fire did not; its rules end with it."""
    clusters = [cluster for cluster, _ in item.stash.get(USED, {}).values()]
    try:
        result = yield
        for cluster in clusters:
            for fault in cluster.faults():
                fault.check()
        return result
    finally:
        for cluster in clusters:
            cluster.remove_faults()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure's report what happened to the groups that the test touched."""
    report = yield
    if report.failed:
        for fixture, (cluster, since_ms) in item.stash.get(USED, {}).items():
            report.sections.append((f"groups of {fixture}", _histories(cluster, since_ms)))
    return report


def _noted(request: pytest.FixtureRequest, fixture: str, cluster: Cluster) -> Cluster:
    request.node.stash.setdefault(USED, {})[fixture] = cluster, cluster.now_ms()
    return cluster


def _histories(cluster: Cluster, since_ms: int) -> str:
    """Return the end of the history of each group that has changed since."""
    from kgroup.errors import KgroupError

    try:
        touched = cluster.groups_since(since_ms)
    except KgroupError as error:
        return f"the groups cannot be read: {error.message}"
    histories = [cluster.last_events(group) for group in touched[:MOST_GROUPS]]
    if len(touched) > MOST_GROUPS:
        histories.append(f"and {len(touched) - MOST_GROUPS} more: {', '.join(touched[MOST_GROUPS:])}")
    return "\n".join(histories) or "no group has changed"
