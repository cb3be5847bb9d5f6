"""What a coordinator tells of a group to who operates it (decision 34): members, and how the group stands."""

from __future__ import annotations

import pytest

from kgroup.zookeeper.coordinator import machine
from kgroup.zookeeper.store.operations import SetData
from kgroup.zookeeper.wire.messages import (
    DescribeGroupRequest,
    DescribeGroupResponse,
    ErrorMapping,
    PingRequest,
    Registered,
    StartFetcherRequest,
)
from tests.unit.zookeeper.stage import S, Stage, Z

ALL_KNOWN = 30_000 + 2 * Z // 3
"""How long after an election somebody may be on the way whom nobody knows of."""


def told(stage, group="g", broker=1, after=""):
    asking = stage.consumer("operator", broker)
    asking.say(DescribeGroupRequest(group, after))
    answer = asking.received[-1]
    assert isinstance(answer, DescribeGroupResponse) and not asking.closed
    return answer


def state(stage, **more):
    answer = told(stage, **more)
    return answer.state, [member.consumer_id for member in answer.members]


def test_members_with_their_sessions_and_failed_pings():
    """LC-24, LC-55: as the registry has them."""
    stage = Stage(topics={"t": 3})
    one = stage.joined("c1", auto_commit=False)
    stage.joined("c2", topics="*2*t.*", session=9000)
    one.answers -= {PingRequest}
    stage.advance(S)
    answer = told(stage)
    assert (answer.error, answer.state, answer.more) == (ErrorMapping.NONE, machine.STABLE, False)
    assert answer.members == (
        Registered("c1", '{"t":1}', False, True, 6000, 1, 1),
        Registered("c2", "*2*t.*", True, True, 9000, 0, 2),
    )


def test_who_asks_is_no_consumer():
    """It registers nothing, and changes nothing for those who have."""
    stage = Stage(topics={"t": 1})
    consumer = stage.joined("c1")
    before = list(consumer.received)
    told(stage)
    assert consumer.received == before and set(stage.brokers[1].machine.term.groups["g"].members) == {"c1"}


def test_a_broker_that_does_not_coordinate_says_so():
    stage = Stage(brokers=2, topics={"t": 1})
    stage.joined("c1")
    assert told(stage, broker=2) == DescribeGroupResponse(ErrorMapping.NOT_COORDINATOR, "", False, ())


def test_a_group_that_is_being_moved_is_not_stable():
    stage = Stage(topics={"t": 2})
    stage.joined("c1")
    two = stage.consumer("c2")
    two.answers -= {StartFetcherRequest}
    two.register()
    assert state(stage) == (machine.REBALANCING, ["c1", "c2"])
    assert [member.started for member in told(stage).members] == [True, False]


def test_a_group_that_was_given_up_has_failed():
    """LC-72: until something happens, and then it is tried again."""
    stage = Stage(topics={"t": 1}, max_rebalance_retries=1, rebalance_backoff_ms=100)
    one = stage.consumer("c1")
    one.answers -= {StartFetcherRequest}
    one.register()
    stage.advance(2 * S)
    assert state(stage) == (machine.FAILED, ["c1"])


def test_a_group_is_empty_when_nobody_delivers_any_more():
    """LC-61: not at the moment its last connection is gone."""
    stage = Stage(topics={"t": 1})
    stage.joined("c1").die()
    assert state(stage) == (machine.LEAVING, [])
    stage.advance(S - 1)
    assert state(stage) == (machine.LEAVING, [])
    stage.advance(1)
    assert state(stage) == (machine.EMPTY, [])


def test_a_group_is_not_empty_before_its_offsets_are_written():
    """LC-27: who moves its offsets would move old ones."""
    stage = Stage(topics={"t": 1}, commit_interval_ms=20_000)
    consumer = stage.joined("c1")
    consumer.positions = {("t", "0"): 7}
    stage.advance(S // 3)
    consumer.die()
    stage.advance(S)
    assert (state(stage), stage.offsets()) == ((machine.LEAVING, []), {})
    stage.advance(20_000)
    assert (state(stage), stage.offsets()) == ((machine.EMPTY, []), {"t/0": 7})


def test_after_an_election_nobody_knows_who_is_on_the_way():
    """LC-08: of a group that has not come back, nothing is known before the longest session is over."""
    stage = Stage(brokers=2, topics={"t": 2})
    stage.joined("c1")
    stage.joined("c2")
    stage.advance(10)
    stage.brokers[1].expire()
    stage.settle()
    assert state(stage, broker=2) == (machine.RECOVERING, [])
    stage.joined("c1", broker=2)
    assert state(stage, broker=2) == (machine.RECOVERING, ["c1"])
    assert state(stage, broker=2, group="other") == (machine.RECOVERING, [])
    stage.advance(ALL_KNOWN)
    assert state(stage, broker=2) == (machine.STABLE, ["c1"])
    assert state(stage, broker=2, group="other") == (machine.EMPTY, [])


@pytest.mark.parametrize(("page", "wanted"), [(1, 20), (60, 7), (machine.PAGE_BYTES, 1)])
def test_many_members_are_told_page_by_page(monkeypatch, page, wanted):
    """LC-03: an answer of thousands would end the connection as that of one who does not read."""
    monkeypatch.setattr(machine, "PAGE_BYTES", page)
    stage = Stage(topics={"t": 1})
    names = [f"c{number:02}" for number in range(20)]
    for name in names:
        stage.joined(name)
    found, pages = [], 0
    while True:
        answer = told(stage, after=found[-1].consumer_id if found else "")
        found += answer.members
        pages += 1
        if not answer.more:
            break
    assert [member.consumer_id for member in found] == names
    assert pages == wanted


def test_a_group_that_cannot_be_loaded_is_not_empty():
    stage = Stage(brokers=2, topics={"t": 1})
    stage.joined("c1")
    stage.advance(10)
    stage.do(SetData("/consumers/g/owners", b"{"))
    stage.brokers[1].expire()
    stage.settle()
    stage.tree.deny("/consumers/g/owners/t")
    stage.joined("c1", broker=2)
    assert state(stage, broker=2) == (machine.RECOVERING, ["c1"])
