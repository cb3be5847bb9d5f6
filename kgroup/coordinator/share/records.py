"""The removal of all records of a share group (KIP-932)."""

from __future__ import annotations

from kgroup.coordinator.records import forget_members
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Step
from kgroup.protocol import share_records as r


def forget_share_group(step: Step, group: ShareGroup) -> None:
    """Write tombstones of all records of a group without members, in the order replay asks for."""
    group_id = group.group_id
    step.defer(lambda: step.state.initializing_since_ms.pop(group_id, None))
    forget_members(step, group, (), ())
    step.write(r.ShareGroupStatePartitionMetadataKey(group_id=group_id), None)
    step.write(r.ShareGroupMetadataKey(group_id=group_id), None)
