"""Where the leader epochs of committed offsets end: if before the offset, the log was cut there since.

A leader that lacks the last records of the one before, elected uncleanly or with a lost disk, begins its
epoch where its own log ends (KIP-101, KIP-320).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import Commits, TopicDescription
from kgroup.admin.read.offsets import CONSUMER_REPLICA, ListedOffset, ask_leaders, by_topic, log_refused
from kgroup.admin.refusals import code_name, naming
from kgroup.admin.statuses import Unseen
from kgroup.domain import TopicPartition, grouped
from kgroup.errors import ErrorCode, KgroupError
from kgroup.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

EpochEnds: TypeAlias = Mapping[TopicPartition, Mapping[int, int | Unseen]]
"""By partition and leader epoch: the offset at which the next one begins, or why that is not known."""


def epoch_ends(
    cluster: ClusterView,
    stored: Iterable[Commits],
    ends: Mapping[TopicPartition, ListedOffset | KgroupError],
    topics: Answers[TopicDescription],
) -> EpochEnds:
    """Return where the epochs of committed offsets end, of those that are over: one request for each leader.

    Where groups committed a partition in several epochs, it takes as many.
    """
    present = {p: end.leader_epoch for p, end in ends.items() if isinstance(end, ListedOffset)}
    over: defaultdict[TopicPartition, set[int]] = defaultdict(set)
    for alike in grouped((id(commits.places), commits) for commits in stored).values():
        at_each = zip(*[commits.epochs for commits in alike], strict=True)
        for partition, epochs in zip(alike[0].places, at_each, strict=True):
            now = present.get(partition, -1)
            if those := {epoch for epoch in set(epochs) if 0 <= epoch < now}:
                over[partition] |= those
    known: dict[TopicPartition, dict[int, int | Unseen]] = {partition: {} for partition in over}
    while asked := {partition: epochs.pop() for partition, epochs in over.items() if epochs}:
        for partition, end in _asked(cluster, asked, topics).items():
            known[partition][asked[partition]] = end
    return known


def _asked(
    cluster: ClusterView, epochs: Mapping[TopicPartition, int], topics: Answers[TopicDescription]
) -> dict[TopicPartition, int | Unseen]:
    def ask(leader: int, places: Sequence[TopicPartition]) -> dict[TopicPartition, int | KgroupError]:
        return _ask(cluster, leader, {partition: epochs[partition] for partition in places})

    what = "whether a new leader cut its log is not known: "
    return {
        partition: Unseen("leader epochs", code_name(end), what + naming(partition, end.message))
        if isinstance(end, KgroupError)
        else end
        for partition, end in ask_leaders(cluster, epochs, topics, ask).items()
    }


def _ask(
    cluster: ClusterView, leader: int, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | KgroupError]:
    request = OffsetForLeaderEpochRequest(
        replica_id=CONSUMER_REPLICA,
        topics=tuple(
            OffsetForLeaderTopic(
                topic=name,
                partitions=tuple(
                    OffsetForLeaderPartition(partition=p.partition, leader_epoch=epochs[p]) for p in places
                ),
            )
            for name, places in by_topic(epochs)
        ),
    )
    answer = cluster.ask(leader, request, OffsetForLeaderEpochResponse)
    # Of an epoch that is over a leader knows the end; -1 says that this one does not.
    unknown = ErrorCode.UNKNOWN_LEADER_EPOCH
    return {
        (at := TopicPartition(topic.topic, p.partition)): p.end_offset
        if not p.error_code and p.end_offset >= 0
        else log_refused(at, p.error_code or unknown)
        for topic in answer.topics
        for p in topic.partitions
    }
