"""Random clusters of the ZooKeeper era: every invariant after every event; planted faults are found."""

from random import Random

import pytest

from kgroup.zookeeper.consumer.machine import ConsumerConfig
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.events import Closed
from kgroup.zookeeper.world.world import unrest
from tests.sampled import FULL
from tests.simulation.era.__main__ import main
from tests.simulation.era.chaos import run
from tests.simulation.era.faults import FAULTS
from tests.simulation.era.world import AuditedWorld

CHUNK = 20
SEEDS = 100 if FULL else 40
MOST_SEEDS = 100
FOUND_BY = {
    "commit-bit": 4,
    "consumer-lease": 4,
    "coordinator-lease": 14,
    "epoch": 10,
    "hand-over": 21,
    "watch": 5,
}
"""Where to look first; any other seed that finds it will do as well."""


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_seeds_without_a_violation(first):
    """LC-02, LC-04, LC-18, LC-26, LC-29, LC-58, LC-61, LC-67, LC-74, LC-89: the nine invariants."""
    for seed in range(first, first + CHUNK):
        result = run(seed)
        assert result.violation is None, f"seed {seed}, step {result.steps}: {result.violation}"


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_found(name):
    seeds = [FOUND_BY[name], *range(MOST_SEEDS)] if name in FOUND_BY else range(MOST_SEEDS)
    assert any(run(seed, FAULTS[name]).violation is not None for seed in seeds)


def test_the_same_seed_is_the_same_run():
    """LC-23: all there is to read is read between two events; nobody else is in the machine meanwhile."""
    one, other = run(11), run(11)
    assert (one.steps, one.log, one.rest_ms) == (other.steps, other.log, other.rest_ms)
    assert one.world.auditor.said == other.world.auditor.said
    assert run(12).log != one.log


def test_a_violation_names_its_seed(capsys):
    seed = FOUND_BY["hand-over"]
    assert main(["--first", str(seed), "--seeds", "1", "--fault", "hand-over"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"seed {seed}, step ") and "12.1 one consumer delivers" in told[0]
    assert told[-1].startswith("1 seeds, 1 with a violation;")


def test_a_planted_fault_is_gone_afterwards():
    rights = {name: getattr(fault.owner, fault.attribute) for name, fault in FAULTS.items()}
    run(0, FAULTS["epoch"])
    assert {name: getattr(fault.owner, fault.attribute) for name, fault in FAULTS.items()} == rights


def cluster(consumers, **config):
    """A cluster at rest, of one group."""
    world = AuditedWorld(Random(1), LegacyConfig(**config), 1)
    world.set_topic("t", 3)
    world.brokers[0].start()
    for number in range(consumers):
        settings = ConsumerConfig(group_id="g", consumer_id=f"c{number}", brokers=world.addresses)
        world.add(settings, '{"t":1}').start()
    world.schedule.run_until(10_000)
    assert unrest(world) is None
    return world


def rebalances(world):
    """How many Starts were sent."""
    messages = [getattr(e, "message", None) for _, _, effects in world.auditor.said[1][1] for e in effects]
    return sum(type(message).__name__ == "StartFetcherRequest" for message in messages)


@pytest.mark.parametrize("header", [False, True])
def test_an_answer_in_two_halves(header):
    """LC-81, LC-83, LC-90, scenario 23: the bytes of an answer come 1 s apart, and nobody minds."""
    world = cluster(2, header=header)
    before = rebalances(world)
    for _ in range(5):
        world.network.tear_next = 1_000
        world.schedule.run_until(world.now_ms + 2_000)
    assert rebalances(world) == before and unrest(world) is None


def test_a_slow_reader_is_dropped():
    """LC-90, scenario 25: its socket takes nothing; the others are served, and get what it had."""
    world = cluster(2, max_outbound_bytes=130, max_failed_pings=100)
    slow, other = world.consumers
    (broker,) = world.brokers
    said = world.auditor.said[broker.id][1]
    before = len(said)
    world.network.cut.add((slow.name, broker.name))
    world.schedule.run_until(world.now_ms + 60_000)
    closed = [event.conn for _, event, _ in said[before:] if isinstance(event, Closed)]
    assert len(closed) == 1 and len(broker.machine.term.members) == 1
    assert len(other.machine.positions) == 3 and not slow.machine.positions
