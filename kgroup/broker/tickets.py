"""Between calls and shards: passes requests in, and every reply to the call that waits for it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial

from kgroup.broker.call import Call
from kgroup.broker.wakeups import Wakeups
from kgroup.broker.watchers import Watchers
from kgroup.coordinator.admission import admit
from kgroup.coordinator.outcome import Reply
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.codec import Message
from kgroup.protocol.requests import refusal
from kgroup.runtime.catalog import CatalogTopic
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.shard import Shard

log = logging.getLogger(__name__)


class Tickets:
    """The numbering of requests passed to shards, and the calls parked there."""

    def __init__(self, cluster: Cluster, watchers: Watchers) -> None:
        self._cluster = cluster
        self._clock = cluster.clock
        self._watchers = watchers
        self._last = 0
        self._parked: dict[int, Call[Message]] = {}
        self.wakeups = Wakeups(cluster.live_shards, self.wake, self.deliver)

    def submit(self, partition: int, call: Call[Message]) -> Message | None:
        """Return the shard's answer, or None if the call is parked; NOT_COORDINATOR if it is not led here."""
        wakeups = self.wakeups
        now_ms = self._clock.now_ms()
        if now_ms >= wakeups.due_ms:
            wakeups.before_request(now_ms)
        shard = self._cluster.shards[partition]
        if shard is None or self._cluster.leader_of(OFFSETS_TOPIC, partition) != call.node:
            try:
                admit(self._cluster.group_config, call.body, call.version)
            except Refused as refused:
                return refusal(call.body, refused.code, refused.message)
            return refusal(call.body, ErrorCode.NOT_COORDINATOR)
        self._last = ticket = self._last + 1
        try:
            replies = shard.submit(ticket, call, now_ms)
        except Exception:
            self._replace(shard, now_ms)
            raise
        own: Message | None
        if len(replies) == 1 and (only := replies[0]).ticket == ticket:
            own = only.response
        else:
            own = next((reply.response for reply in replies if reply.ticket == ticket), None)
            if own is None:
                self._parked[ticket] = call
                call.forget = partial(self._forget, shard, ticket)
            self.deliver(replies)
        wake_ms = shard.next_wake_ms()
        if wake_ms is not None and wake_ms < wakeups.due_ms:
            wakeups.note(wake_ms)
        if self._watchers.by_key:
            self._watchers.notify((OFFSETS_TOPIC, partition))
        return own

    def wake(self, shard: Shard, now_ms: int, due_ms: int) -> list[Reply]:
        """Let a shard do what is due; a shard that fails is reloaded."""
        try:
            replies = shard.wake(now_ms, due_ms)
        except Exception:
            log.exception("%s-%d failed at a deadline", OFFSETS_TOPIC, shard.partition)
            self._replace(shard, now_ms)
            return []
        self._watchers.notify((OFFSETS_TOPIC, shard.partition))
        return replies

    def deliver(self, replies: Iterable[Reply]) -> None:
        """Answer the parked calls; drop replies that no call waits for."""
        for reply in replies:
            call = self._parked.pop(reply.ticket, None)
            if call is not None:
                call.answer(reply.response)

    def topics_changed(self, replies: Iterable[Reply]) -> None:
        """Apply a change of topics to every shard: answer the calls it released, and check the timers."""
        self.deliver(replies)
        self.wakeups.look()
        if self._watchers.by_key:
            for partition in range(len(self._cluster.shards)):
                self._watchers.notify((OFFSETS_TOPIC, partition))

    def create_internal_topic(
        self, name: str, partitions: int, replication_factor: int, config: dict[str, str]
    ) -> None:
        """Create a topic of the brokers' own, with a replica on each broker at most."""
        cluster = self._cluster
        replicas = min(replication_factor, cluster.brokers)
        topic = CatalogTopic(name, cluster.catalog.new_topic_id(), partitions, replicas, config)
        self.topics_changed(cluster.create_topic(topic))

    def reload(self, partition: int) -> None:
        """Make a coordinator restart from its log, as at a broker that takes it over."""
        shard = self._cluster.shards[partition]
        if shard is not None:
            self._replace(shard, self._clock.now_ms())

    def abandon(self) -> None:
        """Answer every parked call: the shards are about to close."""
        for shard in self._cluster.live_shards():
            self.deliver(shard.abandon())

    def _forget(self, shard: Shard, ticket: int) -> None:
        self._parked.pop(ticket, None)
        shard.forget(ticket)

    def _replace(self, shard: Shard, now_ms: int) -> None:
        """Answer the parked requests and reload the log, from which memory may differ now."""
        replies = shard.abandon()
        self._cluster.reload(shard.partition, now_ms)
        self.deliver(replies)
        self.wakeups.look()
