"""Groups out of a tree: exported only when nobody reads with them, deleted as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgroup.admin.journal import Journal
from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode, Unreachable
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest
from kgroup.zookeeper.groups import groups
from kgroup.zookeeper.store.operations import Failure
from tests.unit.zookeeper.old_tree import OldBroker, OldTree


@pytest.fixture
def old() -> OldTree:
    """Group og, which nobody reads with any more, beside group live."""
    tree = OldTree()
    tree.broker()
    tree.topic("t1", 2)
    tree.put("/consumers/og/ids")
    tree.put("/consumers/og/owners/t1")
    tree.offset("og", "t1", 0, 7)
    tree.offset("og", "t1", 1, 12)
    tree.owner("live", "t1", 0, tree.consumer("live", "c", {"t1": 1}))
    tree.offset("live", "t1", 0, 3)
    return tree


@pytest.fixture
def broker() -> OldBroker:
    return OldBroker({("t1", 0): 10, ("t1", 1): 12})


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


def offsets(now) -> dict:
    return {partition: at.offset for partition, at in now.committed.items()}


def transact(old: OldTree):
    return lambda *ops: old.tree.ask(old.writer, ops)


def test_an_export_has_every_offset(old, broker):
    now, doubts = broker.groups(old).look(["og"])
    assert offsets(now["og"]) == {TopicPartition("t1", 0): 7, TopicPartition("t1", 1): 12}
    assert (now["og"].error, doubts) == (None, ())


def test_an_export_of_a_live_group_is_refused(old, broker):
    now, _ = broker.groups(old).look(["live"])
    assert now["live"].error.code == ErrorCode.NON_EMPTY_GROUP and now["live"].committed == {}


@pytest.mark.parametrize("lasting", [True, False])
def test_owners_alone_keep_a_group_from_being_deleted_and_not_from_being_read(old, broker, lasting):
    old.owner("og", "t1", 0, "og_c", lasting=lasting)
    now, _ = broker.groups(old).look(["og"])
    assert now["og"].error is None and now["og"].committed
    assert (now["og"].unseen.code, "is unknown" in now["og"].unseen.message) == ("NON_EMPTY_GROUP", True)
    (planned,) = broker.groups(old).plan_delete(["og"])
    assert (planned.result, planned.error_code) == ("failed", "NON_EMPTY_GROUP")


def test_registrations_that_may_not_be_read_refuse_for_lack_of_rights(old, broker):
    old.deny("/consumers/og/ids")
    now, _ = broker.groups(old).look(["og"])
    assert now["og"].error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    (planned,) = broker.groups(old).plan_delete(["og"])
    assert (planned.result, planned.error_code) == ("failed", "GROUP_AUTHORIZATION_FAILED")


def test_an_export_takes_offsets_out_of_kafka_too(old, broker):
    old.topic("__consumer_offsets", 2)
    broker.kafka = {("og", "t1", 1): 11, ("kg", "t1", 0): 5}
    old.put("/consumers/kg/ids")
    old.offset("kg", "t1", 1, 2)
    now, doubts = broker.groups(old).look(["og", "kg"])
    assert offsets(now["kg"]) == {TopicPartition("t1", 0): 5, TopicPartition("t1", 1): 2}
    assert [(doubt.item, doubt.code) for doubt in doubts] == [("og", "TWO_POSITIONS")]


@pytest.mark.parametrize("left", ["/consumers/kg/owners/t1", "/consumers/kg/ids"])
def test_offsets_that_are_in_kafka_alone_are_not_lost(old, broker, left):
    """What such a group leaves in the tree when its consumers end: a topic without partitions, or less."""
    old.topic("__consumer_offsets", 2)
    old.put(left)
    broker.kafka = {("kg", "t1", 0): 5, ("kg", "t1", 1): 6}
    now, doubts = broker.groups(old).look(["kg"])
    assert offsets(now["kg"]) == {TopicPartition("t1", 0): 5, TopicPartition("t1", 1): 6}
    assert doubts == ()


def test_a_group_that_ended_is_described_with_its_offsets_in_kafka(old, broker):
    old.topic("__consumer_offsets", 2)
    old.put("/consumers/kg/owners/t1")
    broker.kafka = {("kg", "t1", 0): 5}
    (group,) = broker.groups(old).describe(["kg"]).groups
    assert (group.state, group.total_lag, [row.committed_offset for row in group.offsets]) == (
        "Empty",
        5,
        [5],
    )


def test_an_export_that_may_lack_offsets_says_so(old, broker):
    old.topic("__consumer_offsets", 2)
    broker.failure[OffsetFetchRequest] = Unreachable("b1:9092 timed out")
    old.offset("og", "t1", 0, "?")
    now, doubts = broker.groups(old).look(["og"])
    assert offsets(now["og"]) == {TopicPartition("t1", 1): 12}
    assert {doubt.code for doubt in doubts} == {"DECODEERROR", "UNREACHABLE"}


def test_a_deleted_group_is_gone_and_in_the_journal(old, broker, journal):
    others = {path for path in old.paths() if not path.startswith("/consumers/og")}
    done = broker.groups(old).delete(["og"], transact(old), journal, "moved")
    assert [item.result for item in done.items] == ["deleted"]
    assert old.paths() == others
    (entry,) = journal.entries()
    assert entry.before["offsets"]["og"] == [["t1", 0, 7, -1, ""], ["t1", 1, 12, -1, ""]]
    assert [result["result"] for result in entry.results] == ["deleted"]


def test_a_live_group_is_not_deleted(old, broker, journal):
    before = old.paths()
    done = broker.groups(old).delete(["live"], transact(old), journal, None)
    assert [(item.result, item.error_code) for item in done.items] == [("failed", "NON_EMPTY_GROUP")]
    assert old.paths() == before


def test_a_consumer_that_comes_between_reading_and_deleting_keeps_its_group(old):
    def late(*ops):
        old.consumer("og", "late", {"t1": 1})
        return old.tree.ask(old.writer, ops)

    item = groups.delete(old.ask, late, "og")
    assert (item.result, item.error_code) == ("failed", "NON_EMPTY_GROUP")
    assert {"/consumers/og/ids/og_late", "/consumers/og/offsets/t1/0"} <= old.paths()


def test_a_registration_is_never_deleted(old):
    old.consumer("og", "late", {"t1": 1})
    before = old.paths()
    assert groups.delete(old.ask, transact(old), "og").error_code == "NON_EMPTY_GROUP"
    assert old.paths() == before


def test_what_may_not_be_deleted_leaves_everything(old):
    old.deny("/consumers/og/offsets/t1/1")
    before = old.paths()
    item = groups.delete(old.ask, transact(old), "og")
    assert (item.result, item.error_code) == ("failed", "GROUP_AUTHORIZATION_FAILED")
    assert old.paths() == before


def test_a_deletion_that_is_cut_off_is_ended_in_the_journal(old, broker, tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")

    def interrupted(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broker.groups(old).delete(["og"], interrupted, journal, None)
    (entry,) = journal.entries()
    assert entry.results is not None and entry.before["offsets"]["og"]
    assert [(r["group_id"], r["error_code"]) for r in entry.results] == [("og", "INTERRUPTED")]


def test_an_outcome_that_nobody_knows_is_told_as_that(old):
    item = groups.delete(old.ask, lambda *ops: (Failure.CONNECTION_LOSS,) * len(ops), "og")
    assert (item.result, item.error_code) == ("failed", "UNREACHABLE")
    assert "unknown" in item.effect


def test_a_group_too_large_for_one_multi_is_deleted_in_several(old, monkeypatch):
    monkeypatch.setattr(groups, "MOST", 3)
    sizes = []

    def counting(*ops):
        sizes.append(len(ops))
        return old.tree.ask(old.writer, ops)

    assert groups.delete(old.ask, counting, "og").result == "deleted"
    assert max(sizes) <= 3 and len(sizes) > 1
    assert not any(path.startswith("/consumers/og") for path in old.paths())


def test_how_long_a_group_has_been_silent(old, broker):
    old.now_ms = 5_000
    old.offset("og", "t1", 1, 12)
    assert broker.groups(old).silent_since_ms(["og", "live"]) == {"og": 5_000}
