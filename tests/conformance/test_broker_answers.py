"""Whatever a request says, the broker answers in kind: no exception, and bytes of the request's version."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from kgroup.broker.call import Call, NoResponse
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers import ALL
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.registry import request_class, response_class
from kgroup.protocol.requests import refusal
from kgroup.runtime.catalog import CatalogTopic
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.conformance.message_values import Case, profile, values

TOPIC_ID = bytes(15) + b"\1"


def served() -> list[Case]:
    dispatcher = Dispatcher(Cluster(None, offsets_partitions=1), ALL)
    return [Case(request_class(key), v) for key in dispatcher.apis for v in request_class(key).VERSIONS]


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    cluster = Cluster(None, offsets_partitions=2, seed=1, clock=ManualClock())
    cluster.create_topic(CatalogTopic("a", TOPIC_ID, 2))
    yield Dispatcher(cluster, ALL)
    cluster.close()


def encodes(response: Message, case: Case) -> None:
    assert type(response) is response_class(case.cls.API)
    data = response.encode(case.version)
    assert type(response).decode(data, case.version).encode(case.version) == data


@pytest.mark.parametrize("case", served(), ids=str)
def test_every_request_is_answered_in_kind(
    case: Case, dispatcher: Dispatcher, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "kgroup")

    @profile(8)
    @given(values(case.cls, case.version))
    def check(request: Any) -> None:
        sent = type(request).decode(request.encode(case.version), case.version)
        later: list[Message | None] = []
        answer = dispatcher.handle(Call(sent, case.version, "test", "/127.0.0.1", 0, later.append))
        if answer is None:
            dispatcher.tickets.abandon()
        for response in [answer, *later]:
            if response is not None and not isinstance(response, NoResponse):
                encodes(response, case)
        assert [m for m in caplog.messages if "neither member id nor instance id" not in m] == []

    check()


@pytest.mark.parametrize("case", served(), ids=str)
def test_every_request_can_be_refused(case: Case, dispatcher: Dispatcher) -> None:
    @profile(3)
    @given(values(case.cls, case.version))
    def check(request: Any) -> None:
        encodes(refusal(request, ErrorCode.UNKNOWN_SERVER_ERROR, "a bug"), case)

    check()
