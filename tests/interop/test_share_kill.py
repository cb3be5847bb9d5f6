"""kill -9 of the broker while three members of a share group work: what was accepted never comes again."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.sampled import FULL

from . import toolchain
from .conftest import require
from .driver import Driver, DriverError
from .jvm import java
from .kafka import SHARED
from .kgroup_server import KgroupServer
from .test_share_groups import Scene
from .waiting import eventually

pytestmark = pytest.mark.interop

KILLS = int(os.environ.get("KGROUP_INTEROP_SHARE_KILLS", "20" if FULL else "4"))
PATIENCE_S = 240
MEMBERS = ("one", "two", "three")
EACH_RUN = 400
"""Records that each run adds."""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A share group on a broker that only this test uses, so that it may be killed."""
    require("java", "mvn")
    command = java("kgroup.interop.Driver", classpath=toolchain.driver_classpath())
    with KgroupServer(SHARED, base=tmp_path) as broker:
        running = Driver(command, tmp_path / "driver.log")
        made = Scene(broker, running, "jobs", "workers")
        made.prepare(0)
        yield made
        running.close()


@dataclass
class Book:
    """What all members were given, and of what the broker said that it is accepted."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    delivered: Counter[int] = field(default_factory=Counter)
    accepted: dict[int, float] = field(default_factory=dict)
    """Offset → when the answer had come."""
    again: list[int] = field(default_factory=list)
    """Delivered by a poll that began after it was accepted."""
    unanswered: set[int] = field(default_factory=set)
    """What was acknowledged with an error in place of an answer: accepted before the kill, or not."""
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def settled(self) -> set[int]:
        """What no member need do again, unless it is delivered again."""
        with self.lock:
            return self.accepted.keys() | self.unanswered

    def __str__(self) -> str:
        return (
            f"{len(self.accepted)} records accepted, {sum(self.delivered.values())} deliveries, "
            f"{len(self.unanswered)} acknowledgements unanswered, {len(self.again)} delivered again after one"
        )


def work(scene: Scene, name: str, book: Book) -> None:
    """Acquire and accept, until the book is closed; what failed is another's to do again."""
    while not book.stopped.is_set():
        began = time.monotonic()
        acquired: list[list[int]] = scene.driver.call("share.poll", name=name, ms=300)
        offsets = [offset for offset, _ in acquired]
        with book.lock:
            book.delivered.update(offsets)
            book.again += [each for each in offsets if book.accepted.get(each, began) < began]
        if not offsets:
            continue
        try:
            refused = scene.driver.call(
                "share.acknowledge", name=name, offsets=offsets, type="ACCEPT", timeout=120
            )
        except DriverError as failure:
            refused = [str(failure)]
        with book.lock:
            if refused:
                book.unanswered.update(offsets)
            else:
                book.accepted |= dict.fromkeys(offsets, time.monotonic())


def _wait(book: Book, goal: int) -> None:
    """Wait until so many records are settled, and no moment longer: there are to be some left."""
    end = time.monotonic() + PATIENCE_S
    while len(book.settled) < goal:
        assert time.monotonic() < end, f"of {goal}: {book}"
        time.sleep(0.002)


@pytest.mark.timeout(1800)
def test_what_was_accepted_never_comes_again_and_nothing_is_lost(scene: Scene) -> None:
    book = Book()
    for name in MEMBERS:
        scene.open(name, 5, "record_limit")
    threads = [threading.Thread(target=work, args=(scene, name, book), daemon=True) for name in MEMBERS]
    for thread in threads:
        thread.start()
    try:
        for run in range(KILLS):
            first, end = run * EACH_RUN, (run + 1) * EACH_RUN
            scene.produce(EACH_RUN)
            amid = first + EACH_RUN // 3
            _wait(book, amid)
            scene.broker.kill9()
            left = end - len(book.settled)
            scene.broker.start()
            _wait(book, end)
            eventually(lambda: scene.lag() == "0", what="the broker knows that all is done")
            assert left > 0, "the broker was killed too late to prove anything"
            print(f"{run + 1} kills, {left} left behind: {book}", flush=True)
    finally:
        book.stopped.set()
        for thread in threads:
            thread.join(130)
    assert book.again == []
    assert book.settled == set(range(KILLS * EACH_RUN))
