"""Answers of a broker about groups, short to write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgroup.admin.read.offsets import EARLIEST
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.protocol.batches import LogRecord, encode_batch, end_marker_record
from kgroup.protocol.messages import alter_share_group_offsets as aso
from kgroup.protocol.messages import consumer_group_describe as cgd
from kgroup.protocol.messages import delete_share_group_offsets as dlo
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages import describe_share_group_offsets as dso
from kgroup.protocol.messages import fetch as f
from kgroup.protocol.messages import list_groups as lg
from kgroup.protocol.messages import list_offsets as lo
from kgroup.protocol.messages import offset_fetch as of
from kgroup.protocol.messages import share_group_describe as sgd
from kgroup.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kgroup.protocol.subscription import Assignment, Subscription
from tests.unit.admin.fake_cluster import FakeCluster


def partitions(text: str) -> tuple[TopicPartition, ...]:
    """ "orders:0,1 pay:2" as partitions."""
    return tuple(
        TopicPartition(topic, int(number))
        for part in text.split()
        for topic, _, numbers in [part.partition(":")]
        for number in numbers.split(",")
    )


def classic_member(
    member_id: str,
    owns: str = "",
    instance: str | None = None,
    topics: tuple[str, ...] = ("orders",),
    user_data: bytes | None = None,
    client_id: str = "",
    host: str = "/10.0.0.1",
) -> dg.DescribedGroupMember:
    return dg.DescribedGroupMember(
        member_id=member_id,
        group_instance_id=instance,
        client_id=client_id or f"client-{member_id}",
        client_host=host,
        member_metadata=Subscription(topics, rack="r1").encode(3),
        member_assignment=Assignment(partitions(owns), user_data).encode(1),
    )


def classic_group(
    group_id: str, *members: dg.DescribedGroupMember, state: str = "Stable", protocol_type: str = "consumer"
) -> dg.DescribedGroup:
    return dg.DescribedGroup(
        group_id=group_id,
        group_state=state,
        protocol_type=protocol_type,
        protocol_data="range" if state == "Stable" else "",
        members=members,
    )


def consumer_member(
    member_id: str,
    owns: str = "",
    target: str | None = None,
    instance: str | None = None,
    epoch: int = 5,
    member_type: int = 1,
    regex: str | None = None,
    host: str = "/10.0.0.1",
) -> cgd.Member:
    return cgd.Member(
        member_id=member_id,
        instance_id=instance,
        member_epoch=epoch,
        client_id=f"client-{member_id}",
        client_host=host,
        subscribed_topic_names=() if regex else ("orders",),
        subscribed_topic_regex=regex,
        assignment=_assignment(owns),
        target_assignment=_assignment(owns if target is None else target),
        member_type=member_type,
    )


def _assignment(text: str) -> cgd.Assignment:
    return cgd.Assignment(
        topic_partitions=tuple(
            cgd.TopicPartitions(topic_name=p.topic, partitions=(p.partition,)) for p in partitions(text)
        )
    )


def consumer_group(
    group_id: str, *members: cgd.Member, state: str = "Stable", epoch: int = 5, assignment_epoch: int = 5
) -> cgd.DescribedGroup:
    return cgd.DescribedGroup(
        group_id=group_id,
        group_state=state,
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name="uniform",
        members=members,
    )


def share_group(group_id: str, *owns: str) -> sgd.DescribedGroup:
    """A share group (KIP-932) with a member for each text of partitions: none is an empty group."""
    return sgd.DescribedGroup(
        group_id=group_id,
        group_state="Stable" if owns else "Empty",
        group_epoch=5,
        assignment_epoch=5,
        assignor_name="simple",
        members=tuple(
            sgd.Member(
                member_id=f"s{number}",
                member_epoch=5,
                client_id=f"client-s{number}",
                client_host="/10.0.0.1",
                subscribed_topic_names=("orders",),
                assignment=sgd.Assignment(
                    topic_partitions=tuple(
                        sgd.TopicPartitions(topic_name=p.topic, partitions=(p.partition,))
                        for p in partitions(text)
                    )
                ),
            )
            for number, text in enumerate(owns)
        ),
    )


class Groups:
    """What the fake brokers know: groups, committed offsets, log ends. May change any time.

    Logs without an entry in `starts` are empty: they begin where they end. Logs without one in `stable` have
    no open transaction. `times` has the second of each record of a log, 1970 for all where there is no entry;
    those of `unreadable` have no records, only markers, and those of `last_record` none from an offset on.
    `started` has start offset and lag of share groups'
    partitions: (-1, None) where no start offset is set, a negative error code in the place of the lag where
    the broker reports one.
    """

    def __init__(self, fake: FakeCluster) -> None:
        self.classic: dict[str, dg.DescribedGroup] = {}
        self.consumer: dict[str, cgd.DescribedGroup] = {}
        self.share: dict[str, sgd.DescribedGroup] = {}
        self.listed: dict[str, str] = {}
        self.committed: dict[str, dict[str, int]] = {}
        self.started: dict[str, dict[str, tuple[int, int | None]]] = {}
        self.ends: dict[str, int] = {}
        self.starts: dict[str, int] = {}
        self.stable: dict[str, int] = {}
        self.times: dict[str, Sequence[int]] = {}
        self.unreadable: set[str] = set()
        self.damaged: dict[str, int] = {}
        self.last_record: dict[str, int] = {}
        self.fake = fake
        fake.on(f.FetchRequest, self._records)
        fake.on(cgd.ConsumerGroupDescribeRequest, self._describe_consumer)
        fake.on(dg.DescribeGroupsRequest, self._describe_classic)
        fake.on(sgd.ShareGroupDescribeRequest, self._describe_share)
        fake.on(dso.DescribeShareGroupOffsetsRequest, self._describe_starts)
        fake.on(aso.AlterShareGroupOffsetsRequest, self._alter_starts)
        fake.on(dlo.DeleteShareGroupOffsetsRequest, self._delete_starts)
        fake.on(lg.ListGroupsRequest, self._list)
        fake.on(of.OffsetFetchRequest, self._fetch)
        fake.on(lo.ListOffsetsRequest, self._list_offsets)
        fake.on(DeleteGroupsRequest, self._delete)

    def add(self, *groups: dg.DescribedGroup | cgd.DescribedGroup | sgd.DescribedGroup) -> Groups:
        for group in groups:
            if isinstance(group, dg.DescribedGroup):
                self.classic[group.group_id] = group
            elif isinstance(group, sgd.DescribedGroup):
                self.share[group.group_id] = group
            else:
                self.consumer[group.group_id] = group
        return self

    def _delete(self, node: int, request: DeleteGroupsRequest) -> object:
        return DeleteGroupsResponse(
            results=tuple(DeletableGroupResult(group_id=name) for name in request.groups_names)
        )

    def _describe_consumer(self, node: int, request: cgd.ConsumerGroupDescribeRequest) -> object:
        missing = ErrorCode.GROUP_ID_NOT_FOUND
        return cgd.ConsumerGroupDescribeResponse(
            groups=tuple(
                self.consumer.get(g) or cgd.DescribedGroup(group_id=g, error_code=missing)
                for g in request.group_ids
            )
        )

    def _describe_share(self, node: int, request: sgd.ShareGroupDescribeRequest) -> object:
        missing = ErrorCode.GROUP_ID_NOT_FOUND
        return sgd.ShareGroupDescribeResponse(
            groups=tuple(
                self.share.get(g) or sgd.DescribedGroup(group_id=g, error_code=missing)
                for g in request.group_ids
            )
        )

    def _describe_starts(self, node: int, request: dso.DescribeShareGroupOffsetsRequest) -> object:
        def told(
            place: TopicPartition, start: int, lag: int | None
        ) -> dso.DescribeShareGroupOffsetsResponseTopic:
            code, lag = (-lag, -1) if lag is not None and lag < 0 else (0, -1 if lag is None else lag)
            row = dso.DescribeShareGroupOffsetsResponsePartition(
                partition_index=place.partition, start_offset=start, lag=lag, error_code=code
            )
            return dso.DescribeShareGroupOffsetsResponseTopic(topic_name=place.topic, partitions=(row,))

        return dso.DescribeShareGroupOffsetsResponse(
            groups=tuple(
                dso.DescribeShareGroupOffsetsResponseGroup(
                    group_id=g.group_id,
                    topics=tuple(
                        told(place, *at)
                        for name, at in self.started.get(g.group_id, {}).items()
                        for place in partitions(name)
                    ),
                )
                for g in request.groups
            )
        )

    def _alter_starts(self, node: int, request: aso.AlterShareGroupOffsetsRequest) -> object:
        known = self.started.setdefault(request.group_id, {})
        full = self.share.get(request.group_id)
        if full is not None and full.members:
            return aso.AlterShareGroupOffsetsResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
        self.share.setdefault(request.group_id, share_group(request.group_id))
        for topic in request.topics:
            for p in topic.partitions:
                name = f"{topic.topic_name}:{p.partition_index}"
                known[name] = p.start_offset, self.ends.get(name, 0) - p.start_offset
        return aso.AlterShareGroupOffsetsResponse(
            responses=tuple(
                aso.AlterShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name,
                    partitions=tuple(
                        aso.AlterShareGroupOffsetsResponsePartition(partition_index=p.partition_index)
                        for p in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _delete_starts(self, node: int, request: dlo.DeleteShareGroupOffsetsRequest) -> object:
        known = self.started.get(request.group_id, {})
        names = {topic.topic_name for topic in request.topics}
        there = {place.topic for name in known for place in partitions(name)} & names
        self.started[request.group_id] = {
            name: at for name, at in known.items() if partitions(name)[0].topic not in names
        }
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return dlo.DeleteShareGroupOffsetsResponse(
            responses=tuple(
                dlo.DeleteShareGroupOffsetsResponseTopic(
                    topic_name=name, error_code=0 if name in there else missing
                )
                for name in sorted(names)
            )
        )

    def _describe_classic(self, node: int, request: dg.DescribeGroupsRequest) -> object:
        missing = ErrorCode.GROUP_ID_NOT_FOUND
        return dg.DescribeGroupsResponse(
            groups=tuple(
                self.classic.get(g)
                or dg.DescribedGroup(group_id=g, error_code=missing, group_state="Dead", error_message="none")
                for g in request.groups
            )
        )

    def _list(self, node: int, request: lg.ListGroupsRequest) -> object:
        return lg.ListGroupsResponse(
            groups=tuple(
                lg.ListedGroup(group_id=g, protocol_type=kind, group_state="Stable", group_type=kind)
                for g, kind in self.listed.items()
            )
        )

    def _fetch(self, node: int, request: of.OffsetFetchRequest) -> object:
        if not request.groups:
            return of.OffsetFetchResponse(topics=tuple(self._topics(request.group_id, old=True)))
        return of.OffsetFetchResponse(
            groups=tuple(
                of.OffsetFetchResponseGroup(group_id=g.group_id, topics=tuple(self._topics(g.group_id)))
                for g in request.groups
            )
        )

    def _topics(self, group_id: str, old: bool = False) -> Iterable[object]:
        topic = of.OffsetFetchResponseTopic if old else of.OffsetFetchResponseTopics
        part = of.OffsetFetchResponsePartition if old else of.OffsetFetchResponsePartitions
        for text, offset in self.committed.get(group_id, {}).items():
            (p,) = partitions(text)
            stored = part(partition_index=p.partition, committed_offset=offset, metadata="")
            yield topic(name=p.topic, partitions=(stored,))  # type: ignore[arg-type]

    def _records(self, node: int, request: f.FetchRequest) -> object:
        return f.FetchResponse(
            responses=tuple(
                f.FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=tuple(
                        self._from(f"{topic.topic}:{p.partition}", p.partition, p.fetch_offset)
                        for p in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _from(self, name: str, number: int, offset: int) -> f.PartitionData:
        """The records of a log from an offset to its last stable one, a batch each."""
        end = self.ends.get(name, 0)
        stable, start = self.stable.get(name, end), self.starts.get(name, 0)
        if not start <= offset <= end:
            return f.PartitionData(partition_index=number, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        last = 0 if name in self.unreadable else self.last_record.get(name, end)
        data = b"".join(
            encode_batch([LogRecord(None, b"v", timestamp_ms=1000 * self._second(name, at))], base_offset=at)[
                : -1 if at == self.damaged.get(name) else None
            ]
            + (b"!" if at == self.damaged.get(name) else b"")
            for at in range(offset, min(stable, offset + 3, last))
        )
        if last <= offset < stable:
            data = encode_batch([end_marker_record(True)], base_offset=stable - 1, control=True)
        return f.PartitionData(
            partition_index=number,
            high_watermark=end,
            last_stable_offset=stable,
            log_start_offset=start,
            records=data,
        )

    def _second(self, name: str, offset: int) -> int:
        times = self.times.get(name, ())
        return times[offset] if offset < len(times) else 0

    def _list_offsets(self, node: int, request: lo.ListOffsetsRequest) -> object:
        return lo.ListOffsetsResponse(
            topics=tuple(
                lo.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        self._end(node, topic.name, p.partition_index, p.timestamp, request.isolation_level)
                        for p in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _end(
        self, node: int, topic: str, number: int, when: int, isolation: int
    ) -> lo.ListOffsetsPartitionResponse:
        if node != 1 + number % 2:
            return lo.ListOffsetsPartitionResponse(
                partition_index=number, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
        end = self.ends.get(f"{topic}:{number}", 0)
        if when >= 0:
            later = [at for at in range(end) if 1000 * self._second(f"{topic}:{number}", at) >= when]
            found, second = (later[0], self._second(f"{topic}:{number}", later[0])) if later else (-1, 0)
            return lo.ListOffsetsPartitionResponse(
                partition_index=number, offset=found, timestamp=1000 * second if later else -1
            )
        if isolation:
            end = self.stable.get(f"{topic}:{number}", end)
        offset = self.starts.get(f"{topic}:{number}", end) if when == EARLIEST else end
        return lo.ListOffsetsPartitionResponse(partition_index=number, offset=offset)
