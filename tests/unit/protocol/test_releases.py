"""Which Kafka to have for a command: errors about old brokers name it."""

from __future__ import annotations

import pytest

from kgroup.client.connection import Connection
from kgroup.errors import BrokerRefused
from kgroup.protocol import registry
from kgroup.protocol.messages.create_topics import CreateTopicsRequest
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from kgroup.protocol.messages.offset_delete import OffsetDeleteRequest
from kgroup.protocol.releases import Release, first_release
from kgroup.protocol.since import SINCE

SERVED_BY_4_3 = {  # ApiKeys of Kafka 4.3.1, stable versions
    0: (3, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    27: (1, 2),
    28: (0, 5),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    36: (0, 2),
    37: (0, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    47: (0, 0),
    48: (0, 1),
    50: (0, 0),
    51: (0, 0),
    57: (0, 2),
    55: (0, 2),
    60: (0, 2),
    61: (0, 0),
    65: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    71: (0, 0),
    72: (0, 0),
    74: (0, 1),
    75: (0, 0),
    76: (1, 1),
    77: (1, 1),
    78: (1, 2),
    79: (1, 2),
    83: (0, 0),
    84: (0, 0),
    85: (0, 1),
    86: (0, 0),
    87: (0, 1),
    88: (0, 0),
    89: (0, 0),
    90: (0, 1),
    91: (0, 0),
    92: (0, 0),
    10001: (0, 0),
    10002: (0, 0),
}
ADDED_BY_4_4 = {18: (0, 5), 28: (0, 6), 42: (0, 3), 88: (0, 1), 89: (0, 1), 93: (0, 0)}


def test_each_release_serves_its_versions() -> None:
    served = {
        text: {
            key: (versions[0], versions[-1])
            for key in registry.KAFKA_APIS + registry.PRIVATE_APIS
            if (versions := Release.of(text).versions(key))
        }
        for text in ("4.3", "4.4")
    }
    assert served == {"4.3": SERVED_BY_4_3, "4.4": SERVED_BY_4_3 | ADDED_BY_4_4}


def test_an_api_that_is_younger_than_the_release_is_not_served() -> None:
    assert list(Release(4, 1).versions(88)) == []
    assert Release(4, 1).levels == {"group.version": 1, "transaction.version": 2}


@pytest.mark.parametrize(
    ("api", "version", "release"),
    [
        (47, 0, "2.4"),
        (9, 2, None),
        (9, 7, "2.5"),
        (9, 9, "3.7"),
        (68, 0, "4.0"),
        (19, 2, None),
        (19, 4, "2.4"),
        (3, 4, None),
    ],
)
def test_the_first_release_that_serves_it(api: int, version: int, release: str | None) -> None:
    assert first_release(api, version) == release


def test_only_versions_there_are() -> None:
    for api, versions in SINCE.items():
        assert set(versions) <= set(registry.request_class(api).VERSIONS), api


@pytest.mark.parametrize(
    ("request_", "lowest", "hint"),
    [
        (OffsetDeleteRequest(group_id="g", topics=()), 0, "Kafka 2.4 and later serve it"),
        (CreateTopicsRequest(topics=()), 4, "Kafka 2.4 and later serve it"),
        (ListGroupsRequest(), 0, "the broker is too old or too new for this"),
    ],
)
def test_a_refusal_names_the_release(request_: object, lowest: int, hint: str) -> None:
    """Kafka 2.3 serves neither OffsetDelete nor CreateTopics 4, which undo and create-topic need."""
    old = Connection("kgroup", "b:9092")
    old.served = {19: range(4)}
    with pytest.raises(BrokerRefused) as refused:
        old.pick_version(request_, lowest)  # type: ignore[arg-type]
    assert str(refused.value.hint).startswith(hint)
