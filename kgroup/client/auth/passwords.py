"""PLAIN (RFC 4616) and SCRAM (RFC 5802, 7677) as exchanges of tokens."""

import re

from kgroup.client.auth.credentials import Password
from kgroup.client.auth.exchanges import Exchange, broker_is_wrong
from kgroup.security.scram import MIN_ITERATIONS


def exchange(credentials: Password) -> Exchange:
    """Yield the client's messages that prove the password; SCRAM's broker must prove it too."""
    if credentials.mechanism == "PLAIN":
        return _plain(credentials.username, credentials.password)
    return _scram(credentials)


def _plain(username: str, password: str) -> Exchange:
    yield b"\0".join((b"", username.encode(), password.encode()))


def _scram(credentials: Password) -> Exchange:
    from scramp import ScramClient, ScramException

    mechanism = credentials.mechanism
    client = ScramClient([mechanism], credentials.username, credentials.password)
    first = client.get_client_first()
    if credentials.is_token:
        # KIP-48: the broker looks the name up among delegation tokens. The signed message must say so too.
        first += _TOKEN
        client.client_first_bare += _TOKEN
    server_first = yield first.encode()
    # Refuse fewer than 4,096 as Kafka's client does, and so many that they keep this side busy.
    given = re.search(rb",i=([0-9]+)", server_first)
    if given is not None and (len(given[1]) > 9 or not MIN_ITERATIONS <= int(given[1]) <= _MOST_ITERATIONS):
        why = f"it asks for {given[1][:20].decode()} iterations, not {MIN_ITERATIONS} to {_MOST_ITERATIONS}"
        raise broker_is_wrong(mechanism, why)
    try:
        client.set_server_first(server_first.decode())
        server_final = yield client.get_client_final().encode()
        client.set_server_final(server_final.decode())
    except (ScramException, UnicodeDecodeError, ValueError) as error:
        raise broker_is_wrong(mechanism, str(error)) from None


_MOST_ITERATIONS = 100_000
"""Kafka's brokers use 4,096 to 16,384. These take a fraction of a second."""

_TOKEN = ",tokenauth=true"
