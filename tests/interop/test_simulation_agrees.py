"""What the simulator predicts for a rolling bounce, against real Kafka and librdkafka consumers.

docs/simulation.md, "Compared with a real Kafka", says what is compared exactly, and why the rest is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import fmean

import pytest

from kgroup.history.raw import raw_rows
from kgroup.history.sources.logs import segment_logs
from kgroup.simulation.play.planning import PlanResult, Size, play
from kgroup.simulation.play.scenario import Scenario, ScenarioStep
from tests.sampled import in_full

from .conftest import require
from .driver import Client, Driver, Member, Partition, settle
from .kafka import RealKafka

pytestmark = [
    pytest.mark.interop,
    in_full("only a quiet machine keeps the times of clients"),
]

SIZE = Size(
    members=5,
    partitions=10,
    session_timeout_ms=9_000,
    heartbeat_interval_ms=1_000,
    initial_rebalance_delay_ms=0,
)
# Each phase is longer than the slowest rebalance (a heartbeat of 3 s, and the joins), so none coalesce.
BOUNCE = ScenarioStep("restart", down_ms=4_500, pause_ms=6_500)
SCENARIO = Scenario("bounce-of-five", (BOUNCE,))
# How much the time a partition is unread for one restart may differ, on average: connecting, the phases of
# heartbeats, and the sampling.
TOLERANCE_MS = 250
SAMPLE_S = 0.1
KINDS = (("classic", False), ("classic", True), ("consumer", False), ("consumer", True))
SETTINGS = {
    "group.consumer.session.timeout.ms": SIZE.session_timeout_ms,
    "group.consumer.heartbeat.interval.ms": SIZE.session_timeout_ms // 3,
    "group.initial.rebalance.delay.ms": SIZE.initial_rebalance_delay_ms,
}
# The records that carry how often a group rebalanced, by key type: GroupMetadata, ConsumerGroupMetadata.
COUNTED = {2: "generation", 3: "epoch"}


@dataclass
class Observed:
    """A real group through the scenario, as its log and its members tell it; times in ms."""

    members: list[Member]
    away: int | None = None
    rebalances: int = 0
    unowned_partition_ms: float = 0.0
    stop_the_world_ms: float = 0.0
    moved: int = 0
    owners: dict[Partition, int] = field(default_factory=dict)


Kind = tuple[str, bool]
Bounced = Mapping[Kind, Observed]
Predicted = Mapping[Kind, list[PlanResult]]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    require("java", "mvn")
    with RealKafka(SETTINGS, base=tmp_path_factory.mktemp("bounce")) as running:
        yield running


@pytest.fixture(scope="module")
def bounced(kafka: RealKafka, clients: Callable[[str], Client], drivers: Callable[[str], Driver]) -> Bounced:
    """A group of each kind, bounced at the same time; seen from the members and from the log."""
    client = clients("librdkafka")
    for protocol, static in KINDS:
        drivers("java").call(
            "admin.create_topic",
            bootstrap=kafka.bootstrap,
            topic=_name(protocol, static),
            partitions=SIZE.partitions,
        )
    with ThreadPoolExecutor(len(KINDS)) as pool:
        futures = {kind: pool.submit(_bounce, kafka, client, *kind) for kind in KINDS}
        return {kind: future.result(240) for kind, future in futures.items()}


def _name(protocol: str, static: bool) -> str:
    return f"{protocol}-{'static' if static else 'dynamic'}"


def _bounce(kafka: RealKafka, client: Client, protocol: str, static: bool) -> Observed:
    name = _name(protocol, static)

    def start(number: int) -> Member:
        config = {"heartbeat.interval.ms": str(SIZE.heartbeat_interval_ms)} if protocol == "classic" else {}
        return client.start(
            kafka.bootstrap,
            name,
            name,
            instance=f"{name}-{number}" if static else None,
            protocol=protocol,
            session_ms=SIZE.session_timeout_ms,
            config=config,
        )

    seen = Observed([start(number) for number in range(SIZE.members)])
    everything = {(name, number) for number in range(SIZE.partitions)}
    settle(seen.members, everything, each=2)
    _sample(seen, BOUNCE.pause_ms, counting=False)
    before = _epoch(kafka, name)
    for number in range(SIZE.members):
        closing = seen.members[number].driver.begin("close", name=seen.members[number].name, leave=None)
        seen.away = number
        _sample(seen, BOUNCE.down_ms)
        closing.result(10)
        seen.members[number] = start(number)
        seen.away = None
        _sample(seen, BOUNCE.pause_ms)
    settle(seen.members, everything, each=2)
    seen.rebalances = _epoch(kafka, name) - before
    for member in seen.members:
        member.close()
    return seen


def _sample(seen: Observed, ms: float, counting: bool = True) -> None:
    """Let time pass, watching who holds what."""
    last = time.monotonic()
    until = last + ms / 1000
    while last < until:
        time.sleep(SAMPLE_S)
        held = {
            partition: number
            for number, member in enumerate(seen.members)
            if number != seen.away
            for partition in member.state().assignment
        }
        now = time.monotonic()
        if counting:
            passed = (now - last) * 1000
            seen.unowned_partition_ms += passed * (SIZE.partitions - len(held))
            seen.stop_the_world_ms += 0 if held else passed
            seen.moved += sum(seen.owners.get(each, number) != number for each, number in held.items())
        seen.owners |= held
        last = now


def _epoch(kafka: RealKafka, group: str) -> int:
    """The generation or group epoch that the log tells last."""
    logs = segment_logs([kafka.data_dir])
    rows = [row for log in logs for row in raw_rows(log, [group]) if row["type"] in COUNTED]
    return int(rows[-1]["value"][COUNTED[rows[-1]["type"]]])


@pytest.fixture(scope="module")
def predicted() -> Predicted:
    """The same with the simulator, under a few seeds: who starts when, and the phases of heartbeats."""
    return {
        (protocol, static): [play(SCENARIO, SIZE, protocol, static=static, seed=seed) for seed in range(5)]
        for protocol, static in KINDS
    }


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("protocol", "static"), KINDS)
def test_rebalances_are_those_predicted(
    protocol: str, static: bool, bounced: Bounced, predicted: Predicted
) -> None:
    """Exactly: none for static members, two for each dynamic one (it leaves, it joins)."""
    told = {result.rebalances for result in predicted[protocol, static]}
    assert told == {bounced[protocol, static].rebalances} == {0 if static else 2 * SIZE.members}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("protocol", "static"), [("classic", True), ("consumer", False), ("consumer", True)])
def test_partitions_move_as_predicted(
    protocol: str, static: bool, bounced: Bounced, predicted: Predicted
) -> None:
    """Exactly, but for dynamic classic members: range goes by member ids, which are random."""
    told = {result.partitions_moved for result in predicted[protocol, static]}
    assert told == {bounced[protocol, static].moved}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("protocol", "static"), KINDS)
def test_times_are_within_the_tolerance(
    protocol: str, static: bool, bounced: Bounced, predicted: Predicted
) -> None:
    seen, told = bounced[protocol, static], predicted[protocol, static]
    unowned = fmean(result.unowned_partition_ms for result in told)
    stopped = fmean(result.stop_the_world_ms for result in told)
    allowed = TOLERANCE_MS * SIZE.members
    assert seen.unowned_partition_ms == pytest.approx(unowned, abs=allowed * SIZE.partitions)
    assert seen.stop_the_world_ms == pytest.approx(stopped, abs=allowed)
