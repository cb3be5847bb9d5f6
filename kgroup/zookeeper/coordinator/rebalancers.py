"""Rebalancers and their queues: one group at a time each, and one rebalancer per group (era 7.1, 7.2)."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator.events import Level
from kgroup.zookeeper.coordinator.registries import Group, Stage
from kgroup.zookeeper.coordinator.runs import Run

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.reign import Reign


class Rebalancer:
    """A queue of groups, and the run of the one that was taken last."""

    def __init__(self, reign: Reign) -> None:
        self._reign = reign
        self.queue: deque[Group] = deque()
        self.overflow: deque[Group] = deque()
        self.run: Run | None = None

    def push(self, group: Group) -> None:
        """Queue the group; one too many waits outside, and is not dropped (OC-37)."""
        size = self._reign.core.config.queue_size
        if len(self.queue) < size:
            self.queue.append(group)
        else:
            if not self.overflow:
                text = f"a rebalancer's queue is full with {size} groups: more wait"
                self._reign.core.log(Level.WARNING, text)
            self.overflow.append(group)
        self.take()

    def take(self) -> None:
        """Take the next group, if there is one and nothing else is being done."""
        while self.run is None and self.queue:
            group = self.queue.popleft()
            if self.overflow:
                self.queue.append(self.overflow.popleft())
            group.rebalance_initiated = False
            if group.dropped or not group.members:
                group.rebalancer = None
                continue
            group.rebalancer = self
            self.run = group.run = Run(self._reign, group, partial(self._done, group))
            self.run.begin()

    def _done(self, group: Group) -> None:
        self.run = group.run = group.rebalancer = None
        self.take()


class Rebalancers:
    """All rebalancers; a group goes to the one that has it, or else to each in turn."""

    def __init__(self, reign: Reign) -> None:
        self._reign = reign
        self.all = [Rebalancer(reign) for _ in range(reign.core.config.rebalancers)]
        self._next = 0

    def add(self, group: Group) -> None:
        """Queue the group for a rebalance, unless it is queued already (era 7.1)."""
        if group.rebalance_initiated or group.stage is not Stage.NORMAL:
            return
        group.rebalance_initiated = True
        window = self._reign.core.config.join_window_ms
        if window:
            due = self._reign.core.now_ms + window
            self._reign.timers.arm(due, lambda: self._push(group))
        else:
            self._push(group)

    def _push(self, group: Group) -> None:
        if group.rebalancer is None:
            group.rebalancer = self.all[self._next]
            self._next = (self._next + 1) % len(self.all)
        group.rebalancer.push(group)
