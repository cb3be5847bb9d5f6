"""A server with locked listeners on free ports, and raw clients on them."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trustme

from kgroup.broker.authentication.settings import read_listeners
from kgroup.broker.server import Server
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kgroup.runtime.clock import Clock
from kgroup.runtime.cluster import Cluster
from kgroup.security.scram import ScramCredential, ScramMechanism, salted
from tests.unit.broker.brokers import Client

PLAIN_USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="broker" user_alice="secret" user_bob="pass;word \\"quoted\\"";'
)
SASL = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
    "connection.failed.authentication.delay.ms": "0",
}


class Stores:
    """An authority, a broker's certificate for loopback, and clients' certificates, as PEM files."""

    def __init__(self, folder: Path) -> None:
        self.ca = trustme.CA()
        self.authority = folder / "ca.pem"
        self.ca.cert_pem.write_to_path(str(self.authority))
        self.broker = folder / "broker.pem"
        self.ca.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(
            str(self.broker)
        )
        self.folder = folder

    def of_client(self, name: str, ca: trustme.CA | None = None) -> Path:
        path = self.folder / f"{name}.pem"
        made = (ca or self.ca).issue_cert(common_name=name, organization_name="Kafka, Inc.")
        made.private_key_and_cert_chain_pem.write_to_path(str(path))
        return path

    @property
    def settings(self) -> dict[str, str]:
        return {
            "ssl.keystore.location": str(self.broker),
            "ssl.keystore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "ssl.truststore.type": "PEM",
        }

    def client_context(self, certificate: Path | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority))
        if certificate is not None:
            context.load_cert_chain(str(certificate))
        return context


@asynccontextmanager
async def locked(cluster: Cluster, settings: Mapping[str, str]) -> AsyncIterator[Server]:
    server = Server(cluster, listeners=read_listeners(settings))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def connected(
    server: Server, listener: str = "SASL_PLAINTEXT", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Client]:
    host, port = server.dispatcher.addresses[listener][0]
    reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def run(
    test: Callable[[Server], Awaitable[None]], settings: Mapping[str, str], clock: Clock | None = None
) -> None:
    """The test against one broker with these listeners, and the SCRAM user carol (password "pw")."""

    async def inside() -> None:
        async with locked(cluster, settings) as server:
            await test(server)

    cluster = Cluster(None, offsets_partitions=1, seed=1, clock=clock)
    add_user(cluster, "carol", "pw")
    try:
        asyncio.run(inside())
    finally:
        cluster.close()


def add_user(cluster: Cluster, user: str, password: str, iterations: int = 4096) -> None:
    changes: dict[tuple[str, ScramMechanism], ScramCredential | None] = {}
    for mechanism in ScramMechanism:
        secret = salted(mechanism, password, b"salt", iterations)
        changes[user, mechanism] = ScramCredential.of(mechanism, secret, b"salt", iterations)
    cluster.credentials.change(changes)


async def handshake(client: Client, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    answer = await client.call(SaslHandshakeRequest(mechanism=mechanism), version)
    assert isinstance(answer, SaslHandshakeResponse)
    return answer


async def token(client: Client, said: bytes, version: int = 2) -> SaslAuthenticateResponse:
    answer = await client.call(SaslAuthenticateRequest(auth_bytes=said), version)
    assert isinstance(answer, SaslAuthenticateResponse)
    return answer


async def log_in(client: Client, user: str = "alice", password: str = "secret") -> SaslAuthenticateResponse:
    """SASL PLAIN to its end."""
    assert (await handshake(client, "PLAIN")).error_code == 0
    return await token(client, f"\0{user}\0{password}".encode())


class ScramClient:
    """The client's side of SCRAM, written from the RFC and not from the broker's side."""

    def __init__(self, mechanism: str, user: str, password: str, header: str = "n,,") -> None:
        import hashlib
        import hmac

        self._digest = "sha256" if mechanism.endswith("256") else "sha512"
        self._hash = lambda data: hashlib.new(self._digest, data).digest()
        self._hmac = lambda key, data: hmac.new(key, data, self._digest).digest()
        self._password = password
        self._header = header
        self.bare = f"n={user},r=abcdefgh"

    def first(self) -> bytes:
        return (self._header + self.bare).encode()

    def final(self, server_first: bytes) -> bytes:
        import hashlib

        parts = dict(part.split("=", 1) for part in server_first.decode().split(","))
        secret = hashlib.pbkdf2_hmac(
            self._digest, self._password.encode(), b64decode(parts["s"]), int(parts["i"])
        )
        without_proof = f"c={b64encode(self._header.encode()).decode()},r={parts['r']}"
        told = f"{self.bare},{server_first.decode()},{without_proof}".encode()
        client_key = self._hmac(secret, b"Client Key")
        signature = self._hmac(self._hash(client_key), told)
        self.expected = b"v=" + b64encode(self._hmac(self._hmac(secret, b"Server Key"), told))
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={b64encode(proof).decode()}".encode()
