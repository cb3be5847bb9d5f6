"""ApiVersions: what this broker serves. Every client needs it."""

from __future__ import annotations

import re
from dataclasses import replace

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.domain import CONSUMER, STREAMS
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kgroup.protocol.messages.produce import ProduceRequest
from kgroup.protocol.releases import GROUP_VERSION, STREAMS_VERSION

NAMED_SINCE = 3
NO_NODE = -1
LOWEST_MAY_BE_0_SINCE = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(broker: Dispatcher, call: Call[ApiVersionsRequest]) -> ApiVersionsResponse:
    """Return every API with its versions, and the features.

    Odd software names, and a cluster without its broker, are INVALID_REQUEST. A client that means another
    broker or cluster must bootstrap again: it finds out before it authenticates (KIP-1242).
    """
    request = call.body
    meant, named = request.cluster_id, (request.client_software_name, request.client_software_version)
    if (call.version >= NAMED_SINCE and not all(_SOFTWARE.fullmatch(text) for text in named)) or (
        (meant is None) != (request.node_id == NO_NODE)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if meant is not None and (meant, request.node_id) != (broker.cluster.cluster_id, call.node):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    features = broker.cluster.catalog.features
    levels = {name: level for name, level in features.levels.items() if level}
    protocols = broker.cluster.group_config.rebalance_protocols
    for protocol, feature in (
        (CONSUMER, GROUP_VERSION),
        (STREAMS, STREAMS_VERSION),
    ):
        if protocol not in protocols:
            levels.pop(feature, None)
    # Java clients 3.3 to 3.7 close the connection at a feature whose minimum is 0 (KAFKA-17011)
    supported = broker.cluster.kafka.levels if call.version >= LOWEST_MAY_BE_0_SINCE else {}
    return ApiVersionsResponse(
        api_keys=tuple(_served(broker, key) for key in sorted(broker.apis)),
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=0, max_version=highest)
            for name, highest in supported.items()
        ),
        finalized_features_epoch=features.epoch,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(levels.items())
        ),
    )


def of_any_cluster(request: ApiVersionsRequest) -> ApiVersionsRequest:
    """Return the same question to any cluster and broker; one that names half of it is unchanged."""
    halved = (request.cluster_id is None) != (request.node_id == NO_NODE)
    return request if halved else replace(request, cluster_id=None, node_id=NO_NODE)


def unsupported(broker: Dispatcher) -> ApiVersionsResponse:
    """Return the version 0 answer to a version that is not served: the versions that are."""
    own = _served(broker, ApiVersionsRequest.API)
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(own,))


def _served(broker: Dispatcher, key: int) -> ApiVersion:
    versions = broker.versions(key)
    assert versions is not None
    # librdkafka takes a broker without Produce 0 for one too old to compress (KAFKA-18659)
    first = 0 if key == ProduceRequest.API else versions[0]
    return ApiVersion(api_key=key, min_version=first, max_version=versions[-1])


APIS = (Api(ApiVersionsRequest, api_versions),)
