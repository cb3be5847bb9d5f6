"""What a group has committed, for comparing before and after."""

from kgroup.admin.change.offset_plans import look
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)


def committed(client, group):
    """Offset, leader epoch and metadata by topic and partition."""
    found = look(client.admin, [group])[group]
    assert found.error is None
    return {
        (p.topic, p.partition): (at.offset, at.leader_epoch, at.metadata) for p, at in found.committed.items()
    }


def offsets(client, group):
    return {partition: at[0] for partition, at in committed(client, group).items()}


def commit_fully(client, group, topic, rows):
    """Commit {partition: (offset, leader epoch, metadata)} from outside the group."""
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=p,
            committed_offset=offset,
            committed_leader_epoch=epoch,
            committed_metadata=metadata,
        )
        for p, (offset, epoch, metadata) in rows.items()
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(OffsetCommitRequestTopic(name=topic, partitions=partitions),),
    )
    answer = client.transport.request(None, request, max_version=9)
    assert {p.error_code for t in answer.topics for p in t.partitions} == {0}
