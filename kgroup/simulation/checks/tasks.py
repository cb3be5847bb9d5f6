"""What must hold for the tasks of streams groups, from their records alone (KIP-1071, KIP-1251)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import StreamsMember
from kgroup.coordinator.streams.topology import required_topics
from kgroup.coordinator.topic_hashes import group_hash, topic_hash
from kgroup.domain import TopicImage, TopicPartition
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kgroup.protocol.streams_records import StreamsGroupTopologyValue, sources_of
from kgroup.simulation.checks.violation import Violation

Task = tuple[str, int]


def held_once(group: StreamsGroup) -> None:
    """Raise Violation if a task is active twice, or a process has it twice, in any role.

    A member still has the tasks that it has yet to give up.
    """
    active: dict[Task, str] = {}
    copies: dict[tuple[str, Task], tuple[str, str]] = {}
    for member in group.members.values():
        for when, held in (("assigned", member.current.assigned), ("revoking", member.current.revoking)):
            for task in _each(held.active):
                other = active.setdefault(task, member.member_id)
                if other != member.member_id:
                    raise Violation(
                        "one owner at a time", f"task {task} of {group.group_id}: {other}, {member.member_id}"
                    )
            for role in ("active", "standby", "warmup"):
                for task in _each(getattr(held, role)):
                    mine = member.member_id, f"{role}, {when}"
                    other_member, other_role = copies.setdefault((member.process_id, task), mine)
                    # A member that runs a task and becomes its standby gives up one as it takes the other
                    # (4.4).
                    changes = other_role == "standby, assigned" and mine[1] == "active, revoking"
                    if (other_member, other_role) != mine and not (other_member == mine[0] and changes):
                        raise Violation(
                            "a process has a task once",
                            f"{member.process_id} has {task} of {group.group_id} as {other_role} "
                            f"of {other_member} and as {mine[1]} of {mine[0]}",
                        )


def covered(group: StreamsGroup, images: Sequence[TopicImage]) -> None:
    """Raise Violation unless the target of a group that can run has each task once, and its copies apart.

    It is made for the topics of its metadata hash, looked up in `images`, all that existed: the first
    assignment waits, and is for the topics that the last heartbeat saw.
    """
    topology = group.topology
    if topology is None or topology.epoch != group.validated_topology_epoch:
        return
    # Members have left since, with their targets: the next target is for the remaining ones.
    if group.assignment_epoch != group.epoch or not group.members:
        return
    for seen in reversed(images):
        there = (seen.by_name[name] for name in required_topics(topology) if name in seen.by_name)
        if group_hash({topic.name: topic_hash(topic) for topic in there}) == group.metadata_hash:
            break
    else:
        raise Violation(
            "the metadata hash is of topics there were", f"{group.group_id}: {group.metadata_hash}"
        )
    expected = tasks_of(topology, sizes_of(seen))
    given = Counter(t for target in group.targets.values() for t in _each(target.active))
    if expected is not None and given != Counter(expected):
        off = sorted((given - Counter(expected)) + (Counter(expected) - given))
        raise Violation("the target covers each task once", f"{group.group_id}: {off[:5]}")
    at = Counter(
        (group.members[member_id].process_id, task)
        for member_id, target in group.targets.items()
        if member_id in group.members
        for tasks in (target.active, target.standby, target.warmup)
        for task in _each(tasks)
    )
    twice = sorted(copy for copy, count in at.items() if count > 1)
    if twice:
        raise Violation("a process has a task once", f"target of {group.group_id}: {twice[:5]}")


def tasks_of(topology: StreamsGroupTopologyValue, sizes: Mapping[str, int]) -> list[Task] | None:
    """Return the tasks of a topology for topics of these sizes; None if a topic is missing."""
    tasks: list[Task] = []
    for part in topology.subtopologies:
        names = sources_of(part)
        if any(name not in sizes for name in names):
            return None
        tasks += [(part.subtopology_id, number) for number in range(max(sizes[name] for name in names))]
    return tasks


def internal_topics(topology: StreamsGroupTopologyValue, sizes: Mapping[str, int]) -> dict[str, int] | None:
    """Return the sizes that internal topics must have; None while a source topic is missing.

    An independent statement for the topologies that runs generate: a repartition topic is made as large as
    the first subtopology that writes it, by id, and stays so; a changelog has a partition for each task.
    Taking the first, not the largest, is Kafka's way
    (RepartitionTopics.computeRepartitionTopicPartitionCount).
    """
    if any(name not in sizes for part in topology.subtopologies for name in part.source_topics):
        return None
    topics: dict[str, int] = {}
    for part in sorted(topology.subtopologies, key=lambda part: part.subtopology_id):
        for sink in part.repartition_sink_topics:
            topics.setdefault(sink, max(sizes[name] for name in part.source_topics))
    topics |= {name: sizes[name] for name in topics if name in sizes}
    made = Counter(subtopology for subtopology, _ in tasks_of(topology, {**sizes, **topics}) or ())
    for part in topology.subtopologies:
        topics |= {topic.name: made[part.subtopology_id] for topic in part.state_changelog_topics}
    return topics


def sizes_of(image: TopicImage) -> dict[str, int]:
    """Return the number of partitions by topic."""
    return {name: topic.partitions for name, topic in image.by_name.items()}


def read_by(group: StreamsGroup, member: StreamsMember, image: TopicImage) -> dict[TopicPartition, int]:
    """Return the partitions that a member may read, each with the epoch in which it got the task."""
    topology = group.topology
    if topology is None:
        return {}
    readers: dict[TopicPartition, int] = {}
    for part in topology.subtopologies:
        names = sources_of(part)
        for held in (member.current.assigned, member.current.revoking):
            for number, epoch in held.active.get(part.subtopology_id, {}).items():
                readers |= {
                    TopicPartition(n, number): epoch
                    for n in names
                    if number < (image.by_name[n].partitions if n in image.by_name else 0)
                }
    return readers


def may_report(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat above epoch 0 is of a member at its epoch, or a repetition."""
    member = group.members.get(request.member_id)
    if member is None:
        return False
    current = member.current
    if request.member_epoch == current.epoch:
        return True
    if request.member_epoch != current.previous_epoch or request.active_tasks is None:
        return False
    reported = (
        (request.active_tasks, current.assigned.active),
        (request.standby_tasks, current.assigned.standby),
    )
    return all(
        number in theirs.get(ids.subtopology_id, ())
        for listed, theirs in reported
        for ids in listed or ()
        for number in ids.partitions
    )


def _each(tasks: Mapping[str, Iterable[int]]) -> Iterator[Task]:
    return ((subtopology, number) for subtopology, numbers in tasks.items() for number in numbers)
