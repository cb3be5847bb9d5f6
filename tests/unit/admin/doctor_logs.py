"""A cluster whose groups have a past: `__consumer_offsets` as a fake broker serves it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kgroup.domain import OFFSETS_TOPIC
from kgroup.history.decode.scan import Scanner
from kgroup.protocol import group_records as gr
from kgroup.protocol.batches import end_marker_record
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages import fetch as f
from kgroup.protocol.subscription import Assignment, Subscription
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member, partitions
from tests.unit.admin.test_doctor_checks import cluster, groups_of
from tests.unit.history.logs import batch, commit

CHECKSUM_AT = 17
"""Where a batch has its checksum."""
Record = tuple[bytes, bytes | None]


@dataclass(frozen=True)
class Held:
    """A member of a generation and what it holds ("orders:0,1"); static by its name unless `dynamic`."""

    name: str
    holds: str
    session_ms: int = 120_000
    poll_ms: int = 300_000
    host: str = "/10.0.0.1"
    dynamic: bool = False
    process: str = ""

    @property
    def member_id(self) -> str:
        return f"{self.name}{self.process}-id"


def generation(number: int, members: Iterable[Held]) -> Record:
    """The record of a classic generation."""
    made = tuple(
        gr.MemberMetadata(
            member_id=held.member_id,
            group_instance_id=None if held.dynamic else held.name,
            client_id=f"client-{held.name}",
            client_host=held.host,
            rebalance_timeout=held.poll_ms,
            session_timeout=held.session_ms,
            subscription=Subscription(("orders",)).encode(),
            assignment=Assignment(partitions(held.holds)).encode(),
        )
        for held in members
    )
    value = gr.GroupMetadataValue(
        protocol_type="consumer", generation=number, protocol="range", leader="x", members=made
    )
    return gr.encode_key(gr.GroupMetadataKey(group="g")), gr.encode_value(value)


def commits(at_s: int, offsets: Mapping[int, int]) -> tuple[int, list[Record]]:
    """Commits of partitions of orders at a second, as one batch."""
    return at_s, [
        commit("orders", p, offset, group="g", commit_timestamp=at_s * 1000) for p, offset in offsets.items()
    ]


def commits_up_to(seconds: range, ends: Mapping[int, tuple[int, int]]) -> list[tuple[int, list[Record]]]:
    """Commits at these seconds of partitions that get on, each to an offset at its last second."""
    step = seconds.step
    return [
        commits(s, {p: max(to - (end - s) // step, 0) for p, (to, end) in ends.items() if s <= end})
        for s in seconds
    ]


def in_transactions(*lots: tuple[int, list[Record]]) -> list[tuple[int, list[Record]]]:
    """The same commits, each lot in a transaction that is committed in the same second."""
    marker = end_marker_record(True)
    end: Record = (marker.key or b"", marker.value)
    return [each for second, records in lots for each in ((second, Transacted(records)), (second, [end]))]


class Transacted(list[Record]):
    """Records of a transaction; its end marker is the next lot."""


def remembering(
    group: dg.DescribedGroup, committed: Mapping[str, int], *lots: tuple[int, Iterable[Record]]
) -> FakeCluster:
    """A cluster with this group, whose log has these records, each lot in a batch at a second."""
    data, at = b"", 0
    before: object = None
    for second, records in lots:
        lot = list(records)
        inside, ends = isinstance(records, Transacted), isinstance(before, Transacted)
        head = {"producer_id": 7, "producer_epoch": 0, "transactional": True} if inside or ends else {}
        data += batch(at, lot, 1000 * second, **head, control=ends)
        at += len(lot)
        before = records

    fake = cluster(committed, group)
    data_logs = fake.handlers[f.FetchRequest]

    def read(node: int, request: f.FetchRequest) -> object:
        if request.topics[0].topic != OFFSETS_TOPIC:
            return data_logs(node, request)
        start = request.topics[0].partitions[0].fetch_offset
        part = f.PartitionData(partition_index=0, records=data if start < at else b"", high_watermark=at)
        return f.FetchResponse(responses=(f.FetchableTopicResponse(topic=OFFSETS_TOPIC, partitions=(part,)),))

    fake.on(f.FetchRequest, read)  # type: ignore[arg-type]
    fake.topics[OFFSETS_TOPIC] = 1
    return fake


def scratched(fake: FakeCluster, number: int) -> FakeCluster:
    """Let this batch of `__consumer_offsets` fail its checksum."""
    read = fake.handlers[f.FetchRequest]

    def damaged(node: int, request: f.FetchRequest) -> object:
        answer = read(node, request)
        assert isinstance(answer, f.FetchResponse)
        (part,) = answer.responses[0].partitions
        if request.topics[0].topic != OFFSETS_TOPIC or not part.records:
            return answer
        changed = bytearray(part.records)
        at = [header.position for header in Scanner("fake").headers(part.records, True)][number]
        changed[at + CHECKSUM_AT] ^= 1
        parts = (replace(part, records=bytes(changed)),)
        return replace(answer, responses=(replace(answer.responses[0], partitions=parts),))

    fake.on(f.FetchRequest, damaged)  # type: ignore[arg-type]
    return fake


def described(*members: Held) -> dg.DescribedGroup:
    """The group as the broker describes it."""
    return classic_group(
        "g",
        *(
            classic_member(
                held.member_id,
                held.holds,
                None if held.dynamic else held.name,
                client_id=f"client-{held.name}",
                host=held.host,
            )
            for held in members
        ),
    )


def written(fake: FakeCluster, times: Mapping[int, Iterable[int]]) -> FakeCluster:
    """Let partitions of orders have records of these seconds, from offset 0 on."""
    groups_of(fake).times = {f"orders:{number}": tuple(seconds) for number, seconds in times.items()}
    return fake


__all__ = ["Groups", "Held", "commits", "described", "generation", "remembering", "scratched", "written"]
