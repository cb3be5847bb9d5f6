"""A broker's ZooKeeper client over the tree: calls in order, a connection that fails, a session that ends."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from kgroup.simulation.schedule import Schedule
from kgroup.zookeeper.coordinator.events import Zk, ZkConnected, ZkDone, ZkExpired, ZkFired, ZkSuspended
from kgroup.zookeeper.store.operations import Change, Failure
from kgroup.zookeeper.store.tree import Tree

if TYPE_CHECKING:
    from kgroup.zookeeper.world.broker import BrokerProcess

BELIEVES_CONNECTED_MS = 200
"""For so long a process that stood still takes its session for alive."""


class ZkLink:
    """One client; `negotiated_ms` is how long ZooKeeper keeps a session it does not hear of."""

    def __init__(
        self, schedule: Schedule, chance: Random, tree: Tree, broker: BrokerProcess, negotiated_ms: int
    ) -> None:
        self._schedule = schedule
        self._chance = chance
        self._tree = tree
        self._broker = broker
        self._calls: dict[int, Zk] = {}
        self._negotiated_ms = negotiated_ms
        self.session = 0
        self.cut = False
        self._up = False
        self._missed: dict[str, None] = {}
        self._there_ms = self._back_ms = 0
        self._silences: dict[int, int] = {}
        self._broken = 0

    def open(self) -> None:
        """A new session, or none until the connection is back."""
        self._up = False
        self._missed.clear()
        self._broken += 1
        if self.cut:
            return
        self.session = self._tree.open(self._saw)
        self._up = True
        session = self.session
        self._back(lambda: self._broker.step(ZkConnected(session, self._negotiated_ms, True)))

    def call(self, zk: Zk) -> None:
        """Make a call; its answer comes behind those of the calls before."""
        if not self._up:
            self._schedule.after(0, self._for_this_life(lambda: self._fail([zk], Failure.CONNECTION_LOSS)))
            return
        self._calls[zk.call] = zk
        self._there_ms = max(self._there_ms, self._schedule.now_ms + self._delay())
        broken, session = self._broken, self.session
        self._schedule.at(self._there_ms, lambda: self._arrive(zk, broken, session))

    def _arrive(self, zk: Zk, broken: int, session: int) -> None:
        if broken != self._broken or self.cut:
            return
        now_ms = self._schedule.now_ms
        results = self._tree.ask(session, zk.ops, watch=zk.watch, now_ms=now_ms)
        self._broker.world.observer.asked(self._broker, session, zk.ops, results)

        def answer() -> None:
            if self._calls.pop(zk.call, None) is not None:
                self._broker.step(ZkDone(zk.call, results))

        self._back(answer)

    def silent(self) -> None:
        """ZooKeeper does not hear of the session from now on; unless that ends, it ends the session."""
        session = self.session
        silence = self._silences[session] = self._silences.get(session, 0) + 1
        heard_ago = self._chance.randrange(0, self._negotiated_ms // 3)
        self._schedule.after(
            self._negotiated_ms - heard_ago,
            lambda: self._tree.expire(session) if silence == self._silences[session] else None,
        )

    def heard(self) -> None:
        """ZooKeeper hears of the session again, if it is still there."""
        if not self.cut:
            self._silences[self.session] = self._silences.get(self.session, 0) + 1

    def break_off(self) -> None:
        """Cut the connection; the client notices at once, or when its own pings go unanswered."""
        if self.cut:
            return
        self.cut = True
        self.silent()
        broken = self._broken

        def notice() -> None:
            if broken == self._broken and self.cut and self._up:
                self._notice()

        self._schedule.after(self._chance.choice((0, self._negotiated_ms // 2)), notice)

    def heal(self) -> None:
        """The network is whole again."""
        if not self.cut:
            return
        if self._up:
            self._notice()
        self.cut = False
        if self._broker.running:
            self.heard()
        if self._broker.alive:
            self._schedule.after(self._delay(), self._for_this_life(self._reconnect))

    def resumed(self) -> None:
        """The process goes on; if its session has ended meanwhile, it will hear of that."""
        self.heard()
        self._schedule.after(BELIEVES_CONNECTED_MS, self._check)

    def end_session(self) -> None:
        """Somebody ends the session, as a second client with its password can; the client hears of it."""
        self._tree.expire(self.session)
        self._schedule.after(self._delay(), self._check)

    def close(self) -> None:
        """The client says goodbye, and the session ends at once."""
        self._up = False
        self._calls.clear()
        self._broken += 1
        self._tree.expire(self.session)

    def die(self) -> None:
        """The process is gone, the session stays until ZooKeeper misses it."""
        self._up = False
        self._calls.clear()
        self._broken += 1
        self.silent()

    def _check(self) -> None:
        if self._up and not self._tree.alive(self.session) and not self.cut:
            self._broker.post(self._expired)

    def _notice(self) -> None:
        """The client takes its connection for lost: so are its calls, done or not, and all its watches."""
        self._up = False
        self._broken += 1
        calls, self._calls = self._calls, {}
        paths = dict.fromkeys([*self._tree.forget_watches(self.session), *self._missed])
        self._missed.clear()

        def tell() -> None:
            self._broker.step(ZkSuspended())
            self._fail(list(calls.values()), Failure.CONNECTION_LOSS)
            for path in paths:
                self._broker.step(ZkFired(path, Change.LOST))

        self._broker.post(tell)

    def _reconnect(self) -> None:
        if self.cut or self._up:
            return
        if self.session and self._tree.alive(self.session):
            self._up = True
            self.heard()
            self._broker.step(ZkConnected(self.session, self._negotiated_ms, False))
        else:
            self._expired()

    def _expired(self) -> None:
        calls, self._calls = self._calls, {}
        self._fail(list(calls.values()), Failure.SESSION_EXPIRED)
        self._broker.step(ZkExpired())
        self.open()

    def _saw(self, path: str, change: Change) -> None:
        if self.cut:
            self._missed[path] = None
        else:
            self._back(lambda: self._broker.step(ZkFired(path, change)))

    def _back(self, action: Callable[[], None]) -> None:
        """To the client, in order; what is under way when the connection is cut does not arrive."""
        self._back_ms = max(self._back_ms, self._schedule.now_ms + self._delay())
        broken = self._broken
        unbroken = self._for_this_life(lambda: self._broker.post(action) if broken == self._broken else None)
        self._schedule.at(self._back_ms, unbroken)

    def _for_this_life(self, action: Callable[[], None]) -> Callable[[], None]:
        life = self._broker.life
        return lambda: self._broker.post(action) if life == self._broker.life else None

    def _fail(self, calls: list[Zk], failure: Failure) -> None:
        for call in calls:
            self._broker.step(ZkDone(call.call, (failure,) * len(call.ops)))

    def _delay(self) -> int:
        return self._chance.randrange(1, 6)
