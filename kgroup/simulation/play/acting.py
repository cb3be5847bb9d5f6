"""What a scenario's steps do to a group, whichever protocol it speaks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from kgroup.errors import KgroupError
from kgroup.simulation.play.scenario import ScenarioStep

SETTLES_WITHIN_MS = 3_600_000
LOOK_EVERY_MS = 1_000


class Actor(Protocol):
    """A process of the group."""

    @property
    def wanted(self) -> bool: ...

    def start(self) -> None: ...

    def stop(self, for_good: bool = False) -> None: ...

    def kill(self) -> None: ...


A = TypeVar("A", bound=Actor)


class Acting(Generic[A]):
    """A group of so many members on a stage; `schedule` is the stage's time."""

    def __init__(self, schedule: Any, rng: Random, members: int) -> None:
        self.processes: list[A] = []
        self._schedule, self._rng, self._members = schedule, rng, members
        self._starting = 0

    def fill(self) -> None:
        """Bring the group to its first size."""
        for _ in range(self._members):
            self._start(self._add(), self._rng.randint(0, 5_000))

    def settle(self) -> None:
        """Let time pass until the group is at rest and every partition is read."""
        deadline = self._schedule.now_ms + SETTLES_WITHIN_MS
        while not self._at_rest():
            if self._schedule.now_ms > deadline:
                raise KgroupError("the group does not come to rest within an hour")
            self._pass(LOOK_EVERY_MS)

    def play(self, step: ScenarioStep) -> None:
        """Carry out one step of a scenario, and let its time pass."""
        count = max(1, round(step.share * self._members))
        match step.verb:
            case "restart":
                self._roll(step, self._wanted()[:count], lambda process: None)
            case "upgrade":
                self._roll(step, self._wanted()[:count], self._upgrade)
            case "start":
                for _ in range(count):
                    self._start(self._add(), self._rng.randint(0, 1_000))
            case "stop":
                for process in self._wanted()[-count:]:
                    process.stop(for_good=True)
            case "kill":
                for process in self._wanted()[-count:]:
                    process.kill()
                    if step.down_ms:
                        self._start(process, step.down_ms)
                self._pass(step.down_ms)
            case "failover":
                self._fail_over(step.down_ms)
                self._pass(step.down_ms)
        self._pass(step.wait_ms)

    def _add(self) -> A:
        """One more process, not started yet."""
        raise NotImplementedError

    def _at_rest(self) -> bool:
        """Whether all that are wanted run, and every partition is read by one of them."""
        raise NotImplementedError

    def _fail_over(self, down_ms: int) -> None:
        """The coordinator's broker dies, and is back after that time."""
        raise NotImplementedError

    def _upgrade(self, process: A) -> None:
        """Have the process come back with the newer protocol, if there is one."""

    def _roll(self, step: ScenarioStep, processes: list[A], change: Callable[[A], None]) -> None:
        for first in range(0, len(processes), step.batch):
            batch = processes[first : first + step.batch]
            for process in batch:
                process.stop()
                change(process)
                self._start(process, step.down_ms)
            self._pass(step.down_ms + step.pause_ms)

    def _start(self, process: A, delay_ms: int) -> None:
        self._starting += 1
        self._schedule.after(delay_ms, lambda: self._started(process))

    def _started(self, process: A) -> None:
        self._starting -= 1
        process.start()

    def _wanted(self) -> list[A]:
        return [process for process in self.processes if process.wanted]

    def _pass(self, ms: int) -> None:
        self._schedule.run_until(self._schedule.now_ms + ms)
