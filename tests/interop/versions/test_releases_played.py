"""What a broker of each release announces, and what our cluster does that plays the release."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from kgroup.broker.handlers import ALL
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.protocol import registry
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.releases import NEWEST, SERVED, Release
from kgroup.testing import Cluster
from tests.sampled import FULL

from ..conftest import require
from .broker import RELEASES, OldKafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
SAMPLE = ("2.4", "4.4")
CHOSEN = tuple(RELEASES) if FULL else SAMPLE
BUILT = {api.key for api in ALL if api.key not in registry.PRIVATE_APIS}
PRODUCE = 0
Ranges = dict[int, tuple[int, int]]
Levels = dict[str, tuple[int, int]]


def announced(bootstrap: str, release: Release) -> tuple[Ranges, Levels, Levels]:
    """APIs, features that are supported and those in force, in the release's newest version of the answer."""
    newest = release.versions(ApiVersionsRequest.API)[-1]
    request = ApiVersionsRequest(client_software_name="kgroup", client_software_version="test")
    with SocketTransport(ConnectionSettings(parse_bootstrap(bootstrap))) as transport:
        told = transport.request(None, request, min_version=newest, max_version=newest)
    assert isinstance(told, ApiVersionsResponse)
    return (
        {api.api_key: (api.min_version, api.max_version) for api in told.api_keys},
        levels((f.name, f.min_version, f.max_version) for f in told.supported_features),
        levels((f.name, f.min_version_level, f.max_version_level) for f in told.finalized_features),
    )


def levels(features: Iterable[tuple[str, int, int]]) -> Levels:
    """Those of the features that kgroup knows, up to the level that it has (docs/not-built.md)."""
    most = NEWEST.levels
    return {
        name: (min(low, most[name]), min(high, most[name])) for name, low, high in features if name in most
    }


def known(key: int, versions: tuple[int, int]) -> tuple[int, int]:
    """Without the versions that Kafka 4.0 gave up (KIP-896), which kgroup lacks; Produce names them."""
    return (
        versions
        if key == PRODUCE
        else (max(versions[0], registry.request_class(key).VERSIONS[0]), versions[1])
    )


def test_each_release_of_the_matrix_can_be_played() -> None:
    assert [str(release) for release in SERVED] == list(RELEASES)


@pytest.mark.parametrize("version", CHOSEN)
def test_versions_and_features_are_those_of_the_broker(version: str, tmp_path: Path) -> None:
    require("java", "mvn")
    release = Release.of(version)
    with OldKafka(version, tmp_path / "broker") as kafka:
        apis, *features = announced(kafka.bootstrap, release)
    with Cluster(kafka=version) as played:
        our_apis, *our_features = announced(played.bootstrap, release)
    theirs = {key: known(key, versions) for key, versions in apis.items() if key in BUILT}
    assert our_apis == {key: (low, high) for key, (low, high) in theirs.items() if low <= high}
    assert our_features == features
