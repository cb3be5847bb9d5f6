"""Records: versions written, absent tags, types that are not ours, and tolerance as Kafka's."""

import pytest

from kgroup.errors import DecodeError
from kgroup.protocol.group_records import (
    TYPE_NAMES,
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    RecordKey,
    TopicPartitions,
    UnknownKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    group_of,
    record_classes,
)
from kgroup.protocol.streams_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    TaskIds,
)
from kgroup.protocol.transaction_records import decode_key as decode_transaction_key

COMMIT = OffsetCommitKey(group="g", topic="t", partition=3)
MEMBER = ConsumerGroupMemberMetadataKey(group_id="g", member_id="m")


def version_of(data: bytes | None) -> int:
    assert data is not None
    return int.from_bytes(data[:2], "big")


def test_versions_are_those_kafka_writes() -> None:
    assert version_of(encode_value(OffsetCommitValue(offset=1))) == 4
    assert version_of(encode_value(OffsetCommitValue(offset=1, expire_timestamp=9))) == 1
    assert version_of(encode_value(GroupMetadataValue())) == 3
    assert version_of(encode_value(GroupMetadataValue(), 0)) == 0


@pytest.mark.parametrize("partition", [0, 7, 1 << 30])
@pytest.mark.parametrize("metadata", ["", "größer", "m" * 300])
def test_commits_are_written_as_their_codec_writes_them(partition: int, metadata: str) -> None:
    """Commits go a shorter way than other records; the bytes are the same."""
    for group, topic in (("g", "t"), ("gruppe-ü", "t" * 200)):
        key = OffsetCommitKey(group=group, topic=topic, partition=partition)
        assert encode_key(key) == b"\0\1" + key.encode(0)
    for offset, leader_epoch, topic_id in ((0, -1, bytes(16)), (1 << 40, 5, bytes(range(16)))):
        value = OffsetCommitValue(
            offset=offset, leader_epoch=leader_epoch, metadata=metadata, commit_timestamp=9, topic_id=topic_id
        )
        assert encode_value(value) == b"\0\4" + value.encode(4)


def test_a_tombstone_stays_one() -> None:
    assert encode_value(None) is None
    assert decode_value(COMMIT, None) is None


@pytest.mark.parametrize("kind", [9, 18, 24, -1])
def test_types_that_are_not_ours_keep_their_bytes(kind: int) -> None:
    raw = kind.to_bytes(2, "big", signed=True) + b"rest"
    key = decode_key(raw)
    assert key == UnknownKey(kind, raw)
    assert encode_key(key) == raw


def test_names_cover_the_types_in_use() -> None:
    assert set(TYPE_NAMES) == set(record_classes()) == set(range(24)) - {9, 18}
    for kind, (key, value) in record_classes().items():
        assert (key.TYPE, key.__name__, value.__name__) == (
            kind,
            TYPE_NAMES[kind] + "Key",
            TYPE_NAMES[kind] + "Value",
        )


def test_every_key_tells_its_group() -> None:
    for key_class, _ in record_classes().values():
        data = key_class.TYPE.to_bytes(2, "big") + b"\0\1g" + b"\0\1t" + bytes(4)
        key = decode_key(data)
        assert isinstance(key, RecordKey)
        assert group_of(key) == "g"


def test_bytes_behind_the_last_field_are_left_alone() -> None:
    assert decode_key(encode_key(COMMIT) + b"more") == COMMIT
    value = OffsetCommitValue(offset=5)
    assert decode_value(COMMIT, (encode_value(value) or b"") + b"more") == value


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\5", b"\xff\xff", b"\0\4\0\0"])
def test_values_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_value(COMMIT, data)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1", b"\0\1\0\5g"])
def test_keys_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_key(data)


def test_a_consumer_member_says_that_it_is_not_classic() -> None:
    """CP-49: the tag left out means an empty struct, so null travels."""
    value = ConsumerGroupMemberMetadataValue(client_id="c", client_host="h")
    data = encode_value(value)
    assert data is not None
    assert data.endswith(b"\1\0\1\0")
    assert decode_value(MEMBER, data) == value
    absent = decode_value(MEMBER, data[:-4] + b"\0")
    assert isinstance(absent, ConsumerGroupMemberMetadataValue)
    assert absent.classic_member_metadata == ClassicMemberMetadata()


def test_assignment_epochs_absent_or_null() -> None:
    """AE-18: 4.3.1 reads the absent tag as an empty list; null travels as such."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    for epochs in ((4, 5), None, ()):
        part = TopicPartitions(topic_id=bytes(16), partitions=(0, 1), assignment_epochs=epochs)
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=5, previous_member_epoch=4, assigned_partitions=(part,)
        )
        data = encode_value(value)
        assert data is not None
        assert decode_value(key, data) == value
        tail = {(4, 5): b"\1\0\x09\3\0\0\0\4\0\0\0\5", None: b"\1\0\1\0", (): b"\0"}[epochs]
        assert data.endswith(tail + b"\1\0")


@pytest.mark.parametrize("items", [(), None])
def test_lists_of_streams_records_that_are_absent_are_empty(items: tuple[()] | None) -> None:
    """As in Kafka's generated classes: an empty list is left out, and null travels."""
    tail = b"\0" if items == () else b"\1\1\1\0"
    group = StreamsGroupMetadataValue(epoch=1, last_assignment_configs=items)
    data = encode_value(group)
    assert data is not None and data.endswith(bytes(8) + tail)
    assert decode_value(StreamsGroupMetadataKey(group_id="g"), data) == group
    tasks = TaskIds(subtopology_id="0", partitions=(1,), assignment_epochs=items)
    member = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=5, previous_member_epoch=4, active_tasks=(tasks,)
    )
    data = encode_value(member)
    assert data is not None and bytes([0, 0, 0, 1, items is None]) in data
    assert decode_value(StreamsGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"), data) == member


def test_a_transaction_record_has_type_0_only() -> None:
    with pytest.raises(DecodeError, match="type 1"):
        decode_transaction_key(b"\0\1\0\1t")
