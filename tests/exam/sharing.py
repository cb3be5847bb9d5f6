"""A member of a share group: it fetches and accepts records, at the leader of each partition (KIP-932)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kgroup.domain import TopicPartition
from kgroup.protocol.messages import share_acknowledge as acknowledging
from kgroup.protocol.messages import share_fetch as fetching
from kgroup.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

from .machine import Machine

ACCEPT = 1


class ShareMember:
    """One member's place in the group, and its sessions with the brokers."""

    def __init__(self, machine: Machine, group: str, member_id: str, topics: Iterable[str]) -> None:
        self.machine, self.group, self.member_id = machine, group, member_id
        self.topics = tuple(topics)
        self.epoch = 0
        self._sessions: defaultdict[int, int] = defaultdict(int)

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

    def read(self, place: TopicPartition) -> dict[TopicPartition, int]:
        """Accept all records that a fetch brings; return the last one's offset by partition."""
        node = self.machine.leader_of(place)
        wanted = fetching.FetchTopic(
            topic_id=self.machine.topic_id(place.topic),
            partitions=(fetching.FetchPartition(partition_index=place.partition),),
        )
        request = fetching.ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self._sessions[node],
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=500,
            topics=(wanted,),
        )
        answer = self.machine.ask(request, fetching.ShareFetchResponse, node=node)
        assert answer.error_code == 0, answer
        self._sessions[node] += 1
        names = {self.machine.topic_id(topic): topic for topic in self.topics}
        # The session brings what came in its other partitions, too.
        got = {
            (topic.topic_id, data.partition_index): data.acquired_records
            for topic in answer.responses
            for data in topic.partitions
            if data.acquired_records
        }
        if got:
            self._accept(node, got)
        return {
            TopicPartition(names[topic_id], number): max(each.last_offset for each in acquired)
            for (topic_id, number), acquired in got.items()
        }

    def _accept(self, node: int, got: Mapping[tuple[bytes, int], Iterable[fetching.AcquiredRecords]]) -> None:
        said = tuple(
            acknowledging.AcknowledgeTopic(
                topic_id=topic_id,
                partitions=(
                    acknowledging.AcknowledgePartition(
                        partition_index=number,
                        acknowledgement_batches=tuple(
                            fetching.AcknowledgementBatch(
                                first_offset=each.first_offset,
                                last_offset=each.last_offset,
                                acknowledge_types=(ACCEPT,),
                            )
                            for each in acquired
                        ),
                    ),
                ),
            )
            for (topic_id, number), acquired in got.items()
        )
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self._sessions[node],
            topics=said,
        )
        done = self.machine.ask(request, acknowledging.ShareAcknowledgeResponse, node=node)
        assert done.error_code == 0, done
        self._sessions[node] += 1
