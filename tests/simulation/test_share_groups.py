"""Share groups under chance and restarts: nothing accepted comes again, nothing is lost, every lock ends."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.share_fetch import ShareFetchResponse
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.share.settle import Acknowledge
from tests.unit.broker.brokers import create_topic
from tests.unit.broker.share_consumers import Member, acquired, configure, records, said

SEEDS = range(12)
STEPS = 120
LIMIT, LOCK_MS = 4, 15_000
NAMES = ("m1", "m2", "m3")


class World:
    """One partition, three members, and a book of what the broker has answered."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.clock = ManualClock(1_700_000_000_000)
        self.transport = self._opened()
        create_topic(self.transport, "t")
        configure(
            self.transport,
            "g",
            share_auto_offset_reset="earliest",
            share_delivery_count_limit=str(LIMIT),
            share_record_lock_duration_ms=str(LOCK_MS),
        )
        self.members = [Member(self.transport, name) for name in NAMES]
        for member in self.members:
            member.join()
        self.produced = 0
        self.done: set[int] = set()
        """Accepted or rejected, and the broker has said so."""
        self.perhaps: set[int] = set()
        """Accepted or rejected without an answer that says so."""
        self.locked: dict[int, tuple[str, int]] = {}
        """Offset → who acquired it, and until when."""
        self.given: dict[int, int] = {}
        """Offset → how often it was delivered, as this book counts."""

    def _opened(self) -> EmbeddedTransport:
        return EmbeddedTransport(Cluster(self.folder, brokers=3, offsets_partitions=1, clock=self.clock))

    def step(self) -> None:
        member = self.chance.choice(self.members)
        match self.chance.choices(
            ("produce", "fetch", "settle", "pass", "close", "restart"), (3, 8, 8, 3, 1, 1)
        ):
            case ["produce"]:
                self.produce()
            case ["fetch"]:
                most = self.chance.choice((1, 3, 10))
                self.take(member, member.fetch(most=most, mode=self.chance.choice((0, 1))))
            case ["settle"]:
                self.settle(member, self.chance.choice(list(Acknowledge)[1:4]))
            case ["pass"]:
                self.transport.run_until(self.clock.now_ms() + self.chance.choice((100, 5_000, LOCK_MS)))
                self.beat()
            case ["close"]:
                self.close(member)
            case ["restart"]:
                self.restart()

    def close(self, member: Member) -> None:
        """End the member's session: what it has is available again."""
        if member.session and not member.acknowledge(last=True).error_code:
            self.locked = {key: each for key, each in self.locked.items() if each[0] != member.name}

    def produce(self) -> None:
        count = self.chance.randint(1, 6)
        records(self.transport, *(b"%d" % number for number in range(count)))
        self.produced += count

    def beat(self) -> None:
        for member in self.members:
            if member.beat().error_code:
                member.epoch = 0
                member.join()

    def restart(self) -> None:
        """End the broker and start another on its folder: what members were given is nobody's then."""
        self.transport.close()
        self.transport = self._opened()
        self.locked.clear()
        for member in self.members:
            member.transport = self.transport
        self.beat()

    def take(self, member: Member, answer: ShareFetchResponse) -> None:
        """Note what was acquired; nobody else may have it, nor may it be done."""
        if answer.error_code:
            assert answer.error_code in (
                ErrorCode.SHARE_SESSION_NOT_FOUND,
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
            )
            member.session = 0
            return
        now_ms = self.clock.now_ms()
        for first, last, count in acquired(answer):
            assert 1 <= count <= LIMIT
            for offset in range(first, last + 1):
                assert offset not in self.done, f"{offset} comes again"
                owner, until_ms = self.locked.get(offset, ("", 0))
                assert not owner or until_ms <= now_ms, f"{offset} is {owner}'s"
                self.locked[offset] = member.name, now_ms + LOCK_MS
                self.given[offset] = self.given.get(offset, 0) + 1

    def settle(self, member: Member, how: Acknowledge) -> None:
        """Say one thing of some records that the member was given."""
        mine = sorted(offset for offset, (owner, _) in self.locked.items() if owner == member.name)
        if not mine or not member.session:
            return
        first = last = self.chance.choice(mine)
        while last + 1 in mine and self.chance.random() < 0.7:
            last += 1
        answer = member.acknowledge(said(first, last, how))
        offsets = range(first, last + 1)
        failed = answer.error_code
        if failed:
            member.session = 0
        else:
            failed = answer.responses[0].partitions[0].error_code
        if how is Acknowledge.RELEASE:
            released = () if failed else offsets
            for offset in released:
                del self.locked[offset]
            return
        (self.perhaps if failed else self.done).update(offsets)
        for offset in offsets:
            del self.locked[offset]

    def finish(self) -> None:
        """Whatever happened: once all locks have ended, one member gets all that is left."""
        self.transport.run_until(self.clock.now_ms() + LOCK_MS)
        self.beat()
        self.locked.clear()
        last = Member(self.transport, "last")
        last.join()
        while taken := acquired(answer := last.fetch(most=100)):
            self.take(last, answer)
            for first, end, _ in taken:
                answered = last.acknowledge(said(first, end))
                assert (answered.error_code, answered.responses[0].partitions[0].error_code) == (0, 0)
                self.done.update(range(first, end + 1))
        lost = set(range(self.produced)) - self.done - self.perhaps
        assert {offset for offset in lost if self.given.get(offset, 0) < LIMIT} == set()


@pytest.mark.parametrize("seed", SEEDS)
def test_chance_restarts_and_locks(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    try:
        for _ in range(STEPS):
            world.step()
        world.finish()
    finally:
        world.transport.close()
