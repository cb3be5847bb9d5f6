"""Applies a scenario's steps to a group of any protocol."""

from collections.abc import Callable
from random import Random
from typing import Generic, Protocol, TypeVar

from kgroup.errors import KgroupError
from kgroup.simulation.play.scenario import ScenarioStep
from kgroup.simulation.play.tally import Tally
from kgroup.simulation.schedule import Schedule

SETTLES_WITHIN_MS = 3_600_000
LOOK_EVERY_MS = 1_000
STANDBYS_AFTER_MS = 30_000


class Actor(Protocol):
    """A process of the group."""

    @property
    def wanted(self) -> bool: ...

    def start(self) -> None: ...

    def stop(self, for_good: bool = False) -> None: ...

    def kill(self) -> None: ...


A = TypeVar("A", bound=Actor)


class Acting(Generic[A]):
    """A group with that many members on a stage; `schedule` is the stage's time."""

    tally: Tally

    def __init__(self, schedule: Schedule, rng: Random, members: int) -> None:
        self.processes: list[A] = []
        self.schedule, self._rng, self._members = schedule, rng, members
        self._starting = 0

    def fill(self, standbys: int = 0) -> None:
        """Bring the group to its first size; `standbys` join after that, and are normal members."""
        for _ in range(self._members):
            self._start(self._add(), self._rng.randint(0, 5_000))
        for _ in range(standbys):
            self._start(self._add(), STANDBYS_AFTER_MS + self._rng.randint(0, 5_000))

    def settle(self) -> None:
        """Let time pass until the group is at rest and every partition is read."""
        deadline = self.schedule.now_ms + SETTLES_WITHIN_MS
        while not self._at_rest():
            if self.schedule.now_ms > deadline:
                raise KgroupError("the group does not come to rest within an hour")
            self._pass(LOOK_EVERY_MS)

    def play(self, step: ScenarioStep) -> None:
        """Execute one step of a scenario, and let its time pass."""
        count = step.count or max(1, round(step.share * self._members))
        match step.verb:
            case "restart":
                self._roll(step, self._wanted()[:count], lambda process: None)
            case "upgrade":
                self._roll(step, self._wanted()[:count], self._upgrade)
            case "start":
                for process in self._add_all(count):
                    self._start(process, self._rng.randint(0, 1_000))
            case "roll-out":
                self._roll_out(step, self._add_all(count))
            case "stop":
                leaving = self._wanted()[-count:]
                for process in leaving:
                    process.stop(for_good=True)
                self._expect_no_more(leaving)
            case "kill":
                every = self._wanted()
                self._kill(step, every[:: round(1 / step.share)] if step.spread else every[-count:])
            case "failover":
                self._fail_over(step.down_ms)
                self._pass(step.down_ms)
        self._pass(step.wait_ms)

    @property
    def messages(self) -> int:
        """Requests and answers between brokers and members so far."""
        raise NotImplementedError

    @property
    def assignments(self) -> int:
        """How often partitions were assigned so far."""
        raise NotImplementedError

    def epoch(self) -> int:
        """Return a number that grows by one with every rebalance."""
        raise NotImplementedError

    def _add(self) -> A:
        """Return one more process, not started yet."""
        raise NotImplementedError

    def _at_rest(self) -> bool:
        """Return whether all wanted processes run, and every partition is read by one of them."""
        raise NotImplementedError

    def _fail_over(self, down_ms: int) -> None:
        """Kill the coordinator's broker, and restart it after that time."""
        raise NotImplementedError

    def _upgrade(self, process: A) -> None:
        """Restart the process with the newer protocol, if there is one."""

    def _expect(self, processes: list[A]) -> None:
        """Register members with the group before they join, where that is supported."""

    def _expect_no_more(self, processes: list[A]) -> None:
        """Remove registered members that do not come back, where that is supported."""

    def _kill(self, step: ScenarioStep, processes: list[A]) -> None:
        for process in processes:
            process.kill()
            if step.down_ms:
                self._start(process, step.down_ms)
        self._pass(step.down_ms)

    def _add_all(self, count: int) -> list[A]:
        added = [self._add() for _ in range(count)]
        self._expect(added)
        return added

    def _roll_out(self, step: ScenarioStep, processes: list[A]) -> None:
        for first in range(0, len(processes), step.batch):
            for process in processes[first : first + step.batch]:
                self._start(process, self._rng.randint(0, 1_000))
            self._pass(step.pause_ms)

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
        self.schedule.after(delay_ms, lambda: self._started(process))

    def _started(self, process: A) -> None:
        self._starting -= 1
        process.start()

    def _wanted(self) -> list[A]:
        return [process for process in self.processes if process.wanted]

    def _pass(self, ms: int) -> None:
        self.schedule.run_until(self.schedule.now_ms + ms)
