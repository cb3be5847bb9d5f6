"""How the live topic finds the leaders of its partitions, and how often it asks for them."""

from typing import Any

import pytest

from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import BrokerRefused, ErrorCode
from kgroup.history.sources.live import LiveTopic
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kgroup.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class Brokers:
    """Brokers that lead what `leaders` says, -1 for nobody, and count how often they are asked for it."""

    def __init__(self, leaders: dict[int, int]) -> None:
        self.leaders = leaders
        self.asked_for_leaders = 0

    def request(self, node: int | None, message: Message, **_: Any) -> Message:
        if isinstance(message, MetadataRequest):
            self.asked_for_leaders += 1
            return self._metadata()
        assert isinstance(message, ListOffsetsRequest)
        (asked,) = message.topics[0].partitions
        moved = self.leaders[asked.partition_index] != node
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER if moved else ErrorCode.NONE
        told = ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, error_code=code, offset=-1 if moved else 7
        )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=OFFSETS_TOPIC, partitions=(told,)),))

    def _metadata(self) -> Message:
        parts = tuple(
            MetadataResponsePartition(partition_index=number, leader_id=leader)
            for number, leader in self.leaders.items()
        )
        return MetadataResponse(topics=(MetadataResponseTopic(name=OFFSETS_TOPIC, partitions=parts),))


def refused(topic: LiveTopic, partition: int) -> int:
    with pytest.raises(BrokerRefused) as error:
        topic.offset_at(partition, -1)
    return error.value.code


def test_leaders_that_there_are_not_are_looked_up_once_a_round() -> None:
    brokers = Brokers({0: 1, 1: -1, 2: -1, 3: -1})
    topic = LiveTopic(brokers)
    begun = brokers.asked_for_leaders
    for rounds in (1, 2):
        codes = {refused(topic, partition) for partition in (1, 2, 3)}
        assert codes == {ErrorCode.LEADER_NOT_AVAILABLE}
        assert topic.offset_at(0, -1) == 7
        assert brokers.asked_for_leaders == begun + rounds
        topic.try_again()


def test_a_leader_that_was_elected_meanwhile_is_found() -> None:
    brokers = Brokers({0: 1, 1: -1})
    topic = LiveTopic(brokers)
    brokers.leaders[1] = 2
    assert topic.offset_at(1, -1) == 7


def test_a_leader_that_moved_is_found_though_others_have_none() -> None:
    brokers = Brokers({0: 1, 1: -1})
    topic = LiveTopic(brokers)
    refused(topic, 1)
    brokers.leaders[0] = 2
    assert topic.offset_at(0, -1) == 7
