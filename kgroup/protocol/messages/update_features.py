"""UpdateFeatures (key 57): raise or lower the levels of the cluster's features (KIP-584).

- 1: upgrade types in place of a flag, dry run (KIP-778)
- 2: one error for all instead of one for each (KIP-1022)

Errors: INVALID_UPDATE_VERSION, FEATURE_UPDATE_FAILED, INVALID_REQUEST, NOT_CONTROLLER, REQUEST_TIMED_OUT,
CLUSTER_AUTHORIZATION_FAILED.
"""

from typing import Annotated

from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.types import Bool, Int8, Int16, Int32, Since, String, Until


class FeatureUpdateKey(Struct):
    """Upgrade type 1 only raises, 2 lowers when nothing is lost by it, 3 lowers anyway."""

    feature: String
    max_version_level: Int16
    allow_downgrade: Annotated[Bool, Until(0)] = False
    upgrade_type: Annotated[Int8, Since(1)] = 1


class UpdateFeaturesRequest(Message, api=57, versions=range(3), flexible=0):
    timeout_ms: Int32 = 60000
    feature_updates: tuple[FeatureUpdateKey, ...] = ()
    validate_only: Annotated[Bool, Since(1)] = False


class UpdatableFeatureResult(Struct):
    feature: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class UpdateFeaturesResponse(Message, answers=UpdateFeaturesRequest):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    results: Annotated[tuple[UpdatableFeatureResult, ...], Until(1)] = ()
