"""Plans of offsets on a fake cluster: what is checked, in which order, and what lost replies come to."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgroup.admin.change.offset_changes import execute_offsets
from kgroup.admin.change.offset_plans import (
    CommittedOffset,
    Draft,
    OffsetsPlan,
    Purpose,
    look,
    make_plan,
    plan_document,
    plan_from,
)
from kgroup.admin.change.reset import TO_OFFSET, Scope, Spec, plan_reset
from kgroup.admin.change.undo import plan_undo
from kgroup.admin.journal import Journal
from kgroup.cli.views.offsets import planned
from kgroup.client.retry import OutcomeUnknown
from kgroup.domain import TopicPartition
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, SafetyRefused, Unreachable
from kgroup.protocol.messages import offset_commit as oc
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.offset_delete import OffsetDeleteRequest
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member

ORDERS_0 = TopicPartition("orders", 0)


class Store:
    """A group "g" whose commits land in the fake, but for the codes and losses a test asks for."""

    def __init__(self, path: Path) -> None:
        self.fake = FakeCluster(topics={"orders": 5})
        self.groups = Groups(self.fake).add(classic_group("g", state="Empty"))
        self.groups.committed["g"] = {"orders:0": 1}
        self.groups.ends = {f"orders:{partition}": 9 for partition in range(5)}
        self.journal = Journal(path / "journal.jsonl")
        self.codes: list[int] = []
        self.before_commit: Callable[[], None] = lambda: None
        self.after_commit: Callable[[], None] = lambda: None
        self.fake.on(oc.OffsetCommitRequest, self._commit)

    def _commit(self, node: int, request: Any) -> oc.OffsetCommitResponse:
        self.before_commit()
        code = self.codes.pop(0) if self.codes else 0
        if not code:
            rows = {
                f"{t.name}:{p.partition_index}": p.committed_offset
                for t in request.topics
                for p in t.partitions
            }
            self.groups.committed[request.group_id] |= rows
        self.after_commit()
        topics = tuple(
            oc.OffsetCommitResponseTopic(
                name=t.name,
                partitions=tuple(
                    oc.OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                    for p in t.partitions
                ),
            )
            for t in request.topics
        )
        return oc.OffsetCommitResponse(topics=topics)

    def plan(self, offset: int = 5, partitions: int = 1, group: str = "g") -> OffsetsPlan:
        now = look(self.fake.cluster(), [group])
        places = (TopicPartition("orders", partition) for partition in range(partitions))
        drafts = {group: {place: Draft(CommittedOffset(offset)) for place in places}}
        return make_plan(Purpose("reset-offsets", f"to-offset {offset}"), now, drafts)

    def execute(self, plan: OffsetsPlan) -> list[tuple[str, str | None]]:
        done = execute_offsets(self.fake.cluster(journal=self.journal), plan)
        return [(item.result, item.error_code) for item in done.items]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_group_whose_coordinator_does_not_answer_is_not_called_absent(store: Store) -> None:
    def unanswered(node: int, request: Any) -> Any:
        raise Unreachable("broker 1 did not answer in time")

    for request in (DescribeGroupsRequest, OffsetFetchRequest):
        store.fake.on(request, unanswered)
    said = "\n".join(map(str, planned(store.plan(), None).blocks))
    assert "g (state unknown)" in said and "does not exist" not in said


def lose_the_reply() -> None:
    raise OutcomeUnknown("no reply")


def test_the_before_image_is_journalled_before_the_first_commit(store: Store) -> None:
    seen: list[Any] = []
    store.before_commit = lambda: seen.append(store.journal.entries())
    assert store.execute(store.plan()) == [("done", None)]
    ((entry,),) = seen
    assert entry.results is None
    assert entry.before["offsets"] == {"g": [["orders", 0, 1, -1, ""]]}
    (finished,) = store.journal.entries()
    assert finished.results is not None


def test_a_coordinator_that_moves_is_followed(store: Store) -> None:
    store.codes = [ErrorCode.NOT_COORDINATOR]
    assert store.execute(store.plan()) == [("done", None)]
    assert len(store.fake.requests(oc.OffsetCommitRequest)) == 2


def test_a_member_that_joins_in_between_is_noticed_by_the_coordinator(store: Store) -> None:
    store.codes = [ErrorCode.UNKNOWN_MEMBER_ID]
    assert store.execute(store.plan()) == [("refused", "UNKNOWN_MEMBER_ID")]


def test_a_group_that_became_active_is_refused_without_a_request(store: Store) -> None:
    plan = store.plan()
    store.groups.add(classic_group("g", classic_member("m")))
    assert store.execute(plan) == [("refused", "NON_EMPTY_GROUP")]
    assert store.fake.requests(oc.OffsetCommitRequest) == []
    assert store.journal.entries() == ()


def test_an_offset_that_moved_makes_the_plan_stale(store: Store) -> None:
    plan = store.plan()
    store.groups.committed["g"]["orders:0"] = 2
    assert store.execute(plan) == [("refused", "PLAN_STALE")]


def test_a_lost_reply_is_settled_by_looking(store: Store) -> None:
    """It is not sent again: in between a consumer could have come, committed and gone."""
    store.after_commit = lose_the_reply
    assert store.execute(store.plan()) == [("done", None)]
    assert len(store.fake.requests(oc.OffsetCommitRequest)) == 1


def test_a_request_lost_on_its_way_stays_in_doubt(store: Store) -> None:
    store.before_commit = lose_the_reply
    assert store.execute(store.plan()) == [("failed", "OUTCOME_UNKNOWN")]


@pytest.mark.parametrize(("partitions", "rest"), [(2, None), (3, None), (5, " and 2 more")])
def test_an_undo_names_three_places_that_moved_and_counts_the_others(
    store: Store, partitions: int, rest: str | None
) -> None:
    store.execute(store.plan(5, partitions))
    store.groups.committed["g"] = {f"orders:{number}": 6 for number in range(partitions)}
    with pytest.raises(SafetyRefused) as refused:
        plan_undo(store.fake.cluster(journal=store.journal), "LAST")
    assert refused.value.message.count(" is 6, was set to 5") == min(partitions, 3)
    assert refused.value.message.endswith(rest or "was set to 5")


def test_a_change_in_doubt_can_be_undone_either_way(store: Store) -> None:
    store.before_commit = lose_the_reply
    store.execute(store.plan())
    store.before_commit = lambda: None
    (item,) = plan_undo(store.fake.cluster(journal=store.journal), "LAST").items
    assert item.result == "unchanged"
    store.groups.committed["g"]["orders:0"] = 5
    (item,) = plan_undo(store.fake.cluster(journal=store.journal), "LAST").items
    assert (item.result, item.after) == ("planned", CommittedOffset(1))
    store.groups.committed["g"]["orders:0"] = 6
    with pytest.raises(SafetyRefused, match="a commit came after j-0001"):
        plan_undo(store.fake.cluster(journal=store.journal), "LAST")


def test_what_was_stored_before_the_cluster_was_gone_stays_told(store: Store) -> None:
    """The codes of the parts before were lost with the error of the last."""
    store.fake.topics["orders"] = 1500
    store.groups.ends = {f"orders:{p}": 9 for p in range(1500)}
    plan = plan_reset(store.fake.cluster(), ["g"], Spec(TO_OFFSET, 5), Scope(topics={"orders": None}))
    parts = iter([ErrorCode.NONE])

    def gone() -> None:
        if next(parts, None) is None:
            store.fake.down |= {1, 2}
            raise Unreachable("broker 1 is down")

    store.before_commit = gone
    results = store.execute(plan)
    assert results == [("done", None)] * 1000 + [("failed", "UNREACHABLE")] * 500
    (entry,) = store.journal.entries()
    assert [r["result"] for r in entry.results or ()] == ["done"] * 1000 + ["failed"] * 500


def test_a_change_that_is_interrupted_says_what_was_done_by_then(store: Store) -> None:
    store.groups.add(classic_group("h", state="Empty"))
    cluster = store.fake.cluster()
    drafts = {name: {ORDERS_0: Draft(CommittedOffset(5))} for name in ("g", "h")}
    plan = make_plan(Purpose("reset-offsets", "to-offset 5"), look(cluster, ["g", "h"]), drafts)
    parts = iter([True])

    def interrupt() -> None:
        if not next(parts, False):
            raise KeyboardInterrupt

    store.before_commit = interrupt
    with pytest.raises(KeyboardInterrupt):
        store.execute(plan)
    (entry,) = store.journal.entries()
    told = [(r["group_id"], r["result"], r["error_code"]) for r in entry.results or ()]
    assert told == [("g", "done", None), ("h", "failed", "INTERRUPTED")]


def test_an_undo_on_another_cluster_is_refused(store: Store) -> None:
    entry = store.journal.begin("reset-offsets", "another", {"items": []}, {"offsets": {"g": []}})
    with pytest.raises(SafetyRefused, match="is of cluster another"):
        plan_undo(store.fake.cluster(journal=store.journal), entry)
    with pytest.raises(SafetyRefused, match=r"the newest change, j-0001 \(.* is of cluster another"):
        plan_undo(store.fake.cluster(journal=store.journal), "LAST")


def test_many_partitions_go_in_several_requests(store: Store) -> None:
    store.fake.topics["orders"] = 2500
    store.groups.ends = {f"orders:{p}": 9 for p in range(2500)}
    spec, scope = Spec(TO_OFFSET, 5), Scope(topics={"orders": None})
    plan = plan_reset(store.fake.cluster(), ["g"], spec, scope)
    assert set(store.execute(plan)) == {("done", None)}
    sizes = [len(r.topics[0].partitions) for r in store.fake.requests(oc.OffsetCommitRequest)]
    assert sizes == [1000, 1000, 500]


def test_a_deletion_that_the_broker_is_too_old_for_says_which_is_not(store: Store) -> None:
    """Kafka 2.3 has no OffsetDelete."""

    def absent(node: int, request: Any) -> None:
        raise BrokerRefused(
            ErrorCode.UNSUPPORTED_VERSION, "no OffsetDelete", hint="Kafka 2.4 and later serve it"
        )

    store.fake.on(OffsetDeleteRequest, absent)
    now = look(store.fake.cluster(), ["g"])
    plan = make_plan(Purpose("offsets-delete", "delete"), now, {"g": {ORDERS_0: Draft(None)}})
    (item,) = execute_offsets(store.fake.cluster(journal=store.journal), plan).items
    assert (item.result, item.error_code) == ("failed", "UNSUPPORTED_VERSION")
    assert item.effect == "no OffsetDelete (Kafka 2.4 and later serve it)"


def test_a_plan_survives_its_document(store: Store) -> None:
    plan = plan_reset(store.fake.cluster(), ["g"], Spec(TO_OFFSET, 5), Scope(all_topics=True), "why")
    assert plan_from(plan_document(plan)) == plan
    with pytest.raises(ConfigError):
        plan_from({"items": [{}]})


@pytest.mark.parametrize("seed", range(20))
def test_last_never_touches_the_change_of_another(store: Store, seed: int) -> None:
    """Two operators change groups of their own; each undoes LAST, of its group or of none it names."""
    chance = random.Random(seed)
    groups = ("g", "h")
    store.groups.add(classic_group("h", state="Empty"))
    store.groups.committed["h"] = {"orders:0": 1}
    states: dict[str, dict[str, dict[str, int]]] = {}
    outcomes = set()
    for _ in range(80):
        mine = chance.choice(groups)
        before = {name: dict(store.groups.committed[name]) for name in groups}
        newest = store.journal.find("LAST")
        match chance.randrange(5):
            case 0:
                entry = store.journal.begin("remove-members", "fake", {"actor": mine}, {})
                store.journal.end(entry, [])
            case 1 | 4:
                store.execute(store.plan(chance.randrange(2, 9), group=mine))
                if (made := store.journal.find("LAST")) != newest:
                    assert made is not None
                    states[made.id] = before
            case kind:
                named = (mine,) if kind == 2 else ()
                outcome = "undone"
                try:
                    plan = plan_undo(store.fake.cluster(journal=store.journal), "LAST", named)
                except SafetyRefused as refused:
                    outcome = "refused"
                    assert newest is None or f"newest change, {newest.id} (" in refused.message
                else:
                    assert newest is not None
                    assert newest.command == "reset-offsets"
                    assert set(before) >= {item.group_id for item in plan.items} <= set(named or groups)
                    store.execute(plan)
                    assert store.groups.committed == states[newest.id]
                outcomes.add(outcome)
                if outcome == "refused":
                    assert store.groups.committed == before
    assert outcomes == {"undone", "refused"}
