"""SASL on a listener: what is let in, what is refused and how, as Kafka's SaslServerAuthenticator does it."""

from __future__ import annotations

import asyncio
import struct

import pytest

from kgroup.broker.server import Server
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kgroup.runtime.clock import ManualClock
from kgroup.security.principals import ANONYMOUS, Principal
from tests.broker_script import Script
from tests.unit.broker.authentication.listeners import (
    SASL,
    ScramClient,
    connected,
    handshake,
    locked,
    log_in,
    run,
    token,
)
from tests.unit.broker.brokers import Client

VERSIONS = ApiVersionsRequest(client_software_name="a", client_software_version="1")
METADATA = MetadataRequest(topics=None)


async def is_in(client: Client) -> bool:
    answer = await client.call(METADATA)
    assert isinstance(answer, MetadataResponse)
    return bool(answer.brokers)


@pytest.mark.parametrize("versions_first", [True, False])
def test_plain_lets_in_whoever_knows_the_password(versions_first: bool) -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            if versions_first:
                answer = await client.call(VERSIONS)
                assert isinstance(answer, ApiVersionsResponse) and answer.error_code == 0
            answer = await log_in(client)
            assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
            assert await is_in(client)

    run(test, SASL)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("header", ["n,,", "n,a=carol,"])
def test_scram_lets_in_whoever_proves_to_know_it(mechanism: str, header: str) -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            assert (await handshake(client, mechanism)).error_code == 0
            exchange = ScramClient(mechanism, "carol", "pw", header)
            first = await token(client, exchange.first())
            assert first.session_lifetime_ms == 0, "no session has begun"
            final = await token(client, exchange.final(first.auth_bytes))
            assert (final.error_code, final.session_lifetime_ms) == (0, 0)
            assert final.auth_bytes == exchange.expected, "the broker proves that it knows the password, too"
            assert await is_in(client)

    run(test, SASL)


def test_who_it_is_is_part_of_every_call() -> None:
    seen = []

    async def test(server: Server) -> None:
        script = Script(server.dispatcher)

        def look(call):  # type: ignore[no-untyped-def]
            seen.append((call.principal, call.listener))
            return script.serve(call)

        script.answer(MetadataRequest.API, look)
        async with connected(server) as client:
            await log_in(client, "bob", 'pass;word "quoted"')
            assert await is_in(client)
        async with connected(server, "PLAINTEXT") as client:
            assert await is_in(client)

    run(test, {**SASL, "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://localhost:0"})
    assert seen == [(Principal("User", "bob"), "SASL_PLAINTEXT"), (ANONYMOUS, "PLAINTEXT")]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0mallory\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"bob\0alice\0secret", "an authorization id that is different from username"),
    ],
)
def test_a_wrong_password_is_refused_and_the_connection_closed(said: bytes, told: str) -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            await handshake(client, "PLAIN")
            answer = await token(client, said)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert told in (answer.error_message or "")
            assert await client.closed_by_peer()

    run(test, SASL)


@pytest.mark.parametrize(
    "said",
    [
        ScramClient("SCRAM-SHA-256", "nobody", "pw").first(),
        b"p=tls-unique,,n=carol,r=abc",
        b"n,,n=carol",
        b"\xff\xfe",
        b"",
    ],
)
def test_scram_refuses_in_the_same_words_whatever_is_wrong(said: bytes) -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            await handshake(client, "SCRAM-SHA-256")
            answer = await token(client, said)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert answer.error_message == (
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                "SCRAM-SHA-256"
            )
            assert await client.closed_by_peer()

    run(test, SASL)


def last_byte_changed(said: bytes) -> bytes:
    """One proof in 256 ends with a byte of zeros already."""
    return said[:-4] + (b"AQ==" if said.endswith(b"AA==") else b"AA==")


@pytest.mark.parametrize("change", [last_byte_changed, lambda s: s.replace(b"r=", b"r=x"), lambda s: b""])
def test_a_wrong_proof_is_refused(change) -> None:  # type: ignore[no-untyped-def]
    async def test(server: Server) -> None:
        async with connected(server) as client:
            await handshake(client, "SCRAM-SHA-512")
            exchange = ScramClient("SCRAM-SHA-512", "carol", "pw")
            first = await token(client, exchange.first())
            answer = await token(client, change(exchange.final(first.auth_bytes)))
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await client.closed_by_peer()

    run(test, SASL)


def test_scram_for_somebody_else_is_told_so() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            await handshake(client, "SCRAM-SHA-256")
            answer = await token(client, ScramClient("SCRAM-SHA-256", "carol", "pw", "n,a=alice,").first())
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert "an authorization id that is different from username" in (answer.error_message or "")
            assert await client.closed_by_peer()

    run(test, SASL)


def test_a_proof_of_another_length_is_not_even_refused() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            await handshake(client, "SCRAM-SHA-512")
            exchange = ScramClient("SCRAM-SHA-512", "carol", "pw")
            first = await token(client, exchange.first())
            without_proof = exchange.final(first.auth_bytes).split(b",p=")[0]
            client.send(SaslAuthenticateRequest(auth_bytes=without_proof + b",p=AAAA"))
            assert await client.closed_by_peer()

    run(test, SASL)


def test_a_mechanism_that_is_not_enabled_is_told_with_those_that_are() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            answer = await handshake(client, "GSSAPI")
            assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
            assert answer.mechanisms == ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
            assert await client.closed_by_peer()

    run(test, SASL)


def test_nothing_is_served_before() -> None:
    """Metadata at once, after ApiVersions, and ApiVersions twice: closed without a byte."""

    async def test(server: Server) -> None:
        for before in ([], [VERSIONS]):
            for then in (METADATA, SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")):
                async with connected(server) as client:
                    for each in before:
                        await client.call(each)
                    client.send(then)
                    assert await client.closed_by_peer()
        async with connected(server) as client:
            await client.call(VERSIONS)
            client.send(VERSIONS)
            assert await client.closed_by_peer()

    run(test, SASL)


def test_what_is_sent_behind_a_refusal_is_not_served() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            await handshake(client, "PLAIN")
            client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"))
            client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"))
            client.send(METADATA)
            _, answer = await client.receive(SaslAuthenticateRequest)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED  # type: ignore[attr-defined]
            assert await client.closed_by_peer()

    run(test, {**SASL, "connection.failed.authentication.delay.ms": "50"})


def test_another_request_between_the_tokens_is_refused() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            await handshake(client, "PLAIN")
            answer = await client.call(FindCoordinatorRequest(coordinator_keys=("g",)))
            assert isinstance(answer, FindCoordinatorResponse)
            assert answer.coordinators[0].error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert await client.closed_by_peer()

    run(test, SASL)


def test_versions_not_served_may_be_asked_for_again() -> None:
    """KIP-511: the answer in version 0 tells which are."""

    async def test(server: Server) -> None:
        async with connected(server) as client:
            client.send_raw(struct.pack(">ihhihb", 11, 18, 99, 5, 0, 0))
            correlation, answer = await client.receive(ApiVersionsRequest, 0)
            assert isinstance(answer, ApiVersionsResponse)
            assert (correlation, answer.error_code) == (5, ErrorCode.UNSUPPORTED_VERSION)
            answer = await client.call(VERSIONS)
            assert isinstance(answer, ApiVersionsResponse) and answer.error_code == 0
            assert (await log_in(client)).error_code == 0

    run(test, SASL)


def test_tokens_are_bare_frames_after_the_first_version_of_the_handshake() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            await handshake(client, "PLAIN", version=0)
            said = b"\0alice\0secret"
            client.send_raw(len(said).to_bytes(4, "big") + said)
            assert await client.receive_frame() == b""
            assert await is_in(client)
        async with connected(server) as client:
            await handshake(client, "PLAIN", version=0)
            client.send_raw(len(said).to_bytes(4, "big") + b"\0alice\0wrong!")
            assert await client.closed_by_peer()

    run(test, SASL)


def test_frames_are_small_before_authentication_only() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            client.send_raw(struct.pack(">i", 1001))
            assert await client.closed_by_peer()
        async with connected(server) as client:
            await handshake(client, "PLAIN")
            client.send_raw(struct.pack(">ihhi", 1001, 0, 11, 1))
            assert await client.closed_by_peer()
        async with connected(server) as client:
            await log_in(client)
            keys = tuple(f"group-{n:04}" for n in range(200))
            answer = await client.call(FindCoordinatorRequest(coordinator_keys=keys))
            assert isinstance(answer, FindCoordinatorResponse) and len(answer.coordinators) == 200

    run(test, {**SASL, "sasl.server.max.receive.size": "1000"})


def test_who_says_nothing_is_cut_off() -> None:
    async def test(server: Server) -> None:
        server.newcomers.timeout_s = 0.05
        async with connected(server) as client:
            await client.call(VERSIONS)
            assert await client.closed_by_peer()
        # A busy machine may need more than the second.
        for limit_s in (1.0, 10.0, 100.0):
            server.newcomers.timeout_s = limit_s
            async with connected(server) as client:
                try:
                    await log_in(client)
                except (EOFError, ConnectionError):
                    continue
                assert len(server.newcomers) == 0
                await asyncio.sleep(limit_s + 0.1)
                assert await is_in(client), "authenticated in time: the limit is not for it"
                return
        raise AssertionError("nobody logs in within 100 s")

    run(test, SASL)


def test_a_handshake_where_none_is_due_is_answered() -> None:
    """After authentication, and on a listener without SASL: ILLEGAL_SASL_STATE, and the connection stays."""

    async def test(server: Server) -> None:
        for listener in ("SASL_PLAINTEXT", "PLAINTEXT"):
            async with connected(server, listener) as client:
                if listener == "SASL_PLAINTEXT":
                    await log_in(client)
                answer = await client.call(SaslHandshakeRequest(mechanism="PLAIN"))
                assert isinstance(answer, SaslHandshakeResponse)
                assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, ())
                assert (await token(client, b"x")).error_code == ErrorCode.ILLEGAL_SASL_STATE
                assert await is_in(client)

    run(test, {**SASL, "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"})


SESSIONS = {**SASL, "connections.max.reauth.ms": "5000"}


def test_a_session_ends_and_may_be_renewed() -> None:
    """KIP-368."""
    clock = ManualClock()

    async def test(server: Server) -> None:
        async with connected(server) as client, connected(server) as other:
            assert (await log_in(client)).session_lifetime_ms == 5000
            assert (await log_in(other)).session_lifetime_ms == 5000
            clock.advance(4000)
            assert (await log_in(client)).session_lifetime_ms == 5000
            clock.advance(4000)
            assert await is_in(client), "renewed"
            other.send(METADATA)
            assert await other.closed_by_peer(), "not renewed"

    run(test, SESSIONS, clock)


def test_an_expired_session_may_still_be_renewed() -> None:
    clock = ManualClock()

    async def test(server: Server) -> None:
        async with connected(server) as client:
            await log_in(client)
            clock.advance(60_000)
            assert (await log_in(client)).error_code == 0
            assert await is_in(client)

    run(test, SESSIONS, clock)


def test_who_it_is_cannot_change_in_a_session() -> None:
    clock = ManualClock()

    async def test(server: Server) -> None:
        async with connected(server) as client:
            await log_in(client)
            answer = await log_in(client, "bob", 'pass;word "quoted"')
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert answer.error_message == (
                "Cannot change principals during re-authentication from User.alice: User.bob"
            )
            assert await client.closed_by_peer()

    run(test, SESSIONS, clock)


def test_neither_can_the_mechanism() -> None:
    async def test(server: Server) -> None:
        async with connected(server) as client:
            await log_in(client)
            assert (await handshake(client, "SCRAM-SHA-256")).error_code == 0
            client.send(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"))
            assert await client.closed_by_peer()

    run(test, SESSIONS, ManualClock())


def test_each_mechanism_may_have_sessions_of_its_own() -> None:
    own = {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "7000"}

    async def test(server: Server) -> None:
        async with connected(server) as client:
            assert (await log_in(client)).session_lifetime_ms == 7000

    run(test, {**SESSIONS, **own})


def test_clients_are_sent_to_the_listener_they_came_by() -> None:
    """Metadata, FindCoordinator: the address and port of this listener, or what it advertises."""

    async def test(server: Server) -> None:
        async with connected(server, "INSIDE") as client:
            answer = await client.call(METADATA)
            assert isinstance(answer, MetadataResponse)
            own = server.dispatcher.addresses["INSIDE"]
            assert {b.node_id: (b.host, b.port) for b in answer.brokers} == own
            assert own[0][0] == "127.0.0.1" and own[0][1] > 0
            found = await client.call(FindCoordinatorRequest(coordinator_keys=("g",)))
            assert isinstance(found, FindCoordinatorResponse)
            assert (found.coordinators[0].host, found.coordinators[0].port) == own[0]

    settings = {
        "listeners": "OUTSIDE://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,INSIDE:PLAINTEXT",
        "advertised.listeners": "OUTSIDE://kafka.example.com:19092",
    }

    async def outside(server: Server) -> None:
        assert server.dispatcher.addresses["OUTSIDE"] == {0: ("kafka.example.com", 19092)}
        await test(server)

    run(outside, settings)


def test_several_brokers_take_ports_behind_one_another() -> None:
    async def test() -> None:
        from kgroup.runtime.cluster import Cluster

        cluster = Cluster(None, brokers=3, offsets_partitions=1)
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "advertised.listeners": "PLAINTEXT://kafka.example.com:19092",
        }
        async with locked(cluster, settings) as server:
            assert server.dispatcher.addresses["PLAINTEXT"] == {
                node: ("kafka.example.com", 19092 + node) for node in range(3)
            }
        cluster.close()

    asyncio.run(test())
