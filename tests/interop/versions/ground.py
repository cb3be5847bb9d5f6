"""One broker of one version with live groups: what kgroup says of them, and what its own tools say."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from kgroup.cli.frame.tree import run
from tests.own_home import move_in
from tests.ran import Ran

from ..driver import Driver, DriverError, Member, settle
from ..tables import rows
from ..waiting import eventually
from .broker import OldKafka

TOPIC, PARTITIONS, RECORDS, COMMITTED = "orders", 4, 10, 5
DYNAMIC, STATIC, EMPTY, NEXT = "g-dynamic", "g-static", "g-empty", "g-next"
EVERYTHING = {(TOPIC, number) for number in range(PARTITIONS)}


@dataclass
class Truth:
    """What the tools of the broker's own release say of each group."""

    state: dict[str, dict[str, str]] = field(default_factory=dict)
    offsets: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    members: dict[str, list[dict[str, str]]] = field(default_factory=dict)


@dataclass
class Ground:
    """A running broker, the client of its release at work on it, and a home for kgroup's files."""

    kafka: OldKafka
    driver: Driver
    home: Path
    members: dict[str, list[Member]] = field(default_factory=dict)

    def ask(self, *argv: str) -> Ran:
        """Run a command on the broker; whatever happens it is no traceback."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            bounded = () if "--stop-after" in argv else ("--timeout", "20s")
            code = run([*argv, "-b", self.kafka.bootstrap, *bounded, "-o", "json"])
        told = Ran(code, out.getvalue(), err.getvalue())
        assert "Traceback" not in told.err and "does not know how to handle" not in told.err, (argv, told)
        return told

    def call(self, op: str, **arguments: Any) -> Any:
        return self.driver.call(op, bootstrap=self.kafka.bootstrap, **arguments)

    def join(self, group: str, label: str, instance: str | None = None, protocol: str = "classic") -> Member:
        """Start a member whose client id is `label`."""
        name = f"{group}/{label}"
        request = {"instance": instance, "protocol": protocol, "assignor": "range", "session_ms": 60_000}
        self.call("start", name=name, client_id=label, group=group, topics=[TOPIC], **request)
        member = Member(self.driver, name)
        self.members.setdefault(group, []).append(member)
        return member

    def people(self) -> None:
        """Make the topic and the groups: dynamic, static and partly committed, empty, of KIP-848."""
        self.call("admin.create_topic", topic=TOPIC, partitions=PARTITIONS)
        self.call("producer.open", name="fill", config={})
        values = [[number % PARTITIONS, f"v{number}"] for number in range(PARTITIONS * RECORDS)]
        eventually(lambda: self._sent(values), what="the topic takes records")
        at = dict.fromkeys(sorted(EVERYTHING), COMMITTED)
        self._left_behind(at)
        for label in ("d0", "d1"):
            self.join(DYNAMIC, label)
        for instance in ("i0", "i1"):
            self.join(STATIC, f"s-{instance}", instance)
        if self.kafka.version >= (4, 0):
            self.join(NEXT, "n0", protocol="consumer")
            self.join(NEXT, "n1", "i-next", protocol="consumer")
        for group, members in self.members.items():
            settle(members, EVERYTHING, each=PARTITIONS // len(members))
            mine = members[0].state().assignment if group == STATIC else None
            for member in members[:1] if group == STATIC else members:
                held = mine or member.state().assignment
                member.commit(dict.fromkeys(sorted(held), COMMITTED))

    def _sent(self, values: list[list[object]]) -> bool:
        try:
            self.call("producer.send", name="fill", topic=TOPIC, rows=values)
        except DriverError as error:
            raise AssertionError(error) from error
        return True

    def _left_behind(self, at: dict[tuple[str, int], int]) -> None:
        """A group that committed and went."""
        member = self.join(EMPTY, "gone")
        settle([member], EVERYTHING)
        member.commit(at)
        member.close()
        del self.members[EMPTY]

    @property
    def groups(self) -> list[str]:
        return sorted([EMPTY, *self.members])

    def consumer_groups(self, *args: str) -> dict[str, list[dict[str, str]]]:
        """What the broker's own kafka-consumer-groups tells, by group."""
        said = self.kafka.tool("kafka-consumer-groups", *args).stdout
        tables = re.split(r"(?m)^(?=GROUP )", said)[1:]
        found: dict[str, list[dict[str, str]]] = {}
        for row in (row for table in tables for row in rows(table)):
            if row["GROUP"]:
                found.setdefault(row["GROUP"], []).append(row)
        return found

    def described_by_tool(self, *what: str) -> dict[str, list[dict[str, str]]]:
        """As `consumer_groups --describe`, of every group; 2.3 takes one group at a time."""
        if self.kafka.version >= (2, 4):
            return self.consumer_groups("--describe", "--all-groups", *what)
        found = [self.consumer_groups("--describe", "--group", group, *what) for group in self.groups]
        return {name: table for each in found for name, table in each.items()}

    @cached_property
    def truth(self) -> Truth:
        """Of the groups as `people` made them."""
        return Truth(
            {group: rows[0] for group, rows in self.described_by_tool("--state").items()},
            self.described_by_tool("--offsets"),
            self.described_by_tool("--members", "--verbose"),
        )

    @cached_property
    def dumped(self) -> list[str]:
        """Lines of the broker's own kafka-dump-log, of every segment of `__consumer_offsets`."""
        files = ",".join(str(path) for path in self.kafka.segments())
        said = self.kafka.tool("kafka-dump-log", "--offsets-decoder", "--files", files).stdout
        return said.splitlines()

    @property
    def dumped_records(self) -> list[tuple[int, int]]:
        """Partition and offset of every record in the dump."""
        found, partition = [], -1
        for line in self.dumped:
            if line.startswith("Dumping "):
                partition = int(Path(line.removeprefix("Dumping ")).parent.name.rpartition("-")[2])
            elif record := re.match(r"\| offset: (\d+) ", line):
                found.append((partition, int(record[1])))
        return found

    @property
    def dumped_batches(self) -> list[str]:
        """Batches, which before message format 2 begin with their last offset alone."""
        return [line for line in self.dumped if line.startswith(("offset: ", "baseOffset: "))]


@contextlib.contextmanager
def playing(kafka: OldKafka, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """The ground of a running broker, peopled; kgroup's own files stay below `home`."""
    move_in(monkeypatch, home / "home")
    driver = Driver(kafka.driver(), home / "driver.log")
    try:
        made = Ground(kafka, driver, home)
        made.people()
        yield made
    finally:
        driver.close()
