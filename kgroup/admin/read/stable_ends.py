"""Where open transactions stop readers of committed records, and their producers (KIP-664)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import GroupDescription, ItemError, OffsetRow, OpenProducer, TopicDescription
from kgroup.admin.refusals import code_name
from kgroup.domain import TopicPartition
from kgroup.errors import KgroupError

if TYPE_CHECKING:
    from kgroup.admin.read.offsets import ListedOffset


def with_stable_ends(
    cluster: ClusterView, groups: list[GroupDescription], topics: Answers[TopicDescription]
) -> list[GroupDescription]:
    """Return the groups with the last stable offset of each partition that may have unread records.

    A group's errors name the partitions where it could not be read. Groups that have read everything cost no
    request.
    """
    asked = {_place(row) for group in groups for row in group.offsets if _unread(row)}
    if not asked:
        return groups
    from kgroup.admin.read.offsets import LATEST, READ_COMMITTED, list_offsets

    stable = list_offsets(cluster, dict.fromkeys(asked, LATEST), topics, isolation=READ_COMMITTED)
    held = {
        _place(row)
        for group in groups
        for row in group.offsets
        if _unread(row) and not isinstance(at := stable[_place(row)], KgroupError) and _before(at, row)
    }
    producers = _producers(cluster, held, topics) if held else {}
    found = []
    for group in groups:
        rows, errors = [], list(group.errors)
        for row in group.offsets:
            last = stable.get(_place(row)) if _unread(row) else None
            if not isinstance(last, KgroupError | None) and row.log_end_offset is not None:
                # Requested later than the end, it may have moved beyond that.
                offset = min(last.offset, row.log_end_offset)
                by = producers.get(_place(row)) if _before(last, row) else None
                row = replace(row, last_stable_offset=offset, held_open_by=by)
            elif isinstance(last, KgroupError):
                what = (
                    f"{group.group_id}: the last stable offset of {_place(row)} is not known: {last.message}"
                )
                errors.append(ItemError("offsets", code_name(last), what, last.hint))
            rows.append(row)
        found.append(replace(group, offsets=tuple(rows), errors=tuple(errors)))
    return found


def _place(row: OffsetRow) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)


def _unread(row: OffsetRow) -> bool:
    return row.lag != 0 and bool(row.log_end_offset)


def _before(stable: ListedOffset, row: OffsetRow) -> bool:
    return row.log_end_offset is not None and stable.offset < row.log_end_offset


def _producers(
    cluster: ClusterView, places: Collection[TopicPartition], topics: Answers[TopicDescription]
) -> dict[TopicPartition, tuple[OpenProducer, ...]]:
    """Return the producers of open transactions, of partitions whose leader reports them."""
    from kgroup.admin.read.offsets import by_leader, by_topic
    from kgroup.protocol.messages.describe_producers import (
        DescribeProducersRequest,
        DescribeProducersResponse,
        TopicRequest,
    )

    led, _ = by_leader(places, topics)

    def ask(leader: int) -> DescribeProducersResponse:
        wanted = tuple(
            TopicRequest(name=topic, partition_indexes=tuple(p.partition for p in those))
            for topic, those in by_topic(led[leader])
        )
        return cluster.ask(leader, DescribeProducersRequest(topics=wanted), DescribeProducersResponse)

    answers = cluster.at_once({leader: partial(ask, leader) for leader in led})
    return {
        TopicPartition(topic.name, data.partition_index): tuple(
            OpenProducer(
                each.producer_id, each.producer_epoch, each.current_txn_start_offset, each.last_timestamp
            )
            for each in data.active_producers
            if each.current_txn_start_offset >= 0
        )
        for answer in answers.values()
        if not isinstance(answer, KgroupError)
        for topic in answer.topics
        for data in topic.partitions
        if not data.error_code
    }
