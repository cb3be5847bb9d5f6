"""TLS on a listener: stores of each kind, certificates of clients and the names they give."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import subprocess
from asyncio.sslproto import SSLProtocol
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

from kgroup.broker.control.waiting import until
from kgroup.broker.server import Server
from kgroup.errors import ConfigError
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgroup.runtime.cluster import Cluster
from tests.broker_script import Script
from tests.unit.broker.authentication.listeners import PLAIN_USERS, Stores, connected, locked, log_in, run
from tests.unit.broker.brokers import Client

METADATA = MetadataRequest(topics=None)
SSL = {"listeners": "SSL://127.0.0.1:0"}
JAVAS = Path(__file__).parents[3] / "data" / "stores"
"""Stores made by keytool (make.sh)."""
OPEN = {"ssl.keystore.password": "store-secret", "ssl.truststore.password": "store-secret"}
WRONG = dict.fromkeys(OPEN, "wr0ng")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    yield Stores(tmp_path_factory.mktemp("stores"))


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def principals(server: Server) -> list[str]:
    """Those of the Metadata requests from now on."""
    seen: list[str] = []

    def look(call):  # type: ignore[no-untyped-def]
        seen.append(str(call.principal))
        return script.serve(call)

    script = Script(server.dispatcher)
    script.answer(MetadataRequest.API, look)
    return seen


async def is_in(client: Client) -> bool:
    answer = await client.call(METADATA)
    assert isinstance(answer, MetadataResponse)
    return bool(answer.brokers)


def serves(settings: dict[str, str], stores: Stores) -> None:
    async def test(server: Server) -> None:
        async with connected(server, "SSL", stores.client_context()) as client:
            assert await is_in(client)

    run(test, {**SSL, **settings})


def pem_parts(path: Path) -> tuple[str, str]:
    text = path.read_text()
    at = text.index("-----BEGIN CERTIFICATE")
    return text[:at], text[at:]


@pytest.mark.parametrize("kind", ["file", "inline", "encrypted", "pkcs12", "pkcs12 called JKS"])
def test_keys_and_certificates_come_from_stores_of_each_kind(
    kind: str, stores: Stores, tmp_path: Path
) -> None:
    key, chain = pem_parts(stores.broker)
    settings = {"ssl.keystore.location": str(stores.broker), "ssl.keystore.type": "PEM"}
    if kind == "inline":
        settings = {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    elif kind == "encrypted":
        openssl("pkcs8", "-topk8", "-in", stores.broker, "-passout", "pass:k3y", "-out", tmp_path / "key.pem")
        (tmp_path / "store.pem").write_text((tmp_path / "key.pem").read_text() + chain)
        settings = {"ssl.keystore.location": str(tmp_path / "store.pem"), "ssl.key.password": "k3y"}
    elif kind.startswith("pkcs12"):
        store = tmp_path / "store.p12"
        openssl("pkcs12", "-export", "-in", stores.broker, "-out", store, "-passout", "pass:st0re")
        settings = {"ssl.keystore.location": str(store), "ssl.keystore.password": "st0re"}
        if kind.endswith("JKS"):  # Java reads it under that name, too
            settings["ssl.keystore.type"] = "JKS"
    serves(settings, stores)


def trusting_keytool() -> ssl.SSLContext:
    """A client of keytool's authority, which has no key usage: Python 3.13 wants one, Java does not."""
    context = ssl.create_default_context(cafile=str(JAVAS / "ca.pem"))
    context.check_hostname = False
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


@pytest.mark.parametrize("trust", ["trust.jks", "trust.p12", "trust-legacy.p12", "trust-openssl.p12"])
@pytest.mark.parametrize(
    "keys", ["client.jks", "client-own-key-password.jks", "client-keytool.p12", "client-legacy.p12"]
)
def test_stores_of_keytool_show_the_broker_and_judge_clients(keys: str, trust: str) -> None:
    """Whom the trust store knows gets in by a certificate; who shows none does not."""
    settings = {
        "ssl.keystore.location": str(JAVAS / keys),
        "ssl.truststore.location": str(JAVAS / trust),
        "ssl.client.auth": "required",
        **OPEN,
        **({"ssl.key.password": "key-secret"} if "own-key" in keys else {}),
    }
    context, with_certificate = trusting_keytool(), trusting_keytool()
    with_certificate.load_cert_chain(JAVAS / "client.pem")

    async def test(server: Server) -> None:
        async with connected(server, "SSL", with_certificate) as client:
            assert await is_in(client)
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            async with connected(server, "SSL", context) as client:
                await is_in(client)

    run(test, {**SSL, **settings})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "listener SSL speaks TLS and has no certificate"),
        ({"ssl.keystore.location": "/nowhere"}, "/nowhere cannot be read: No such file"),
        ({"ssl.keystore.location": "{authority}"}, "holds no private key"),
        ({"ssl.keystore.location": "{p12}", "ssl.keystore.password": "wrong"}, "the password does not open"),
        ({"ssl.keystore.location": "{p12}"}, "wants a password"),
        ({"ssl.keystore.location": "{p12}", "ssl.keystore.type": "PEM"}, "and ssl.keystore.type says PEM"),
        ({"ssl.keystore.location": "{jks}"}, "cannot be read: "),
        ({"ssl.keystore.location": "{javas}/client.jks", **WRONG}, "the password does not open"),
        ({"ssl.keystore.location": "{javas}/client.jks"}, "has a password"),
        ({"ssl.keystore.location": "{javas}/trust.jks", **OPEN}, "holds no private key"),
        ({"ssl.keystore.location": "{javas}/client.jceks", **OPEN}, "is a JCEKS store"),
        (
            {"ssl.keystore.location": "{javas}/client-own-key-password.jks", **OPEN},
            "the password does not open the key 'client'",
        ),
        (
            {"ssl.keystore.location": "{broker}", "ssl.truststore.location": "{javas}/trust.jks", **WRONG},
            "the password does not open",
        ),
        ({"ssl.keystore.location": "{encrypted}"}, "is encrypted"),
        (
            {"ssl.keystore.location": "{encrypted}", "ssl.key.password": "no"},
            "the password does not open the private key",
        ),
        ({"ssl.keystore.location": "{other}"}, "cannot be used: key values mismatch"),
        (
            {"ssl.keystore.location": "{broker}", "ssl.client.auth": "required"},
            "without certificates to check",
        ),
        (
            {"ssl.keystore.location": "{broker}", "ssl.client.auth": "yes"},
            "must be none, requested or required",
        ),
        ({"ssl.keystore.location": "{broker}", "ssl.enabled.protocols": "TLSv1.1"}, "TLSv1.1 is not served"),
        ({"ssl.keystore.location": "{broker}", "ssl.principal.mapping.rules": "RULE:x"}, "mapping.rules"),
        ({"ssl.keystore.location": "{broker}", "ssl.cipher.suites": "X"}, "ssl.cipher.suites is not known"),
    ],
)
def test_what_cannot_be_used_is_told_before_anybody_comes(
    settings: dict[str, str], said: str, stores: Stores, tmp_path: Path
) -> None:
    paths = {"authority": stores.authority, "broker": stores.broker, "javas": JAVAS}
    paths["p12"], paths["jks"] = tmp_path / "store.p12", tmp_path / "store.jks"
    openssl("pkcs12", "-export", "-in", stores.broker, "-out", paths["p12"], "-passout", "pass:st0re")
    paths["jks"].write_bytes(b"\xfe\xed\xfe\xed" + bytes(40))
    key, chain = pem_parts(stores.broker)
    paths["encrypted"], paths["other"] = tmp_path / "encrypted.pem", tmp_path / "other.pem"
    openssl("pkcs8", "-topk8", "-in", stores.broker, "-passout", "pass:k3y", "-out", paths["encrypted"])
    paths["encrypted"].write_text(paths["encrypted"].read_text() + chain)
    paths["other"].write_text(pem_parts(stores.of_client("other"))[0] + chain)
    given = {name: value.format(**paths) for name, value in settings.items()}
    with pytest.raises(ConfigError) as raised:
        run(_nothing, {**SSL, **given})
    assert said in f"{raised.value}"
    told = f"{raised.value.message} {raised.value.hint}"
    assert not any(secret in told for secret in ("k3y", "st0re", "store-secret", "wr0ng"))


async def _nothing(server: Server) -> None:
    raise AssertionError("it serves")


def test_nothing_of_a_key_is_left_on_the_disk(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    serves(stores.settings, stores)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_protocols_that_are_not_enabled_are_refused(version: ssl.TLSVersion, stores: Stores) -> None:
    async def test(server: Server) -> None:
        for asked in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = stores.client_context()
            context.minimum_version = context.maximum_version = asked
            if asked == version:
                async with connected(server, "SSL", context) as client:
                    assert await is_in(client)
            else:
                with pytest.raises((ssl.SSLError, ConnectionResetError)):
                    async with connected(server, "SSL", context) as client:
                        await is_in(client)

    name = {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}[version]
    run(test, {**SSL, **stores.settings, "ssl.enabled.protocols": name})


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (None, "User:CN=alice,OU=Testing cert #1,O=Kafka\\, Inc."),
        ("RULE:^CN=(.*?),.*$/$1/U,DEFAULT", "User:ALICE"),
        ("RULE:^CN=nobody$/x/,DEFAULT", "User:CN=alice,OU=Testing cert #1,O=Kafka\\, Inc."),
    ],
)
def test_a_certificate_names_its_bearer(rules: str | None, name: str, tmp_path: Path) -> None:
    stores = Stores(tmp_path)

    async def test(server: Server) -> None:
        seen = principals(server)
        async with connected(server, "SSL", stores.client_context(stores.of_client("alice"))) as client:
            assert await is_in(client)
        import re

        assert [re.sub(r"OU=Testing cert \\#[^,]*", "OU=Testing cert #1", each) for each in seen] == [name]

    settings = {**SSL, **stores.settings, "ssl.client.auth": "required"}
    run(test, settings | ({"ssl.principal.mapping.rules": rules} if rules else {}))


def test_who_has_no_certificate_is_anonymous_where_none_is_required(stores: Stores) -> None:
    async def test(server: Server) -> None:
        seen = principals(server)
        async with connected(server, "SSL", stores.client_context()) as client:
            assert await is_in(client)
        assert seen == ["User:ANONYMOUS"]

    run(test, {**SSL, **stores.settings, "ssl.client.auth": "requested"})


def test_who_has_no_certificate_or_a_strangers_does_not_get_in(stores: Stores) -> None:
    stranger = stores.of_client("mallory", trustme.CA())

    async def test(server: Server) -> None:
        for context in (stores.client_context(), stores.client_context(stranger)):
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                async with connected(server, "SSL", context) as client:
                    await is_in(client)
        assert not server.connections

    run(test, {**SSL, **stores.settings, "ssl.client.auth": "required"})


def test_whom_no_rule_names_does_not_get_in(stores: Stores) -> None:
    async def test(server: Server) -> None:
        context = stores.client_context(stores.of_client("alice"))
        async with connected(server, "SSL", context) as client:
            client.send(METADATA)
            assert await client.closed_by_peer()

    rules = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:^CN=bob.*$/bob/"}
    run(test, {**SSL, **stores.settings, **rules})


def test_sasl_over_tls_is_who_sasl_says(stores: Stores) -> None:
    """And the certificate of a client is only asked for where this very listener says so, as in Kafka."""

    async def test(server: Server) -> None:
        seen = principals(server)
        async with connected(server, "SASL_SSL", stores.client_context()) as client:
            assert (await log_in(client)).error_code == 0
            assert await is_in(client)
        assert seen == ["User:alice"]

    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_USERS,
        "ssl.client.auth": "required",
        **stores.settings,
    }
    run(test, settings)


def test_handshakes_that_never_end_are_ended(stores: Stores) -> None:
    async def test(server: Server) -> None:
        server.newcomers.timeout_s = 0.05
        address = server.dispatcher.addresses["SSL"][0]
        for said in (b"", b"\x16\x03\x01\x02\x00\x01", b"\x00\x00\x00\x10\x00\x12\x00\x03"):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(said)
            await asyncio.wait_for(reader.read(), 10)
            writer.close()
        server.newcomers.timeout_s = 60
        async with connected(server, "SSL", stores.client_context()) as client:
            assert await is_in(client), "others are served"
        assert len(server.newcomers) == 0

    run(test, {**SSL, **stores.settings})


def test_one_handshake_too_many_ends_the_oldest(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgroup.broker.newcomers.ROOM_OF_ADDRESS", 3)

    async def test(server: Server) -> None:
        address = server.dispatcher.addresses["SSL"][0]
        held = [await asyncio.open_connection(*address) for _ in range(4)]
        assert await asyncio.wait_for(held[0][0].read(), 10) == b""
        async with connected(server, "SSL", stores.client_context()) as client:
            assert await is_in(client)
        assert await asyncio.wait_for(held[1][0].read(), 10) == b""
        assert len(server.newcomers) == 2
        for reader, writer in held:
            assert reader.at_eof() == (reader in (held[0][0], held[1][0]))
            writer.close()

    run(test, {**SSL, **stores.settings})


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Circles that are unreachable stay: `kgroup serve` collects rarely, and never while it is idle."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_connections_that_ended_before_login_leave_nothing(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would keep a quarter of a megabyte until the collector finds it."""
    monkeypatch.setattr("kgroup.broker.newcomers.ROOM_OF_ADDRESS", 3)

    def alive() -> int:
        # The clients here use asyncio's TLS, too: only servers count.
        return sum(isinstance(each, SSLProtocol) and each._server_side for each in gc.get_objects())

    async def silent(address: tuple[str, int], said: bytes, *, until_ended: bool) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(said)
        if until_ended:
            with suppress(ConnectionResetError):
                await asyncio.wait_for(reader.read(), 10)
        writer.close()

    async def test(server: Server) -> None:
        address = server.dispatcher.addresses["SASL_SSL"][0]
        tls = stores.client_context()
        # too many at once, closed by the client, in the middle of a record, no TLS at all
        crowd = [await asyncio.open_connection(*address) for _ in range(9)]
        for _, writer in crowd:
            writer.close()
        for said in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"):
            await silent(address, said, until_ended=False)
        await silent(address, b"\x00\x00\x00\x10\x00\x12\x00\x03", until_ended=True)
        server.newcomers.timeout_s = 0.05
        await silent(address, b"", until_ended=True)
        server.newcomers.timeout_s = 60
        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection(*address, ssl=ssl.create_default_context())
        # a handshake to its end: gone without a login, and with a wrong one
        async with connected(server, "SASL_SSL", tls):
            pass
        async with connected(server, "SASL_SSL", tls) as client:
            assert (await log_in(client, "alice", "wrong")).error_code
            await client.reader.read()
        async with connected(server, "SASL_SSL", tls) as client:
            await log_in(client)
            await until(lambda: alive() == 1, 10)
            assert alive() == 1, "only the one that is logged in"
            assert await is_in(client)

    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_USERS,
        "connection.failed.authentication.delay.ms": "0",
    }
    run(test, {**settings, **stores.settings})


def test_the_end_does_not_wait_for_handshakes(stores: Stores) -> None:
    async def test() -> None:
        cluster = Cluster(None, offsets_partitions=1)
        async with locked(cluster, {**SSL, **stores.settings}) as server:
            there = socket.create_connection(server.dispatcher.addresses["SSL"][0])
            while not server.newcomers:  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(0)
        there.close()
        cluster.close()

    asyncio.run(test())
