"""What is remembered of decisions about rights: bounded in bytes, whoever asks about whatever names."""

from __future__ import annotations

from sys import getsizeof

import pytest

from kgroup.broker.call import AnyCall, Call
from kgroup.broker.rights import asker as remembered
from kgroup.broker.rights.asker import Asker, Askers
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from kgroup.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from kgroup.security.authorizer import Authorizer
from kgroup.security.principals import Principal

LIMIT = 1 << 20
ROOM_OF_TABLES = 4096
"""What empty tables take, beyond what is counted for each."""


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "BYTES_REMEMBERED", LIMIT)


def call(name: str, host: str = "/127.0.0.1") -> AnyCall:
    return Call(ListGroupsRequest(), 0, "", host, 0, principal=Principal("User", name))


def taken(askers: Askers, *others: Asker) -> int:
    """Bytes of every name and table that is held."""
    held = {id(each): each for each in (*askers._known.values(), *others)}
    tables = [table for each in held.values() for table in each.rights.values()]
    names = {id(name): getsizeof(name) for table in tables for name in table}
    return getsizeof(askers._known) + sum(getsizeof(table) for table in tables) + sum(names.values())


def test_long_names_take_no_more_than_there_is_room_for() -> None:
    """20,000 names of 32 kB took 620 MB."""
    askers = Askers(Authorizer())
    for number in range(300):
        of = askers.of(call("mallory"))
        for key in range(10):
            assert not of.may(Operation.DESCRIBE, ResourceType.GROUP, f"{number}-{key}" + "k" * 32_000)
        assert taken(askers, of) <= askers._kept.size + ROOM_OF_TABLES <= LIMIT + ROOM_OF_TABLES


def test_one_request_cannot_take_more() -> None:
    askers = Askers(Authorizer())
    of = askers.of(call("mallory"))
    for key in range(1000):
        of.may(Operation.READ, ResourceType.TOPIC, f"{key}" + "k" * 32_000)
    assert taken(askers, of) <= LIMIT


def test_many_askers_with_many_names_share_the_room() -> None:
    askers = Askers(Authorizer())
    for number in range(3000):
        of = askers.of(call(f"user-{number}", f"/127.0.0.{number % 250}"))
        for key in range(5):
            of.may(Operation(3 + key), ResourceType.TOPIC, "t" * 200 + str(number))
    assert taken(askers) <= LIMIT + ROOM_OF_TABLES


def test_a_waiting_request_does_not_keep_what_is_forgotten() -> None:
    askers = Askers(Authorizer())
    waiting = []
    for number in range(100):
        waiting.append(askers.of(call(f"user-{number}")))
        for key in range(20):
            waiting[-1].may(Operation.READ, ResourceType.TOPIC, f"{number}-{key}" + "k" * 10_000)
    askers.of(call("somebody"))
    assert taken(askers, *waiting) <= LIMIT + ROOM_OF_TABLES


def test_what_is_used_all_day_is_remembered_again_after_a_flood() -> None:
    asked: list[str] = []

    class Noting(Authorizer):
        def allows(
            self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str
        ) -> bool:
            asked.append(name)
            return super().allows(principal, host, operation, kind, name)

    askers = Askers(
        Noting(
            [
                Acl(
                    ResourceType.GROUP,
                    "g",
                    PatternType.LITERAL,
                    "User:bob",
                    "*",
                    Operation.READ,
                    Permission.ALLOW,
                )
            ]
        )
    )
    for key in range(100):
        askers.of(call("mallory")).may(Operation.READ, ResourceType.GROUP, f"{key}" + "k" * 32_000)
    asked.clear()
    assert all(askers.of(call("bob")).may(Operation.READ, ResourceType.GROUP, "g") for _ in range(5))
    assert asked == ["g"]
