"""The embedded transport as a Transport: which broker, which version, what it cannot do."""

from __future__ import annotations

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import BrokerRefused, ErrorCode, Unreachable
from kgroup.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kgroup.protocol.messages.metadata import MetadataRequest
from kgroup.protocol.messages.produce import ProduceRequest
from kgroup.protocol.transport import Transport
from kgroup.runtime.clock import ManualClock


def test_it_is_a_transport(transport: EmbeddedTransport) -> None:
    as_such: Transport = transport
    assert set(as_such.nodes()) == {0, 1, 2}
    assert as_such.versions(None, MetadataRequest.API) == MetadataRequest.VERSIONS
    assert as_such.versions(1, GetTelemetrySubscriptionsRequest.API) is None


def test_a_broker_there_is_not(transport: EmbeddedTransport) -> None:
    with pytest.raises(Unreachable, match="no broker 7"):
        transport.request(7, MetadataRequest(topics=None))


@pytest.mark.parametrize("limits", [{"min_version": 99}, {"min_version": 3, "max_version": 2}])
def test_no_version_within_the_limits(transport: EmbeddedTransport, limits: dict[str, int]) -> None:
    with pytest.raises(BrokerRefused) as caught:
        transport.request(None, MetadataRequest(topics=None), **limits)
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION


def test_an_api_that_is_not_served(transport: EmbeddedTransport) -> None:
    with pytest.raises(BrokerRefused, match="GetTelemetrySubscriptions"):
        transport.request(None, GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16)))


def test_a_request_without_an_answer(transport: EmbeddedTransport) -> None:
    with pytest.raises(Unreachable, match="gets no answer"):
        transport.request(0, ProduceRequest(acks=0, timeout_ms=1))


def test_time_passes_only_when_told(transport: EmbeddedTransport, clock: ManualClock) -> None:
    before = clock.now_ms()
    transport.request(None, MetadataRequest(topics=None))
    assert clock.now_ms() == before
    transport.run_until(before + 500)
    assert clock.now_ms() == before + 500


def test_closing_twice_is_fine(transport: EmbeddedTransport) -> None:
    transport.close()
    transport.close()
