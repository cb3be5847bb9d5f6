"""Who watches a simulated cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator.events import Effect, Event
from kgroup.zookeeper.store.operations import Read, Result, Write

if TYPE_CHECKING:
    from kgroup.zookeeper.world.broker import BrokerProcess


class Observer:
    """Sees what brokers do; this one does nothing about it."""

    def stepped(self, broker: BrokerProcess, event: Event | None, effects: list[Effect]) -> None:
        """A coordinator got an event, None for a timer, and had these effects."""

    def asked(
        self,
        broker: BrokerProcess,
        session: int,
        ops: Sequence[Read] | Sequence[Write],
        results: Sequence[Result],
    ) -> None:
        """ZooKeeper has carried out a broker's call."""

    def after_event(self) -> None:
        """Something happened in the cluster."""
