"""What the member of a process believes, against what the records of its group say."""

from __future__ import annotations

from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.groups import Group
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import TopicImage, TopicPartition
from kgroup.members.classic import ClassicMember
from kgroup.members.consumer import ConsumerMember
from kgroup.members.streams import StreamsMember
from kgroup.simulation.checks import tasks
from kgroup.simulation.world.process import Process


def allowed(group: ConsumerGroup | StreamsGroup, member_id: str, image: TopicImage) -> set[TopicPartition]:
    """What the coordinator says a member may have, by its record."""
    if isinstance(group, StreamsGroup):
        return set(tasks.read_by(group, group.members[member_id], image))
    current = group.members[member_id].current
    return {
        TopicPartition(name, number)
        for held in (current.assigned, current.revoking)
        for topic_id, numbers in held.items()
        if (name := image.name_of(topic_id)) is not None
        for number in numbers
    }


def is_current(process: Process, group: Group | None) -> bool:
    """Whether the process is a member of the group as committed, and at its epoch."""
    member = process.member
    if member is None or group is None:
        return False
    if isinstance(group, ConsumerGroup | StreamsGroup):
        known = group.members.get(member.member_id)
        return known is not None and epoch_of(process) in (known.epoch, known.current.previous_epoch)
    return epoch_of(process) == group.committed.generation and any(
        stored.member_id == member.member_id for stored in group.committed.members
    )


def epoch_of(process: Process) -> int:
    """The generation or epoch the process's member believes to be at."""
    member = process.member
    if isinstance(member, ClassicMember):
        return member.generation
    return member.epoch if isinstance(member, ConsumerMember | StreamsMember) else -1
