"""The cluster of a test as the stage of a scenario."""

from __future__ import annotations

from dataclasses import replace

from kgroup.api import Kafka
from kgroup.client.settings import ConnectionSettings
from kgroup.client.transport import SocketTransport
from kgroup.protocol.codec import Message
from kgroup.testing.serving import Serving


class Staging:
    """See `kgroup.scenario.playing.play.Stage`: members connect as the test's own user."""

    def __init__(self, serving: Serving, kafka: Kafka) -> None:
        self.serving = serving
        self._kafka = kafka

    def settings(self, client_id: str) -> ConnectionSettings:
        """Return the connection settings of a member with that client id."""
        with self._kafka.admin() as admin:
            assert isinstance(admin.transport, SocketTransport)
            return replace(admin.transport.settings, client_id=client_id)

    def ask(self, node: int, request: Message, max_version: int | None = None) -> Message:
        """Return a broker's answer to a request that no gate delays."""
        with self._kafka.admin() as admin:
            return admin.transport.request(node, request, max_version=max_version)
