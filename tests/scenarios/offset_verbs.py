"""commits, fetches, forgets: offsets.

    a commits [ID] [gen=1 | epoch=2] [instance=] [metadata=] [retention=] [leader-epoch=] t1:0=100 t1:1=5
    a fetches [t1:0,1 …] [member=] [epoch=] [stable=true]        no partitions: all there are
    admin forgets t1:0,1 …

Answers carry a result for each partition, `t1:0=NONE` or `t1:0=100@LEADER_EPOCH/METADATA`, and the one
result they share as head.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

from .names import Names, partitions_in
from .verbs import Ask, Verb, alike, error

COMMIT_TOPIC_IDS_SINCE = FETCH_TOPIC_IDS_SINCE = 10
MANY_GROUPS_SINCE = 8


def _commit(ask: Ask) -> OffsetCommitRequest:
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for name, value in ask.row.options.items():
        topic, colon, number = name.partition(":")
        if colon:
            by_topic.setdefault(topic, []).append(_committed(ask, int(number), value))
    return OffsetCommitRequest(
        group_id=ask.group_id,
        generation_id_or_member_epoch=ask.number("gen", ask.number("epoch", -1)),
        member_id=ask.member_id,
        group_instance_id=ask.given("instance"),
        retention_time_ms=ask.time("retention", -1),
        topics=tuple(
            OffsetCommitRequestTopic(
                name=ask.names.topic(topic), topic_id=ask.names.topic_id(topic), partitions=tuple(partitions)
            )
            for topic, partitions in by_topic.items()
        ),
    )


def _committed(ask: Ask, number: int, offset: str) -> OffsetCommitRequestPartition:
    size = ask.number("metadata-size", 0)
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=int(offset),
        committed_leader_epoch=ask.number("leader-epoch", -1),
        committed_metadata="x" * size if size else ask.given("metadata"),
    )


def _place(topic: Any, partition: Any, names: Names, by_id: bool) -> str:
    symbol = names.topic_of_id(topic.topic_id) if by_id else names.topic_symbol(topic.name)
    return f"{symbol}:{partition.partition_index}"


def results(topics: Iterable[Any], names: Names, by_id: bool) -> dict[str, str]:
    """The error of each partition; topics are named, or from some version on have an id."""
    return {_place(t, p, names, by_id): error(p.error_code) for t in topics for p in t.partitions}


def _commit_results(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    return alike(results(response.topics, ask.names, ask.version >= COMMIT_TOPIC_IDS_SINCE))


def _fetch(ask: Ask) -> OffsetFetchRequest:
    asked = [(topic, tuple(numbers)) for word in ask.arguments for topic, numbers in partitions_in(word)]
    stable = ask.option("stable", "false") == "true"
    names = ask.names
    if ask.version < MANY_GROUPS_SINCE:
        old = tuple(OffsetFetchRequestTopic(name=names.topic(t), partition_indexes=n) for t, n in asked)
        return OffsetFetchRequest(group_id=ask.group_id, topics=old or None, require_stable=stable)
    topics = tuple(
        OffsetFetchRequestTopics(name=names.topic(t), topic_id=names.topic_id(t), partition_indexes=n)
        for t, n in asked
    )
    member = ask.given("member")
    group = OffsetFetchRequestGroup(
        group_id=ask.group_id,
        member_id=None if member is None else names.member_id(member),
        member_epoch=ask.number("epoch", -1),
        topics=topics or None,
    )
    return OffsetFetchRequest(groups=(group,), require_stable=stable)


def _fetched(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    group = response.groups[0] if ask.version >= MANY_GROUPS_SINCE else response
    if group.error_code:
        return error(group.error_code), {}
    by_id = ask.version >= FETCH_TOPIC_IDS_SINCE
    names = ask.names
    found = {_place(t, p, names, by_id): _offset(p) for t in group.topics for p in t.partitions}
    return "" if found else "nothing", dict(sorted(found.items()))


def _offset(partition: Any) -> str:
    if partition.error_code:
        return error(partition.error_code)
    epoch = partition.committed_leader_epoch
    text = str(partition.committed_offset) + (f"@{epoch}" if epoch >= 0 else "")
    return f"{text}/{partition.metadata}" if partition.metadata else text


def _forget(ask: Ask) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=ask.group_id,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=ask.names.topic(topic),
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=n) for n in numbers),
            )
            for word in ask.arguments
            for topic, numbers in partitions_in(word)
        ),
    )


def _forgotten(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    if response.error_code:
        return error(response.error_code), {}
    return alike(results(response.topics, ask.names, False))


VERBS = {
    "commits": Verb(OffsetCommitRequest, _commit, _commit_results),
    "fetches": Verb(OffsetFetchRequest, _fetch, _fetched),
    "forgets": Verb(OffsetDeleteRequest, _forget, _forgotten),
}
