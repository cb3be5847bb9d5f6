"""The versions we declare are those a broker announces, for every API kgroup knows."""

from __future__ import annotations

import pytest

from kgroup.broker.handlers import ALL
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.protocol import registry
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

from .server import Server

pytestmark = [pytest.mark.interop, pytest.mark.newest]
PRODUCE = 0
# Kafka serves SaslHandshake and SaslAuthenticate whether or not a listener uses them; ours has no SASL.
SHARED = {api.key for api in ALL} - {PRODUCE}


def test_versions_are_those_of_the_release(server: Server) -> None:
    transport = SocketTransport(ConnectionSettings(parse_bootstrap(server.bootstrap)))
    request = ApiVersionsRequest(client_software_name="kgroup", client_software_version="test")
    announced = {
        api.api_key: (api.min_version, api.max_version)
        for api in transport.request(None, request).api_keys  # type: ignore[attr-defined]
    }
    transport.close()
    declared = {}
    for key in SHARED - set(registry.PRIVATE_APIS):
        if versions := server.minor.versions(key):
            declared[key] = (versions[0], versions[-1])
    assert {key: announced.get(key) for key in declared} == declared


def test_features_are_told_as_each_version_can_read_them(server: Server) -> None:
    """A minimum of 0 only from version 4 on, levels in force from 3 on; Kafka has more features than ours."""
    with SocketTransport(ConnectionSettings(parse_bootstrap(server.bootstrap))) as transport:
        for version in server.minor.versions(ApiVersionsRequest.API):
            request = ApiVersionsRequest(client_software_name="kgroup", client_software_version="test")
            told = transport.request(None, request, min_version=version, max_version=version)
            assert isinstance(told, ApiVersionsResponse)
            _check_features(told, version)


def _check_features(told: ApiVersionsResponse, version: int) -> None:
    supported = {each.name: (each.min_version, each.max_version) for each in told.supported_features}
    finalized = {
        each.name: (each.min_version_level, each.max_version_level) for each in told.finalized_features
    }
    both = {"group.version", "transaction.version"}
    assert all(lowest > 0 for lowest, _ in supported.values()) == (version < 4)
    wanted = {"group.version": (0, 1), "transaction.version": (0, 2)} if version >= 4 else {}
    assert {name: supported[name] for name in both & set(supported)} == wanted
    wanted = {"group.version": (1, 1), "transaction.version": (2, 2)} if version >= 3 else {}
    assert {name: finalized[name] for name in both & set(finalized)} == wanted
    assert (told.finalized_features_epoch >= 0) == (version >= 3)
