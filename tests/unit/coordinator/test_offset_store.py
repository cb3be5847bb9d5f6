"""What a shard keeps of its offsets, and what many of them have in common."""

from kgroup.coordinator.offset_store import OffsetStore
from kgroup.protocol.group_records import OffsetCommitValue


def decoded(offset: int, topic_id: bytes = b"i" * 16, time_ms: int = 1_700_000_000_000) -> OffsetCommitValue:
    """A value as a log gives it: nothing in it is shared with another."""
    value = OffsetCommitValue(offset=offset, commit_timestamp=time_ms, topic_id=topic_id)
    return OffsetCommitValue.decode(value.encode(4), 4)


def test_offsets_are_as_they_were_committed() -> None:
    store = OffsetStore()
    wanted = {}
    for number, (topic_id, time_ms) in enumerate(((b"a" * 16, 1), (b"b" * 16, 1), (b"a" * 16, 2))):
        store.put("g", "orders", number, decoded(number, topic_id, time_ms), number)
        wanted[number] = decoded(number, topic_id, time_ms)
    assert {p: stored.value for p, stored in store.of_group("g")["orders"].items()} == wanted


def test_what_many_offsets_have_alike_is_one_object() -> None:
    store = OffsetStore()
    for group in ("g", "h"):
        for number in range(2):
            store.put(group, "".join(("or", "ders")), number, decoded(number), number)
    values = [stored.value for group in ("g", "h") for stored in store.of_group(group)["orders"].values()]
    assert len({id(value.topic_id) for value in values}) == 1
    assert len({id(value.commit_timestamp) for value in values}) == 1
    assert len({id(topic) for group in ("g", "h") for topic in store.of_group(group)}) == 1
