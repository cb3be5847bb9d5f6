"""Three members, one stopped, 45 s pass: on the kit at once, on a real Kafka with SIGSTOP in real time."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import kgroup
from kgroup.api import Kafka, Kind
from kgroup.testing import Cluster
from tests.sampled import FULL

from .conftest import ASKED, CLIENTS, command, require
from .driver import Client, Driver, DriverError, Member, settle
from .kafka import RealKafka
from .waiting import eventually

pytestmark = pytest.mark.interop
TOPIC = "orders"
PARTITIONS = 6
LENGTH_S = 45
"""The session timeout that Kafka has by itself, in both protocols."""
LANGUAGES = {"java": "java", "franz-go": "go"}
COMBINATIONS = {
    f"{client}-{protocol}": (client, protocol)
    for client, features in CLIENTS.items()
    for protocol in ("classic", "consumer")
    if protocol == "classic" or protocol in features
}
COMPARED = tuple(COMBINATIONS) if FULL and "kafka" in ASKED else ()
"""Those that a real Kafka is asked about: in the full run, as it takes the 45 s in real time."""
Heard = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Story:
    """What the rebalance listeners of the three heard, the stopped one's first."""

    until_shared_by_two: tuple[Heard, ...]
    until_shared_by_three: tuple[Heard, ...]


class Seats:
    """Three processes for each language, so that one member of each group can be stopped."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._drivers: dict[tuple[int, str], Driver] = {}
        self._clients: dict[tuple[int, str], Client] = {}

    def client(self, seat: int, name: str) -> Client:
        language = LANGUAGES.get(name, "python")
        if (seat, language) not in self._drivers:
            log = self._logs / f"{language}-{seat}.log"
            self._drivers[seat, language] = Driver(command(language), log)
        if (seat, name) not in self._clients:
            # Client ids, with which member ids begin, are in the order of seats: so partitions are, too.
            numbers = itertools.count(1000 * (seat + 1))
            driver = self._drivers[seat, language]
            self._clients[seat, name] = Client(name, driver, CLIENTS[name], numbers)
        return self._clients[seat, name]

    def signal(self, seat: int, number: signal.Signals) -> None:
        for (at, _), driver in self._drivers.items():
            if at == seat:
                os.kill(driver.process.pid, number)

    def close(self) -> None:
        for driver in self._drivers.values():
            driver.close()


@pytest.fixture(scope="module")
def seats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seats]:
    made = Seats(tmp_path_factory.mktemp("seats"))
    yield made
    made.close()


class Trio:
    """Three members of a group; records flow to them, and each has what its listener heard."""

    def __init__(self, kafka: Kafka, bootstrap: str, seats: Seats, combination: str) -> None:
        client, self.protocol = COMBINATIONS[combination]
        self.kafka, self.group, self.topic = kafka, f"g-{combination}", f"{TOPIC}-{combination}"
        self._fresh: set[str] = set()
        self._numbers = itertools.count()
        kafka.create_topic(self.topic, PARTITIONS)
        self.members = [
            seats.client(seat, client).start(
                bootstrap,
                self.group,
                self.topic,
                protocol=self.protocol,
                session_ms=1000 * LENGTH_S,
            )
            for seat in range(3)
        ]
        self._begun = [0, 0, 0]

    def produce(self, count: int = 5) -> None:
        self._fresh.clear()
        for partition in range(PARTITIONS):
            values = [str(next(self._numbers)) for _ in range(count)]
            self.kafka.produce(self.topic, values, partition=partition)
            self._fresh.update(values)

    def share(self, *members: Member) -> None:
        partitions = {(self.topic, number) for number in range(PARTITIONS)}
        # An even share: on the way there, too, every partition may have an owner for a moment.
        settle(list(members), partitions, each=PARTITIONS // len(members), within_s=120)

    def read_all(self, *members: Member) -> None:
        """Wait until these have read all that was last produced, and commit it."""

        def lost() -> set[str]:
            return self._fresh - {value for member in members for *_, value in member.records()}

        def committed(member: Member) -> bool:
            # After a rebalance, librdkafka reads once more what it had read and not committed.
            try:
                member.commit()
            except DriverError as error:
                if error.code != "NO_OFFSET":
                    raise
                return False
            return True

        eventually(lambda: not lost(), what=f"{self.group} reads all records")
        for member in members:
            eventually(partial(committed, member), what=f"{self.group} commits what it has read")

    def begin(self) -> None:
        """Have `heard` return what listeners hear from now on."""
        self._begun = [len(member.heard()) for member in self.members]

    def heard(self, *seats: int) -> tuple[Heard, ...]:
        """What listeners heard since `begin`; partitions as their number where ids decide who gets which.

        Calls without a partition are left out: a client makes one for each heartbeat that a step took. Under
        the consumer protocol the numbers of calls in a row are added up: partitions become free one by one.
        """

        def shown(calls: list[tuple[str, list[int]]]) -> Heard:
            said = [(what, partitions) for what, partitions in calls if partitions]
            if self.protocol == "classic":
                return tuple((what, tuple(partitions)) for what, partitions in said)
            runs = itertools.groupby(said, key=lambda call: call[0])
            return tuple((what, sum(len(partitions) for _, partitions in run)) for what, run in runs)

        return tuple(shown(self.members[seat].heard()[self._begun[seat] :]) for seat in seats)

    def start(self) -> None:
        self.share(*self.members)
        self.produce()
        self.read_all(*self.members)
        self.begin()

    def without_the_first(self) -> tuple[Heard, ...]:
        """The two others share all, read what has come meanwhile, and commit it; what they heard."""
        self.share(*self.members[1:])
        heard = self.heard(1, 2)
        self.read_all(*self.members[1:])
        return heard

    def with_the_first(self) -> tuple[Heard, ...]:
        self.share(*self.members)
        self.produce()
        self.read_all(*self.members)
        return self.heard(0, 1, 2)

    def close(self) -> None:
        for member in self.members:
            member.driver.begin("close", name=member.name, leave=None).exception(30)


@pytest.fixture(scope="module")
def on_kafka(seats: Seats, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Story]:
    """What each of `COMPARED` heard on a real Kafka, all of them played at once; played when first asked."""
    stories: dict[str, Story] = {}

    def play() -> None:
        base = tmp_path_factory.mktemp("frozen")
        with RealKafka(base=base) as server, kgroup.connect(server.bootstrap, journal=base / "j") as kafka:
            trios = {name: Trio(kafka, server.bootstrap, seats, name) for name in COMPARED}
            for trio in trios.values():
                trio.start()
            seats.signal(0, signal.SIGSTOP)
            try:
                for trio in trios.values():
                    trio.produce()
                alone = {name: trio.without_the_first() for name, trio in trios.items()}
            finally:
                seats.signal(0, signal.SIGCONT)
            for name, trio in trios.items():
                stories[name] = Story(alone[name], trio.with_the_first())
            for trio in trios.values():
                trio.close()

    def get(combination: str) -> Story:
        if not stories:
            play()
        return stories[combination]

    return get


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_exactly_the_frozen_one_expires(
    combination: str, seats: Seats, on_kafka: Callable[[str], Story], record_property: Callable[..., None]
) -> None:
    """The two others see one rebalance, nothing is lost, and listeners hear what they hear on Kafka."""
    require("java", "javac", "mvn", "go")
    with Cluster() as kafka:
        trio = Trio(kafka, kafka.bootstrap, seats, combination)
        trio.start()
        name = trio.members[0].name
        frozen = next(m for m in kafka.describe(trio.group).known_members if m.client_id == name).member_id
        assert kafka.freeze(name) == frozen
        trio.produce()
        begun = time.monotonic()
        kafka.advance(f"{LENGTH_S}s")
        trio.share(*trio.members[1:])
        took_s = time.monotonic() - begun
        alone = trio.without_the_first()
        gone = [e.member_id for e in kafka.history(trio.group) if e.kind is Kind.MEMBER_LEFT_OR_EXPIRED]
        assert gone == [frozen]
        assert [[what for what, _ in heard].count("assigned") for heard in alone] == [1, 1]
        kafka.thaw(name)
        story = Story(alone, trio.with_the_first())
        assert [row.lag for row in kafka.lag(trio.group).offsets] == [0] * PARTITIONS
        trio.close()
    record_property("seconds", f"{took_s:.2f}")
    print(f"{combination}: {took_s:.2f} s, {story}")
    if combination in COMPARED:
        assert story == on_kafka(combination)
