"""OAUTHBEARER: where tokens come from, how often an issuer is asked, when they are renewed, what is said."""

from __future__ import annotations

import base64
import json
import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from kgroup.client.auth import oauthbearer
from kgroup.client.auth.credentials import Bearer, GivenToken, Renewal
from kgroup.client.auth.login import Login
from kgroup.client.auth.token import Token, read_token
from kgroup.client.auth.tokens import Tokens, fetch, renewal_time
from kgroup.client.properties.given import Given
from kgroup.client.properties.security import credentials_of
from kgroup.errors import BrokerRefused, ConfigError, Unreachable
from tests.token_server import TokenServer, jwt

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
ID, SECRET = (
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
)
URL = "sasl.oauthbearer.token.endpoint.url"
SHORT = {"sasl.login.retry.backoff.max.ms": "1", "sasl.login.retry.backoff.ms": "1"}
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@pytest.fixture
def issuer() -> Iterator[TokenServer]:
    with TokenServer() as running:
        yield running


def bearer(**properties: str) -> Bearer:
    given = {"sasl.mechanism": "OAUTHBEARER", **{k.replace("__", "."): v for k, v in properties.items()}}
    found = credentials_of(Given(given))
    assert isinstance(found, Bearer)
    return found


def asking(issuer: TokenServer, **more: str) -> Bearer:
    return bearer(**{URL: issuer.url, ID: "kgroup", SECRET: "client-secret", **more})


def claims_of(token: str) -> dict[str, object]:
    middle = token.split(".")[1]
    found = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    assert isinstance(found, dict)
    return found


def test_the_first_message_is_that_of_rfc_7628_with_extensions() -> None:
    said = oauthbearer.exchange("abc.def.", {"logicalCluster": "lkc-1"})
    assert next(said) == b"n,,\x01auth=Bearer abc.def.\x01logicalCluster=lkc-1\x01\x01"
    with pytest.raises(StopIteration):
        said.send(b"")


def test_a_broker_that_refuses_is_heard_out() -> None:
    said = oauthbearer.exchange("abc", {})
    next(said)
    assert said.send(b'{"status":"invalid_token","scope":"kafka"}') == b"\x01"
    with pytest.raises(BrokerRefused, match=r"invalid_token \(it wants the scope kafka\)"):
        said.send(b"")


def test_a_token_that_is_none_is_not_sent() -> None:
    with pytest.raises(BrokerRefused, match="contains invalid characters"):
        next(oauthbearer.exchange("abc\x01auth=x", {}))


@pytest.mark.parametrize(
    "names",
    [
        {ID: "kgroup", SECRET: "client-secret", "sasl.oauthbearer.scope": "kafka read"},
        {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "kgroup",
            "sasl.oauthbearer.client.secret": "client-secret",
            "sasl.oauthbearer.scope": "kafka read",
        },
        {"sasl.jaas.config": f'{MODULE} clientId="kgroup" clientSecret="client-secret" scope="kafka read";'},
    ],
)
def test_client_credentials_by_every_clients_names(issuer: TokenServer, names: dict[str, str]) -> None:
    token = fetch(bearer(**{URL: issuer.url, **names}).source, 5)
    assert claims_of(token.text)["sub"] == "alice" and token.ends is not None
    assert issuer.asked == [{"grant_type": "client_credentials", "scope": "kafka read"}]
    told = base64.b64decode(issuer.headers[0]["Authorization"].removeprefix("Basic "))
    assert told == b"kgroup:client-secret"


def test_the_secret_is_encoded_where_kafka_is_told_to(issuer: TokenServer) -> None:
    issuer.secret = "a%2Fb"
    assert fetch(
        asking(issuer, **{SECRET: "a/b", "sasl.oauthbearer.header.urlencode": "true"}).source, 5
    ).text


def test_an_issuer_that_stumbles_is_asked_again_until_it_answers(issuer: TokenServer) -> None:
    issuer.answers = [(503, b""), None, (200, b"")]
    assert fetch(asking(issuer, **{"sasl.login.retry.backoff.ms": "1"}).source, 5).text
    assert len(issuer.asked) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_an_issuer_that_refuses_is_not_asked_again(issuer: TokenServer, status: int) -> None:
    issuer.answers = [(status, b'{"error":"invalid_client","error_description":"unknown"}')]
    with pytest.raises((BrokerRefused, Unreachable), match=rf"answered {status}: invalid_client: unknown"):
        fetch(asking(issuer).source, 5)
    assert len(issuer.asked) == 1


def test_a_secret_where_a_long_refusal_is_cut_is_not_shown(issuer: TokenServer) -> None:
    said = {"error": "invalid_client", "error_description": "x" * 190 + "hush-hush-hush-hush"}
    issuer.answers = [(400, json.dumps(said).encode())]
    with pytest.raises((BrokerRefused, Unreachable), match="xxxx") as caught:
        fetch(asking(issuer, **{SECRET: "hush-hush-hush-hush"}).source, 5)
    assert "hush" not in str(caught.value)


def test_a_wrong_secret_is_an_authentication_failure_that_shows_no_secret(issuer: TokenServer) -> None:
    with pytest.raises(BrokerRefused, match="invalid_client: no such client") as caught:
        fetch(asking(issuer, **{SECRET: "hush"}).source, 5)
    assert caught.value.name == "SASL_AUTHENTICATION_FAILED"
    assert "hush" not in str(caught.value) + str(caught.value.hint)


def test_an_endpoint_that_is_down_is_unreachable(issuer: TokenServer) -> None:
    source = asking(
        issuer, **{"sasl.login.retry.backoff.max.ms": "1", "sasl.login.retry.backoff.ms": "1"}
    ).source
    issuer.__exit__()
    with pytest.raises(Unreachable, match=r"the token endpoint http://127.0.0.1:\d+/token cannot be asked"):
        fetch(source, 5)


def test_an_endpoint_that_never_answers_ends_with_the_deadline() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://user:hush@127.0.0.1:{silent.getsockname()[1]}/t?key=hush"
        login = Login(bearer(**{URL: url, ID: "i", SECRET: "s"}))
        begun = time.monotonic()
        with pytest.raises(Unreachable, match="did not answer in time") as caught:
            login.exchange("b", 0.3)
        assert time.monotonic() - begun < 30
        assert "hush" not in str(caught.value)


@pytest.mark.parametrize("body", [b"not json", b"{}", b'{"access_token": 7}', b"[]"])
def test_an_answer_without_a_token_is_said_and_not_shown(issuer: TokenServer, body: bytes) -> None:
    issuer.answers = [(200, body)]
    with pytest.raises(BrokerRefused, match="answered without an access_token"):
        fetch(asking(issuer).source, 5)


def test_https_trusts_whom_the_login_module_or_librdkafka_names(tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{tmp_path}/ca.pem"'
    with TokenServer(context) as issuer:
        assert fetch(asking(issuer, **{"sasl.jaas.config": f"{MODULE} {trust};"}).source, 5).text
        assert fetch(asking(issuer, **{"https.ca.location": str(tmp_path / "ca.pem")}).source, 5).text
        with pytest.raises(Unreachable, match="TLS failed: unable to get local issuer") as caught:
            fetch(asking(issuer, **SHORT).source, 5)
        assert "ssl.truststore.location" in (caught.value.hint or "")


def test_a_token_file_is_read_for_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    source = bearer(**{URL: file.as_uri()}).source
    for text in ("first", "second"):
        file.write_text(text + "\n")
        assert fetch(source, 5).text == text
    file.unlink()
    with pytest.raises(ConfigError, match="token's file .* cannot be read: No such file"):
        fetch(source, 5)


def test_a_token_as_it_is_and_one_that_a_command_prints() -> None:
    assert fetch(bearer(**{"sasl.oauthbearer.token": " abc "}).source, 5).text == "abc"
    command = f"'{sys.executable}' -c 'print(\"abc\")'"
    assert fetch(bearer(**{"sasl.oauthbearer.token-command": command}).source, 5).text == "abc"
    failing = bearer(**{"sasl.oauthbearer.token-command": f"'{sys.executable}' -c 'exit(3)'"})
    with pytest.raises(ConfigError, match=r"token-command: its command ended with 3"):
        fetch(failing.source, 5)


def test_the_unsecured_token_is_javas() -> None:
    options = ('StringClaim_sub="alice"', 'ListClaim_scope=",a,b"', 'LifetimeSeconds="60"')
    jaas = " ".join((MODULE, *(f"unsecuredLogin{option}" for option in options))) + ";"
    token = fetch(bearer(**{"sasl.jaas.config": jaas}).source, 5)
    found = claims_of(token.text)
    assert token.text.endswith(".") and found["sub"] == "alice" and found["scope"] == ["a", "b"]
    assert token.ends is not None and token.begins is not None and token.ends - token.begins == 60


def test_librdkafkas_unsecured_token() -> None:
    given = {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=bob scope=x,y",
    }
    found = claims_of(fetch(bearer(**given).source, 5).text)
    assert (found["sub"], found["scope"]) == ("bob", ["x", "y"])


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_signed_assertion_in_the_place_of_a_secret(
    issuer: TokenServer, tmp_path: Path, algorithm: str
) -> None:
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    made = (
        rsa.generate_private_key(65537, 2048)
        if algorithm == "RS256"
        else ec.generate_private_key(ec.SECP256R1())
    )
    locked = pem.BestAvailableEncryption(b"hush")
    (tmp_path / "key.pem").write_bytes(made.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, locked))
    (tmp_path / "template.json").write_text('{"header": {"kid": "k1"}, "payload": {"tenant": "t"}}')
    given = {
        "sasl.oauthbearer.assertion.claim.iss": "me",
        "sasl.oauthbearer.assertion.claim.aud": "them",
        "sasl.oauthbearer.assertion.algorithm": algorithm,
        "sasl.oauthbearer.assertion.private.key.file": str(tmp_path / "key.pem"),
        "sasl.oauthbearer.assertion.private.key.passphrase": "hush",
        "sasl.oauthbearer.assertion.template.file": str(tmp_path / "template.json"),
        "sasl.oauthbearer.assertion.claim.jti.include": "true",
    }
    assert fetch(bearer(**{URL: issuer.url, **given}).source, 5).text
    sent = issuer.asked[0]
    assert sent["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    payload = claims_of(sent["client_assertion"])
    assert (payload["iss"], payload["aud"], payload["tenant"]) == ("me", "them", "t") and payload["jti"]
    assert int(str(payload["exp"])) - int(str(payload["nbf"])) == 360
    _verify(made.public_key(), algorithm, sent["client_assertion"])

    bearer_grant = {"sasl.oauthbearer.grant.type": JWT_BEARER}
    assert fetch(bearer(**{URL: issuer.url, **given, **bearer_grant}).source, 5).text
    assert issuer.asked[1]["assertion"].count(".") == 2
    wrong = {"sasl.oauthbearer.assertion.private.key.passphrase": "wrong"}
    with pytest.raises(ConfigError, match="no private key can be read"):
        fetch(bearer(**{URL: issuer.url, **given, **wrong}).source, 5)


def _verify(key: object, algorithm: str, assertion: str) -> None:
    """With cryptography's own verifier; an exception is a failure."""
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    signed, _, last = assertion.rpartition(".")
    signature = base64.urlsafe_b64decode(last + "=" * (-len(last) % 4))
    if algorithm == "RS256":
        assert isinstance(key, rsa.RSAPublicKey)
        key.verify(signature, signed.encode(), padding.PKCS1v15(), SHA256())
    else:
        assert isinstance(key, ec.EllipticCurvePublicKey)
        half = [int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")]
        key.verify(encode_dss_signature(*half), signed.encode(), ec.ECDSA(SHA256()))


class Wall:
    """A clock that is moved by hand."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_token_is_kept_and_renewed_before_it_ends(issuer: TokenServer) -> None:
    wall = Wall()
    issuer.issue = lambda: jwt(sub="alice", iat=wall.now, exp=wall.now + 3600)
    tokens = Tokens(asking(issuer), wall, lambda: 0.0)
    first = tokens.current(5)
    wall.now += 0.79 * 3600
    assert tokens.current(5) == first and len(issuer.asked) == 1
    wall.now += 0.02 * 3600
    second = tokens.current(5)
    assert second != first and len(issuer.asked) == 2


def test_a_token_that_cannot_be_renewed_is_used_while_it_lives(issuer: TokenServer) -> None:
    wall = Wall()
    issuer.issue = lambda: jwt(sub="alice", iat=wall.now, exp=wall.now + 3600)
    tokens = Tokens(asking(issuer), wall, lambda: 0.0)
    first = tokens.current(5)
    issuer.answers = [(400, b""), (400, b"")]
    wall.now += 0.9 * 3600
    assert tokens.current(5) == first
    wall.now += 3600
    with pytest.raises((Unreachable, BrokerRefused)):
        tokens.current(5)


def test_a_token_that_has_ended_tells_of_the_clock() -> None:
    wall = Wall()
    source = Bearer(GivenToken(jwt(sub="a", exp=wall.now - 60)))
    with pytest.raises(BrokerRefused, match="ended 60 s ago") as caught:
        Tokens(source, wall).current(5)
    assert "clock" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("token", "at"),
    [
        (Token("t", 0, 3600), 2880),
        (Token("t", None, 3600), 2880),
        (Token("t", 0, 1000), 700),
        (Token("t", 0, 100), 80),
        (Token("t"), 0),
        (Token("t", -10_000, 400), 60),
    ],
)
def test_when_a_token_is_renewed_is_as_kafkas_refreshing_login_has_it(token: Token, at: float) -> None:
    assert renewal_time(token, 0, Renewal(), 0.0) == at


def test_tokens_need_not_be_jwts() -> None:
    assert read_token("opaque") == Token("opaque")
    assert read_token("opaque", 60, 100) == Token("opaque", 100, 160)
    assert read_token("a.b.c") == Token("a.b.c")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "needs to know where its token comes from"),
        ({URL: "ftp://x/"}, "is not the address of a token endpoint"),
        ({URL: "https://x/t"}, "client.credentials.client.id is not set"),
        ({URL: "https://x/t", ID: "i"}, "client.credentials.client.secret is not set"),
        (
            {
                URL: "https://x/t",
                "sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            },
            "private.key.file is not set",
        ),
        ({"sasl.oauthbearer.token": "t", "sasl.oauthbearer.extensions": "auth=x"}, "cannot send auth"),
        ({"sasl.oauthbearer.token": "t", "sasl.oauthbearer.extensions": "a1=x"}, "cannot send an extension"),
        (
            {URL: "https://x/t", ID: "i", SECRET: "s", "sasl.login.retry.backoff.ms": "soon"},
            "backoff.ms is not a number",
        ),
        ({"sasl.jaas.config": f'{MODULE} unsecuredLoginNumberClaim_n="1";'}, "names no principal"),
        ({"sasl.jaas.config": f'{MODULE} unsecuredLoginStringClaim_exp="1";'}, "made here"),
    ],
)
def test_what_is_missing_is_named(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        fetch(bearer(**given).source, 1)
    assert caught.value.message
