"""The history of groups, as the live `__consumer_offsets` has it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.read.today import today
from kgroup.errors import DecodeError, KgroupError
from kgroup.history.fold.folding import NO_EXTRAS, Extras
from kgroup.history.log_items import BadRange, not_read
from kgroup.history.replay import Story, replay
from kgroup.history.sources.live import LiveLog, LiveTopic

T = TypeVar("T")


def story_of(cluster: ClusterView, group_id: str | None = None) -> Story:
    """Return the records' history of a group, or of all groups.

    Raise BrokerRefused where they may not be read to their end.
    """
    topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)
    logs = [topic.log(p) for p in (topic.partitions if group_id is None else topic.by_partition([group_id]))]
    return replay(
        logs,
        topic_names=topic.topic_names,
        names=None if group_id is None else [group_id],
        extras=Extras(today(cluster, topic.leaders[logs[0].partition])),
    )


def whole_story(
    log: LiveLog, names: Sequence[str], topic_names: Mapping[bytes, str], extras: Extras = NO_EXTRAS
) -> Story:
    """Return the records' history of groups in one partition; raise DecodeError where a part is damaged."""
    story = replay([log], topic_names=topic_names, names=names, extras=extras)
    check_whole(log, story.bad)
    return story


def check_whole(log: LiveLog, bad: Sequence[BadRange]) -> None:
    """Raise DecodeError if a part is damaged: it may be the newest, and nothing follows from the rest."""
    if bad:
        hint = "make a replica with a sound copy the leader, as kafka-dump-log.sh on each broker shows"
        raise DecodeError(not_read(log.source, bad), hint)


def read_each(
    topic: LiveTopic, group_ids: Iterable[str], read: Callable[[LiveLog, list[str]], Mapping[str, T]]
) -> Answers[T]:
    """Return the result of `read` for each group in the log of its partition, each read once.

    The failure to read a partition is the answer for its groups.
    """
    answers: Answers[T] = {}
    for partition, names in topic.by_partition(group_ids).items():
        try:
            answers |= read(topic.log(partition), names)
        except KgroupError as error:
            answers |= dict.fromkeys(names, error)
    return answers
