"""Consumer protocol payloads: newer versions, trailing bytes, and what cannot be read."""

import pytest

from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError
from kgroup.protocol.subscription import Assignment, Subscription

FULL = Subscription(("a", "b"), b"u", (TopicPartition("a", 0), TopicPartition("b", 1)), 5, "rack")


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    assert Subscription.decode(b"\0\x63" + FULL.encode()[2:] + b"new fields") == FULL
    newer = Assignment((TopicPartition("a", 1),))
    assert Assignment.decode(b"\0\4" + newer.encode()[2:] + b"new") == newer


def test_older_versions_leave_out_what_they_do_not_have() -> None:
    assert Subscription.decode(FULL.encode(0)) == Subscription(("a", "b"), b"u")
    assert Subscription.decode(FULL.encode(1)) == Subscription(("a", "b"), b"u", FULL.owned)
    assert Subscription.decode(FULL.encode(2)) == Subscription(("a", "b"), b"u", FULL.owned, 5)


def test_topics_and_owned_partitions_travel_sorted() -> None:
    mixed = Subscription(("b", "a"), b"u", FULL.owned[::-1], 5, "rack")
    assert mixed.encode() == FULL.encode()


def test_an_empty_rack_is_no_rack() -> None:
    assert Subscription.decode(Subscription(("a",), rack="").encode()).rack is None


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\3", b"\0\0\0\0\0\1\0\5a"])
def test_payloads_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(DecodeError):
        Subscription.decode(data)
    with pytest.raises(DecodeError):
        Assignment.decode(data)
