"""SASL exchanges as generators of tokens: no socket, no Kafka message.

A mechanism yields what the client says and is sent what the broker answered (RFC 4616 for PLAIN,
RFC 5802 and 7677 for SCRAM). It ends when the client is satisfied.
"""

from __future__ import annotations

from collections.abc import Generator

from kgroup.client.settings import ConnectionSettings
from kgroup.errors import BrokerRefused, ErrorCode

Exchange = Generator[bytes, bytes, None]


def exchange(settings: ConnectionSettings) -> Exchange:
    """The token exchange for the settings' mechanism."""
    mechanism = settings.sasl_mechanism or ""
    username, password = settings.sasl_username or "", settings.sasl_password or ""
    if mechanism == "PLAIN":
        return _plain(username, password)
    return _scram(mechanism, username, password)


def _plain(username: str, password: str) -> Exchange:
    yield b"\0".join((b"", username.encode(), password.encode()))


def _scram(mechanism: str, username: str, password: str) -> Exchange:
    from scramp import ScramClient, ScramException

    client = ScramClient([mechanism], username, password)
    server_first = yield client.get_client_first().encode()
    try:
        client.set_server_first(server_first.decode())
        server_final = yield client.get_client_final().encode()
        client.set_server_final(server_final.decode())
    except (ScramException, UnicodeDecodeError, ValueError) as error:
        raise BrokerRefused(
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            f"{mechanism}: the broker's side of the exchange does not hold: {error}",
            hint="either this is not the cluster you mean, or it does not know this password",
        ) from None
