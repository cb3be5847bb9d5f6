"""Settings, SASL tokens and TLS: what is accepted, what is refused and in which words."""

from __future__ import annotations

import hashlib
import hmac
import ssl
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from scramp import ScramMechanism

from kgroup.client.auth import passwords
from kgroup.client.auth.credentials import Password
from kgroup.client.auth.exchanges import redacted, secrets_in
from kgroup.client.properties.given import Given
from kgroup.client.properties.security import security_of
from kgroup.client.properties.tls import tls_of
from kgroup.client.security import Security
from kgroup.client.settings import ConnectionSettings, address_text, parse_bootstrap
from kgroup.client.tls.context import client_context
from kgroup.client.transport import SocketTransport
from kgroup.errors import BrokerRefused, ConfigError, Unreachable
from tests.unit.client.scripted_broker import ScriptedBroker

WHERE = (("b", 9092),)
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def secured(**properties: str) -> Security:
    """Security by properties, their dots written as underscores."""
    return security_of(Given({name.replace("_", "."): value for name, value in properties.items()}))


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a:1", (("a", 1),)),
        ("a:1, b:2 ,", (("a", 1), ("b", 2))),
        ("a", (("a", 9092),)),
        ("[::1]:9093", (("::1", 9093),)),
        ("::1", (("::1", 9092),)),
        ("PLAINTEXT://a:1", (("a", 1),)),
    ],
)
def test_bootstrap_addresses(text: str, addresses: tuple[tuple[str, int], ...]) -> None:
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize("text", [":9092", "a:b", "a:0", "a:70000", "a:-1"])
def test_bad_addresses_are_named(text: str) -> None:
    with pytest.raises(ConfigError, match=f"'{text}' is not a broker address"):
        parse_bootstrap(text)


def test_addresses_as_text() -> None:
    assert (address_text("a", 1), address_text("::1", 2)) == ("a:1", "[::1]:2")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"bootstrap": ()}, "no broker address"),
        ({"request_timeout_s": 0.0}, "above zero"),
    ],
)
def test_settings_that_cannot_work(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ConnectionSettings(**{"bootstrap": WHERE, **more})


def test_secrets_do_not_show() -> None:
    shown = repr(
        secured(
            security_protocol="SASL_SSL",
            sasl_mechanism="PLAIN",
            sasl_username="alice",
            sasl_password="hush",
            ssl_keystore_location="k.p12",
            ssl_keystore_password="hush",
            ssl_key_password="hush",
        )
    )
    assert "hush" not in shown and "alice" in shown


def test_plain_is_one_token() -> None:
    assert list(passwords.exchange(Password("PLAIN", "alice", "pass wörd"))) == [
        "\0alice\0pass wörd".encode()
    ]


def scram_server(mechanism: str, password: str) -> Any:
    made = ScramMechanism(mechanism)
    known = made.make_auth_info(password, salt=b"0123456789abcdef")
    return made.make_server(lambda user: known)


@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_convinces_a_server_and_checks_it(mechanism: str) -> None:
    server = scram_server(mechanism, "pencil")
    client = passwords.exchange(Password(mechanism, "alice", "pencil"))
    server.set_client_first(next(client).decode())
    server.set_client_final(client.send(server.get_server_first().encode()).decode())
    with pytest.raises(StopIteration):
        client.send(server.get_server_final().encode())


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("forged", [b"v=Zm9yZ2Vk", b"\xff", b"nonsense", b"e=invalid-proof"])
def test_scram_refuses_a_server_that_does_not_know_the_password(mechanism: str, forged: bytes) -> None:
    server = scram_server(mechanism, "pencil")
    client = passwords.exchange(Password(mechanism, "alice", "pencil"))
    server.set_client_first(next(client).decode())
    client.send(server.get_server_first().encode())
    with pytest.raises(BrokerRefused, match="does not hold") as caught:
        client.send(forged)
    assert caught.value.name == "SASL_AUTHENTICATION_FAILED"


@pytest.mark.parametrize("asked", ["1", "4095", "100001", "10000000", "9" * 5000])
def test_scram_refuses_iterations_no_broker_of_kafka_uses(asked: str) -> None:
    """Too few make the password cheap to guess, too many keep the client busy past its timeout."""
    client = passwords.exchange(Password("SCRAM-SHA-256", "alice", "pencil"))
    nonce = next(client).decode().rpartition("r=")[2]
    with pytest.raises(BrokerRefused, match="iterations, not 4096 to 100000"):
        client.send(f"r={nonce}more,s=MDEyMzQ1Njc4OWFiY2RlZg==,i={asked}".encode())


def test_what_a_server_repeats_of_a_secret_is_left_out() -> None:
    token = b"\0alice\0pass w\xc3\xb6rd"
    for said in (token.decode(), b64encode(token).decode(), "pass wörd"):
        assert redacted(f"no: {said}!", secrets_in(token)) == "no: …!"
    bearer = b"n,,\x01auth=Bearer abc.def\x01\x01"
    assert redacted("bad token abc.def", secrets_in(bearer)) == "bad token …"


class Pki:
    """An authority, and PEM files of a server and a client it vouches for."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.ca = folder / "ca.pem"
        self.client = folder / "client.pem"
        self.authority.cert_pem.write_to_path(str(self.ca))
        self.authority.issue_cert("client.test").private_key_and_cert_chain_pem.write_to_path(
            str(self.client)
        )

    def server(self, name: str = "127.0.0.1", client_needed: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(name).configure_cert(context)
        if client_needed:
            context.verify_mode = ssl.CERT_REQUIRED
            self.authority.configure_trust(context)
        return context


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


def reach(context: ssl.SSLContext, **properties: str) -> object:
    with ScriptedBroker(context) as broker:
        tls = secured(security_protocol="SSL", **properties)
        made = ConnectionSettings((broker.address,), tls, request_timeout_s=60.0)
        with SocketTransport(made) as transport:
            return transport.nodes()


def test_a_broker_with_a_certificate_we_trust(pki: Pki) -> None:
    assert reach(pki.server(), ssl_ca_location=str(pki.ca))


def test_a_client_certificate_is_shown(pki: Pki) -> None:
    needed = pki.server(client_needed=True)
    shown = {"ssl_ca_location": str(pki.ca), "ssl_certificate_location": str(pki.client)}
    assert reach(needed, **shown)
    assert reach(pki.server(client_needed=True), **shown, ssl_key_location=str(pki.client))


def test_a_client_certificate_that_is_missing_is_said(pki: Pki) -> None:
    with pytest.raises(Unreachable, match=r"certificate required|handshake failure|sent: ") as caught:
        reach(pki.server(client_needed=True), ssl_ca_location=str(pki.ca))
    assert caught.value.hint is not None
    assert "ssl.certificate.location" in caught.value.hint


def test_an_authority_we_do_not_know_is_said(pki: Pki) -> None:
    with pytest.raises(Unreachable, match="TLS failed: unable to get local issuer") as caught:
        reach(pki.server())
    assert caught.value.hint is not None
    assert "ssl.ca.location" in caught.value.hint


def test_a_certificate_for_another_name(pki: Pki) -> None:
    trust = {"ssl_ca_location": str(pki.ca)}
    with pytest.raises(Unreachable, match="mismatch") as caught:
        reach(pki.server("other.test"), **trust)
    assert caught.value.hint is not None
    assert "ssl.endpoint.identification.algorithm" in caught.value.hint
    assert reach(pki.server("other.test"), **trust, ssl_endpoint_identification_algorithm="none")


@pytest.mark.parametrize(
    ("shift", "words"), [(timedelta(days=-2), "has expired"), (timedelta(days=2), "is not yet valid")]
)
def test_a_certificate_out_of_its_time_tells_of_the_clock(pki: Pki, shift: timedelta, words: str) -> None:
    begins = datetime.now(UTC) + shift
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued = pki.authority.issue_cert("127.0.0.1", not_before=begins, not_after=begins + timedelta(days=1))
    issued.configure_cert(context)
    with pytest.raises(Unreachable, match=words) as caught:
        reach(context, ssl_ca_location=str(pki.ca))
    assert caught.value.hint is not None and "clock" in caught.value.hint


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_delegation_token_is_signed_as_one(mechanism: str) -> None:
    """The proof of RFC 5802 made again over a message that says tokenauth=true (KIP-48)."""
    algorithm = "sha256" if mechanism.endswith("256") else "sha512"
    client = passwords.exchange(Password(mechanism, "id", "hmac", is_token=True))
    first = next(client).decode()
    assert first.startswith("n,,n=id,r=") and first.endswith(",tokenauth=true")
    nonce = first.partition("r=")[2].partition(",")[0] + "more"
    server_first = f"r={nonce},s={b64encode(b'saltsaltsalt').decode()},i=4096"
    final = client.send(server_first.encode()).decode()
    bare, _, proof = final.partition(",p=")
    message = f"{first.removeprefix('n,,')},{server_first},{bare}".encode()
    key = hmac.digest(
        hashlib.pbkdf2_hmac(algorithm, b"hmac", b"saltsaltsalt", 4096), b"Client Key", algorithm
    )
    signature = hmac.digest(hashlib.new(algorithm, key).digest(), message, algorithm)
    assert bytes(a ^ b for a, b in zip(key, signature, strict=True)) == b64decode(proof)


def test_tls_to_a_plain_port_is_said(pki: Pki) -> None:
    with ScriptedBroker() as broker:
        tls = secured(security_protocol="SSL", ssl_ca_location=str(pki.ca))
        made = ConnectionSettings((broker.address,), tls, request_timeout_s=60.0)
        with SocketTransport(made) as transport, pytest.raises(Unreachable, match="TLS") as caught:
            transport.nodes()
    assert caught.value.hint == "is this a TLS listener? check the port and security.protocol"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"\xfe\xed\xfe\xed\0\0\0\2", "is JKS, and this property takes PEM"),
        (b"\x30\x82\x01\x02", "is PKCS12, and this property takes PEM"),
        (b"hello", "is neither PEM nor PKCS12 nor JKS"),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "no certificate can be read from",
        ),
    ],
)
def test_files_that_are_no_pem(tmp_path: Path, content: bytes | None, words: str) -> None:
    location = tmp_path / "trust"
    if content is not None:
        location.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        client_context(tls_of(Given({"ssl.ca.location": str(location)})))


def test_an_encrypted_key_wants_its_password(pki: Pki, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as pem

    issued = pki.authority.issue_cert("client.test")
    key = pem.load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.BestAvailableEncryption(b"open"))
    )
    certificate = tmp_path / "cert.pem"
    issued.cert_chain_pems[0].write_to_path(str(certificate))
    properties = {
        "ssl.ca.location": str(pki.ca),
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(locked),
    }
    assert client_context(tls_of(Given({**properties, "ssl.key.password": "open"})))
    for wrong in ({}, {"ssl.key.password": "shut"}):
        with pytest.raises(ConfigError, match="is encrypted|does not open") as caught:
            client_context(tls_of(Given({**properties, **wrong})))
        assert caught.value.hint is not None
        assert "ssl.key.password" in caught.value.hint
