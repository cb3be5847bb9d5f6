"""The versions we declare are those a broker announces, for every API kgroup knows."""

from __future__ import annotations

import pytest

from kgroup.broker.handlers import ALL
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.protocol import registry
from kgroup.protocol.messages.api_versions import ApiVersionsRequest

from .server import Server

pytestmark = [pytest.mark.interop]
PRODUCE = 0
# 4.3.1 serves SaslHandshake and SaslAuthenticate whether or not a listener uses them; ours has no SASL.
SHARED = {api.key for api in ALL} - {PRODUCE}


def test_versions_are_those_of_kafka_4_3_1(server: Server) -> None:
    transport = SocketTransport(ConnectionSettings(parse_bootstrap(server.bootstrap)))
    request = ApiVersionsRequest(client_software_name="kgroup", client_software_version="test")
    announced = {
        api.api_key: (api.min_version, api.max_version)
        for api in transport.request(None, request).api_keys  # type: ignore[attr-defined]
    }
    transport.close()
    declared = {}
    for key in SHARED - set(registry.PRIVATE_APIS):
        versions = registry.served_versions(key)
        declared[key] = (versions[0], versions[-1])
    assert {key: announced.get(key) for key in declared} == declared
