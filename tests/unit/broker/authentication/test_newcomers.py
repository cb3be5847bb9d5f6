"""Connections that have not authenticated: how many there may be, and who makes room."""

from __future__ import annotations

import pytest

from kgroup.broker import newcomers
from kgroup.broker.newcomers import Newcomers
from kgroup.broker.server import Server
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.complaints import Complaints


@pytest.fixture
def ended() -> list[str]:
    return []


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> Newcomers:
    monkeypatch.setattr(newcomers, "ROOM", 5)
    monkeypatch.setattr(newcomers, "ROOM_OF_ADDRESS", 3)
    return Newcomers(1, Complaints(ManualClock()))


def enter(some: Newcomers, ended: list[str], *names: str) -> None:
    """Each from the address that its first letter stands for."""
    for name in names:
        some.enter(name, name[0], lambda name=name: ended.append(name))  # type: ignore[misc]


def test_an_address_makes_room_for_itself(some: Newcomers, ended: list[str]) -> None:
    enter(some, ended, "b1", "a1", "a2", "a3", "a4", "a5")
    assert ended == ["a1", "a2"]
    enter(some, ended, "c1")
    assert ended == ["a1", "a2"]
    assert len(some) == 5


def test_the_oldest_of_all_makes_room_for_another_address(some: Newcomers, ended: list[str]) -> None:
    enter(some, ended, "b1", "a1", "a2", "c1", "d1", "e1", "f1")
    assert ended == ["b1", "a1"]


def test_who_has_come_in_takes_no_room(some: Newcomers, ended: list[str]) -> None:
    for number in range(10):
        enter(some, ended, f"a{number}")
        some.leave(f"a{number}")
        some.leave(f"a{number}")
    assert (ended, len(some)) == ([], 0)


def test_how_long_it_may_take_is_a_setting() -> None:
    cluster = Cluster(None, config={"kgroup.connections.setup.timeout.ms": "2500"})
    assert Server(cluster).newcomers.timeout_s == 2.5
    assert Server(Cluster(None)).newcomers.timeout_s == 15
