"""The rows about requests: each API has one, and it speaks of fields that its messages have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.broker.handlers import ALL
from kgroup.broker.rights import rule_of
from kgroup.protocol import registry
from kgroup.protocol.anatomy import Array, By, Shown
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.requests import ANATOMY, TOPICS_OF_GROUP, TOPICS_OF_SHARE_GROUP
from kgroup.protocol.shapes import slots_of
from kgroup.runtime.cluster import Cluster

NOT_SERVED = {35, 45, 46}  # DescribeLogDirs, AlterPartitionReassignments, ListPartitionReassignments


def missing(array: Array, request: Any, response: Any) -> Iterator[str]:
    """The fields that a row names and its messages lack."""
    asked = {slot.name: slot.shape for slot in slots_of(request)}
    answered = {slot.name: slot.shape for slot in slots_of(response)}
    if array.asked not in asked or array.answered not in answered:
        yield f"{array.asked} or {array.answered}"
        return
    of_request, of_response = asked[array.asked].item, answered[array.answered].item
    assert of_request is not None and of_response is not None and of_response.struct is not None
    entry = {slot.name for slot in slots_of(of_request.struct)} if of_request.struct else {""}
    answer = {slot.name for slot in slots_of(of_response.struct)}
    yield from (field for key, field in array.pairs if key not in answer or field not in entry)
    if array.inner is not None:
        yield from missing(array.inner, of_request.struct, of_response.struct)
    else:
        yield from {array.error, *array.failed} - answer


def test_each_api_has_a_row_and_no_other_has() -> None:
    assert set(ANATOMY) == set(ApiKey)
    assert {api.key for api in ALL} <= set(ANATOMY)


@pytest.mark.parametrize("key", ApiKey, ids=registry.name_of)
def test_a_row_names_fields_of_its_messages(key: ApiKey) -> None:
    row = ANATOMY[key]
    request, response = registry.request_class(key), registry.response_class(key)
    for array in (row.entries, row.older):
        assert list(missing(array, request, response)) == [] if array else True
    answered = {slot.name for slot in slots_of(response)}
    assert set(row.values) <= answered
    assert not row.on_top or "error_code" in answered
    if isinstance(row.rights, Shown):
        assert row.rights.array in answered


@pytest.mark.parametrize(
    ("key", "array"),
    [
        (ApiKey.OFFSET_FETCH, TOPICS_OF_GROUP),
        (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, TOPICS_OF_SHARE_GROUP),
    ],
)
def test_entries_below_groups_are_fields_of_their_messages(key: ApiKey, array: Array) -> None:
    of = {}
    for message in (registry.request_class(key), registry.response_class(key)):
        shape = next(slot.shape for slot in slots_of(message) if slot.name == "groups").item
        assert shape is not None
        of[message] = shape.struct
    assert list(missing(array, *of.values())) == []


@pytest.mark.parametrize("key", ApiKey, ids=registry.name_of)
def test_the_function_that_decides_a_right_says_what_it_requires(key: ApiKey) -> None:
    rule = rule_of(key)
    if isinstance(ANATOMY[key].rights, By):
        assert rule is not None and rule.__doc__


def test_what_is_not_served_is_not_announced() -> None:
    """Requests about replicas are answered as any that kgroup does not know (decision 76)."""
    transport = EmbeddedTransport(Cluster(None))
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = transport.request(None, request)
    assert isinstance(answer, ApiVersionsResponse)
    announced = {api.api_key for api in answer.api_keys}
    assert ApiKey.DESCRIBE_CLIENT_QUOTAS in announced
    assert announced.isdisjoint(NOT_SERVED) and not any(map(registry.known, NOT_SERVED))
