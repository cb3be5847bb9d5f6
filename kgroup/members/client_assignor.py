"""A member's half of client-side assignors, which KIP-848 describes and no released Kafka has.

The coordinator asks one member to compute: the member fetches the group (ConsumerGroupPrepareAssignment),
runs its assignor, and returns the result (ConsumerGroupInstallAssignment). An experiment.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kgroup.coordinator.assignors.interface import Assignor, AssignorError, GroupSpec, MemberSpec
from kgroup.domain import Topic
from kgroup.protocol.messages import consumer_group_heartbeat as heartbeat
from kgroup.protocol.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
    Member,
    TopicPartitions,
)
from kgroup.protocol.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentResponse,
)

COMPUTATION_FAILED = 1
"""Our assignors' own error code: no assignment could be computed."""


@dataclass(frozen=True, slots=True)
class OfferedAssignor:
    """An assignor a member can run, and what it reports to the others about it.

    `metadata` (of `version`) is sent to the member that computes; `handed_out` is what this member, when it
    computes, sends every member with its partitions.
    """

    assignor: Assignor
    minimum_version: int = 0
    maximum_version: int = 0
    version: int = 0
    reason: int = 0
    metadata: bytes = b""
    handed_out: bytes = b""


def offer(offered: Sequence[OfferedAssignor]) -> tuple[heartbeat.Assignor, ...] | None:
    """Return the assignors as a heartbeat lists them, most wanted first; None if there are none."""
    return (
        tuple(
            heartbeat.Assignor(
                name=one.assignor.name,
                minimum_version=one.minimum_version,
                maximum_version=one.maximum_version,
                reason=one.reason,
                metadata_version=one.version,
                metadata_bytes=one.metadata,
            )
            for one in offered
        )
        or None
    )


def compute(
    offered: Sequence[OfferedAssignor],
    prepared: ConsumerGroupPrepareAssignmentResponse,
    group_id: str,
    member_id: str,
    epoch: int,
) -> ConsumerGroupInstallAssignmentRequest:
    """Return the assignment of the group to install, or its error if none can be computed."""
    chosen = next((one for one in offered if one.assignor.name == prepared.assignor_name), None)
    members: tuple[Member, ...] = ()
    if chosen is not None:
        try:
            members = _assign(chosen, prepared)
        except AssignorError:
            chosen = None
    return ConsumerGroupInstallAssignmentRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        group_epoch=prepared.group_epoch,
        error=0 if chosen is not None else COMPUTATION_FAILED,
        members=members,
    )


def _assign(chosen: OfferedAssignor, prepared: ConsumerGroupPrepareAssignmentResponse) -> tuple[Member, ...]:
    topics = {t.topic_id: Topic(t.topic_name, t.topic_id, t.num_partitions) for t in prepared.topics}
    ids = {topic.name: topic.topic_id for topic in topics.values()}
    specs = {
        member.member_id: MemberSpec(
            frozenset(ids[name] for name in member.subscribed_topic_names if name in ids),
            {topic.topic_id: tuple(sorted(topic.partitions)) for topic in member.topic_partitions},
            member.instance_id,
            member.rack_id,
        )
        for member in prepared.members
    }
    homogeneous = len({spec.topic_ids for spec in specs.values()}) <= 1
    targets = chosen.assignor.assign(GroupSpec(specs, topics, homogeneous))
    return tuple(
        Member(
            member_id=member_id,
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, partitions=target[topic_id]) for topic_id in sorted(target)
            ),
            metadata_version=chosen.version,
            metadata_bytes=chosen.handed_out,
        )
        for member_id, target in sorted(targets.items())
    )
