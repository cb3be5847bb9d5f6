"""Client-side assignors: a member computes the target (KIP-848 describes them, no released Kafka has them).

An experiment, off unless `kgroup.client.assignors.enable` is true. A group uses them while every member
offers one that all can run. Then a heartbeat's answer names one member (`should_compute_assignment`). It
fetches the group at an epoch with ConsumerGroupPrepareAssignment and sends its result with
ConsumerGroupInstallAssignment. If a member refuses, the server's assignor computes that epoch.
"""

from __future__ import annotations

from collections.abc import Collection

from kgroup.coordinator.consumer.group import ConsumerGroup, listed
from kgroup.coordinator.consumer.member import ConsumerMember
from kgroup.coordinator.consumer.target import may_compute
from kgroup.coordinator.records import write_target_epoch
from kgroup.coordinator.state import Computation, Step
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.group_records import (
    ClientAssignor,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from kgroup.protocol.messages.consumer_group_heartbeat import Assignor as Offered
from kgroup.protocol.messages.consumer_group_install_assignment import (
    INVALID_ASSIGNMENT,
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentResponse,
)
from kgroup.protocol.messages.consumer_group_install_assignment import Member as Installed
from kgroup.protocol.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
    Member,
    TopicMetadata,
    TopicPartitions,
)


def recorded(offered: tuple[Offered, ...]) -> tuple[ClientAssignor, ...]:
    """Return what a heartbeat offers, as record 5 keeps it; in the member's order of preference."""
    return tuple(
        ClientAssignor(
            name=one.name,
            minimum_version=one.minimum_version,
            maximum_version=one.maximum_version,
            reason=one.reason,
            metadata_version=one.metadata_version,
            metadata_bytes=one.metadata_bytes,
        )
        for one in offered
    )


def chosen_assignor(members: Collection[ConsumerMember]) -> str | None:
    """Return the assignor most members prefer among those all can run; None if there is none.

    All can run one when all offer it, and each one's metadata version is within the range of all.
    """
    offers = [{a.name: a for a in member.metadata.client_assignors} for member in members]
    if not offers or not all(offers):
        return None
    common = [name for name in offers[0] if all(name in offer for offer in offers)]
    common = [name for name in common if _compatible([offer[name] for offer in offers])]
    if not common:
        return None
    votes = [next(name for name in offer if name in common) for offer in offers]
    return max(common, key=votes.count)


def refuse_if_no_overlap(step: Step, group: ConsumerGroup, after: ConsumerMember) -> None:
    """Raise UNSUPPORTED_ASSIGNOR for a member that has no assignor in common with the others."""
    if not step.config.client_assignors or not after.metadata.client_assignors:
        return
    members = {**group.members, after.member_id: after}.values()
    offering = [member for member in members if member.metadata.client_assignors]
    if chosen_assignor(offering) is None:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            "None of the client assignors can be run by every member of the group.",
        )


def in_use(step: Step, group: ConsumerGroup, epoch: int, after: ConsumerMember) -> bool:
    """Return whether a member, not the server, computes the target of `epoch`."""
    if not step.config.client_assignors or group.assignment_epoch >= epoch:
        return False
    if step.state.refused_epochs.get(group.group_id) == epoch:
        return False
    return chosen_assignor({**group.members, after.member_id: after}.values()) is not None


def must_compute(step: Step, group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether this heartbeat's member must compute; it is chosen if no other member computes."""
    if not may_compute(step, group):
        return False
    computations = step.state.computations
    current = computations.get(group.group_id)
    gone = (
        current is not None
        and current.member_id not in group.members
        and current.member_id != member.member_id
    )
    if current is None or gone or step.now_ms >= current.deadline_ms:
        bound = step.now_ms + step.state.config_of(group.group_id).consumer_session_timeout_ms
        current = computations[group.group_id] = Computation(member.member_id, bound)
    return current.member_id == member.member_id


def prepare(
    step: Step, request: ConsumerGroupPrepareAssignmentRequest
) -> ConsumerGroupPrepareAssignmentResponse:
    """Return the group at its present epoch to the chosen member: members, assignors' metadata, topics.

    Within the assignment interval a member may have joined that has no assignor in common with the others:
    then UNSUPPORTED_ASSIGNOR, and the server computes this epoch.
    """
    group, computation = _checked(step, request.group_id, request.member_id, request.member_epoch)
    name = chosen_assignor(group.members.values())
    if name is None:
        message = "None of the client assignors can be run by every member of the group any more."
        raise Refused(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    by_name = step.state.image.by_name
    by_member = {
        m.member_id: [by_name[n] for n in group.topics_of(m) if n in by_name] for m in group.members.values()
    }
    topics = {topic.topic_id: topic for subscribed in by_member.values() for topic in subscribed}
    computation.epoch = group.epoch
    computation.instances = dict(group.static)
    computation.subscribed = {m: frozenset(t.topic_id for t in topics) for m, topics in by_member.items()}
    computation.partitions = {topic_id: topic.partitions for topic_id, topic in topics.items()}
    return ConsumerGroupPrepareAssignmentResponse(
        group_epoch=group.epoch,
        assignor_name=name,
        members=tuple(_described(group, member, name) for member in group.members.values()),
        topics=tuple(
            TopicMetadata(topic_id=t.topic_id, topic_name=t.name, num_partitions=t.partitions)
            for t in topics.values()
        ),
    )


def install(
    step: Step, request: ConsumerGroupInstallAssignmentRequest
) -> ConsumerGroupInstallAssignmentResponse:
    """Make the chosen member's result the target of the epoch it was computed for.

    If the group has moved on since, that target is in force until the next is computed. An epoch that
    already has a target, or is older than one that has, is refused: target epochs never fall.
    """
    group, computation = _checked(step, request.group_id, request.member_id, request.member_epoch)
    if request.error:
        step.state.refused_epochs[group.group_id] = group.epoch
        del step.state.computations[group.group_id]
        return ConsumerGroupInstallAssignmentResponse()
    fault = _fault(group, computation, request)
    if fault is not None:
        return ConsumerGroupInstallAssignmentResponse(error_code=INVALID_ASSIGNMENT, error_message=fault)
    given = {member.member_id: member for member in request.members}
    for member in group.members.values():
        computed_as = _handed_out_as(computation, member)
        if computed_as is not None:
            _write(step, group, member.member_id, given.get(computed_as) or Installed(member_id=computed_as))
    write_target_epoch(step, group, request.group_epoch, step.now_ms)
    del step.state.computations[group.group_id]
    return ConsumerGroupInstallAssignmentResponse()


def _checked(step: Step, group_id: str, member_id: str, epoch: int) -> tuple[ConsumerGroup, Computation]:
    group = step.state.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    member = group.members.get(member_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")
    if epoch != member.epoch:
        raise Refused(ErrorCode.STALE_MEMBER_EPOCH, f"The member is at epoch {member.epoch}, not {epoch}.")
    computation = step.state.computations.get(group_id)
    if computation is None or computation.member_id != member_id:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} was not asked to compute.")
    return group, computation


def _handed_out_as(computation: Computation, member: ConsumerMember) -> str | None:
    """Return the member id that Prepare handed out; None for a member that joined since.

    A static member that rejoined since has a new id, and has inherited the target of the old one.
    """
    if member.member_id in computation.subscribed:
        return member.member_id
    return computation.instances.get(member.instance_id or "")


def _fault(
    group: ConsumerGroup, computation: Computation, request: ConsumerGroupInstallAssignmentRequest
) -> str | None:
    """Return what does not match what was handed out; None for an assignment that can be installed."""
    if request.group_epoch != computation.epoch:
        return f"computed for epoch {request.group_epoch}, but epoch {computation.epoch} was handed out"
    if not group.assignment_epoch < request.group_epoch <= group.epoch:
        return f"computed for epoch {request.group_epoch}, but epoch {group.assignment_epoch} has its target"
    taken: set[tuple[bytes, int]] = set()
    failed = {member.member_id for member in request.members if member.error}
    for member_id, held in group.members.items():
        # A member without a result keeps its partitions: no other may be assigned them.
        if _handed_out_as(computation, held) in (None, *failed):
            taken.update((t, n) for t, numbers in group.target_of(member_id).items() for n in numbers)
    return next(
        filter(None, (_fault_of_member(computation, member, taken) for member in request.members)), None
    )


def _fault_of_member(
    computation: Computation, member: Installed, taken: set[tuple[bytes, int]]
) -> str | None:
    """Return the same for one member; add its partitions to `taken`."""
    subscribed = computation.subscribed.get(member.member_id)
    if subscribed is None:
        return f"no member {member.member_id}"
    for topic in () if member.error else member.topic_partitions:
        if topic.topic_id not in subscribed:
            return f"member {member.member_id} does not subscribe to topic id {topic.topic_id.hex()}"
        for partition in topic.partitions:
            if not 0 <= partition < computation.partitions[topic.topic_id]:
                return f"topic id {topic.topic_id.hex()} has no partition {partition}"
            if (topic.topic_id, partition) in taken:
                return f"partition {partition} of topic id {topic.topic_id.hex()} is given away twice"
            taken.add((topic.topic_id, partition))
    return None


def _write(step: Step, group: ConsumerGroup, member_id: str, given: Installed) -> None:
    """Write record 7 with the assignor's metadata for the member; with an error the old partitions stay."""
    target = {t.topic_id: tuple(sorted(t.partitions)) for t in given.topic_partitions}
    if given.error:
        target = dict(group.target_of(member_id))
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=listed(target),
        error=given.error,
        metadata_version=given.metadata_version,
        metadata_bytes=given.metadata_bytes,
    )
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group.group_id, member_id=member_id)
    step.write(key, value)


def _described(group: ConsumerGroup, member: ConsumerMember, assignor: str) -> Member:
    offered = next(a for a in member.metadata.client_assignors if a.name == assignor)
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.metadata.rack_id,
        subscribed_topic_names=tuple(sorted(group.topics_of(member))),
        reason=offered.reason,
        metadata_version=offered.metadata_version,
        metadata_bytes=offered.metadata_bytes,
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in group.target_of(member.member_id).items()
        ),
    )


def _compatible(offered: list[ClientAssignor]) -> bool:
    least = max(one.minimum_version for one in offered)
    most = min(one.maximum_version for one in offered)
    return all(least <= one.metadata_version <= most for one in offered)
