"""The cluster's features with their levels."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kgroup.runtime.cluster import Cluster

UPGRADE, SAFE, UNSAFE = 1, 2, 3
WHOLE = {"group.version": 1, "share.version": 1, "streams.version": 1, "transaction.version": 2}


def levels(transport: EmbeddedTransport) -> tuple[dict[str, int], int]:
    """Finalized levels and their epoch, as clients are told."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = transport.request(None, request)
    assert isinstance(answer, ApiVersionsResponse)
    return {f.name: f.max_version_level for f in answer.finalized_features}, answer.finalized_features_epoch


def update(
    transport: EmbeddedTransport, *updates: tuple[str, int, int], check: bool = False, version: int = 2
) -> UpdateFeaturesResponse:
    keys = tuple(FeatureUpdateKey(feature=n, max_version_level=v, upgrade_type=k) for n, v, k in updates)
    request = UpdateFeaturesRequest(feature_updates=keys, validate_only=check)
    answer = transport.request(None, request, max_version=version)
    assert isinstance(answer, UpdateFeaturesResponse)
    return answer


def test_levels_go_down_and_up_and_survive_a_restart(tmp_path: Path) -> None:
    transport = EmbeddedTransport(Cluster(tmp_path, offsets_partitions=1))
    assert levels(transport) == (WHOLE, 0)
    assert update(transport, ("transaction.version", 0, SAFE), check=True).error_code == 0
    assert levels(transport)[1] == 0
    assert update(transport, ("transaction.version", 1, SAFE), ("group.version", 0, UNSAFE)).error_code == 0
    lowered = {"share.version": 1, "streams.version": 1, "transaction.version": 1}
    assert levels(transport) == (lowered, 1)
    transport.close()
    transport = EmbeddedTransport(Cluster(tmp_path))
    assert levels(transport) == (lowered, 1)
    told = update(transport, ("group.version", 1, UPGRADE), version=1)
    assert [(r.feature, r.error_code) for r in told.results] == [("group.version", 0)]
    assert levels(transport) == ({"group.version": 1, **lowered}, 2)
    transport.close()


@pytest.mark.parametrize(
    "wrong",
    [
        ("group.version", 2, UPGRADE),
        ("group.version", -1, UPGRADE),
        ("group.version", 0, UPGRADE),
        ("group.version", 1, 9),
        ("transaction.version", 3, SAFE),
        ("metadata.version", 25, UPGRADE),
        ("nonsense", 0, UPGRADE),
    ],
)
def test_one_wrong_update_keeps_all_from_being_done(
    transport: EmbeddedTransport, wrong: tuple[str, int, int]
) -> None:
    told = update(transport, ("transaction.version", 0, SAFE), wrong)
    assert told.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert levels(transport) == (WHOLE, 0)


def test_without_its_feature_the_consumer_protocol_is_not_served(transport: EmbeddedTransport) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    node = transport.dispatcher.partition_of("g") % 3
    assert transport.request(node, request).error_code == 0  # type: ignore[attr-defined]
    update(transport, ("group.version", 0, SAFE))
    refused = transport.request(node, request)
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION  # type: ignore[attr-defined]
