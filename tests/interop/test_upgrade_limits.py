"""What a broker refuses by its settings, against the plan; only in the full matrix: brokers of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.migrate.models import MigrationPlan
from kgroup.admin.migrate.plan import plan_migration
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.protocol.releases import Change
from tests.sampled import in_full

from .conftest import ASKED, KINDS, Case
from .driver import Client, Driver, Member, fatal, settle
from .waiting import eventually

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(1200),
    in_full("a server per case"),
    pytest.mark.parametrize("kind", ASKED),
]
Serve = Callable[..., Case]


@pytest.fixture
def serve(kind: str, drivers: Callable[[str], Driver], tmp_path: Path) -> Iterator[Serve]:
    """Start a broker of the kind with these settings; a group on it."""
    with _closing() as cases:

        def start(settings: dict[str, str]) -> Case:
            server = KINDS[kind](settings, base=tmp_path)
            server.start()
            cases.append(Case(server, drivers("java"), "limited", []))
            return cases[-1]

        yield start


@contextmanager
def _closing() -> Iterator[list[Case]]:
    cases: list[Case] = []
    yield cases
    for case in cases:
        for future in [m.driver.begin("close", name=m.name, leave=None) for m in case.members]:
            future.exception(30)
        case.server.stop()


def _plan(case: Case, direction: str) -> MigrationPlan:
    with SocketTransport(ConnectionSettings(parse_bootstrap(case.server.bootstrap))) as transport:
        return plan_migration(ClusterView(transport), case.group, direction)


def _blocked_by(made: MigrationPlan) -> list[str]:
    return [check.code for check in made.blockers]


def _members(case: Case, client: Client, topic: str, count: int, static: bool) -> list[Member]:
    members: list[Member] = []
    for n in range(count):
        members.append(case.join(client, topic, instance=f"i{n}" if static else None, session_ms=30_000))
        settle(members, case.partitions(topic))
    return members


@pytest.mark.parametrize("policy", ["downgrade", "disabled"])
def test_policy_that_forbids_upgrades(kind: str, policy: str, serve: Serve, java_client: Client) -> None:
    case = serve({"group.consumer.migration.policy": policy})
    topic = case.topic()
    _members(case, java_client, topic, 1, static=False)
    assert _blocked_by(_plan(case, "upgrade")) == ["migration_policy"]
    assert fatal(case.join(java_client, topic, protocol="consumer")) == "GROUP_ID_NOT_FOUND"


def test_policy_that_forbids_downgrades(kind: str, serve: Serve, java_client: Client) -> None:
    """Classic members may join, the group stays a consumer group, what the last of the others had is free.

    Only a join or a consumer-protocol heartbeat has a target computed; the next join gets things moving.
    """
    # Within the assignment interval not even a join computes a target.
    interval = {"group.consumer.assignment.interval.ms": "0"}
    case = serve({"group.consumer.migration.policy": "upgrade", **interval})
    topic = case.topic()
    old = case.join(java_client, topic, protocol="consumer")
    settle([old], case.partitions(topic))
    assert _blocked_by(_plan(case, "downgrade")) == ["migration_policy"]
    new = case.join(java_client, topic)
    held = settle([old, new], case.partitions(topic), each=2)[1].assignment
    case.close(old)
    eventually(lambda: len(case.describe()["members"]) == 1, what="the leaver is gone")
    assert case.describe()["type"] == "Consumer"
    assert new.state().assignment == held
    settle([new, case.join(java_client, topic)], case.partitions(topic))


def test_policy_disabled_refuses_classic_members(kind: str, serve: Serve, java_client: Client) -> None:
    case = serve({"group.consumer.migration.policy": "disabled"})
    topic = case.topic()
    settle([case.join(java_client, topic, protocol="consumer")], case.partitions(topic))
    assert _blocked_by(_plan(case, "downgrade")) == ["migration_policy", "classic_members"]
    assert fatal(case.join(java_client, topic)) == "INCONSISTENT_GROUP_PROTOCOL"


@pytest.mark.parametrize(
    ("count", "static", "blockers", "code"),
    [
        (2, True, ["size"], "GROUP_MAX_SIZE_REACHED"),
        (2, False, [], None),
        (3, False, ["size"], "GROUP_ID_NOT_FOUND"),
    ],
    ids=["full-static", "full-dynamic", "too-many"],
)
def test_size_limit(
    kind: str,
    count: int,
    static: bool,
    blockers: list[str],
    code: str | None,
    serve: Serve,
    java_client: Client,
) -> None:
    """A static member keeps its place while it restarts: before Kafka 4.4 its successor is one too many."""
    case = serve({"group.consumer.max.size": "2"})
    topic = case.topic()
    members = _members(case, java_client, topic, count, static)
    if code == "GROUP_MAX_SIZE_REACHED" and case.server.minor.has(Change.RETURNS_IN_FULL_GROUPS):
        blockers, code = [], None
    assert _blocked_by(_plan(case, "upgrade")) == blockers
    if count == 2:
        case.close(members.pop(0))
    successor = case.join(java_client, topic, instance="i0" if static else None, protocol="consumer")
    if code is None:
        settle([*members, successor], case.partitions(topic))
        eventually(lambda: case.describe()["type"] == "Consumer")
    else:
        assert fatal(successor) == code


@pytest.mark.parametrize("way", ["stop-first", "start-first", "static"])
def test_librdkafka_cooperative_sticky_in_its_first_generation(
    kind: str, way: str, serve: Serve, clients: Callable[[str], Client]
) -> None:
    """No user data yet: stopping a dynamic member brings it about, the two other ways get by."""
    case, client, static = (
        serve({"group.initial.rebalance.delay.ms": "2500"}),
        clients("librdkafka"),
        way == "static",
    )
    topic = case.topic()
    sticky = {"assignor": "cooperative-sticky", "session_ms": 30_000}
    members = [case.join(client, topic, instance=f"i{n}" if static else None, **sticky) for n in range(2)]
    settle(members, case.partitions(topic), each=2)
    made = _plan(case, "upgrade")
    assert {check.code: check.status for check in made.checks}["user_data_to_come"] == (
        "warn" if static else "block"
    )
    if way != "start-first":
        case.close(members.pop(0))
        if not static:
            settle(members, case.partitions(topic))
    successor = case.join(client, topic, instance="i0" if static else None, protocol="consumer")
    if way == "stop-first":
        assert fatal(successor) == "GROUP_ID_NOT_FOUND"
        assert _blocked_by(_plan(case, "upgrade")) == ["assignment_user_data"]
    else:
        settle([*members, successor], case.partitions(topic))
        assert case.describe()["type"] == "Consumer"
