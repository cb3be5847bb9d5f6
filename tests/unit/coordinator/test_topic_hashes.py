"""The metadata hash agrees with Kafka's, bit for bit."""

import pytest

from kgroup.coordinator.topic_hashes import group_hash, topic_hash
from kgroup.domain import Topic, uuid_bytes

CS_A = Topic("cs-a", uuid_bytes("nuOXACSCTdmY3fdSGZvJFg"), 4)
CS_B = Topic("cs-b", uuid_bytes("4kvNV_I4S-2v8ApGwP-tnw"), 2)


def test_hashes_seen_on_a_kafka_4_3_1_broker():
    a, b = topic_hash(CS_A), topic_hash(CS_B)
    assert a == -5387711223222481726
    assert group_hash({"cs-a": a}) == 4062204099681466703
    assert group_hash({"cs-b": b, "cs-a": a}) == group_hash({"cs-a": a, "cs-b": b}) == -6034322057989943837


def test_racks_and_characters_beyond_the_basic_plane():
    """The expected value comes from hash4j 0.22, the library Kafka uses."""
    topic = Topic("tópico\U0001f600", bytes(range(1, 17)), 2, (("rack-\U0001f600", "a"), ()))
    assert topic_hash(topic) == -1442271704313600593


def test_no_topics_hash_to_zero():
    assert group_hash({}) == 0


BASE = Topic("t", bytes(range(16)), 2, (("a", "b"), ("c",)))


@pytest.mark.parametrize(
    "other",
    [
        Topic("u", bytes(range(16)), 2, (("a", "b"), ("c",))),
        Topic("t", bytes(range(1, 17)), 2, (("a", "b"), ("c",))),
        Topic("t", bytes(range(16)), 3, (("a", "b"), ("c",))),
        Topic("t", bytes(range(16)), 2, (("a", "b"), ("d",))),
        Topic("t", bytes(range(16)), 2, (("c",), ("a", "b"))),
        Topic("t", bytes(range(16)), 2, (("ab",), ("c",))),
    ],
)
def test_each_property_of_a_topic_changes_its_hash(other):
    assert topic_hash(other) != topic_hash(BASE)


def test_the_order_of_racks_does_not_matter():
    assert topic_hash(Topic("t", bytes(range(16)), 2, (("b", "a"), ("c",)))) == topic_hash(BASE)
