"""What goes wrong in a soak; each fault counts once it was seen to have happened."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from tests.interop.kgroup_server import KgroupServer
from tests.soak.consumers import Slot
from tests.soak.proxy import Proxy

BROKEN, SERVER = "connections broken", "kill -9 of serve"
SEEN_WITHIN_S = 10.0
PAUSES_S = (1.0, 9.0)
"""How long a process stands still: shorter than its session timeout, and longer."""


class Faults:
    """Does one thing at a time: first each kind there is, in random order, then as chance has it.

    `seen` counts by kind what really happened: a process that died of the signal, one the kernel says has
    stopped, connections that were open, a server that came back as another process.
    """

    def __init__(self, server: KgroupServer, proxy: Proxy, slots: list[Slot], rng: random.Random) -> None:
        self._server, self._proxy, self._slots, self._rng = server, proxy, slots, rng
        self.seen: Counter[str] = Counter()
        kinds: dict[str, tuple[int, Callable[[], bool]]] = {
            BROKEN: (3, self._break),
            SERVER: (2, self._kill_server),
        }
        for client in dict.fromkeys(slot.client for slot in slots):
            kinds[f"kill -9 of {client}"] = 3, partial(self._kill, client)
            kinds[f"SIGSTOP of {client}"] = 2, partial(self._stop, client)
        self._kinds = kinds
        self._first = rng.sample(list(kinds), len(kinds))

    @property
    def never(self) -> list[str]:
        """The kinds that have not been seen to happen."""
        return [name for name in self._kinds if not self.seen[name]]

    def one(self) -> None:
        """Do one thing, and undo it after a while."""
        if self._first:
            name = self._first.pop()
        else:
            weights = [weight for weight, _ in self._kinds.values()]
            name = self._rng.choices(list(self._kinds), weights)[0]
        if self._kinds[name][1]():
            self.seen[name] += 1
        elif not self.seen[name]:
            self._first.insert(0, name)

    def _running(self, client: str) -> Slot | None:
        running = [slot for slot in self._slots if slot.client == client and slot.running]
        return self._rng.choice(running) if running else None

    def _kill(self, client: str) -> bool:
        slot = self._running(client)
        if slot is None or slot.process is None:
            return False
        slot.signal(signal.SIGKILL)
        died = slot.process.wait(SEEN_WITHIN_S) == -signal.SIGKILL
        time.sleep(self._rng.uniform(0, 2))
        return died

    def _stop(self, client: str) -> bool:
        slot = self._running(client)
        if slot is None or slot.process is None:
            return False
        slot.signal(signal.SIGSTOP)
        stopped = _has_stopped(slot.process.pid)
        time.sleep(self._rng.choice(PAUSES_S))
        slot.signal(signal.SIGCONT)
        return stopped

    def _break(self) -> bool:
        return self._proxy.break_all() > 0

    def _kill_server(self) -> bool:
        process = self._server.process
        assert process is not None
        self._server.kill9()
        self._proxy.break_all()
        time.sleep(self._rng.uniform(0, 2))
        self._server.start()
        return process.returncode == -signal.SIGKILL and self._server.pid != process.pid


def _has_stopped(pid: int) -> bool:
    """Whether the child is seen to be stopped; its end, should it come instead, stays to be waited for."""
    until = time.monotonic() + SEEN_WITHIN_S
    while time.monotonic() < until:
        told = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG)
        if told is not None:
            return told.si_code == os.CLD_STOPPED
        time.sleep(0.02)
    return False
