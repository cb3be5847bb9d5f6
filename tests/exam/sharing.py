"""Members of share groups: they acquire records at each leader, and say what they made of them.

What was acquired and not finished comes back when its lock times out (KIP-932).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kgroup.domain import TopicPartition
from kgroup.protocol.messages import share_acknowledge as acknowledging
from kgroup.protocol.messages import share_fetch as fetching
from kgroup.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

from .machine import Machine

ACCEPT, RELEASE, RENEW = 1, 2, 4
ALL, ONE = 500, 1
Acquired = Sequence[fetching.AcquiredRecords]


class Back(NamedTuple):
    """A record whose delivery ended without an end of it."""

    offset: int
    ms: int
    deliveries: int


class ShareMember:
    """One member's place in the group, and its sessions with the brokers."""

    def __init__(self, machine: Machine, group: str, member_id: str, topics: Iterable[str]) -> None:
        self.machine, self.group, self.member_id = machine, group, member_id
        self.topics = tuple(topics)
        self.epoch = 0
        self._sessions: defaultdict[int, int] = defaultdict(int)
        self._asked: defaultdict[int, set[TopicPartition]] = defaultdict(set)

    def beat(self, epoch: int | None = None) -> None:
        """Send a heartbeat: 0 joins, -1 leaves."""
        sent = self.epoch if epoch is None else epoch
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=sent,
            subscribed_topic_names=self.topics if sent == 0 else None,
        )
        answer = self.machine.ask(request, ShareGroupHeartbeatResponse, who=f"{self.group}-a")
        assert answer.error_code == 0, answer
        self.epoch = answer.member_epoch

    def take(self, place: TopicPartition, most: int = ALL) -> Acquired:
        """Acquire records of a partition, and leave its session's others alone."""
        node = self.machine.leader_of(place)
        topic_id = self.machine.topic_id(place.topic)
        others = self._asked[node] - {place}
        self._asked[node] = {place}
        wanted = fetching.FetchPartition(partition_index=place.partition)
        request = fetching.ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self._sessions[node],
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            max_records=most,
            batch_size=most,
            share_acquire_mode=int(most == ONE),
            topics=(fetching.FetchTopic(topic_id=topic_id, partitions=(wanted,)),),
            forgotten_topics_data=tuple(
                fetching.ForgottenTopic(topic_id=self.machine.topic_id(at.topic), partitions=(at.partition,))
                for at in others
            ),
        )
        answer = self.machine.ask(request, fetching.ShareFetchResponse, node=node)
        assert answer.error_code == 0, answer
        self._sessions[node] += 1
        parts = ((topic.topic_id, part) for topic in answer.responses for part in topic.partitions)
        here = (part for of, part in parts if (of, part.partition_index) == (topic_id, place.partition))
        return [each for part in here for each in part.acquired_records]

    def say(self, place: TopicPartition, got: Acquired, kind: int) -> None:
        """Accept, release or renew what was acquired."""
        node = self.machine.leader_of(place)
        batches = tuple(
            fetching.AcknowledgementBatch(
                first_offset=each.first_offset, last_offset=each.last_offset, acknowledge_types=(kind,)
            )
            for each in got
        )
        part = acknowledging.AcknowledgePartition(
            partition_index=place.partition, acknowledgement_batches=batches
        )
        topic = acknowledging.AcknowledgeTopic(
            topic_id=self.machine.topic_id(place.topic), partitions=(part,)
        )
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self._sessions[node],
            is_renew_ack=kind == RENEW,
            topics=(topic,),
        )
        done = self.machine.ask(request, acknowledging.ShareAcknowledgeResponse, node=node)
        assert done.error_code == 0, done
        assert not any(p.error_code for topic in done.responses for p in topic.partitions), done
        self._sessions[node] += 1

    def close(self) -> None:
        """End its sessions: what it has comes back."""
        for node, epoch in self._sessions.items():
            if epoch:
                request = acknowledging.ShareAcknowledgeRequest(
                    group_id=self.group, member_id=self.member_id, share_session_epoch=-1
                )
                self.machine.ask(request, acknowledging.ShareAcknowledgeResponse, node=node)
        self._sessions.clear()
