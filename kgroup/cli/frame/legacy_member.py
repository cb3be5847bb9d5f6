"""A member of the coordinator of the ZooKeeper era, for `kgroup member run --legacy`."""

import json
import socket
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from kgroup.client.settings import parse_bootstrap
from kgroup.errors import ConfigError, Unreachable

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView
    from kgroup.zookeeper.entry.member import Happened

SESSION_MS = 6000


class Legacy:
    """One consumer; `member_id` has the form that consumers of the era generated."""

    def __init__(self, group_id: str, where: str, session_ms: int | None) -> None:
        self.group_id = group_id
        moment, word = time.time_ns() // 1_000_000, uuid.uuid4().hex[:8]
        self.member_id = f"{group_id}_{socket.gethostname()}-{moment}-{word}"
        self._addresses = parse_bootstrap(where)
        self._where = where
        self._session_ms = SESSION_MS if session_ms is None else session_ms
        if self._session_ms < 1000:
            raise ConfigError(f"a session timeout of {self._session_ms} ms is too short", "at least 1s")

    def run(
        self,
        admin: "ClusterView",
        topic_count: str,
        stop: Callable[[], bool],
        on_event: "Callable[[Happened], None]",
        on_log: Callable[[str], None],
    ) -> None:
        """Consume until stopped; raise Unreachable if no coordinator ever assigned it a partition."""
        from kgroup.admin.read.records import Records
        from kgroup.zookeeper.entry.member import Broker, ConsumerConfig, LegacyConsumer, LegacyDriver

        brokers = tuple(Broker(-1, host, port) for host, port in self._addresses)
        config = ConsumerConfig(
            group_id=self.group_id,
            consumer_id=self.member_id,
            brokers=brokers,
            session_timeout_ms=self._session_ms,
        )
        said: list[str] = []

        def log(text: str) -> None:
            said.append(text)
            on_log(text)

        driver = LegacyDriver(
            LegacyConsumer(config),
            # A poll longer than this would delay pings.
            Records(admin, self._session_ms / 6000),
            clock_ms=lambda: time.monotonic_ns() // 1_000_000,
            stop=stop,
            on_event=on_event,
            on_log=log,
        )
        driver.run(topic_count)
        if not driver.joined:
            why = said[-1] if said else "no coordinator has answered"
            raise Unreachable(
                f"{self.group_id}: never joined at {self._where}: {why}", "is kgroup serve --legacy there?"
            )


def topic_count(topics: list[str]) -> str:
    """Return the subscription on the wire: each topic with one stream."""
    return json.dumps(dict.fromkeys(topics, 1))
