"""A process that can pause or die, around a machine that wants to be woken."""

from collections.abc import Callable

from kgroup.simulation.schedule import Schedule

_AT_ONCE = 10_000


class Process:
    """Runs posted actions in order; while it is paused everything waits, and its clock goes on.

    No hook in a machine does that (LC-89): the machine is simply not called.
    """

    def __init__(self, name: str, schedule: Schedule) -> None:
        self.name = name
        self.schedule = schedule
        self.alive = False
        self.paused = False
        self.life = 0
        self._waiting: list[Callable[[], None]] = []
        self._armed_ms: int | None = None

    @property
    def running(self) -> bool:
        """Whether it runs at this moment."""
        return self.alive and not self.paused

    def next_wake_ms(self) -> int | None:
        """Return the machine's next deadline."""
        raise NotImplementedError

    def wake(self) -> None:
        """Wake the machine."""
        raise NotImplementedError

    def begin(self) -> None:
        """Begin a new life, as a new process."""
        self.alive, self.paused = True, False
        self.life += 1
        self._waiting.clear()
        self._armed_ms = None

    def die(self) -> None:
        """End this life; what was meant for it does not reach the next one."""
        self.alive = self.paused = False
        self.life += 1
        self._waiting.clear()

    def post(self, action: Callable[[], None]) -> None:
        """Run the action, now or when the process resumes."""
        if self.paused:
            self._waiting.append(action)
        elif self.alive:
            action()
            self.arm()

    def pause(self) -> None:
        """Pause the process."""
        self.paused = self.alive

    def resume(self) -> None:
        """Resume, either with the timers first or with the input that arrived meanwhile, as it happens."""
        if not self.paused:
            return
        self.paused = False
        self.awake()
        waiting, self._waiting = self._waiting, []
        if len(waiting) % 2:
            self._wake_all()
        for action in waiting:
            self.post(action)
        self._wake_all()

    def awake(self) -> None:
        """Do what comes first after a pause, before the machine is called."""

    def arm(self) -> None:
        """Arrange for the machine to be woken in time."""
        due = self.next_wake_ms()
        if self.alive and due is not None and (self._armed_ms is None or due < self._armed_ms):
            self._armed_ms = due
            life = self.life
            self.schedule.at(due, lambda: self._wake_at(due, life))

    def _wake_at(self, due_ms: int, life: int) -> None:
        if life != self.life or self._armed_ms != due_ms:
            return
        self._armed_ms = None
        if self.running:
            self._wake_all()

    def _wake_all(self) -> None:
        for _ in range(_AT_ONCE):
            due = self.next_wake_ms()
            if not self.running or due is None or due > self.schedule.now_ms:
                break
            self.wake()
        else:
            raise AssertionError(f"{self.name} wants to be woken at {due} for ever")
        self._armed_ms = None
        self.arm()
