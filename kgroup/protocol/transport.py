"""The one way to send requests to a cluster: sockets and the embedded cluster both offer it."""

from collections.abc import Mapping
from typing import Protocol

from kgroup.protocol.codec import Message


class Transport(Protocol):
    """Requests to the brokers of one cluster, one at a time for each broker.

    `concurrent` is whether several threads may use it at once. Every method may raise Unreachable. From
    `request`, plain Unreachable guarantees that no broker acted on the request; if one may have, it is the
    subclass OutcomeUnknown (kgroup.client.retry). An answer with an error code in it is an answer, not an
    exception.
    """

    @property
    def concurrent(self) -> bool:
        """Whether several threads may use it at once."""
        ...

    def request(
        self,
        node: int | None,
        message: Message,
        *,
        min_version: int = 0,
        max_version: int | None = None,
        timeout_s: float | None = None,
    ) -> Message:
        """Return the response, from broker `node`, or from any broker when it is None.

        Sent in the highest version that both sides have within the limits; BrokerRefused with
        UNSUPPORTED_VERSION when they share none.
        """
        ...

    def versions(self, node: int | None, api_key: int) -> range | None:
        """Return the versions of an API that the broker serves; None when it does not serve it."""
        ...

    def nodes(self) -> Mapping[int, tuple[str, int]]:
        """Return the brokers alive now: id → (host, port)."""
        ...

    def close(self) -> None:
        """Close connections; the transport is not used afterwards."""
        ...
