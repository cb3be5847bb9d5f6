"""Offsets on their way to ZooKeeper: taken from whom, written when, and never cleared before they are."""

from kgroup.zookeeper.store.operations import Delete, Failure, SetData
from kgroup.zookeeper.wire.messages import (
    CommitOffsetRequest,
    CommitOffsetResponse,
    PartitionAndOffset,
    PingResponse,
    StopFetcherRequest,
)
from tests.unit.zookeeper.stage import S, Stage

TOPICS = {"t": 2}
T0 = PartitionAndOffset("t", "0", 42)


def settled(**config):
    stage = Stage(topics=TOPICS, **config)
    consumer = stage.joined()
    stage.advance(1)
    return stage, consumer


def group_of(stage):
    return stage.brokers[1].machine.term.groups["g"]


def test_the_interval_writes_what_changed_and_nothing_else():
    """LC-12, LC-27, scenario 34: no update no write; two updates one write."""
    stage, consumer = settled()
    consumer.positions = {}
    stage.until(9_999)
    count = len(stage.multis())
    stage.until(10_000)
    assert len(stage.multis()) == count
    consumer.positions = {("t", "0"): 5}
    stage.until(12_000)
    consumer.positions = {("t", "0"): 9}
    stage.until(20_000)
    assert len(stage.multis()) == count + 1 and stage.offsets() == {"t/0": 9}
    stage.until(60_000)
    assert len(stage.multis()) == count + 1


def test_a_write_that_fails_keeps_the_bit():
    """LC-27, scenario 34: the next interval writes it."""
    stage, consumer = settled(zk_session_ms=600_000)
    broker = stage.brokers[1]
    consumer.positions = {("t", "0"): 5}
    stage.until(9_000)
    broker.suspend()
    stage.until(10_100)
    assert group_of(stage).changed
    broker.connect(fresh=False)
    stage.until(20_000)
    assert stage.offsets()["t/0"] == 5 and not group_of(stage).changed


def test_an_update_during_the_write_is_written_next():
    """LC-27: the bit is cleared for what was written, not for what came meanwhile."""
    stage, consumer = settled()
    broker = stage.brokers[1]
    consumer.positions = {("t", "0"): 5}
    stage.until(9_000)
    broker.held = True
    stage.until(10_000)
    consumer.say(PingResponse(0, "c1", (T0,)))
    group = group_of(stage)
    group.offsets["t", "0"] = 42
    group.changed["t", "0"] = None
    broker.held = False
    broker.release()
    assert stage.offsets() == {"t/0": 5} or group.changed
    stage.until(20_001)
    assert not group.changed


def test_offsets_are_of_who_holds_the_partition():
    """LC-26: others are ignored, and counted."""
    stage, consumer = settled()
    consumer.silent()
    stage.advance(2_000)
    foreign = (T0, PartitionAndOffset("t", "7", 1), PartitionAndOffset("u", "0", 1), T0._replace(offset=-3))
    consumer.say(PingResponse(0, "c1", foreign))
    assert group_of(stage).offsets == {("t", "0"): 42}
    assert stage.brokers[1].machine.term.answers.ignored == 3


def test_somebody_deleted_the_nodes():
    """A write that meets another tree than it knew looks, and writes again."""
    stage, consumer = settled()
    consumer.positions = {("t", "0"): 5}
    stage.until(10_000)
    stage.do(*(Delete(f"/consumers/g/offsets{rest}") for rest in ("/t/0", "/t", "")))
    consumer.positions = {("t", "0"): 6}
    stage.until(30_000)
    assert stage.offsets() == {"t/0": 6}
    assert any(Failure.NO_NODE in results for _, results in stage.multis())


def test_a_commit_is_answered_when_it_is_written():
    """LC-82: any time behind the registration, and full duplex: a ping is not in its way."""
    stage, consumer = settled(commit=True)
    consumer.positions = {("t", "0"): 42}
    stage.brokers[1].held = True
    consumer.say(CommitOffsetRequest("c1", (T0,)))
    assert consumer.count(CommitOffsetResponse) == 0
    stage.until(2_000)
    stage.brokers[1].held = False
    stage.brokers[1].release()
    assert consumer.last(CommitOffsetResponse) == CommitOffsetResponse(0, "c1")
    assert stage.offsets() == {"t/0": 42} and not group_of(stage).changed


def test_a_commit_of_what_is_not_held_is_not_acknowledged():
    """LC-82: nothing is lost in silence."""
    stage, consumer = settled(commit=True)
    consumer.say(CommitOffsetRequest("c1", (T0, PartitionAndOffset("u", "0", 1))))
    assert consumer.last(CommitOffsetResponse) == CommitOffsetResponse(9, "c1")
    assert stage.offsets() == {"t/0": 42}


def test_a_commit_during_an_attempt_counts_until_the_stop_is_answered():
    """LC-82: behind it others may have the partition."""
    stage, consumer = settled(commit=True)
    consumer.positions = {("t", "0"): 42}
    consumer.silent()
    stage.topic("t", 3)
    consumer.say(CommitOffsetRequest("c1", (T0,)))
    assert consumer.last(CommitOffsetResponse).error == 0
    consumer.answer(consumer.last(StopFetcherRequest))
    stage.settle()
    consumer.say(CommitOffsetRequest("c1", (T0._replace(offset=50),)))
    assert consumer.last(CommitOffsetResponse).error == 9
    assert stage.offsets()["t/0"] == 42


def test_a_commit_that_cannot_be_written_says_so():
    """LC-82."""
    stage, consumer = settled(commit=True)
    stage.brokers[1].suspend()
    consumer.say(CommitOffsetRequest("c1", (T0,)))
    assert consumer.last(CommitOffsetResponse).error == -1
    assert group_of(stage).changed, "it is tried again at the interval"


def test_commits_are_off_unless_they_are_asked_for():
    """LC-82: an unknown message otherwise."""
    stage, consumer = settled()
    consumer.say(CommitOffsetRequest("c1", (T0,)))
    assert consumer.closed


def test_what_was_reported_outlives_the_group():
    """LC-84: a group is forgotten when nothing of it is left to write."""
    stage, consumer = settled(empty_group_ms=100, commit_interval_ms=50_000)
    consumer.silent()
    stage.until(2_000)
    consumer.say(PingResponse(0, "c1", (T0,)))
    consumer.die()
    stage.until(2_000 + 60_000 + S)
    assert "g" not in stage.brokers[1].machine.term.groups
    assert stage.offsets() == {"t/0": 42}


def test_an_offset_written_by_hand_is_overwritten_only_by_what_is_reported():
    """LC-26: the coordinator writes what changed."""
    stage, consumer = settled()
    consumer.positions = {("t", "0"): 5, ("t", "1"): 8}
    stage.until(10_000)
    stage.do(SetData("/consumers/g/offsets/t/1", b"100"))
    consumer.positions = {("t", "0"): 6, ("t", "1"): 8}
    stage.until(20_000)
    assert stage.offsets() == {"t/0": 6, "t/1": 100}


def test_a_group_that_an_operator_deleted_is_written_anew():
    """LC-26, LC-84: its offsets too, though the first report is what the last one was."""
    stage, consumer = settled(commit_interval_ms=1_000)
    stage.advance(S)
    before = stage.offsets()
    assert before
    consumer.die()
    stage.advance(2 * S)
    stage.do(*(Delete(path) for path in sorted(stage.dump("/consumers/g"), reverse=True)))
    stage.joined("c1")
    stage.advance(S)
    assert stage.offsets() == before
    assert set(stage.owners().values()) == {"c1-0"}
