"""How a connection is secured, as one frozen value: TLS or none, credentials or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.domain import SECURITY_PROTOCOLS, value

if TYPE_CHECKING:
    # Every command imports this, and most reach a cluster without either.
    from kgroup.client.auth.credentials import Credentials
    from kgroup.client.tls.values import Tls


@value
class Security:
    """TLS (None: no encryption) and credentials (None: no authentication)."""

    tls: Tls | None = None
    credentials: Credentials | None = None

    @property
    def protocol(self) -> str:
        """Kafka's name for it, as in `security.protocol`."""
        return SECURITY_PROTOCOLS[(self.tls is not None) + 2 * (self.credentials is not None)]


PLAINTEXT = Security()
