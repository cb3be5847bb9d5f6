"""Members of a consumer group that are gone for good, and the type of the group without them (KIP-848)."""

from __future__ import annotations

from collections.abc import Collection

from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.leave import remove
from kgroup.coordinator.consumer.member import ConsumerMember
from kgroup.coordinator.migration.downgrade import can_downgrade, downgrade
from kgroup.coordinator.state import Step


def fence(step: Step, group: ConsumerGroup, gone: Collection[ConsumerMember]) -> None:
    """Remove the members; when only classic-protocol ones stay, the group becomes a classic one instead.

    Whether they left, were removed, or let a timer run out makes no difference to the group.
    """
    if not gone:
        return
    if can_downgrade(step, group, gone):
        downgrade(step, group, gone)
    else:
        remove(step, group, gone)
