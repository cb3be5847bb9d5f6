"""inits, enlists, transacts, ends: offsets within transactions; the actor's name is its transactional id.

p inits                                     a producer id and epoch, which later rows use
p enlists [group=]                          needed before version 5 of `transacts`
p transacts [ID] [gen=1] [instance=] t1:0=5
p ends commit=true
"""

from __future__ import annotations

from typing import Any

from kgroup.protocol.codec import Message
from kgroup.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kgroup.protocol.messages.end_txn import EndTxnRequest
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

from .offset_verbs import results
from .verbs import Ask, Verb, alike, error

TOPIC_IDS_SINCE = 6


def _transactional_id(ask: Ask) -> str:
    return ask.names.prefix + ask.row.words[0]


def _producer(ask: Ask) -> tuple[int, int]:
    return ask.names.producers.get(ask.row.words[0], (-1, -1))


def _init(ask: Ask) -> Message:
    return InitProducerIdRequest(transactional_id=_transactional_id(ask), transaction_timeout_ms=60_000)


def _inited(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    if not response.error_code and response.producer_id >= 0:
        ask.names.producers[ask.row.words[0]] = response.producer_id, response.producer_epoch
    return error(response.error_code), {}


def _enlist(ask: Ask) -> Message:
    producer_id, epoch = _producer(ask)
    return AddOffsetsToTxnRequest(
        transactional_id=_transactional_id(ask),
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=ask.group_id,
    )


def _enlisted(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    return error(response.error_code), {}


def _transact(ask: Ask) -> Message:
    producer_id, epoch = _producer(ask)
    by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for name, value in ask.row.options.items():
        topic, colon, number = name.partition(":")
        if colon:
            place = TxnOffsetCommitRequestPartition(
                partition_index=int(number), committed_offset=int(value), committed_metadata=""
            )
            by_topic.setdefault(topic, []).append(place)
    return TxnOffsetCommitRequest(
        transactional_id=_transactional_id(ask),
        group_id=ask.group_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        generation_id=ask.number("gen", -1),
        member_id=ask.member_id,
        group_instance_id=ask.given("instance"),
        topics=tuple(
            TxnOffsetCommitRequestTopic(
                name=ask.names.topic(topic), topic_id=ask.names.topic_id(topic), partitions=tuple(places)
            )
            for topic, places in by_topic.items()
        ),
    )


def _transacted(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    return alike(results(response.topics, ask.names, ask.version >= TOPIC_IDS_SINCE))


def _end(ask: Ask) -> Message:
    producer_id, epoch = _producer(ask)
    return EndTxnRequest(
        transactional_id=_transactional_id(ask),
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=ask.option("commit", "true") == "true",
    )


VERBS = {
    "inits": Verb(InitProducerIdRequest, _init, _inited),
    "enlists": Verb(AddOffsetsToTxnRequest, _enlist, _enlisted),
    "transacts": Verb(TxnOffsetCommitRequest, _transact, _transacted),
    "ends": Verb(EndTxnRequest, _end, _inited),
}
