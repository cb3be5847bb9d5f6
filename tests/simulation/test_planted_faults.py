"""Faults planted in the coordinator, one at a time: the invariants find each."""

import pytest

from kgroup.simulation.play.chaos import WITH_STREAMS, WITH_TRANSACTIONS, run
from tests.simulation import planted, planted_streams

MOST_SEEDS = 200
FOUND_BY = {
    "commit_at_the_assignment_epoch_refused": 68,
    "commit_of_an_old_epoch": 74,
    "commit_of_an_old_generation": 9,
    "fetch_does_not_wait_for_transactions": 1_000_188,
    "generation_of_classic_member_in_consumer_group": 30,
    "heartbeat_of_an_old_epoch": 30,
    "left_for_now_without_a_record": 11,
    "no_sessions_after_a_reload": 6,
    "revocation_may_take_for_ever": 45,
    "revocation_not_awaited": 11,
    "copy_given_beside_the_task": 2_000_006,
    "streams_commit_of_an_old_epoch": 2_000_027,
    "streams_epoch_stays_when_a_thread_goes": 2_000_035,
    "streams_heartbeat_of_an_old_epoch": 2_000_005,
    "task_revocation_may_take_for_ever": 2_000_015,
    "transactional_commit_of_an_old_generation": 1_000_023,
}
"""Where to look first for what few runs come across; any other seed will do as well."""


@pytest.mark.parametrize("plant", planted.FAULTS, ids=[plant.__name__ for plant in planted.FAULTS])
def test_planted_fault_is_found(plant, monkeypatch):
    plant(monkeypatch)
    seeds = [FOUND_BY.get(plant.__name__, 0), *range(MOST_SEEDS)]
    assert any(run(seed).violation is not None for seed in seeds)


@pytest.mark.parametrize(
    "plant", planted.IN_TRANSACTIONS, ids=[plant.__name__ for plant in planted.IN_TRANSACTIONS]
)
def test_planted_fault_in_transactions_is_found(plant, monkeypatch):
    plant(monkeypatch)
    first = WITH_TRANSACTIONS
    seeds = [FOUND_BY.get(plant.__name__, first), *range(first, first + MOST_SEEDS)]
    assert any(run(seed).violation is not None for seed in seeds)


@pytest.mark.parametrize(
    "plant", planted_streams.FAULTS, ids=[plant.__name__ for plant in planted_streams.FAULTS]
)
def test_planted_fault_in_streams_groups_is_found(plant, monkeypatch):
    plant(monkeypatch)
    first = WITH_STREAMS
    seeds = [FOUND_BY.get(plant.__name__, first), *range(first, first + MOST_SEEDS)]
    assert any(run(seed).violation is not None for seed in seeds)


def test_there_are_twenty_faults():
    assert len(planted.FAULTS) >= 20
