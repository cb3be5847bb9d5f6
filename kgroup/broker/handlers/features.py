"""UpdateFeatures: the levels of the cluster's features, checked as Kafka's FeatureControlManager does."""

from __future__ import annotations

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
RESULTS_UNTIL = 1


def update_features(broker: Dispatcher, call: Call[UpdateFeaturesRequest]) -> UpdateFeaturesResponse:
    """Apply all of the updates or none; clients see the new levels from the next ApiVersions on."""
    request = call.body
    levels = dict(broker.cluster.catalog.features.levels)
    supported = broker.cluster.kafka.levels
    for update in request.feature_updates:
        present, level, kind = levels.get(update.feature, 0), update.max_version_level, update.upgrade_type
        problem = None
        if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            problem = "The controller does not support the given upgrade type."
        elif level < 0:
            problem = "A feature version cannot be less than 0."
        elif update.feature not in supported:
            problem = "Local controller 0 does not support this feature."
        elif level > supported[update.feature]:
            problem = f"Local controller 0 only supports versions 0-{supported[update.feature]}"
        elif level < present and kind == UPGRADE:
            problem = (
                "Can't downgrade the version of this feature without setting the upgrade type to either safe "
                "or unsafe downgrade."
            )
        elif level > present and kind != UPGRADE:
            problem = "Can't downgrade to a newer version."
        if problem is not None:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message="The update failed for all features since the following feature had an error: "
                f"Invalid update version {level} for feature {update.feature}. {problem}",
            )
    if not request.validate_only:
        changes = {update.feature: update.max_version_level for update in request.feature_updates}
        broker.cluster.catalog.finalize_features({**levels, **changes})
    answered = request.feature_updates if call.version <= RESULTS_UNTIL else ()
    results = tuple(UpdatableFeatureResult(feature=update.feature) for update in answered)
    return UpdateFeaturesResponse(results=results)


APIS = (Api(UpdateFeaturesRequest, update_features),)
