"""UpdateFeatures: the levels of the cluster's features, checked as Kafka's FeatureControlManager does."""

from __future__ import annotations

from collections.abc import Mapping

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher, refusing
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.update_features import (
    FeatureUpdateKey,
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
    for update in request.feature_updates:
        try:
            _check(levels.get(update.feature, 0), update, broker.cluster.kafka.levels)
        except Refused as refused:
            return UpdateFeaturesResponse(
                error_code=refused.code,
                error_message="The update failed for all features since the following feature had an error: "
                f"{refused.message}",
            )
    if not request.validate_only:
        changes = {update.feature: update.max_version_level for update in request.feature_updates}
        broker.cluster.catalog.finalize_features({**levels, **changes})
    results: tuple[UpdatableFeatureResult, ...] = ()
    if call.version <= RESULTS_UNTIL:
        results = tuple(UpdatableFeatureResult(feature=update.feature) for update in request.feature_updates)
    return UpdateFeaturesResponse(results=results)


def _check(present: int, update: FeatureUpdateKey, supported: Mapping[str, int]) -> None:
    wanted, kind = update.max_version_level, update.upgrade_type
    problem = None
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        problem = "The controller does not support the given upgrade type."
    elif wanted < 0:
        problem = "A feature version cannot be less than 0."
    elif update.feature not in supported:
        problem = "Local controller 0 does not support this feature."
    elif wanted > supported[update.feature]:
        problem = f"Local controller 0 only supports versions 0-{supported[update.feature]}"
    elif wanted < present and kind == UPGRADE:
        problem = (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe "
            "or unsafe downgrade."
        )
    elif wanted > present and kind != UPGRADE:
        problem = "Can't downgrade to a newer version."
    if problem is not None:
        raise Refused(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid update version {wanted} for feature {update.feature}. {problem}",
        )


APIS = (Api(UpdateFeaturesRequest, update_features, refusing(UpdateFeaturesResponse)),)
