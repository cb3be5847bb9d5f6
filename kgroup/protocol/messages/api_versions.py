"""ApiVersions (key 18): which APIs and versions a broker serves; the first request of a connection.

A broker that does not know the request's version answers in version 0 with UNSUPPORTED_VERSION and its
own range for this API (KIP-511). The response header is always version 0, also in flexible versions.

- 1: throttle time
- 2: throttled after the answer is sent
- 3: flexible; client software name and version; features as tagged fields
- 4: a feature's lowest supported version may be 0
- 5: cluster and broker that the client means to ask (KIP-1242)

Errors: UNSUPPORTED_VERSION, INVALID_REQUEST, REBOOTSTRAP_REQUIRED (5).
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int16, Int32, Int64, Since, String, Tagged


class ApiVersionsRequest(Message, api=18, versions=range(6), flexible=3):
    client_software_name: Annotated[String, Since(3)] = ""
    client_software_version: Annotated[String, Since(3)] = ""
    cluster_id: Annotated[String | None, Since(5)] = None
    node_id: Annotated[Int32, Since(5)] = -1


class ApiVersion(Struct):
    """One API and the versions served."""

    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class SupportedFeatureKey(Struct):
    """A feature and the levels the broker supports."""

    name: String = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


class FinalizedFeatureKey(Struct):
    """A feature and the levels in force in the whole cluster."""

    name: String = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


class ApiVersionsResponse(Message, answers=ApiVersionsRequest):
    error_code: Int16 = 0
    api_keys: tuple[ApiVersion, ...] = ()
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    supported_features: Annotated[tuple[SupportedFeatureKey, ...], Since(3), Tagged(0)] = ()
    finalized_features_epoch: Annotated[Int64, Since(3), Tagged(1)] = -1
    finalized_features: Annotated[tuple[FinalizedFeatureKey, ...], Since(3), Tagged(2)] = ()
    zk_migration_ready: Annotated[Bool, Since(3), Tagged(3)] = False
