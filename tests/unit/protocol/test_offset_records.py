"""The records of a commit, encoded together, are what each of them is alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.group_records import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value
from kgroup.protocol.log_records import EncodedRecords
from kgroup.protocol.offset_records import encode_offsets

NAMES = st.text(max_size=200)
LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
TOPIC_IDS = st.sampled_from([bytes(16), bytes(range(16)), b"\xff" * 16])


@st.composite
def values(draw: st.DrawFn, timestamp: int) -> OffsetCommitValue:
    offset, metadata = draw(LONG), draw(st.one_of(st.just(""), st.text(max_size=40), st.just("x" * 2000)))
    if draw(st.integers(0, 9)) == 0:
        return OffsetCommitValue(
            offset=offset, metadata=metadata, commit_timestamp=timestamp, expire_timestamp=draw(LONG)
        )
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=draw(INT),
        metadata=metadata,
        commit_timestamp=timestamp,
        topic_id=draw(TOPIC_IDS),
    )


@st.composite
def topics(draw: st.DrawFn) -> list[tuple[str, list[int], list[OffsetCommitValue]]]:
    found = []
    for topic in draw(st.lists(NAMES, min_size=1, max_size=4)):
        rows = draw(st.lists(st.tuples(INT, values(draw(LONG))), min_size=1, max_size=8))
        # As the partitions of one topic have: alike but for the offset.
        topic_id = rows[0][1].topic_id
        alike = [row for row in rows if row[1].expire_timestamp != -1 or row[1].topic_id == topic_id]
        found.append((topic, [partition for partition, _ in alike], [value for _, value in alike]))
    return found


def one_by_one(
    group: str, committed: list[tuple[str, list[int], list[OffsetCommitValue]]]
) -> list[LogRecord]:
    return [
        LogRecord(
            encode_key(OffsetCommitKey(group=group, topic=topic, partition=partition)), encode_value(value)
        )
        for topic, partitions, each in committed
        for partition, value in zip(partitions, each, strict=True)
    ]


@given(group=NAMES, committed=topics(), timestamp=st.integers(0, 2**62))
def test_the_batch_is_the_same_as_of_single_records(
    group: str, committed: list[tuple[str, list[int], list[OffsetCommitValue]]], timestamp: int
) -> None:
    together = encode_offsets(group, committed)
    alone = one_by_one(group, committed)
    assert together.records == len(alone)
    head = {"base_offset": 7, "leader_epoch": 3, "timestamp_ms": timestamp}
    assert encode_batch(together, **head) == encode_batch(alone, **head)  # type: ignore[arg-type]


def test_so_many_partitions_that_their_deltas_take_two_and_three_bytes() -> None:
    numbers = list(range(8200))
    same = [OffsetCommitValue(offset=n, commit_timestamp=5, topic_id=bytes(range(16))) for n in numbers]
    committed = [("orders", numbers, same)]
    alone = encode_batch(one_by_one("g", committed), timestamp_ms=9)
    assert encode_batch(encode_offsets("g", committed), timestamp_ms=9) == alone


@pytest.mark.parametrize("nothing", [[], EncodedRecords(b"", 0)])
def test_a_batch_of_nothing_is_refused_however_it_comes(nothing: list[LogRecord] | EncodedRecords) -> None:
    with pytest.raises(ValueError, match=r"^a batch holds at least one record$"):
        encode_batch(nothing)
