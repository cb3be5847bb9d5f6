"""Which broker is active: the node, the epoch that fences writes, the lease (era 3.1 to 3.6)."""

from collections.abc import Callable, Sequence
from enum import Enum

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import Core, Then, Timer, reason, uncertain
from kgroup.zookeeper.events import Level, ZkConnected
from kgroup.zookeeper.store.operations import (
    Check,
    Create,
    Delete,
    Exists,
    Failure,
    Get,
    Node,
    Read,
    Result,
    SetData,
    Sync,
    Write,
)


class State(Enum):
    """The elector's states."""

    IDLE = "idle"
    ELECTING = "electing"
    FOLLOWER = "follower"
    STARTING = "starting"
    ACTIVE = "active"
    STOPPED = "stopped"


class Elector:
    """Tries to own the coordinator's node; calls `won` with the epoch's version, `lost` when it must stop.

    `epoch` is the version of the epoch node as this winner left it: the fence of all its writes (era 3.2).
    """

    def __init__(self, core: Core, won: Callable[[int], None], lost: Callable[[str], None]) -> None:
        self._core = core
        self._won = won
        self._lost = lost
        self.state = State.IDLE
        self.session = 0
        self.coordinator_id: int | None = None
        self.epoch = -1
        self.heard_ms = 0
        self._round = 0
        self._probe_timer: Timer | None = None
        self._unreleased = False
        self._logged = ""

    @property
    def leading(self) -> bool:
        """Whether this broker's node was there at the last read."""
        return self.state in (State.STARTING, State.ACTIVE)

    @property
    def lease_end_ms(self) -> int:
        """When it must resign unless it sees its node again, before its session can end (era 3.3)."""
        return self.heard_ms + 2 * self._core.negotiated_ms // 3

    def lease_is_over(self) -> bool:
        """Return whether it must stop now (era 3.3)."""
        return self.leading and self._core.now_ms >= self.lease_end_ms

    def connected(self, event: ZkConnected) -> None:
        """Handle a session: elect, unless this elector still leads or follows in it."""
        if event.fresh or event.session != self.session:
            self.expired()
        self.session = event.session
        if self.state in (State.IDLE, State.ELECTING):
            self._begin()

    def expired(self) -> None:
        """Resign: the session and its node are gone (era 3.6)."""
        self.resign("the ZooKeeper session has expired")
        self._unreleased = False
        self.coordinator_id = None
        self._set(State.IDLE)

    def fired(self, path: str) -> bool:
        """Return whether the watch was this elector's."""
        if path != paths.COORDINATOR:
            return False
        if self.leading:
            self._probe()
        elif self.state is State.FOLLOWER:
            self._begin()
        return True

    def resign(self, why: str) -> None:
        """Resign without a write; a node that is still there is deleted before the next try (era 3.5)."""
        if not self.leading:
            return
        self._set(State.IDLE)
        self._unreleased = True
        self._lost(why)

    def resign_and_try_again(self, why: str) -> None:
        """As `resign`, when no new connection is to be expected."""
        self.resign(why)
        if self._core.connected and self.state is State.IDLE:
            self._begin()

    def ready(self) -> None:
        """Become active: the start is done (era 3.4)."""
        self.state = State.ACTIVE
        self.coordinator_id = self._core.broker_id

    def stop(self) -> None:
        """Stop electing; delete the node so that others need not wait for the session's end (era 3.7)."""
        leading = self.leading
        self._set(State.STOPPED)
        if leading:
            self._core.ask(self._release(), lambda _: None)

    def _set(self, state: State) -> None:
        self.state = state
        self._round += 1
        self._core.timers.cancel(self._probe_timer)
        self._probe_timer = None
        self.coordinator_id = None

    def _begin(self) -> None:
        self._set(State.ELECTING)
        if self._unreleased:
            self._ask(self._release(), self._released)
        else:
            self._ask((Sync(paths.EPOCH), Exists(paths.CONSUMERS), Get(paths.EPOCH)), self._read)

    def _ask(self, ops: Sequence[Read] | Sequence[Write], then: Then, *, watch: bool = False) -> None:
        """As `Core.ask`; an answer from another round changes nothing (era 7.11)."""
        current = self._round

        def answered(results: Sequence[Result]) -> None:
            if current == self._round:
                then(results)

        self._core.ask(ops, answered, watch=watch)

    def _release(self) -> tuple[Write, ...]:
        return Check(paths.EPOCH, self.epoch), Delete(paths.COORDINATOR)

    def _released(self, results: Sequence[Result]) -> None:
        if uncertain(results):
            self._again()
            return
        self._unreleased = False
        self._begin()

    def _read(self, results: Sequence[Result]) -> None:
        _, consumers, epoch = results
        missing = [
            Create(path, data)
            for path, data, node in ((paths.CONSUMERS, b"", consumers), (paths.EPOCH, b"0", epoch))
            if node is Failure.NO_NODE
        ]
        if uncertain(results):
            self._again()
        elif missing:
            # One by one: another elector may create either at the same moment.
            for create in missing[:-1]:
                self._core.ask((create,), lambda _: None)
            self._ask(missing[-1:], self._made)
        elif isinstance(epoch, Node):
            self._look(epoch.stat.version)
        else:
            self._refused(f"{paths.EPOCH} cannot be read: {reason(epoch)}")

    def _made(self, results: Sequence[Result]) -> None:
        (made,) = results
        if made in (None, Failure.NODE_EXISTS):
            self._begin()
        elif uncertain(results):
            self._again()
        else:
            self._refused(f"{paths.EPOCH} cannot be made: {reason(made)}")

    def _look(self, version: int) -> None:
        """Read whose node it is. If it is ours now, it was ours when the epoch was read before (era 3.1)."""
        sent_ms = self._core.now_ms
        self._ask(
            (Get(paths.COORDINATOR),), lambda results: self._looked(version, sent_ms, results[0]), watch=True
        )

    def _looked(self, version: int, sent_ms: int, node: Result) -> None:
        if isinstance(node, Node) and node.stat.owner == self.session:
            self._lead(version, sent_ms)
        elif isinstance(node, Node):
            self._set(State.FOLLOWER)
            # An id that is no number names no broker: the coordinator is then unknown.
            text = node.data.decode("ascii", "replace")
            self.coordinator_id = int(text) if text.isdecimal() else None
        elif node is Failure.NO_NODE:
            self._run(version)
        elif isinstance(node, Failure) and not uncertain((node,)):
            self._refused(f"{paths.COORDINATOR} cannot be read: {reason(node)}")
        else:
            self._again()

    def _run(self, version: int) -> None:
        sent_ms = self._core.now_ms
        mine = Create(paths.COORDINATOR, str(self._core.broker_id).encode(), ephemeral=True)
        bump = SetData(paths.EPOCH, str(version + 1).encode(), version)
        self._ask((mine, bump), lambda results: self._ran(version, sent_ms, results))

    def _ran(self, version: int, sent_ms: int, results: Sequence[Result]) -> None:
        failures = [result for result in results if isinstance(result, Failure)]
        if not failures:
            self._lead(version + 1, sent_ms)
        elif uncertain(failures):
            self._again()
        elif {Failure.NODE_EXISTS, Failure.BAD_VERSION, Failure.NO_NODE} & set(failures):
            self._begin()
        else:
            self._refused(f"{paths.COORDINATOR} cannot be made: {failures[0].value}")

    def _lead(self, epoch: int, sent_ms: int) -> None:
        self._set(State.STARTING)
        self.epoch, self.heard_ms = epoch, sent_ms
        self._arm_probe()
        self._won(epoch)

    def _arm_probe(self) -> None:
        def due() -> None:
            self._arm_probe()
            self._probe()

        due_ms = self._core.now_ms + max(1, self._core.negotiated_ms // 6)
        self._probe_timer = self._core.timers.arm(due_ms, due)

    def _probe(self) -> None:
        sent_ms = self._core.now_ms
        self._ask((Get(paths.COORDINATOR),), lambda results: self._probed(sent_ms, results[0]))

    def _probed(self, sent_ms: int, node: Result) -> None:
        if isinstance(node, Node) and node.stat.owner == self.session:
            self.heard_ms = max(self.heard_ms, sent_ms)
        elif isinstance(node, Node) or node is Failure.NO_NODE:
            self.resign_and_try_again("the coordinator's node is no longer this broker's")

    def _again(self) -> None:
        """Begin again once connected, by reading the current state (era 3.1)."""
        current = self._round
        self._core.when_connected(lambda: self._begin() if current == self._round else None)

    def _refused(self, why: str) -> None:
        if why != self._logged:  # It is retried for ever and logged once.
            self._core.log(Level.ERROR, f"no election: {why}")
        self._logged = why
        self._again()
