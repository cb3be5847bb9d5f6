"""Which Kafka to have for a command: errors about old brokers name it."""

from __future__ import annotations

import pytest

from kgroup.client.connection import Connection
from kgroup.errors import BrokerRefused
from kgroup.protocol import registry
from kgroup.protocol.messages.create_topics import CreateTopicsRequest
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from kgroup.protocol.messages.offset_delete import OffsetDeleteRequest
from kgroup.protocol.releases import _SINCE, first_release


@pytest.mark.parametrize(
    ("api", "version", "release"),
    [(47, 0, "2.4"), (9, 2, None), (9, 7, "2.5"), (9, 9, "3.0"), (19, 2, None), (19, 4, "2.4"), (3, 4, None)],
)
def test_the_first_release_that_serves_it(api: int, version: int, release: str | None) -> None:
    assert first_release(api, version) == release


def test_only_versions_there_are() -> None:
    for api, versions in _SINCE.items():
        assert set(versions) <= set(registry.request_class(api).VERSIONS), api


@pytest.mark.parametrize(
    ("request_", "lowest", "hint"),
    [
        (OffsetDeleteRequest(group_id="g", topics=()), 0, "Kafka 2.4 and later serve it"),
        (CreateTopicsRequest(topics=()), 4, "Kafka 2.4 and later serve it"),
        (ListGroupsRequest(), 0, "the broker is of another age than this operation"),
    ],
)
def test_a_refusal_names_the_release(request_: object, lowest: int, hint: str) -> None:
    """Kafka 2.3 serves neither OffsetDelete nor CreateTopics 4, which undo and create-topic need."""
    old = Connection("kgroup", "b:9092")
    old.served = {19: range(4)}
    with pytest.raises(BrokerRefused) as refused:
        old.pick_version(request_, lowest)  # type: ignore[arg-type]
    assert str(refused.value.hint).startswith(hint)
