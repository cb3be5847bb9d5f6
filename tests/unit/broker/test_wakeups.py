"""Deadlines: earliest first, one at a time, cancelled ones never."""

from __future__ import annotations

import pytest

from kgroup.broker.wakeups import Wakeups
from kgroup.coordinator.outcome import Reply


class FakeShard:
    """Timers at given times; wakes are written down."""

    def __init__(self, name: str, seen: list[tuple[str, int]], *due: int) -> None:
        self.name, self.seen, self.due = name, seen, sorted(due)

    def next_wake_ms(self) -> int | None:
        return self.due[0] if self.due else None

    def wake(self, now_ms: int, due_ms: int) -> list[Reply]:
        self.seen.append((self.name, now_ms))
        self.due = [ms for ms in self.due if ms > due_ms]
        return []


def wakeups_of(*shards: FakeShard) -> Wakeups:
    return Wakeups(lambda: shards, lambda shard, now, due: shard.wake(now, due), list)  # type: ignore[arg-type, return-value]


def test_deadlines_come_in_order_and_each_at_its_own_time() -> None:
    seen: list[tuple[str, int]] = []
    wakeups = wakeups_of(FakeShard("a", seen, 10, 30), FakeShard("b", seen, 20, 30))
    wakeups.at(25, lambda: seen.append(("callback", 25)))
    wakeups.run(30)
    assert seen == [("a", 10), ("b", 20), ("callback", 25), ("a", 30), ("b", 30)]
    assert wakeups.next_ms() is None


def test_a_host_that_is_late_says_what_time_it_is() -> None:
    """And what fell due since it looked is left for later."""
    seen: list[tuple[str, int]] = []
    wakeups = wakeups_of(FakeShard("a", seen, 10, 30), FakeShard("b", seen, 20))
    wakeups.run(25, 40)
    assert seen == [("a", 40), ("b", 40)]
    assert wakeups.next_ms() == 30


def test_what_is_due_comes_before_a_request_only_where_no_event_loop_sees_to_it() -> None:
    seen: list[tuple[str, int]] = []
    wakeups = wakeups_of(FakeShard("a", seen, 10, 20))
    wakeups.before_request(10)
    wakeups.on_earlier = lambda: None
    wakeups.before_request(20)
    assert seen == [("a", 10)]


def test_nothing_happens_before_its_time() -> None:
    seen: list[tuple[str, int]] = []
    wakeups = wakeups_of(FakeShard("a", seen, 10))
    wakeups.run(9)
    assert seen == []
    assert wakeups.next_ms() == 10


def test_a_cancelled_deadline_is_none() -> None:
    wakeups = wakeups_of()
    deadline = wakeups.at(5, lambda: pytest.fail("it was cancelled"))
    deadline.cancel()
    assert wakeups.next_ms() is None
    wakeups.run(9)


def test_a_deadline_set_by_another_is_kept_in_the_same_run() -> None:
    seen: list[int] = []
    wakeups = wakeups_of()
    wakeups.at(5, lambda: (wakeups.at(7, lambda: seen.append(7)), None)[1])
    wakeups.run(8)
    assert seen == [7]


def test_the_host_hears_of_an_earlier_deadline_only() -> None:
    heard: list[int] = []
    wakeups = wakeups_of()
    wakeups.on_earlier = lambda: heard.append(wakeups.due_ms)
    wakeups.note(50)
    wakeups.note(60)
    wakeups.at(40, lambda: None)
    assert heard == [50, 40]


def test_a_look_finds_timers_that_moved_forward() -> None:
    heard: list[int] = []
    shard = FakeShard("a", [], 50)
    wakeups = wakeups_of(shard)
    wakeups.on_earlier = lambda: heard.append(wakeups.due_ms)
    wakeups.look()
    shard.due = [20]
    wakeups.look()
    wakeups.look()
    assert heard == [50, 20]
