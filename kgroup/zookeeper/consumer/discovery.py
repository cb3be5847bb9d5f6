"""Which broker to ask next, and when: round robin over all that are known, for ever (era 9.1)."""

from __future__ import annotations

from collections.abc import Iterable

from kgroup.domain import java_string_hash
from kgroup.zookeeper.consumer.events import ConsumerConfig
from kgroup.zookeeper.wire.messages import Broker


class Discovery:
    """The brokers a consumer was given and those it was told of; `next` never ends."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._given = config.brokers
        self._told: tuple[Broker, ...] = ()
        self._position = 0
        self._failed = 0
        # A consumer's own share of the time, so that thousands do not come back in the same moment.
        share = java_string_hash(config.consumer_id) % 401 - 200
        self.backoff_ms = max(1, config.reconnect_backoff_ms * (1000 + share) // 1000)

    def told(self, brokers: Iterable[Broker]) -> None:
        """The cluster's brokers, as one of them lists them; a list of none tells nothing."""
        self._told = tuple(brokers) or self._told

    def next(self) -> Broker:
        """The broker to ask."""
        candidates = self.candidates()
        broker = candidates[self._position % len(candidates)]
        self._position += 1
        return broker

    def candidates(self) -> list[Broker]:
        """Whom there is to ask: those told of, and those given at other addresses, should these be dead."""
        addresses = {(broker.host, broker.port) for broker in self._told}
        return [*self._told, *(b for b in self._given if (b.host, b.port) not in addresses)]

    def address_of(self, broker_id: int) -> Broker | None:
        """The broker of that id, if anybody has told of it."""
        return next((broker for broker in self.candidates() if broker.id == broker_id), None)

    def failed(self) -> bool:
        """One did not answer; whether that made a full round."""
        self._failed += 1
        if self._failed < len(self.candidates()):
            return False
        self._failed = 0
        return True

    def succeeded(self) -> None:
        """One did: the round begins anew."""
        self._failed = 0
