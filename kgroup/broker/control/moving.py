"""Time moved forward, deadline by deadline, at no cost to connected members."""

from __future__ import annotations

import asyncio

from kgroup.broker.control.dispatcher import MOVE, ControlledDispatcher
from kgroup.broker.control.presence import Key
from kgroup.broker.control.waiting import until
from kgroup.coordinator.sessions import awaited, prolong
from kgroup.runtime.clock import MovableClock
from kgroup.timers import TimerKey

SLICE_S = 0.02
"""Real time of work after which everything else on the loop has its turn, such as a signal."""


class Move:
    """One move of a clock to `target_ms`.

    With `keep`, members that are connected and not frozen count as sending their heartbeats; a member
    without which a rebalance would go on gets `patience_s` of real time to do its part. Without it, what
    clients send meanwhile is served at the end: a move takes no time as they see it.
    """

    def __init__(
        self,
        dispatcher: ControlledDispatcher,
        clock: MovableClock,
        target_ms: int,
        *,
        keep: bool,
        patience_s: float,
    ) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._target_ms = target_ms
        self._keep = keep
        self._patience_s = patience_s
        self._prolonged: dict[int, dict[TimerKey, int]] = {}
        self._overdue: set[Key] = set()

    async def carry_out(self) -> None:
        """Fire all that falls due until the target, each at its own time."""
        if self._keep:
            await self._go_on()
            return
        self._dispatcher.moves.add(self)
        try:
            await self._go_on()
        finally:
            self._dispatcher.moves.discard(self)
            self._dispatcher.release(MOVE)

    async def _go_on(self) -> None:
        wakeups, clock = self._dispatcher.wakeups, self._clock
        loop = asyncio.get_running_loop()
        slice_end = loop.time() + SLICE_S
        while True:
            if loop.time() >= slice_end:
                await asyncio.sleep(0)
                slice_end = loop.time() + SLICE_S
            if self._keep:
                left_ms = max(self._target_ms - clock.now_ms(), 0)
                for shard in self._dispatcher.cluster.live_shards():
                    known = self._prolonged.setdefault(shard.partition, {})
                    prolong(shard.coordinator.state, self._dispatcher.presence.lives, left_ms, known)
            due_ms = wakeups.next_ms()
            if due_ms is None or due_ms > self._target_ms:
                break
            if not await self._had_to_wait(due_ms):
                clock.move_to(due_ms)
                wakeups.run(due_ms)
        clock.move_to(self._target_ms)
        wakeups.run(self._target_ms)

    async def _had_to_wait(self, due_ms: int) -> bool:
        """Let members do what a timer that falls due waits for; False if it waits for none that is there."""
        waited_for = self._waited_for(due_ms)
        if not waited_for:
            return False
        if not await until(lambda: waited_for.isdisjoint(self._waited_for(due_ms)), self._patience_s):
            self._overdue |= waited_for
        return True

    def _waited_for(self, due_ms: int) -> set[Key]:
        if not self._keep:
            return set()
        lives = self._dispatcher.presence.lives
        shards = self._dispatcher.cluster.live_shards()
        keys = (key for shard in shards for key in awaited(shard.coordinator.state, due_ms))
        return {key for key in keys if lives(*key)} - self._overdue
