"""OAUTHBEARER on a listener: tokens signed by keys of a JWKS (a file, a URL), and unsecured ones."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from kgroup.broker.authentication.jwks import UrlJwks, open_jwks
from kgroup.broker.authentication.tokens import BadToken, SignedTokens
from kgroup.broker.server import Server
from kgroup.errors import ConfigError, ErrorCode
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kgroup.runtime.clock import ManualClock
from tests.unit.broker.authentication.listeners import connected, handshake, run, token
from tests.unit.broker.brokers import Client

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())
LISTENER = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "connection.failed.authentication.delay.ms": "0",
}


def public(key: RSAPrivateKey, kid: str | None, **more: str) -> dict[str, Any]:
    found = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    return {**{k: v for k, v in found.items() if k != "key_ops"}, **({"kid": kid} if kid else {}), **more}


def jwks(folder: Path, *keys: dict[str, Any]) -> Path:
    path = folder / "jwks.json"
    path.write_text(json.dumps({"keys": keys or [public(KEY, "one")]}))
    return path


class In(int):
    """A time, in seconds from when a token is made of it."""


def made(key: Any = KEY, alg: str = "RS256", kid: str | None = "one", **claims: Any) -> str:
    now = int(time.time())
    said = {"sub": "alice", "iat": now, "exp": now + 3600, **claims}
    said = {
        name: now + int(value) if isinstance(value, In) else value
        for name, value in said.items()
        if value is not None
    }
    return jwt.encode(said, key, alg, headers={"kid": kid} if kid else None)


def initial(said: str, authzid: str = "", more: str = "") -> bytes:
    return f"n,{'a=' + authzid if authzid else ''},\x01auth=Bearer {said}\x01{more}\x01".encode()


async def enter(client: Client, said: bytes) -> SaslAuthenticateResponse:
    assert (await handshake(client, "OAUTHBEARER")).error_code == 0
    return await token(client, said)


def test_a_token_lets_in_whom_it_names(tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        for said in (initial(made()), initial(made(), "alice"), initial(made(), more="traceId=a1\x01")):
            async with connected(server) as client:
                answer = await enter(client, said)
                assert (answer.error_code, answer.auth_bytes) == (0, b"")
                assert 0 < answer.session_lifetime_ms <= 3_600_000, "no longer than the token"
                told = await client.call(MetadataRequest(topics=None))
                assert isinstance(told, MetadataResponse) and told.brokers

    run(test, {**LISTENER, "sasl.oauthbearer.jwks.endpoint.url": jwks(tmp_path).as_uri()})


@pytest.mark.parametrize("longest_ms", [5000, 10_000_000])
def test_a_session_ends_with_its_token_or_after_the_longest_time_whichever_is_first(
    longest_ms: int, tmp_path: Path
) -> None:
    async def test(server: Server) -> None:
        now_ms = server.dispatcher.clock.now_ms()
        expires_s = now_ms // 1000 + 3600
        async with connected(server) as client:
            answer = await enter(client, initial(made(exp=expires_s)))
            assert answer.session_lifetime_ms == min(longest_ms, expires_s * 1000 - now_ms)

    clock = ManualClock(int(time.time() * 1000))
    url = jwks(tmp_path).as_uri()
    settings = {"sasl.oauthbearer.jwks.endpoint.url": url, "connections.max.reauth.ms": str(longest_ms)}
    run(test, {**LISTENER, **settings}, clock)


def test_a_token_that_has_just_expired_brings_no_session_of_negative_length(tmp_path: Path) -> None:
    """Within the permitted skew of clocks it holds; Kafka answers 0, and the next request is one too many."""

    async def test(server: Server) -> None:
        async with connected(server) as client:
            answer = await enter(client, initial(made(iat=In(-60), exp=In(-5))))
            assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)

    url = jwks(tmp_path).as_uri()
    settings = {"sasl.oauthbearer.jwks.endpoint.url": url, "sasl.oauthbearer.clock.skew.seconds": "3600"}
    run(test, {**LISTENER, **settings})


def test_a_token_that_does_not_hold_is_refused_in_two_steps(tmp_path: Path) -> None:
    """RFC 7628: the reason as JSON, the client's \\x01, then the refusal."""

    async def test(server: Server) -> None:
        async with connected(server) as client:
            answer = await enter(client, initial(made(OTHER)))
            assert (answer.error_code, answer.auth_bytes) == (0, b'{"status":"invalid_token"}')
            answer = await token(client, b"\x01")
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert answer.error_message == '{"status":"invalid_token"}'
            assert await client.closed_by_peer()

    run(test, {**LISTENER, "sasl.oauthbearer.jwks.endpoint.url": jwks(tmp_path).as_uri()})


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"\xff\xff",
        initial(made(), "bob"),
    ],
    ids=range(9),
)
def test_first_messages_that_are_refused(said: bytes, tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            answer = await enter(client, said)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await client.closed_by_peer()

    run(test, {**LISTENER, "sasl.oauthbearer.jwks.endpoint.url": jwks(tmp_path).as_uri()})


def test_of_another_scheme_nothing_is_said(tmp_path: Path) -> None:
    """Kafka stumbles over its own refusal here, and hangs up."""

    async def test(server: Server) -> None:
        async with connected(server) as client:
            await handshake(client, "OAUTHBEARER")
            client.send(SaslAuthenticateRequest(auth_bytes=b"n,,\x01auth=Basic abc\x01\x01"))
            assert await client.closed_by_peer()

    run(test, {**LISTENER, "sasl.oauthbearer.jwks.endpoint.url": jwks(tmp_path).as_uri()})


def judge(folder: Path, said: str, *keys: dict[str, Any], **how: Any) -> str:
    """Whose token it is, or "" for one that does not hold."""
    try:
        return SignedTokens(open_jwks(jwks(folder, *keys).as_uri(), 1000), **how).validate(said).principal
    except BadToken:
        return ""


@pytest.mark.parametrize(
    ("said", "how"),
    [
        ({}, {}),
        ({"exp": In(-10), "iat": In(-20)}, {}),  # within the clock skew
        ({"aud": "brokers"}, {"audiences": ("others", "brokers")}),
        ({"aud": ["x", "brokers"]}, {"audiences": ("brokers",)}),
        ({"iss": "me"}, {"issuer": "me"}),
        ({"sub": None, "email": "alice"}, {"subject_claim": "email"}),
        ({"iat": In(3600), "exp": In(7200)}, {}),  # Kafka does not mind
    ],
)
def test_tokens_that_hold(said: dict[str, Any], how: dict[str, Any], tmp_path: Path) -> None:
    assert judge(tmp_path, made(**said), **how) == "alice"


@pytest.mark.parametrize(
    ("said", "how"),
    [
        ({"exp": In(-100)}, {}),
        ({"exp": In(-10), "iat": In(-20)}, {"skew_s": 0}),
        ({"exp": None}, {}),
        ({"iat": None}, {}),
        ({"iat": "then"}, {}),
        ({"iat": In(7200)}, {}),
        ({"exp": In(-10)}, {}),
        ({"exp": In(5), "nbf": In(10)}, {}),
        ({"nbf": In(3600)}, {}),
        ({"exp": "soon"}, {}),
        ({"sub": None}, {}),
        ({"sub": " "}, {}),
        ({"sub": 7}, {}),
        ({"aud": "others"}, {"audiences": ("brokers",)}),
        ({}, {"audiences": ("brokers",)}),
        ({"aud": "others"}, {}),  # an audience that nobody expects is not ours: so in Kafka
        ({"iss": "you"}, {"issuer": "me"}),
        ({}, {"issuer": "me"}),
        ({"key": OTHER}, {}),
        ({"kid": "two"}, {}),
    ],
)
def test_tokens_that_do_not(said: dict[str, Any], how: dict[str, Any], tmp_path: Path) -> None:
    assert judge(tmp_path, made(**said), **how) == ""


def test_algorithms_are_those_of_the_keys(tmp_path: Path) -> None:
    """Not those a token asks for: neither none, nor a public key taken for a shared secret."""
    curve = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(CURVE.public_key()))
    assert judge(tmp_path, made(alg="RS512")) == "alice"
    assert judge(tmp_path, made(alg="PS256")) == "alice"
    assert judge(tmp_path, made(alg="RS512"), public(KEY, "one", alg="RS256")) == ""
    assert (
        judge(tmp_path, made(CURVE, "ES256", "curve"), {**curve, "kid": "curve"}, public(KEY, "one"))
        == "alice"
    )
    assert judge(tmp_path, made(), public(KEY, "one", use="enc"), public(OTHER, "two")) == ""
    assert judge(tmp_path, made(None, "none")) == ""
    n = public(KEY, "one")["n"]
    assert judge(tmp_path, made(base64.urlsafe_b64decode(n + "=="), "HS256")) == ""
    assert judge(tmp_path, made(kid=None), public(OTHER, "two"), public(KEY, "one")) == "alice"


@pytest.mark.parametrize(
    "said", ["a.b.c", "..", "e30.e30.", "e30.e30.e30", "W10.W10.W10", "x" * 10_000, "é.é.é"]
)
def test_what_is_no_token_is_a_bad_one(said: str, tmp_path: Path) -> None:
    assert judge(tmp_path, said) == ""


def test_a_file_that_changes_is_read_again_and_a_broken_one_is_not(tmp_path: Path) -> None:
    path = jwks(tmp_path)
    judge_now = SignedTokens(open_jwks(path.as_uri(), 1000))
    new = made(OTHER, kid="two")
    with pytest.raises(BadToken):
        judge_now.validate(new)
    jwks(tmp_path, public(OTHER, "two"))
    assert judge_now.validate(new).principal == "alice"
    path.write_text("{")
    assert judge_now.validate(new).principal == "alice", "the last keys stay"
    path.unlink()
    assert judge_now.validate(new).principal == "alice"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file:///nowhere/jwks.json", "cannot be read: No such file"),
        ("file://{folder}/empty.json", "there is no key in it"),
        ("file://{folder}/none.json", "is not a JWKS"),
        ("ftp://host/jwks", "only file:// and https:// can be read"),
        ("http://192.0.2.1/jwks", "only file:// and https:// can be read"),
        ("http://127.0.0.1:1/jwks", "cannot be read"),
        (None, "has no keys to check tokens with"),
    ],
)
def test_keys_that_cannot_be_had_are_told_at_the_start(url: str | None, said: str, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text('{"keys": []}')
    (tmp_path / "none.json").write_text("[1]")
    settings = {"sasl.oauthbearer.jwks.endpoint.url": url.format(folder=tmp_path)} if url else {}

    async def nothing(server: Server) -> None:
        raise AssertionError("it serves")

    with pytest.raises(ConfigError, match=said):
        run(nothing, {**LISTENER, **settings})


@pytest.fixture
def issuer() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A server on loopback: its URL, and what it answers."""
    says = {"body": json.dumps({"keys": [public(KEY, "one")]}).encode()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if says["body"] else 503)
            self.end_headers()
            self.wfile.write(says["body"])

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/jwks", says
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_answer_larger_than_any_keys_is_not_read_to_its_end(
    issuer: tuple[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgroup.broker.authentication.jwks.LONGEST", 100)
    with pytest.raises(ConfigError, match="cannot be read: its answer is longer than 100 bytes"):
        open_jwks(issuer[0], 3_600_000)


def test_keys_behind_a_url_are_fetched_again(
    issuer: tuple[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token whose key is not there is refused; meanwhile its key is fetched."""
    monkeypatch.setattr("kgroup.broker.authentication.jwks.SOONER_S", 0)
    url, says = issuer
    keys = open_jwks(url, 3_600_000)
    assert isinstance(keys, UrlJwks)
    judge_now = SignedTokens(keys)
    new = made(OTHER, kid="two")

    async def test() -> None:
        keeping = asyncio.create_task(keys.keep_fresh())
        await asyncio.sleep(0)
        says["body"] = b""
        with pytest.raises(BadToken):
            judge_now.validate(new)
        assert judge_now.validate(made()).principal == "alice", "no answer: the last keys stay"
        says["body"] = json.dumps({"keys": [public(OTHER, "two")]}).encode()
        while True:
            try:
                assert judge_now.validate(new).principal == "alice"
                break
            except BadToken:
                await asyncio.sleep(0.01)
        keeping.cancel()

    asyncio.run(test())


UNSECURED = {
    **LISTENER,
    "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": (
        "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
        "OAuthBearerUnsecuredValidatorCallbackHandler"
    ),
    "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredValidatorRequiredScope="groups";'
    ),
}


@pytest.mark.parametrize(
    ("claims", "answer"),
    [
        ({"scope": "groups topics"}, b""),
        ({"scope": ["groups"]}, b""),
        ({"scope": "topics"}, b'{"status":"insufficient_scope", "scope":"groups"}'),
        ({"scope": "groups", "exp": In(-10)}, b'{"status":"invalid_token"}'),
        ({"scope": "groups", "iat": In(1000)}, b'{"status":"invalid_token"}'),
        ({"scope": "groups", "sub": ""}, b'{"status":"invalid_token"}'),
    ],
)
def test_unsecured_tokens_where_they_are_asked_for(claims: dict[str, Any], answer: bytes) -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            said = await enter(client, initial(made(None, "none", None, **claims)))
            assert (said.error_code, said.auth_bytes) == (0, answer)
        async with connected(server) as client:
            said = await enter(client, initial(made(**claims)))
            assert said.auth_bytes == b'{"status":"invalid_token"}', "a signature nobody checks is none"

    run(test, UNSECURED)


def test_unsecured_tokens_are_no_lock() -> None:
    async def nothing(server: Server) -> None:
        raise AssertionError("it serves")

    for change in (
        {"listeners": "SASL_SSL://127.0.0.1:0"},
        {"sasl.oauthbearer.jwks.endpoint.url": "file:///keys"},
    ):
        settings = {name.replace("sasl_plaintext", "sasl_ssl"): value for name, value in UNSECURED.items()}
        with pytest.raises(ConfigError):
            run(nothing, {**(settings if "listeners" in change else UNSECURED), **change})
