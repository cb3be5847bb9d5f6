"""Sockets on loopback: what a request is answered, and what is raised when it is not."""

from __future__ import annotations

import pickle
import socket
import time
from collections.abc import Iterator

import pytest

from kgroup.client.auth.credentials import Password
from kgroup.client.retry import Limit, OutcomeUnknown
from kgroup.client.security import Security
from kgroup.client.settings import ConnectionSettings
from kgroup.client.transport import SocketTransport
from kgroup.errors import BrokerRefused, DecodeError, ErrorCode, Unreachable
from kgroup.protocol.messages.api_versions import ApiVersionsRequest
from kgroup.protocol.messages.leave_group import LeaveGroupRequest
from kgroup.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.unit.client.scripted_broker import HANG_UP, SILENT, ScriptedBroker

LISTED = ListGroupsResponse(groups=(ListedGroup(group_id="g"),))


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker() as running:
        running.answers[ListGroupsRequest] = LISTED
        yield running


def settings(*addresses: tuple[str, int], **more: object) -> ConnectionSettings:
    return ConnectionSettings(addresses, **{"request_timeout_s": 5.0, **more})  # type: ignore[arg-type]


@pytest.fixture
def transport(broker: ScriptedBroker) -> Iterator[SocketTransport]:
    with SocketTransport(settings(broker.address)) as made:
        yield made


def closed_port() -> tuple[str, int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address: tuple[str, int] = probe.getsockname()
        return address


def test_one_connection_serves_bootstrap_and_node(broker: ScriptedBroker, transport: SocketTransport) -> None:
    assert broker.connections == 0
    assert transport.nodes() == {1: broker.address}
    assert transport.request(1, ListGroupsRequest()) == LISTED
    assert transport.request(None, ListGroupsRequest(), max_version=2) == LISTED
    assert transport.versions(1, 16) == range(6)
    assert transport.versions(1, 99) is None
    assert broker.connections == 1


def test_pickled_it_has_a_connection_of_its_own_and_the_time_that_is_left(
    broker: ScriptedBroker, transport: SocketTransport
) -> None:
    assert transport.request(None, ListGroupsRequest()) == LISTED
    with pickle.loads(pickle.dumps(transport)) as another:
        assert another.request(None, ListGroupsRequest()) == LISTED
        assert (another.settings, broker.connections) == (transport.settings, 2)


def test_pickled_it_has_no_more_time_than_is_left(broker: ScriptedBroker) -> None:
    broker.answers[ListGroupsRequest] = SILENT
    patient = settings(broker.address, request_timeout_s=3600.0)
    with (
        SocketTransport(patient, limit=Limit(0.5)) as transport,
        pickle.loads(pickle.dumps(transport)) as another,
        pytest.raises(Unreachable),
    ):
        another.request(None, ListGroupsRequest())


def test_a_version_gap_keeps_the_connection(broker: ScriptedBroker, transport: SocketTransport) -> None:
    with pytest.raises(BrokerRefused, match="does not serve LeaveGroup"):
        transport.request(None, LeaveGroupRequest(group_id="g"))
    assert transport.request(None, ListGroupsRequest()) == LISTED
    assert broker.connections == 1


def test_an_idle_connection_the_broker_closed_is_replaced(
    broker: ScriptedBroker, transport: SocketTransport
) -> None:
    assert transport.request(1, ListGroupsRequest()) == LISTED
    broker.cut()
    assert transport.request(1, ListGroupsRequest()) == LISTED
    assert broker.connections == 2


def test_a_broker_that_is_down_is_named_at_once() -> None:
    address = closed_port()
    with SocketTransport(settings(address)) as transport, pytest.raises(Unreachable) as caught:
        transport.nodes()
    assert caught.value.message == f"127.0.0.1:{address[1]}: connection refused"
    assert not isinstance(caught.value, OutcomeUnknown)


def test_all_addresses_are_tried_and_named(broker: ScriptedBroker) -> None:
    first, second = closed_port(), closed_port()
    with SocketTransport(settings(first, broker.address)) as transport:
        assert transport.request(None, ListGroupsRequest()) == LISTED
    with SocketTransport(settings(first, second)) as transport, pytest.raises(Unreachable) as caught:
        transport.nodes()
    assert f":{first[1]}: connection refused" in caught.value.message
    assert f":{second[1]}: connection refused" in caught.value.message


def test_a_name_that_does_not_resolve_is_said() -> None:
    with SocketTransport(settings(("nobody.invalid", 1))) as transport, pytest.raises(Unreachable) as caught:
        transport.nodes()
    assert "the name nobody.invalid does not resolve" in caught.value.message


def test_a_broker_that_never_accepts_is_given_up_within_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        address = listener.getsockname()
        with SocketTransport(settings(address, request_timeout_s=0.3)) as transport:
            begun = time.monotonic()
            with pytest.raises(Unreachable, match="did not answer ApiVersions in time"):
                transport.nodes()
            assert 0.2 < time.monotonic() - begun < 60


def test_no_answer_in_time_leaves_the_outcome_unknown(
    broker: ScriptedBroker, transport: SocketTransport
) -> None:
    broker.answers[ListGroupsRequest] = SILENT
    transport.nodes()
    with pytest.raises(OutcomeUnknown, match="did not answer ListGroups in time") as caught:
        transport.request(1, ListGroupsRequest(), timeout_s=0.2)
    assert not caught.value.futile
    broker.answers[ListGroupsRequest] = LISTED
    assert transport.request(1, ListGroupsRequest()) == LISTED
    assert broker.connections == 2


def test_a_connection_cut_under_a_request_leaves_the_outcome_unknown(
    broker: ScriptedBroker, transport: SocketTransport
) -> None:
    transport.nodes()
    broker.answers[ListGroupsRequest] = HANG_UP
    with pytest.raises(OutcomeUnknown, match="closed the connection instead of answering") as caught:
        transport.request(1, ListGroupsRequest())
    assert not caught.value.futile
    assert len([r for r in broker.requests if isinstance(r, ListGroupsRequest)]) == 1


def test_hanging_up_on_the_first_request_is_not_worth_a_retry(
    broker: ScriptedBroker, transport: SocketTransport
) -> None:
    """What a SASL listener does to a client that does not authenticate."""
    broker.answers[ListGroupsRequest] = HANG_UP
    with pytest.raises(OutcomeUnknown) as caught:
        transport.request(None, ListGroupsRequest())
    assert caught.value.futile
    assert caught.value.hint is not None
    assert "SASL" in caught.value.hint


def test_a_node_nobody_knows_is_said(transport: SocketTransport, broker: ScriptedBroker) -> None:
    with pytest.raises(Unreachable, match=r"broker 7 is not among the brokers alive \(1 at 127.0.0.1:"):
        transport.request(7, ListGroupsRequest())


def test_garbage_closes_the_connection(broker: ScriptedBroker, transport: SocketTransport) -> None:
    broker.answers[ListGroupsRequest] = b"\0\0\0\5\0\0\0\x63\0"
    transport.nodes()
    with pytest.raises(DecodeError, match="correlation id"):
        transport.request(1, ListGroupsRequest())
    broker.answers[ListGroupsRequest] = LISTED
    assert transport.request(1, ListGroupsRequest()) == LISTED


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the answer is HTTP, not Kafka"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "the answer is TLS"),
        (HANG_UP, "closed the connection instead of answering ApiVersions"),
    ],
)
def test_what_is_no_kafka_broker_is_unreachable(
    broker: ScriptedBroker, transport: SocketTransport, answer: bytes | str, words: str
) -> None:
    broker.answers[ApiVersionsRequest] = answer
    with pytest.raises(Unreachable, match=words) as caught:
        transport.nodes()
    assert not isinstance(caught.value, OutcomeUnknown)
    assert caught.value.hint


SASL = {"security": Security(credentials=Password("PLAIN", "alice", "secret"))}


def test_authentication_comes_before_the_first_request(broker: ScriptedBroker) -> None:
    broker.answers[SaslHandshakeRequest] = SaslHandshakeResponse(mechanisms=("PLAIN",))
    broker.answers[SaslAuthenticateRequest] = SaslAuthenticateResponse()
    with SocketTransport(settings(broker.address, **SASL)) as transport:
        assert transport.request(None, ListGroupsRequest()) == LISTED
    assert [type(request) for request in broker.requests] == [
        ApiVersionsRequest,
        SaslHandshakeRequest,
        SaslAuthenticateRequest,
        ListGroupsRequest,
    ]
    assert broker.requests[2].auth_bytes == b"\0alice\0secret"  # type: ignore[attr-defined]


def test_a_wrong_password_is_named_and_not_tried_on_the_next_broker(broker: ScriptedBroker) -> None:
    broker.answers[SaslHandshakeRequest] = SaslHandshakeResponse(mechanisms=("PLAIN",))
    broker.answers[SaslAuthenticateRequest] = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Authentication failed: no"
    )
    with (
        SocketTransport(settings(broker.address, closed_port(), **SASL)) as transport,
        pytest.raises(BrokerRefused, match="did not authenticate alice with PLAIN") as caught,
    ):
        transport.nodes()
    assert (caught.value.name, caught.value.detail) == (
        "SASL_AUTHENTICATION_FAILED",
        "Authentication failed: no",
    )
    assert "secret" not in caught.value.message


def test_a_listener_without_sasl_is_named_as_one(broker: ScriptedBroker) -> None:
    """Kafka answers so on a plaintext listener; the hint was to choose one of no mechanisms."""
    broker.answers[SaslHandshakeRequest] = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    with (
        SocketTransport(settings(broker.address, **SASL)) as transport,
        pytest.raises(BrokerRefused, match="is a listener without SASL") as caught,
    ):
        transport.nodes()
    assert caught.value.hint == (
        "name the port of a SASL listener, or set security.protocol to PLAINTEXT, or SSL with TLS"
    )


def test_a_mechanism_the_broker_lacks_is_named_with_those_it_has(broker: ScriptedBroker) -> None:
    broker.answers[SaslHandshakeRequest] = SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=("SCRAM-SHA-256", "OAUTHBEARER")
    )
    with (
        SocketTransport(settings(broker.address, **SASL)) as transport,
        pytest.raises(BrokerRefused, match="UNSUPPORTED_SASL_MECHANISM") as caught,
    ):
        transport.nodes()
    assert caught.value.hint == "set sasl.mechanism to one it accepts: SCRAM-SHA-256, OAUTHBEARER"
