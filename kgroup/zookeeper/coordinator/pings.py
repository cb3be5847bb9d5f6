"""The heartbeat scheduler: who is asked when, and who has been silent for too long (era 5.1 to 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator.purgatory import Watcher
from kgroup.zookeeper.coordinator.registries import RegisteredConsumer
from kgroup.zookeeper.wire.messages import PingRequest, RequestKey

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.reign import Reign


class Pings:
    """Asks every member each third of its session, counted from its registration so that nothing drifts."""

    def __init__(self, reign: Reign) -> None:
        self._reign = reign

    def start(self, member: RegisteredConsumer) -> None:
        """The first ping goes at once."""
        self._tick(member)

    def stop(self, member: RegisteredConsumer) -> None:
        """No more pings to this member."""
        self._reign.timers.cancel(member.ping_timer)
        member.ping_timer = None

    def answered(self, watcher: Watcher) -> None:
        """The member is there, and may deliver for another session; its misses are forgotten (era 5.3)."""
        watcher.member.failed = 0
        watcher.member.answered_at_ms = self._reign.core.now_ms

    def _tick(self, member: RegisteredConsumer) -> None:
        if not self._reign.purgatory.pending(member, RequestKey.PING):
            self._send(member)
        member.pings += 1
        due = member.registered_at_ms + member.pings * member.session_ms // 3
        member.ping_timer = self._reign.timers.arm(due, lambda: self._tick(member))

    def _send(self, member: RegisteredConsumer) -> None:
        core = self._reign.core
        watcher = self._reign.purgatory.watch(member, RequestKey.PING, core.now_ms, self._expired)
        core.send(member.conn, PingRequest(member.consumer_id, member.failed), watcher.correlation)

    def _expired(self, watcher: Watcher) -> None:
        member = watcher.member
        member.failed += 1
        if member.failed > self._reign.core.config.max_failed_pings:
            self._reign.fail(member, f"no answer to {member.failed} pings")
