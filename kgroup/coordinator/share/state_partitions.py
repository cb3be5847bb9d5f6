"""The partitions whose state the share coordinator keeps for a group: record 15, and requests for it.

Before a partition is assigned, the share coordinator must have its state: a heartbeat that finds one without
lists it as initializing and leaves an `Initialize` for the host. Once that is done or has failed,
`initialized` or `abandoned` records it. A partition that stays initializing is requested again after a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kgroup.coordinator.share.group import Initialize, ShareGroup
from kgroup.coordinator.state import Step
from kgroup.domain import NO_OFFSET, TopicImage
from kgroup.protocol.releases import Change
from kgroup.protocol.share_records import (
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

Kept: TypeAlias = ShareGroupStatePartitionMetadataValue
Numbers: TypeAlias = dict[bytes, set[int]]
"""Topic id → partitions."""
NOTHING_KEPT = Kept()
NAME_UNKNOWN = "<UNKNOWN>"


def kept_of(group: ShareGroup) -> Kept:
    """Return what is recorded; of a group without the record, nothing."""
    return group.kept or NOTHING_KEPT


def numbers_of(topics: Iterable[TopicPartitionsInfo]) -> Numbers:
    """Return the partitions that a record lists."""
    return {topic.topic_id: set(topic.partitions) for topic in topics}


def missing(step: Step, group: ShareGroup, names: Iterable[str]) -> Numbers:
    """Return the partitions of subscribed topics that are neither initialized nor, lately, initializing."""
    kept = kept_of(group)
    since_ms = step.state.initializing_since_ms.get(group.group_id, 0)
    known = numbers_of(kept.initialized_topics)
    if step.now_ms - since_ms < step.config.share_initialize_retry_ms:
        _merge(known, numbers_of(kept.initializing_topics))
    numbers: Numbers = {}
    for name in names:
        topic = step.state.image.by_name.get(name)
        if topic is not None and len(known.get(topic.topic_id, ())) < topic.partitions:
            numbers[topic.topic_id] = set(range(topic.partitions)) - known.get(topic.topic_id, set())
    return numbers


def start(step: Step, group: ShareGroup, epoch: int, partitions: Numbers) -> Initialize:
    """Record the partitions as initializing; they begin where the group's settings say.

    Except new partitions of a topic that the group reads already: from Kafka 4.4 on they are read from their
    start, or what was produced before they were noticed would be skipped.
    """
    kept = kept_of(group)
    known = {topic.topic_id for topic in (*kept.initialized_topics, *kept.initializing_topics)}
    from_start = known if step.config.kafka.has(Change.NEW_PARTITIONS_FROM_START) else set()
    write_initializing(step, group, partitions)
    return Initialize(
        epoch,
        {
            topic_id: dict.fromkeys(sorted(numbers), 0 if topic_id in from_start else NO_OFFSET)
            for topic_id, numbers in partitions.items()
        },
    )


def write_initializing(step: Step, group: ShareGroup, partitions: Numbers) -> None:
    """Add partitions to those that are initializing; a topic among them is no longer being deleted."""
    if not partitions:
        return
    kept = kept_of(group)
    initializing = _merge(numbers_of(kept.initializing_topics), partitions)
    deleting = {topic.topic_id for topic in kept.deleting_topics} - initializing.keys()
    write(step, group.group_id, kept, initializing, numbers_of(kept.initialized_topics), deleting)


def initialized(step: Step, group: ShareGroup, partitions: Numbers) -> None:
    """Record that the share coordinator has the state of partitions: they may be assigned."""
    if not partitions:
        return
    kept = kept_of(group)
    done = _merge(numbers_of(kept.initialized_topics), partitions)
    left = _without(numbers_of(kept.initializing_topics), partitions)
    write(step, group.group_id, kept, left, done, {topic.topic_id for topic in kept.deleting_topics})


def abandoned(step: Step, group: ShareGroup, partitions: Numbers) -> None:
    """Record that the share coordinator rejected partitions; the next heartbeat asks again."""
    kept = kept_of(group)
    if not kept.initializing_topics or not partitions:
        return
    left = _without(numbers_of(kept.initializing_topics), partitions)
    done = numbers_of(kept.initialized_topics)
    write(step, group.group_id, kept, left, done, {topic.topic_id for topic in kept.deleting_topics})


def topics_deleted(step: Step, group: ShareGroup, topic_ids: Iterable[bytes]) -> None:
    """Remove deleted topics; the share coordinator removes them by itself."""
    kept, gone = kept_of(group), set(topic_ids)
    named = {topic.topic_id for topic in (*kept.initializing_topics, *kept.initialized_topics)}
    deleting = {topic.topic_id for topic in kept.deleting_topics}
    if gone.isdisjoint(named | deleting):
        return
    left, done = (
        {topic_id: numbers for topic_id, numbers in numbers_of(topics).items() if topic_id not in gone}
        for topics in (kept.initializing_topics, kept.initialized_topics)
    )
    write(step, group.group_id, kept, left, done, deleting - gone)


def write(
    step: Step, group_id: str, before: Kept, initializing: Numbers, done: Numbers, deleting: Iterable[bytes]
) -> None:
    """Write record 15: what is being initialized, initialized and deleted; a topic keeps its old name."""
    image = step.state.image
    names = {topic.topic_id: topic.topic_name for topic in before.deleting_topics}
    for topic in (*before.initialized_topics, *before.initializing_topics):
        names[topic.topic_id] = topic.topic_name
    value = Kept(
        initializing_topics=_infos(image, names, initializing),
        initialized_topics=_infos(image, names, done),
        deleting_topics=tuple(
            TopicInfo(topic_id=topic_id, topic_name=_name(image, names, topic_id))
            for topic_id in sorted(deleting)
        ),
    )
    step.write(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)
    step.defer(lambda: step.state.initializing_since_ms.__setitem__(group_id, step.now_ms))


def _infos(image: TopicImage, names: Mapping[bytes, str], topics: Numbers) -> tuple[TopicPartitionsInfo, ...]:
    return tuple(
        TopicPartitionsInfo(
            topic_id=topic_id, topic_name=_name(image, names, topic_id), partitions=tuple(sorted(numbers))
        )
        for topic_id, numbers in sorted(topics.items())
    )


def _name(image: TopicImage, names: Mapping[bytes, str], topic_id: bytes) -> str:
    return image.name_of(topic_id) or names.get(topic_id, NAME_UNKNOWN)


def _merge(into: Numbers, more: Numbers) -> Numbers:
    for topic_id, numbers in more.items():
        into.setdefault(topic_id, set()).update(numbers)
    return into


def _without(numbers: Numbers, gone: Numbers) -> Numbers:
    """Return what is left; an untouched topic stays even without partitions, as in Kafka."""
    left = {topic_id: partitions - gone.get(topic_id, set()) for topic_id, partitions in numbers.items()}
    return {topic_id: numbers for topic_id, numbers in left.items() if numbers or topic_id not in gone}
