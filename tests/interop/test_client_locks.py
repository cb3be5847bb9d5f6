"""Every way a client authenticates, with TLS and without, at one real Kafka: by the files operators have."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.listing import list_groups
from kgroup.admin.topics import cluster_status
from kgroup.client.properties.catalogue import KNOWN
from kgroup.client.properties.given import Given
from kgroup.client.properties.security import security_of
from kgroup.client.retry import Retry
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.errors import BrokerRefused, ConfigError, KgroupError, Unreachable
from tests.token_server import TokenServer

from . import kdc as realms
from . import toolchain
from .conftest import require
from .kafka import CLUSTER_ID, USERS
from .locked_kafka import Issuer, LockedKafka
from .server import free_port

pytestmark = pytest.mark.interop
SASL = ("SASL_PLAINTEXT", "SASL_SSL")
_BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def gssapi_missing() -> str | None:
    try:
        import gssapi  # noqa: F401
    except ImportError:
        return "the extra kerberos"
    return realms.missing()


@dataclass
class World:
    """A Kafka, the issuer it trusts, and the realm it is in, if one could be made."""

    kafka: LockedKafka
    issuer: Issuer
    realm: realms.Kdc | None
    keytab: Path | None


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    require("java", "mvn")
    folder = tmp_path_factory.mktemp("locked")
    issuer = Issuer(folder)
    if gssapi_missing():
        with LockedKafka(folder, issuer) as kafka:
            yield World(kafka, issuer, None, None)
        return
    with realms.Kdc(tmp_path_factory.mktemp("realm")) as realm:
        of_broker, of_client = realm.keytab("kafka/127.0.0.1"), realm.keytab("alice")
        before = {name: os.environ.get(name) for name in realm.environment}
        os.environ.update(realm.environment)
        try:
            with LockedKafka(folder, issuer, (realm.config, of_broker)) as kafka:
                yield World(kafka, issuer, realm, of_client)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def settings(world: World, protocol: str, **properties: str) -> ConnectionSettings:
    """For the listener of a kind, by properties with their dots written as underscores."""
    tls = {}
    if protocol.endswith("SSL"):
        tls = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(world.kafka.tls.ca)}
    given = {"security.protocol": protocol, **tls, **{n.replace("_", "."): v for n, v in properties.items()}}
    where = parse_bootstrap(world.kafka.address(protocol))
    return ConnectionSettings(where, security_of(Given(given)), request_timeout_s=15.0)


def reached(made: ConnectionSettings) -> bool:
    with SocketTransport(made) as transport:
        admin = ClusterView(transport, Retry(timeout_s=15.0))
        assert list_groups(admin).errors == ()
        return cluster_status(admin).cluster_id == CLUSTER_ID


def bearing(token: str) -> dict[str, str]:
    return {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token": token}


def oidc(issuer: TokenServer, **more: str) -> dict[str, str]:
    prefix = "sasl.oauthbearer."
    return {
        "sasl.mechanism": "OAUTHBEARER",
        prefix + "token.endpoint.url": issuer.url,
        prefix + "client.credentials.client.id": "kgroup",
        prefix + "client.credentials.client.secret": "client-secret",
        **more,
    }


@pytest.mark.parametrize("protocol", SASL)
def test_a_token_from_an_issuer(world: World, protocol: str) -> None:
    with TokenServer(issue=world.issuer.token) as issuer:
        extensions = {"sasl.jaas.config": f'{_BEARER} extension_logicalCluster="lkc1";'}
        assert reached(settings(world, protocol, **oidc(issuer, **extensions)))
        assert len(issuer.asked) == 1, "connections of one command share a token"


@pytest.mark.parametrize("protocol", SASL)
def test_a_token_of_a_file_a_command_and_as_it_is(world: World, protocol: str, tmp_path: Path) -> None:
    file = tmp_path / "token.jwt"
    file.write_text(world.issuer.token())
    for source in (
        {"sasl.oauthbearer.token.endpoint.url": file.as_uri()},
        {"sasl.oauthbearer.token-command": f"cat '{file}'"},
        {"sasl.oauthbearer.token": file.read_text()},
    ):
        assert reached(settings(world, protocol, sasl_mechanism="OAUTHBEARER", **source))


@pytest.mark.parametrize(
    "claims",
    [{"aud": "elsewhere"}, {"iss": "nobody"}, {"nbf": time.time() + 3600}, {"exp": time.time() + 1e9}],
)
def test_a_token_the_broker_does_not_take(world: World, claims: dict[str, object]) -> None:
    token = world.issuer.token(**claims)  # type: ignore[arg-type]
    made = settings(
        world, "SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", **{"sasl.oauthbearer.token": token}
    )
    if "exp" in claims:
        assert reached(made), "a long life is no fault"
        return
    with pytest.raises(BrokerRefused, match="did not authenticate the bearer of the token") as caught:
        reached(made)
    assert caught.value.name == "SASL_AUTHENTICATION_FAILED"
    assert "clock" in (caught.value.hint or "")
    assert token not in str(caught.value)


def test_a_token_signed_by_somebody_else(world: World, tmp_path: Path) -> None:
    token = Issuer(tmp_path).token()
    made = settings(
        world, "SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", **{"sasl.oauthbearer.token": token}
    )
    with pytest.raises(BrokerRefused, match="invalid_token|did not authenticate"):
        reached(made)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"])
def test_a_session_is_renewed_on_its_connection(world: World, mechanism: str) -> None:
    """The broker ends sessions after four seconds; a link that lives longer proves itself again (KIP-368)."""
    if mechanism == "GSSAPI":
        made = settings(world, "SASL_PLAINTEXT", **kerberos(world))
    elif mechanism == "OAUTHBEARER":
        made = settings(
            world,
            "SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            **{"sasl.oauthbearer.token": world.issuer.token()},
        )
    else:
        user, password = next(iter(USERS.items()))
        made = settings(
            world, "SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_username=user, sasl_password=password
        )
    with SocketTransport(made) as transport:
        admin = ClusterView(transport, Retry(timeout_s=15.0))
        assert cluster_status(admin).cluster_id == CLUSTER_ID
        before = dict(transport._links)
        until = time.monotonic() + 6
        while time.monotonic() < until:
            assert cluster_status(admin).cluster_id == CLUSTER_ID
            time.sleep(0.2)
        assert transport._links == before and before, "no connection was given up"


def kerberos(world: World) -> dict[str, str]:
    why = gssapi_missing()
    if world.realm is None or world.keytab is None:
        pytest.skip(f"Kerberos needs {why}")
    jaas = (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'keyTab="{world.keytab}" principal="alice@{realms.REALM}";'
    )
    return {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka", "sasl.jaas.config": jaas}


@pytest.mark.parametrize("protocol", SASL)
def test_kerberos_with_a_keytab(world: World, protocol: str) -> None:
    assert reached(settings(world, protocol, **kerberos(world)))


def test_kerberos_with_a_ticket_that_kinit_got(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    given = kerberos(world)
    assert world.realm is not None and world.keytab is not None
    cache = world.realm.ticket("alice", world.keytab)
    module = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true"
    assert reached(
        settings(world, "SASL_PLAINTEXT", **{**given, "sasl.jaas.config": f'{module} ticketCache="{cache}";'})
    )
    monkeypatch.setenv("KRB5CCNAME", str(cache))
    del given["sasl.jaas.config"]
    assert reached(settings(world, "SASL_PLAINTEXT", **given))


def test_librdkafkas_names_for_a_keytab(world: World) -> None:
    kerberos(world)
    given = {
        "sasl.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.keytab": str(world.keytab),
        "sasl.kerberos.principal": "alice",
    }
    assert reached(settings(world, "SASL_PLAINTEXT", **given))


@pytest.mark.parametrize(
    ("change", "words", "hint"),
    [
        (
            {"sasl.kerberos.service.name": "nosuch"},
            "not found in Kerberos database",
            "sasl.kerberos.service.name",
        ),
        ({"principal": "bob"}, "holds no key of bob", "klist -k"),
    ],
)
def test_kerberos_that_gives_no_ticket(world: World, change: dict[str, str], words: str, hint: str) -> None:
    given = kerberos(world)
    if "principal" in change:
        given["sasl.jaas.config"] = given["sasl.jaas.config"].replace("alice@", "bob@")
    else:
        given |= change
    with pytest.raises(KgroupError, match=words) as caught:
        reached(settings(world, "SASL_PLAINTEXT", **given))
    assert isinstance(caught.value, BrokerRefused)
    assert hint in (caught.value.hint or "")


def stores(world: World, folder: Path) -> dict[str, dict[str, str]]:
    """The broker's authority and a client's key in stores that keytool and openssl make now."""
    ca, pair = world.kafka.tls.ca, world.kafka.tls.client
    made: dict[str, dict[str, str]] = {}
    p12 = folder / "client.p12"
    _run("openssl", "pkcs12", "-export", "-in", pair, "-name", "me", "-passout", "pass:secret1", "-out", p12)
    for kind in ("JKS", "PKCS12"):
        trust, keys = folder / f"trust.{kind}", folder / f"keys.{kind}"
        _run(
            "keytool",
            "-importcert",
            "-noprompt",
            "-alias",
            "ca",
            "-file",
            ca,
            "-keystore",
            trust,
            "-storetype",
            kind,
            "-storepass",
            "secret1",
        )
        _run(
            "keytool",
            "-importkeystore",
            "-noprompt",
            "-srckeystore",
            p12,
            "-srcstoretype",
            "PKCS12",
            "-srcstorepass",
            "secret1",
            "-destkeystore",
            keys,
            "-deststoretype",
            kind,
            "-deststorepass",
            "secret1",
        )
        made[kind] = {
            "ssl.truststore.location": str(trust),
            "ssl.truststore.type": kind,
            "ssl.truststore.password": "secret1",
            "ssl.keystore.location": str(keys),
            "ssl.keystore.type": kind,
            "ssl.keystore.password": "secret1",
        }
    made["PEM"] = {
        "ssl.truststore.certificates": ca.read_text(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": pair.read_text(),
        "ssl.keystore.certificate.chain": pair.read_text(),
    }
    return made


def _run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, capture_output=True, timeout=60)


def test_stores_that_keytool_and_openssl_make_now(world: World, tmp_path: Path) -> None:
    for kind, given in stores(world, tmp_path).items():
        for version in ("TLSv1.2", "TLSv1.3"):
            more = {**given, "ssl.enabled.protocols": version}
            more.pop("ssl.truststore.location", None) if kind == "PEM" else None
            where = parse_bootstrap(world.kafka.address("SSL"))
            tls = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", **more}
            assert reached(ConnectionSettings(where, security_of(Given(tls)), request_timeout_s=15.0)), kind


def test_the_file_of_a_java_client_is_enough_for_the_command_line(world: World, tmp_path: Path) -> None:
    """One client.properties, read by Kafka's own tool and by kgroup."""
    file = tmp_path / "client.properties"
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="alice" password="alice-secret";',
        **stores(world, tmp_path)["JKS"],
    }
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    file.chmod(0o600)
    where = world.kafka.address("SASL_SSL")
    world.kafka.tool(
        "kafka-consumer-groups", "--bootstrap-server", where, "--command-config", str(file), "--list"
    )
    kgroup = Path(sys.executable).parent / "kgroup"
    ran = subprocess.run(
        [kgroup, "list", "-b", where, "--command-config", str(file), "-o", "json"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0 and ran.stderr == ""
    assert json.loads(ran.stdout)["cluster"]["id"] == CLUSTER_ID


def test_a_keytab_that_is_not_there(world: World) -> None:
    given = kerberos(world)
    given["sasl.jaas.config"] = given["sasl.jaas.config"].replace(str(world.keytab), "/no/such.keytab")
    with pytest.raises(ConfigError, match="the keytab /no/such.keytab cannot be read: No such file"):
        reached(settings(world, "SASL_PLAINTEXT", **given))


def test_a_kdc_that_is_down_ends_with_the_timeout(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    given = kerberos(world)
    assert world.realm is not None
    elsewhere = world.realm.config.read_text().replace(str(world.realm.port), str(free_port()))
    config = world.realm.folder / "elsewhere.conf"
    config.write_text(elsewhere)
    monkeypatch.setenv("KRB5_CONFIG", str(config))
    made = replace(settings(world, "SASL_PLAINTEXT", **given), request_timeout_s=5.0)
    with pytest.raises((BrokerRefused, Unreachable)) as caught:
        reached(made)
    assert "KDC" in f"{caught.value} {caught.value.hint}"


def test_every_security_property_of_the_jar_is_known() -> None:
    """SslConfigs, SaslConfigs and SecurityConfig of the kafka-clients that the suite runs."""
    require("java", "mvn")
    names = ("SslConfigs", "SaslConfigs", "SecurityConfig")
    classes = [f"org.apache.kafka.common.config.{name}" for name in names]
    jars = toolchain.kafka_classpath().rpartition(os.sep)[0]
    clients = next(Path(jars).glob("kafka-clients-4*.jar"))
    shown = subprocess.run(
        ["javap", "-cp", str(clients), "-constants", *classes], check=True, capture_output=True, text=True
    )
    constants = re.findall(r"String ([A-Z_]+) = \"([a-z]+(?:\.[a-z]+)+)\";", shown.stdout)
    found = {value for name, value in constants if not name.endswith("_DOC")}
    assert len(found) > 55 and "ssl.truststore.location" in found
    assert found - KNOWN == set()
