"""Random producers, zombies and crashes: what was committed is there, what was aborted is not (KIP-98)."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kgroup.domain import TopicPartition
from kgroup.transactions.outcome import Markers
from tests.unit.transactions.transaction_machine import A, B, Machine

PARTITIONS = [A, B]


class Client:
    """A producer that writes numbered records and believes what it is told."""

    def __init__(self, producer: tuple[int, int]) -> None:
        self.producer = producer
        self.open: set[int] = set()


class Interleavings(RuleBasedStateMachine):
    """One transactional id, many producers after another, old ones that write on, and a broker that dies."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine()
        self.clients: list[Client] = []
        self.written = 0
        self.pending: dict[TopicPartition, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.visible: set[int] = set()
        self.aborted: set[int] = set()
        self.told_committed: set[int] = set()
        self.told_aborted: set[int] = set()
        self.version = 2

    @rule(version=st.sampled_from([0, 2]))
    def starts(self, version: int) -> None:
        self.version = version
        self.start()

    def start(self) -> None:
        """A new producer asks until it is served, as clients do."""
        for _ in range(3):
            answer = self.machine.init()
            if answer != "CONCURRENT_TRANSACTIONS":
                break
            self.write_markers()
        producer_id, epoch = map(int, answer.split("/"))
        self.clients.append(Client((producer_id, epoch)))

    @rule(who=st.integers(0, 9), where=st.sampled_from(PARTITIONS))
    def writes(self, who: int, where: TopicPartition) -> None:
        client = self.one(who)
        if client is None or self.machine.add(client.producer, where, version=self.version):
            return
        self.written += 1
        client.open.add(self.written)
        self.pending[where][client.producer[0]].add(self.written)

    @rule(who=st.integers(0, 9), committed=st.booleans(), answered=st.booleans())
    def ends(self, who: int, committed: bool, answered: bool) -> None:
        client = self.one(who)
        if client is None:
            return
        answer = self.machine.end(client.producer, committed, self.version)
        if "/" not in answer:
            return
        if answered:
            (self.told_committed if committed else self.told_aborted).update(client.open)
        if self.version == 2:
            producer_id, epoch = map(int, answer.split("/"))
            client.producer = producer_id, epoch
        client.open = set()

    @rule()
    def carries_out(self) -> None:
        self.write_markers()

    def write_markers(self) -> None:
        for markers in self.machine.markers:
            self.mark(markers, PARTITIONS)
        self.machine.write_markers()

    @rule(some=st.sets(st.sampled_from(PARTITIONS)))
    def crashes(self, some: set[TopicPartition]) -> None:
        """The broker dies with some of the markers written, and does not know which."""
        for markers in self.machine.markers:
            self.mark(markers, some)
        self.machine.crash()

    @rule(ms=st.integers(1, 70_000))
    def time_passes(self, ms: int) -> None:
        self.machine.wait_until(self.machine.now_ms + ms)

    @invariant()
    def nothing_is_both(self) -> None:
        assert not self.visible & self.aborted
        assert not self.told_committed & self.aborted
        assert not self.told_aborted & self.visible

    def teardown(self) -> None:
        """In the end, a new producer comes through and every record is decided."""
        self.start()
        self.write_markers()
        assert not any(records for by_id in self.pending.values() for records in by_id.values())
        assert self.visible | self.aborted == set(range(1, self.written + 1))
        assert self.told_committed <= self.visible
        assert self.told_aborted <= self.aborted

    def one(self, who: int) -> Client | None:
        return self.clients[-1 - who % len(self.clients)] if self.clients else None

    def mark(self, markers: Markers, where: list[TopicPartition] | set[TopicPartition]) -> None:
        for partition in markers.partitions & set(where):
            ended = self.pending[partition].pop(markers.marker.producer_id, set())
            (self.visible if markers.marker.committed else self.aborted).update(ended)


Interleavings.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestInterleavings = Interleavings.TestCase
