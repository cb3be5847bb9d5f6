"""Strangers at locked doors: bytes that are no TLS, no SASL and no request, before and after authentication.

Nobody gets in, nobody who has a key is kept out, and nothing is said in tracebacks.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from kgroup.broker import newcomers
from kgroup.broker.server import Server
from kgroup.protocol.headers import encode_request
from kgroup.protocol.messages.api_versions import ApiVersionsRequest
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kgroup.runtime.cluster import Cluster
from tests.hostile.attacks import client_hello, crowd
from tests.hostile.requests import Maker, every
from tests.unit.broker.authentication.listeners import (
    PLAIN_USERS,
    ScramClient,
    Stores,
    add_user,
    connected,
    locked,
    log_in,
)

LISTENERS = ("SASL_PLAINTEXT", "SSL", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "", "x" * 1000)
VERSIONS = ApiVersionsRequest(client_software_name="a", client_software_version="1")


class Intruder:
    """What somebody without a key may send, drawn by `chance`."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.maker = Maker(chance)
        self.cases = every()

    def garbage(self) -> bytes:
        return self.chance.randbytes(self.chance.randrange(0, 3000))

    def request(self) -> bytes:
        return self.maker.frame(*self.chance.choice(self.cases))

    def handshake(self) -> bytes:
        wanted = SaslHandshakeRequest(mechanism=self.chance.choice(MECHANISMS))
        return encode_request(wanted, self.chance.randrange(2), 1, "x")

    def token(self) -> bytes:
        said = self.chance.choice(
            [
                self.garbage(),
                b"\0alice\0" + self.garbage(),
                b"\0" * self.chance.randrange(10),
                ScramClient("SCRAM-SHA-256", "carol", "x").first(),
                b"n,,\x01auth=Bearer " + b"a" * self.chance.randrange(2000) + b"\x01\x01",
                b"n,,\x01auth=Bearer e30.e30.\x01\x01",
                b"\x01",
                b"",
            ]
        )
        if self.chance.random() < 0.3:
            return len(said).to_bytes(4, "big") + said
        return encode_request(SaslAuthenticateRequest(auth_bytes=said), self.chance.randrange(3), 2, "x")

    def versions(self) -> bytes:
        return encode_request(VERSIONS, self.chance.randrange(5), 3, "x")

    def lengths(self) -> bytes:
        return self.chance.choice([-1, 0, 1, 524_288, 524_289, 1 << 30]).to_bytes(4, "big", signed=True)

    def talk(self) -> bytes:
        """Some of it, one behind the other."""
        parts: list[Callable[[], bytes]] = [
            self.garbage,
            self.request,
            self.handshake,
            self.token,
            self.versions,
            self.lengths,
        ]
        beginning = self.chance.choice([b"", self.versions(), self.versions() + self.handshake()])
        return beginning + b"".join(self.chance.choice(parts)() for _ in range(self.chance.randrange(5)))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    yield Stores(tmp_path_factory.mktemp("stores"))


def settings(stores: Stores) -> dict[str, str]:
    jwks = stores.folder / "jwks.json"
    jwks.write_text('{"keys": [{"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "1"}]}')
    found = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
        "connection.failed.authentication.delay.ms": "0",
        "connections.max.reauth.ms": "60000",
        "ssl.client.auth": "required",
        **stores.settings,
    }
    for name in ("sasl_plaintext", "sasl_ssl"):
        found[f"listener.name.{name}.plain.sasl.jaas.config"] = PLAIN_USERS
    return found


async def say(server: Server, listener: str, data: bytes, tls: ssl.SSLContext | None) -> bytes:
    """What comes back until the connection is closed; it is cut off where the server would wait."""
    host, port = server.dispatcher.addresses[listener][0]
    heard = b""
    with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
        reader, writer = await asyncio.open_connection(host, port, ssl=tls)
        try:
            writer.write(data)
            if tls is None:
                writer.write_eof()
            heard = await asyncio.wait_for(reader.read(1 << 20), 5 if tls is None else 0.3)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
    return heard


async def is_served(server: Server, stores: Stores) -> None:
    """Whoever has a key still gets in, by every door."""
    mutual = stores.client_context(stores.of_client("alice"))
    for listener, tls in (("SASL_PLAINTEXT", None), ("SSL", mutual), ("SASL_SSL", stores.client_context())):
        async with connected(server, listener, tls) as client:
            if listener != "SSL":
                assert (await log_in(client)).error_code == 0
            answer = await client.call(MetadataRequest(topics=None))
            assert isinstance(answer, MetadataResponse) and answer.brokers


@pytest.mark.parametrize("seed", range(2))
def test_nobody_gets_in_and_nobody_is_kept_out(
    seed: int, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    intruder = Intruder(random.Random(seed))
    cluster = Cluster(None, offsets_partitions=1, seed=seed)
    add_user(cluster, "carol", "pw")
    served: list[int] = []

    async def test() -> None:
        loop = asyncio.get_running_loop()
        trouble: list[str] = []
        loop.set_exception_handler(lambda _, context: trouble.append(str(context)))
        async with locked(cluster, settings(stores)) as server:
            handle = server.dispatcher.handle

            def look(call):  # type: ignore[no-untyped-def]
                served.append(call.body.API)
                return handle(call)

            server.dispatcher.handle = look  # type: ignore[method-assign]
            for _ in range(8):
                talks = [say(server, "SASL_PLAINTEXT", intruder.talk(), None) for _ in range(12)]
                talks += [
                    say(server, name, intruder.talk(), None) for name in LISTENERS[1:] for _ in range(6)
                ]
                talks += [say(server, "SASL_SSL", intruder.talk(), stores.client_context()) for _ in range(4)]
                await asyncio.gather(*talks)
            assert {*served} <= {VERSIONS.API}, "before it is known who is there, only versions are told"
            await is_served(server, stores)
        assert trouble == []

    asyncio.run(test())
    cluster.close()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


HELLO = client_hello()
HANDSHAKE = encode_request(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1, 1, "x")
FIRST = ScramClient("SCRAM-SHA-256", "carol", "pw").first()
CROWDS = {
    "silent": ("SASL_SSL", b""),
    "amid its hello": ("SASL_SSL", HELLO[: len(HELLO) // 2]),
    "after its hello": ("SASL_SSL", HELLO),
    "silent before SASL": ("SASL_PLAINTEXT", b""),
    "after its versions": ("SASL_PLAINTEXT", encode_request(VERSIONS, 3, 1, "x")),
    "amid SCRAM": (
        "SASL_PLAINTEXT",
        HANDSHAKE + encode_request(SaslAuthenticateRequest(auth_bytes=FIRST), 2, 2, "x"),
    ),
}


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of a crowd are in this process."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("kind", CROWDS)
def test_a_crowd_at_the_door_keeps_nobody_out(kind: str, stores: Stores) -> None:
    """512 connections that never finish, and 24 clients behind them, again and again."""
    listener, said = CROWDS[kind]
    tls = stores.client_context() if listener == "SASL_SSL" else None
    cluster = Cluster(None, offsets_partitions=1, seed=1)
    add_user(cluster, "carol", "pw")

    async def come_in(server: Server) -> int:
        async with connected(server, listener, tls) as client:
            return (await log_in(client)).error_code

    async def test() -> None:
        async with locked(cluster, settings(stores)) as server:
            address = server.dispatcher.addresses[listener][0]
            for _ in range(2):
                with ExitStack() as held:
                    await asyncio.to_thread(held.enter_context, crowd(address, said))
                    found = await asyncio.gather(*(come_in(server) for _ in range(24)))
                    assert found == [0] * 24
                    assert 0 < len(server.newcomers) <= newcomers.ROOM_OF_ADDRESS

    asyncio.run(test())
    cluster.close()


def test_who_is_in_may_send_anything_again(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    """Authentication over and over, with wrong keys, by somebody who was let in: others do not notice."""
    caplog.set_level(logging.ERROR)
    intruder = Intruder(random.Random(7))
    cluster = Cluster(None, offsets_partitions=1, seed=1)

    async def test() -> None:
        async with locked(cluster, settings(stores)) as server:
            for _ in range(20):
                async with connected(server) as client:
                    await log_in(client)
                    client.send_raw(intruder.handshake() + intruder.talk())
                    client.writer.write_eof()
                    with suppress(OSError):
                        await asyncio.wait_for(client.reader.read(), 5)
            await is_served(server, stores)

    asyncio.run(test())
    cluster.close()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def test_a_folder_of_secrets_stays_closed(stores: Stores, tmp_path: Path) -> None:
    """What strangers send is not written anywhere beside the logs."""
    cluster = Cluster(tmp_path / "data", offsets_partitions=1)
    intruder = Intruder(random.Random(3))

    async def test() -> None:
        async with locked(cluster, settings(stores)) as server:
            before = {path.name for path in (tmp_path / "data").iterdir()}
            await asyncio.gather(*(say(server, "SASL_PLAINTEXT", intruder.talk(), None) for _ in range(20)))
            assert {path.name for path in (tmp_path / "data").iterdir()} == before

    asyncio.run(test())
    cluster.close()
