"""The sample of the table of locks that the interop suite plays lacks no kind of cell."""

from __future__ import annotations

from itertools import product

from tests.interop.security.clients import CLIENTS, LOCKS, MECHANISMS, cells
from tests.sampled import FULL

BROKERS = ("kafka", "kgroup")


def test_each_client_meets_each_broker_mechanism_and_protocol() -> None:
    chosen = cells(BROKERS)
    assert {(client, broker) for broker, _, client in chosen} == set(product(CLIENTS, BROKERS))
    assert {(client, lock.mechanism) for _, lock, client in chosen} >= set(product(CLIENTS, MECHANISMS))
    protocols = {lock.protocol for lock in LOCKS}
    assert {(client, lock.protocol) for _, lock, client in chosen} == set(product(CLIENTS, protocols))
    assert {(lock, broker) for broker, lock, _ in chosen} == set(product(LOCKS, BROKERS))
    assert FULL or len(chosen) == len(BROKERS) * len(LOCKS) * len(CLIENTS) / 3
