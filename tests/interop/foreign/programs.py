"""One program on both kinds of server: what it did and saw is written down, and has to be the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ..driver import Driver, DriverError, Member, Partition, State, settle
from ..server import Server
from ..waiting import eventually

ABSENT = "ABSENT"


@dataclass
class Run:
    """A program at work on one server: names of its own, the same on every kind of server."""

    server: Server
    driver: Driver
    name: str
    version: tuple[int, ...] = ()
    client: str = ""
    told: list[tuple[str, object]] = field(default_factory=list)
    members: dict[str, Member] = field(default_factory=dict)

    def call(self, op: str, **arguments: Any) -> Any:
        """The result of one operation of the driver on this server; DriverError when it is refused."""
        return self.driver.call(op, client=self.client, bootstrap=self.server.bootstrap, **arguments)

    def tell(self, step: str, value: object) -> None:
        self.told.append((step, value))

    def do(self, step: str, op: str, **arguments: object) -> Any:
        """Carry out what must work."""
        result = self.call(op, **arguments)
        self.tell(step, result)
        return result

    def refused(self, step: str, op: str, **arguments: object) -> str:
        """Carry out what must be refused; the error's name."""
        try:
            result = self.call(op, **arguments)
        except DriverError as error:
            self.tell(step, error.code)
            return error.code
        raise AssertionError(f"{step} on {self.server.kind} must be refused and gave {result!r}")

    def either(self, step: str, op: str, **arguments: object) -> Any:
        """Carry out what versions of the client see differently; the result or the error's name."""
        try:
            result = self.call(op, **arguments)
        except DriverError as error:
            result = error.code
        self.tell(step, result)
        return result

    def since(self, version: tuple[int, ...], step: str, op: str, **arguments: object) -> Any:
        """Carry out what clients have since a version; older ones say ABSENT."""
        if self.version >= version:
            return self.do(step, op, **arguments)
        assert self.refused(step, op, **arguments) == ABSENT
        return None

    def topic(self, partitions: int, suffix: str = "") -> str:
        """Make a topic named as this program."""
        name = f"{self.name}{suffix}"
        self.call("admin.create_topic", topic=name, partitions=partitions)
        return name

    def join(self, label: str, topic: str, **options: object) -> Member:
        """Start a group member whose client id is `label`."""
        name = f"{self.server.kind}/{self.name}/{label}/{len(self.members)}"
        request = {
            "instance": None,
            "protocol": "classic",
            "assignor": "range",
            "session_ms": 20_000,
            **options,
        }
        self.call("start", name=name, client_id=label, group=self.name, topics=[topic], **request)
        self.members[name] = Member(self.driver, name)
        return self.members[name]

    def close(self, member: Member) -> None:
        del self.members[member.name]
        member.close()

    def settle(self, step: str, partitions: set[Partition], each: int = 1, **members: Member) -> list[State]:
        """Wait until these members share the partitions; who holds what is told."""
        states = settle(list(members.values()), partitions, each)
        held = {
            label: sorted(number for _, number in state.assignment)
            for label, state in zip(members, states, strict=True)
        }
        self.tell(step, held)
        return states

    def settle_evenly(self, step: str, partitions: set[Partition], **members: Member) -> list[State]:
        """As `settle`, where chance decides who holds what: how many each holds is told."""
        each = len(partitions) // len(members)
        states = settle(list(members.values()), partitions, each)
        self.tell(step, sorted(len(state.assignment) for state in states))
        return states

    def described(self, step: str, state: str, **arguments: object) -> Any:
        """The group as the client describes it, once it is in this state."""

        def seen() -> Any:
            found = self.call("admin.describe", group=self.name, **arguments)
            assert found["state"] == state, found
            return found

        found = eventually(seen, what=f"the group is {state}")
        self.tell(step, found)
        return found

    def end(self) -> None:
        for future in [self.driver.begin("close", name=name) for name in self.members]:
            future.exception(30)


def partitions(topic: str, count: int) -> set[Partition]:
    return {(topic, number) for number in range(count)}


Program = Callable[[Run], None]


def agree(servers: list[Server], program: Program, made: Callable[[Server], Run]) -> list[tuple[str, object]]:
    """Play the program on every server at once; what it told, which has to be the same on all of them."""

    def play(server: Server) -> list[tuple[str, object]]:
        run = made(server)
        try:
            program(run)
        except Exception as failed:
            raise AssertionError(f"on {server.kind} after {run.told[-3:]}: {failed!r}") from failed
        finally:
            run.end()
        return run.told

    with ThreadPoolExecutor(len(servers)) as pool:
        told = list(pool.map(play, servers))
    for other, server in zip(told[1:], servers[1:], strict=True):
        pairs = itertools.zip_longest(told[0], other)
        differences = [f"{servers[0].kind} {one}\n{server.kind} {two}" for one, two in pairs if one != two]
        assert not differences, "\n".join(differences)
    return told[0]
