"""Made-up programs for a share partition, played on ours as they are made: they are about what is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from struct import pack_into
from typing import Any

from kgroup.domain import uuid_text
from kgroup.protocol.batches import encode_batch, end_marker_record
from kgroup.protocol.log_records import LogRecord
from kgroup.share.in_flight import Delivery

from .ours import GROUP, MESSAGES, REQUESTS, Op, Ours, Told

MEMBERS = ("m1", "m2", "m3")
NO_PRODUCER = -1


@dataclass(slots=True)
class InLog:
    """A record batch of the partition's log."""

    base: int
    last: int
    producer: int = NO_PRODUCER
    marker: bool = False


@dataclass
class Program:
    """A program that is being made up, and what ours says to it."""

    rng: Random
    setup: Told
    ours: Ours
    log: list[InLog] = field(default_factory=list)
    end: int = 0
    log_start: int = 0
    epoch: int = 0
    state_epoch: int = 0
    aborted: list[tuple[int, int]] = field(default_factory=list)
    transaction: int | None = None
    ops: list[Op] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    @classmethod
    def of(cls, seed: int, length: int) -> Program:
        rng = Random(seed)
        setup = _setup(rng)
        program = cls(rng, setup, Ours(setup))
        program.end = program.log_start = rng.choice((0, 0, 7, 1000))
        program.grow()
        program.begin()
        while len(program.ops) < length:
            program.go_on()
        return program

    @property
    def committed(self) -> bool:
        return self.setup["committed"] is True

    def say(self, name: str, **given: Any) -> None:
        """Carry out an operation, sometimes one whose write fails."""
        op: Op = {"op": name, **given}
        if name in ("acknowledge", "release", "wait", "load") and self.rng.random() < self.setup["failures"]:
            op["fail"] = self.rng.choice(list(MESSAGES)).name
        self.ops.append(op)
        self.told.append(self.ours.play(op))

    def begin(self) -> None:
        """Have the state initialized, at times at an offset of its own, and load the partition."""
        start = self.rng.choice((-1, -1, self.log_start, self.rng.randint(self.log_start, self.end)))
        self.request("initialize", state_epoch=self.state_epoch, start_offset=start)
        self.load()

    def load(self) -> None:
        self.say("load", epoch=self.epoch, earliest=self.log_start, latest=self.end)

    def go_on(self) -> None:
        """One more operation, or a few that belong together."""
        if self.ours.share is None:
            self.rng.choice((self.load, self.begin, self.coordinator))()
            return
        verbs: list[tuple[int, Callable[[], None]]] = [
            (30, self.acquire),
            (30, self.acknowledge),
            (6, self.release),
            (12, self.wait),
            (8, self.grow),
            (3, self.compact),
            (3, self.move_log_start),
            (3, self.reload),
            (4, self.coordinator),
            (1, self.reset),
        ]
        self.rng.choices([verb for _, verb in verbs], [weight for weight, _ in verbs])[0]()

    def grow(self) -> None:
        """More batches in the log, of transactions among others."""
        for _ in range(self.rng.randint(1, 4)):
            roll = self.rng.random()
            if self.transaction is not None and roll < 0.4:
                committed = self.rng.random() < 0.5
                if not committed:
                    self.aborted.append((7, self.transaction))
                self.log.append(InLog(self.end, self.end, 8 if committed else 7, marker=True))
                self.transaction, size = None, 1
            else:
                size = self.rng.choice((1, 1, 2, 3, 5, 10, 10, 40, 150))
                producer = 7 if self.committed and roll > 0.6 else NO_PRODUCER
                if producer == 7 and self.transaction is None:
                    self.transaction = self.end
                self.log.append(InLog(self.end, self.end + size - 1, producer))
            self.end += size

    def compact(self) -> None:
        """Some batch of the log is gone, but never the last."""
        if len(self.log) > 2:
            del self.log[self.rng.randrange(len(self.log) - 1)]

    def move_log_start(self) -> None:
        self.log_start = self.rng.randint(self.log_start, self.end)
        self.log = [each for each in self.log if each.last >= self.log_start]
        self.say("log_start", offset=self.log_start)

    def acquire(self) -> None:
        share = self.ours.share
        assert share is not None
        offset = share.next_offset()
        if self.rng.random() < 0.1:
            offset = self.rng.randint(max(0, offset - 20), offset + 5)
        if offset < self.log_start:
            self.say("log_start", offset=self.log_start)
            return
        stable = self.transaction if self.committed and self.transaction is not None else self.end
        read = [each for each in self.log if each.last >= offset and each.base < stable]
        read = read[: self.rng.choice((1, 1, 2, 3, 10))]
        self.say(
            "acquire",
            member=self.rng.choice(MEMBERS),
            mode=int(self.rng.random() < 0.35),
            batch=self.rng.choice((1, 5, 10, 100)),
            most=self.rng.choice((0, 1, 2, 5, 10, 50, 500)),
            offset=offset,
            records=b"".join(map(_encoded, read)).hex(),
            committed=self.committed,
            aborted=[list(each) for each in self.aborted if read and each[1] <= read[-1].last],
        )

    def acknowledge(self) -> None:
        member = self.rng.choice(MEMBERS)
        batches: list[list[Any]] = []
        for first, last, owner in self._acquired():
            if owner == member and self.rng.random() < 0.7:
                batches += self._said(first, last)
        if not batches or self.rng.random() < 0.05:
            assert self.ours.share is not None
            # Kafka falls over what lies before everything in flight: a little of that will do.
            low = self.ours.share.flight.start if self.rng.random() < 0.97 else max(0, self.log_start - 5)
            first = self.rng.randint(min(low, self.end), self.end + 5)
            batches += self._said(first, first + self.rng.randint(0, 12))
        self.say("acknowledge", member=member, batches=sorted(batches)[: self.rng.choice((1, 2, 5))])

    def _acquired(self) -> list[tuple[int, int, str]]:
        """What is acquired, in runs of one member's neighbours."""
        assert self.ours.share is not None
        found: list[tuple[int, int, str]] = []
        for batch in self.ours.share.flight.batches:
            whole = batch.whole
            parts = (
                [(batch.first, batch.last, whole)]
                if whole is not None
                else [(offset, offset, fate) for offset, fate in enumerate(batch.each, batch.first)]
            )
            for first, last, fate in parts:
                if fate.state is not Delivery.ACQUIRED:
                    continue
                if found and found[-1][1:] == (first - 1, fate.member):
                    found[-1] = (found[-1][0], last, fate.member)
                else:
                    found.append((first, last, fate.member))
        return found

    def _said(self, first: int, last: int) -> list[list[Any]]:
        """What a member says of a range: one thing, or something of each record."""
        if self.rng.random() < 0.25:
            last = self.rng.randint(first, last)
        if self.rng.random() < 0.15:
            first = self.rng.randint(first, last)
        kinds = (1, 1, 1, 2, 2, 3, 0, 4)
        if self.rng.random() < 0.6:
            return [[first, last, [self.rng.choice(kinds)]]]
        return [[first, last, [self.rng.choice(kinds) for _ in range(first, last + 1)]]]

    def release(self) -> None:
        self.say("release", member=self.rng.choice(MEMBERS))

    def wait(self) -> None:
        lock = self.ours.terms.lock_ms
        self.say("wait", ms=self.rng.choice((1, 100, lock - 1, lock, lock + 1, 3 * lock, lock // 3)))

    def reload(self) -> None:
        """The broker starts again, or another leads the partition."""
        self.epoch += self.rng.choice((0, 1))
        self.load()

    def reset(self) -> None:
        """The group begins anew somewhere; who leads the partition learns it by being refused."""
        self.state_epoch += 1
        start = self.rng.randint(self.log_start, self.end)
        self.request("initialize", state_epoch=self.state_epoch, start_offset=start)

    def coordinator(self) -> None:
        """Something asked of the share coordinator behind the partition's back."""
        roll = self.rng.random()
        epochs = {"leader_epoch": self.epoch + self.rng.choice((-1, 0, 0, 1))}
        if roll < 0.3:
            self.request("summary", leader_epoch=0)
        elif roll < 0.45:
            self.request("read", **epochs)
        elif roll < 0.7:
            first = self.rng.randint(self.log_start, self.end)
            self.request(
                "write",
                **epochs,
                state_epoch=self.state_epoch + self.rng.choice((-1, 0, 0, 0, 1)),
                start_offset=self.rng.choice((-1, self.log_start, first)),
                delivery_complete_count=self.rng.choice((-1, 0, 3)),
                state_batches=tuple(self._state_batch(first) for _ in range(self.rng.randint(0, 4))),
            )
        elif roll < 0.75:
            self.request("delete")
        elif roll < 0.85:
            self.say("wait", ms=self.rng.choice((1000, 300_000)))
            self.say("cold")
        elif roll < 0.98:
            self.say("redundant")
        else:
            self.say("deleted")

    def _state_batch(self, first: int) -> Any:
        from kgroup.protocol.share_state_records import StateBatch

        first += self.rng.randint(0, 10)
        return StateBatch(
            first_offset=first,
            last_offset=first + self.rng.randint(0, 10),
            delivery_state=self.rng.choice((0, 2, 4)),
            delivery_count=self.rng.randint(1, 4),
        )

    def request(self, name: str, **given: Any) -> None:
        request = REQUESTS[name][0]
        partition = 0 if self.rng.random() < 0.95 else self.rng.choice((-1, 1, 5))
        topics = request.__dataclass_fields__["topics"]
        topic_class = _item_of(request, topics)
        partition_class = _item_of(topic_class, topic_class.__dataclass_fields__["partitions"])
        asked = partition_class(partition=partition, **given)
        topic = topic_class(topic_id=self.ours.topic_id, partitions=(asked,))
        version = request.VERSIONS[-1]
        body = request(group_id=GROUP, topics=(topic,))
        self.say(name, request=body.encode(version).hex(), version=version)


def _item_of(cls: type[Any], declared: Any) -> type[Any]:
    from typing import get_args, get_type_hints

    hint = get_type_hints(cls)[declared.name]
    item: type[Any] = get_args(hint)[0]
    return item


def _setup(rng: Random) -> Told:
    group: dict[str, str] = {}
    if rng.random() < 0.5:
        group["share.record.lock.duration.ms"] = rng.choice(("15000", "20000", "60000"))
    if rng.random() < 0.7:
        group["share.delivery.count.limit"] = rng.choice(("2", "2", "3", "4", "6", "10"))
    if rng.random() < 0.5:
        group["share.partition.max.record.locks"] = rng.choice(("100", "150", "4000"))
    if rng.random() < 0.2:
        group["share.renew.acknowledge.enable"] = "false"
    if rng.random() < 0.5:
        group["share.auto.offset.reset"] = rng.choice(("earliest", "latest"))
    dlq = rng.random() < 0.3
    if rng.random() < 0.5:
        group["errors.deadletterqueue.topic.name"] = "dlq.letters"
    return {
        "topic_id": uuid_text(rng.randbytes(16)),
        "partitions": 1,
        "updates": rng.choice((0, 1, 2, 5, 500)),
        "group": group,
        "dlq": dlq,
        "committed": rng.random() < 0.3,
        "failures": rng.choice((0, 0, 0.05, 0.2)),
    }


def _encoded(batch: InLog) -> bytes:
    """The batch with one record, whatever its offsets span: what is in it, nobody looks at."""
    if batch.marker:
        record = end_marker_record(committed=batch.producer == 8)
        data = encode_batch(
            [record],
            base_offset=batch.base,
            producer_id=7,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
    elif batch.producer == NO_PRODUCER:
        data = encode_batch([LogRecord(b"k", b"v")], base_offset=batch.base)
    else:
        data = encode_batch(
            [LogRecord(b"k", b"v")],
            base_offset=batch.base,
            producer_id=batch.producer,
            producer_epoch=0,
            transactional=True,
        )
    changed = bytearray(data)
    pack_into(">i", changed, 23, batch.last - batch.base)
    return bytes(changed)
