"""Rules on every request that is served, in every version: what is selected fails, and nothing else."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any

import pytest

from kgroup.broker.call import Call
from kgroup.broker.control.dispatcher import ControlledDispatcher
from kgroup.broker.control.faults.rules import Rule
from kgroup.broker.control.faults.sites import SELECTORS, selectors_of, sites_of
from kgroup.broker.handlers import ALL
from kgroup.errors import ErrorCode
from kgroup.protocol import registry
from kgroup.protocol.codec import Message
from kgroup.runtime.cluster import Cluster
from tests.conformance.message_values import Case

CLUSTER = Cluster(config={"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"})
CODE = ErrorCode.POLICY_VIOLATION
NUMBERS = {"acks": -1, "key_type": 0, "replica_id": -1, "session_epoch": -1, "session_id": 0}
CASES = [
    Case(api.request, version)
    for api in ALL
    if api.key in registry.KAFKA_APIS
    for version in CLUSTER.kafka.versions(api.key)
]


OF_SHARE_GROUPS = {76, 78, 79, *range(83, 88), 91, 92}
"""Requests of one share group; they fail as a whole, whichever topics they name (kfake)."""


def errors_in(answer: object) -> Iterator[int]:
    """The error codes anywhere in an answer."""
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        for each in dataclasses.fields(answer):
            found = getattr(answer, each.name)
            if each.name in ("error_code", "partition_error_code"):
                yield found
            else:
                yield from errors_in(found)
    elif isinstance(answer, tuple):
        for part in answer:
            yield from errors_in(part)


def served(dispatcher: ControlledDispatcher, body: Message, version: int) -> Any:
    """The answer, as its bytes say it."""
    answered: list[Any] = []
    call = Call(body, version, "tester", "/127.0.0.1", answer=answered.append)
    found = dispatcher.handle(call) or (answered[0] if answered else None)
    if not isinstance(found, Message):
        return found
    found.encode(version)
    return found


def sample(shape: Any, name: str) -> Any:
    """A value with two entries in every array, by the types of a message's fields."""
    origin, inside = typing.get_origin(shape), typing.get_args(shape)
    if origin is Annotated:
        return sample(inside[0], name)
    if origin is tuple:
        return tuple(sample(inside[0], f"{name}-{n}") for n in range(2))
    if origin in (types.UnionType, typing.Union):
        return sample(next(each for each in inside if each is not type(None)), name)
    if dataclasses.is_dataclass(shape):
        hints = typing.get_type_hints(shape, include_extras=True)
        made = {
            each.name: sample(hints[each.name], f"{name}-{each.name}") for each in dataclasses.fields(shape)
        }
        made = {**made, **{n: bytes(16) for n in made if n == "topic_id"}}
        return shape(**made)
    if shape in (int, float, bool):
        places = [part for part in name.split("-") if part.isdigit()]
        return shape(NUMBERS.get(name.rsplit("-", 1)[-1], int(places[-1]) if places else 1))
    return name if shape is str else name.encode()


def request(key: int, version: int) -> Any:
    """A request as a broker reads it: what a version does not carry has its default."""
    cls = registry.request_class(key)
    body = sample(cls, cls.__name__)
    return cls.decode(body.encode(version), version)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_request_can_fail_as_a_whole(case: Case) -> None:
    body = request(case.cls.API, case.version)
    dispatcher = ControlledDispatcher(CLUSTER, ALL)
    found = dispatcher.faults.add([Rule.of({"keys": [str(body.API)], "error": CODE.name})])
    answer = served(dispatcher, body, case.version)
    assert len(found.hits) == 1 and not dispatcher.faults.active
    assert CODE in set(errors_in(answer))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_entry_fails_and_no_other(case: Case) -> None:
    """By what that entry alone is called."""
    body = request(case.cls.API, case.version)
    for site in sites_of(body, case.version, lambda topic_id: None):
        chosen = {
            "topic": site.topic or "",
            "partitions": [] if site.partition is None or not site.topic else [site.partition],
            "group": site.group or "",
            "txn_id": site.txn_id or "",
            "resource": site.resource or "",
        }
        dispatcher = ControlledDispatcher(CLUSTER, ALL)
        found = dispatcher.faults.add([Rule.of({"keys": [str(body.API)], "error": CODE.name, **chosen})])
        answer = served(dispatcher, body, case.version)
        assert len(found.hits) == 1
        failed = [code for code in errors_in(answer) if code == CODE]
        alone = site.at and (site.topic or site.resource or body.API in (10, 15, 42, 65, 69, 77, 89, 90))
        assert len(failed) == 1 if alone else failed


def test_what_can_be_selected_is_in_the_request() -> None:
    """Each API that names a topic or a group among its fields has the selector for it, or says why not."""
    names = {"group_id": "group", "groups_names": "group", "group_ids": "group", "transactional_id": "txn_id"}
    not_by_entry = {27, 35, 43, 46}  # sent by brokers or tools, and answered as a whole
    for api in ALL:
        fields = {each.name for each in dataclasses.fields(api.request)}
        if api.key in registry.KAFKA_APIS and api.key not in not_by_entry:
            carried = {selector for field, selector in names.items() if field in fields}
            topics = fields & {"topics", "topic_data", "topic_names", "v3_and_below_topics"}
            if topics and api.key not in OF_SHARE_GROUPS:
                carried.add("topic")
            assert carried <= selectors_of(api.key), api.request.__name__
        assert selectors_of(api.key) <= set(SELECTORS)
