"""Stores made by keytool and openssl (tests/data/stores/make.sh): opened, shown to a server, refused."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kgroup.client.properties.given import Given
from kgroup.client.properties.security import security_of
from kgroup.client.properties.tls import tls_of
from kgroup.client.settings import ConnectionSettings
from kgroup.client.tls.context import client_context
from kgroup.client.transport import SocketTransport
from kgroup.errors import ConfigError, Unreachable
from tests.unit.client.scripted_broker import ScriptedBroker

STORES = Path(__file__).parents[2] / "data" / "stores"
CA = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(STORES / "ca.pem")}
OPEN = "store-secret"
TRUST = ["trust.jks", "trust.p12", "trust-legacy.p12", "trust-openssl.p12", "ca.pem"]
KEYS = ["client.p12", "client-legacy.p12", "client-keytool.p12", "client.jks", "client.pem"]


def trust(name: str, **more: str) -> dict[str, str]:
    kind = {"ssl.truststore.type": "PEM"} if name.endswith(".pem") else {}
    return {"ssl.truststore.location": str(STORES / name), "ssl.truststore.password": OPEN, **kind, **more}


def keys(name: str, **more: str) -> dict[str, str]:
    kind = {"ssl.keystore.type": "PEM"} if name.endswith(".pem") else {}
    return {"ssl.keystore.location": str(STORES / name), "ssl.keystore.password": OPEN, **kind, **more}


def inline(name: str) -> str:
    return (STORES / name).read_text()


def reach(properties: dict[str, str]) -> object:
    """Ask a broker that wants a certificate of our authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(STORES / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(STORES / "ca.pem")
    security = security_of(Given({"security.protocol": "SSL", **properties}))
    with ScriptedBroker(context) as broker:
        settings = ConnectionSettings((broker.address,), security, request_timeout_s=60.0)
        with SocketTransport(settings) as transport:
            return transport.nodes()


def refused(properties: dict[str, str]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        client_context(tls_of(Given(properties, dict.fromkeys(properties, "client.properties"))))
    said = f"{caught.value.message} {caught.value.hint}"
    assert not any(secret in said for secret in (OPEN, "key-secret", "wrong-secret", "BEGIN"))
    return caught.value


@pytest.mark.parametrize("name", TRUST)
def test_a_trust_store_of_every_kind(name: str) -> None:
    assert reach({**trust(name), **keys("client.p12")})


@pytest.mark.parametrize("claimed", ["JKS", "PKCS12", "jks"])
@pytest.mark.parametrize("name", ["trust.jks", "trust.p12"])
def test_java_opens_either_by_either_name_and_so_do_we(name: str, claimed: str) -> None:
    assert reach({**trust(name, **{"ssl.truststore.type": claimed}), **keys("client.p12")})


@pytest.mark.parametrize("name", KEYS)
def test_a_key_store_of_every_kind(name: str) -> None:
    assert reach({**CA, **keys(name)})


@pytest.mark.parametrize("name", ["client-own-key-password.jks", "client-locked.pem"])
def test_a_key_with_a_password_of_its_own(name: str) -> None:
    assert reach({**CA, **keys(name, **{"ssl.key.password": "key-secret"})})
    assert "ssl.key.password" in (refused({**CA, **keys(name)}).hint or "")


@pytest.mark.parametrize("key", ["client.pem", "client-locked.pem"])
def test_pem_in_the_property_itself(key: str) -> None:
    password = {"ssl.key.password": "key-secret"} if "locked" in key else {}
    assert reach(
        {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": "Autorität der Prüfung\n" + inline("ca.pem"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": inline(key),
            "ssl.keystore.certificate.chain": inline("client.pem"),
            **password,
        }
    )
    names = {"ssl.ca.pem": inline("ca.pem"), "ssl.certificate.pem": inline("client.pem")}
    assert reach({**names, "ssl.key.pem": inline(key), **password})


def test_librdkafkas_key_store_is_a_store_like_any_other() -> None:
    assert reach({"ssl.ca.location": str(STORES / "ca.pem"), **keys("client.p12")})


def test_what_a_store_trusts_is_enough_be_it_no_root() -> None:
    """The broker's own certificate as the only one trusted: Java takes it, and so it is taken."""
    found = client_context(tls_of(Given({"ssl.ca.location": str(STORES / "server.pem")})))
    assert found.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    assert reach({"ssl.ca.location": str(STORES / "server.pem"), **keys("client.p12")})


def test_nobody_is_trusted_but_whom_the_store_names() -> None:
    with pytest.raises(Unreachable, match="TLS failed"):
        reach({"ssl.ca.location": str(STORES / "client.pem"), **keys("client.p12")})


def test_librdkafkas_way_to_trust_anybody() -> None:
    assert reach({"enable.ssl.certificate.verification": "false", **keys("client.p12")})


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12", "trust-legacy.p12"])
def test_a_wrong_password_for_the_trust_store(name: str) -> None:
    error = refused(trust(name, **{"ssl.truststore.password": "wrong-secret"}))
    assert "the password does not open" in error.message and name in error.message
    assert error.hint == "check ssl.truststore.password"


@pytest.mark.parametrize("name", ["client.jks", "client.p12"])
def test_a_wrong_password_for_the_key_store(name: str) -> None:
    error = refused(keys(name, **{"ssl.keystore.password": "wrong-secret"}))
    assert error.hint == "check ssl.keystore.password"
    missing = keys(name)
    del missing["ssl.keystore.password"]
    assert refused(missing).hint == "set ssl.keystore.password"


def test_a_jks_trust_store_needs_no_password_as_in_java() -> None:
    assert reach({"ssl.truststore.location": str(STORES / "trust.jks"), **keys("client.jks")})


@pytest.mark.parametrize(
    ("properties", "words", "hint"),
    [
        (keys("trust.jks"), "holds no private key", "PrivateKeyEntry"),
        (keys("trust.p12"), "holds no private key", "PrivateKeyEntry"),
        (keys("client.jceks"), "is a JCEKS store", "PKCS12"),
        (
            keys("client.jks", **{"ssl.keystore.type": "BCFKS"}),
            "type BCFKS cannot be read",
            "JKS, PKCS12, PEM",
        ),
        (
            keys("client.jks", **{"ssl.keystore.type": "PEM"}),
            "is JKS, and ssl.keystore.type says PEM",
            "=JKS",
        ),
        (keys("make.sh"), "is neither PEM nor PKCS12 nor JKS", "right file"),
        (keys("none.jks"), "cannot be read: No such file", ""),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"},
            "ssl.keystore.key (client.properties) is a TLS key without its certificate",
            "ssl.keystore.certificate.chain",
        ),
        ({"ssl.keystore.key": "x"}, "wants ssl.keystore.type=PEM", "Java"),
        ({"ssl.key.location": "k.pem"}, "is a TLS key without its certificate", "ssl.certificate.location"),
        (
            {**CA, "ssl.ca.location": "x"},
            "ssl.truststore.location (client.properties) and ssl.ca.location (client.properties) contradict",
            "keep one",
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_a_way_out(
    properties: dict[str, str], words: str, hint: str
) -> None:
    error = refused(properties)
    assert words in error.message
    assert hint in (error.hint or "")


def test_damaged_stores_are_refused_without_a_traceback(tmp_path: Path) -> None:
    for name in ("trust.jks", "client.jks", "client.p12"):
        whole = (STORES / name).read_bytes()
        for end in range(1, len(whole), 97):
            (tmp_path / name).write_bytes(whole[:end])
            refused({**CA, **keys(name), "ssl.keystore.location": str(tmp_path / name)})
            with pytest.raises(ConfigError):
                client_context(tls_of(Given({**CA, "ssl.keystore.location": str(tmp_path / name)})))


def test_an_identity_in_memory_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    client_context(tls_of(Given({**CA, **keys("client.jks")})))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "oldest", "newest"),
    [
        ({}, "TLSv1_2", "TLSv1_3"),
        ({"ssl.enabled.protocols": "TLSv1.2"}, "TLSv1_2", "TLSv1_2"),
        ({"ssl.enabled.protocols": "TLSv1.1, TLSv1.2,TLSv1.3"}, "TLSv1_2", "TLSv1_3"),
        ({"ssl.enabled.protocols": "TLSv1.3", "ssl.protocol": "TLS"}, "TLSv1_3", "TLSv1_3"),
        ({"ssl.protocol": "TLSv1.2"}, "TLSv1_2", "TLSv1_2"),
    ],
)
def test_versions_of_tls(given: dict[str, str], oldest: str, newest: str) -> None:
    made = client_context(tls_of(Given(given)))
    assert (made.minimum_version.name, made.maximum_version.name) == (oldest, newest)


@pytest.mark.parametrize(
    "given", [{"ssl.enabled.protocols": "TLSv1.1"}, {"ssl.protocol": "SSLv3"}, {"ssl.protocol": "TLSv1.1"}]
)
def test_versions_that_are_not_safe(given: dict[str, str]) -> None:
    assert "leaves no version of TLS that is safe" in refused(given).message


@pytest.mark.parametrize(
    "names",
    [
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
    ],
)
def test_cipher_suites_by_javas_names_and_openssls(names: str) -> None:
    given = {**CA, **keys("client.p12"), "ssl.cipher.suites": names, "ssl.enabled.protocols": "TLSv1.2"}
    chosen = {cipher["name"] for cipher in client_context(tls_of(Given(given))).get_ciphers()}
    assert {name for name in chosen if not name.startswith("TLS_")} == {"ECDHE-ECDSA-AES128-GCM-SHA256"}
    assert reach(given)
