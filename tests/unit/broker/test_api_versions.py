"""What a broker says of itself first, in every version of the question."""

from __future__ import annotations

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.releases import Release
from kgroup.runtime.cluster import Cluster


def told(transport: EmbeddedTransport, version: int, name: str = "apache-kafka-java") -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="3.3.2")
    answer = transport.request(None, request, min_version=version, max_version=version)
    assert isinstance(answer, ApiVersionsResponse)
    return answer


def finalized(answer: ApiVersionsResponse) -> list[tuple[str, int, int]]:
    return [(f.name, f.min_version_level, f.max_version_level) for f in answer.finalized_features]


def test_java_clients_3_3_to_3_7_see_no_feature_whose_minimum_is_0(transport: EmbeddedTransport) -> None:
    """They refuse to read one and close the connection; Kafka names such features from version 4 on."""
    assert told(transport, 3).supported_features == ()
    supported = told(transport, 4).supported_features
    assert [(f.name, f.min_version, f.max_version) for f in supported] == [
        ("group.version", 0, 1),
        ("share.version", 0, 1),
        ("streams.version", 0, 1),
        ("transaction.version", 0, 2),
    ]


@pytest.mark.parametrize("version", [3, 4])
def test_levels_in_force_are_told_to_every_client_that_can_read_them(
    transport: EmbeddedTransport, version: int
) -> None:
    answer = told(transport, version)
    assert answer.finalized_features_epoch >= 0
    assert finalized(answer) == [
        ("group.version", 1, 1),
        ("share.version", 1, 1),
        ("streams.version", 1, 1),
        ("transaction.version", 2, 2),
    ]


def test_a_level_of_0_is_not_in_force() -> None:
    cluster = Cluster(None, config={"group.coordinator.rebalance.protocols": "classic"})
    answer = told(EmbeddedTransport(cluster), 4)
    cluster.close()
    assert finalized(answer) == [("share.version", 1, 1), ("transaction.version", 2, 2)]
    assert "group.version" in {feature.name for feature in answer.supported_features}


def test_every_version_names_the_same_apis(transport: EmbeddedTransport) -> None:
    assert len({told(transport, version).api_keys for version in ApiVersionsRequest.VERSIONS}) == 1


def test_a_software_name_that_is_none_is_refused_without_apis(transport: EmbeddedTransport) -> None:
    answer = told(transport, 3, name="-")
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, ())


def asked(cluster: Cluster, version: int, cluster_id: str | None, node_id: int) -> ErrorCode:
    request = ApiVersionsRequest(
        client_software_name="kgroup", client_software_version="1", cluster_id=cluster_id, node_id=node_id
    )
    transport = EmbeddedTransport(cluster)
    answer = transport.request(None, request, min_version=version, max_version=version)
    assert isinstance(answer, ApiVersionsResponse)
    return ErrorCode(answer.error_code)


def test_a_client_that_means_another_cluster_or_broker_is_to_bootstrap_again() -> None:
    """KIP-1242: an address may have been handed to a broker of another cluster since it was learned."""
    cluster = Cluster(None, config={"node.id": "7"})
    mine = cluster.cluster_id
    assert asked(cluster, 5, mine, 7) is ErrorCode.NONE
    assert asked(cluster, 5, None, -1) is ErrorCode.NONE
    assert asked(cluster, 5, mine, 8) is ErrorCode.REBOOTSTRAP_REQUIRED
    assert asked(cluster, 5, "another", 7) is ErrorCode.REBOOTSTRAP_REQUIRED
    assert asked(cluster, 5, mine, -1) is ErrorCode.INVALID_REQUEST
    assert asked(cluster, 5, None, 7) is ErrorCode.INVALID_REQUEST
    assert asked(cluster, 4, "another", 7) is ErrorCode.NONE
    cluster.close()


def test_a_cluster_of_an_older_release_serves_its_versions() -> None:
    cluster = Cluster(None, kafka=Release(4, 3))
    answer = told(EmbeddedTransport(cluster), 4)
    cluster.close()
    served = {api.api_key: api.max_version for api in answer.api_keys}
    assert served[ApiVersionsRequest.API] == 4
    assert all(Release(4, 3).versions(key)[-1] == last for key, last in served.items())
