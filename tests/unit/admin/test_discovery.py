"""Who is asked, and what happens when that changes meanwhile."""

from __future__ import annotations

import pytest

from kgroup.admin.discovery import locate
from kgroup.admin.models import Node
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.offsets import committed, list_offsets
from kgroup.admin.read.open_transactions import open_transactions, producers, unstable
from kgroup.admin.read.record_times import times_at
from kgroup.admin.read.share_offsets import share_offsets
from kgroup.admin.refusals import refused
from kgroup.client.retry import OutcomeUnknown
from kgroup.domain import offsets_partition_of
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, Unreachable
from kgroup.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tests.unit.admin.fake_cluster import FakeCluster

FIND_COORDINATOR = 10


def test_coordinators_are_found_in_one_request_and_remembered() -> None:
    fake = FakeCluster(coordinator_of={"b": 2})
    cluster = fake.cluster()
    assert cluster.coordinators(["a", "b"]) == {"a": Node(1, "b1", 9092), "b": Node(2, "b2", 9092)}
    cluster.coordinators(["b", "a"])
    assert [r.coordinator_keys for r in fake.requests(FindCoordinatorRequest)] == [("a", "b")]


def test_brokers_without_batches_are_asked_group_by_group() -> None:
    fake = FakeCluster(served={FIND_COORDINATOR: range(4)})
    assert set(fake.cluster().coordinators(["a", "b"])) == {"a", "b"}
    assert [r.key for r in fake.requests(FindCoordinatorRequest)] == ["a", "b"]


def test_groups_are_asked_in_one_batch_a_broker() -> None:
    fake = FakeCluster(coordinator_of={"b": 2, "d": 2})
    asked = []

    def ask(node, groups, left_s):  # type: ignore[no-untyped-def]
        asked.append((node, tuple(groups)))
        return dict.fromkeys(groups, node)

    answers = fake.cluster().ask_coordinators("abcd", ask, idempotent=True)
    assert answers == {"a": 1, "b": 2, "c": 1, "d": 2}
    assert asked == [(1, ("a", "c")), (2, ("b", "d"))]


@pytest.mark.parametrize(
    "code", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"]
)
def test_sm_62_a_coordinator_that_moved_is_looked_up_again(code: str) -> None:
    """SM-62: follow NOT_COORDINATOR by looking again, on a cluster of two brokers; also for changes."""
    fake = FakeCluster()
    asked = []

    def ask(node, groups, left_s):  # type: ignore[no-untyped-def]
        asked.append(node)
        if node == 2:
            return {"g": "done"}
        fake.coordinator_of["g"] = 2
        return {"g": refused(ErrorCode[code], "g")}

    assert fake.cluster().ask_coordinators(["g"], ask, idempotent=False) == {"g": "done"}
    assert asked == [1, 2]
    assert len(fake.requests(FindCoordinatorRequest)) == 2


def test_a_coordinator_that_cannot_be_reached_is_looked_up_again() -> None:
    fake = FakeCluster()

    def ask(node, groups, left_s):  # type: ignore[no-untyped-def]
        if node == 2:
            return {"g": "done"}
        fake.coordinator_of["g"] = 2
        raise Unreachable("b1:9092: connection refused")

    assert fake.cluster().ask_coordinators(["g"], ask, idempotent=False) == {"g": "done"}


@pytest.mark.parametrize(("idempotent", "attempts"), [(True, 2), (False, 1)])
def test_a_request_without_an_answer_is_repeated_only_if_idempotent(idempotent: bool, attempts: int) -> None:
    asked = []

    def ask(node, groups, left_s):  # type: ignore[no-untyped-def]
        asked.append(node)
        if len(asked) == 1:
            raise OutcomeUnknown("b1:9092 broke off")
        return {"g": "done"}

    answer = FakeCluster().cluster().ask_coordinators(["g"], ask, idempotent=idempotent)["g"]
    assert len(asked) == attempts
    assert (answer == "done") is idempotent


def test_asking_again_ends_at_the_deadline_with_the_last_answer() -> None:
    fake = FakeCluster()

    def ask(node, groups, left_s):  # type: ignore[no-untyped-def]
        return {"g": refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "g")}

    answer = fake.cluster(timeout_s=5.0).ask_coordinators(["g"], ask, idempotent=True)["g"]
    assert isinstance(answer, BrokerRefused)
    assert answer.name == "COORDINATOR_LOAD_IN_PROGRESS"
    assert fake.time.now < 5.0


def test_one_group_that_may_not_be_seen_does_not_hide_the_others() -> None:
    def find(node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            coordinators=(
                Coordinator(key="mine", node_id=1, host="b1", port=9092),
                Coordinator(key="theirs", node_id=-1, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED),
            )
        )

    fake = FakeCluster().on(FindCoordinatorRequest, find)
    answers = fake.cluster().ask_coordinators(
        ["mine", "theirs"], lambda node, groups, _: dict.fromkeys(groups, node), idempotent=True
    )
    assert answers["mine"] == 1
    assert isinstance(answers["theirs"], BrokerRefused)
    assert "GROUP_AUTHORIZATION_FAILED" in answers["theirs"].message


def test_a_group_the_broker_left_out_is_an_error_not_a_crash() -> None:
    answers = FakeCluster().cluster().ask_coordinators(["g"], lambda *_: {}, idempotent=True)
    assert isinstance(answers["g"], KgroupError)


def test_locate_tells_coordinator_and_partition() -> None:
    located = locate(FakeCluster(topics={"__consumer_offsets": 50}).cluster(), ["g"])
    assert [(place.coordinator.id, place.offsets_partition) for place in located] == [
        (1, offsets_partition_of("g", 50))
    ]
    assert locate(FakeCluster().cluster(), ["g"])[0].offsets_partition is None


def test_an_empty_question_asks_nobody() -> None:
    fake = FakeCluster()
    cluster = fake.cluster()
    assert cluster.coordinators([]) == cluster.topics([]) == groups_only(cluster, []) == {}
    assert committed(cluster, []) == share_offsets(cluster, []) == unstable(cluster, {}) == {}
    assert list_offsets(cluster, {}) == times_at(cluster, []) == {}
    assert open_transactions(cluster, []) == producers(cluster, [], {}) == {}
    assert fake.sent == []
