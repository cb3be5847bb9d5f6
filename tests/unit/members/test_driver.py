"""The driver against a cluster that answers from a script, on a clock that only its pauses move."""

from collections import deque

import pytest

from kgroup.domain import TopicPartition
from kgroup.errors import BrokerRefused, Unreachable
from kgroup.errors import ErrorCode as E
from kgroup.members.consumer import ConsumerMember
from kgroup.members.driver import Driver
from kgroup.members.effects import Assigned, Committed, Failed, Left, Revoke
from kgroup.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kgroup.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kgroup.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

T = b"t" * 16


def beat(epoch=1, code=0, assigned=None):
    given = (
        None
        if assigned is None
        else Assignment(topic_partitions=(TopicPartitions(topic_id=T, partitions=assigned),))
    )
    return ConsumerGroupHeartbeatResponse(
        error_code=code, member_epoch=epoch, heartbeat_interval_ms=1000, assignment=given
    )


class Cluster:
    """A transport: heartbeats are answered from the script, the rest as a healthy broker would."""

    def __init__(self, *script, coordinators=(7,), newest=3):
        self.script = deque(script)
        self.coordinators = deque(coordinators)
        self.newest = newest
        self.asked = []

    def versions(self, node, api_key):
        return range(self.newest + 1)

    def request(self, node, message, *, min_version=0, max_version=None, timeout_s=None):
        self.asked.append((node, message))
        match message:
            case FindCoordinatorRequest():
                return self.coordinator(message)
            case MetadataRequest():
                part = MetadataResponsePartition()
                return MetadataResponse(
                    topics=(MetadataResponseTopic(name="t", topic_id=T, partitions=(part, part)),)
                )
            case OffsetCommitRequest():
                parts = (OffsetCommitResponsePartition(partition_index=0),)
                return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="t", partitions=parts),))
        answer = self.script.popleft() if self.script else beat()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def coordinator(self, message):
        node = self.coordinators[0] if len(self.coordinators) == 1 else self.coordinators.popleft()
        code = 0 if node >= 0 else E.COORDINATOR_NOT_AVAILABLE
        if message.coordinator_keys:
            found = Coordinator(key="g", node_id=node, error_code=code)
            return FindCoordinatorResponse(coordinators=(found,))
        assert message.key == "g"
        return FindCoordinatorResponse(node_id=node, error_code=code)

    def beats(self):
        return [
            (node, m.member_epoch) for node, m in self.asked if isinstance(m, ConsumerGroupHeartbeatRequest)
        ]


def run(cluster, until_ms=2500, commit=None, **options):
    now = 0
    events = []

    def pause(seconds):
        nonlocal now
        now += round(seconds * 1000)
        return now > until_ms

    def on_event(event):
        events.append(event)
        if commit and isinstance(event, commit):
            driver.commit({TopicPartition("t", 0): 1})

    member = ConsumerMember("g", "m", ["t"], **options)
    driver = Driver(member, cluster, clock_ms=lambda: now, pause=pause, on_event=on_event)
    driver.run()
    return events


def test_a_member_joins_beats_and_leaves():
    cluster = Cluster(beat(assigned=(0, 1)))
    both = (TopicPartition("t", 0), TopicPartition("t", 1))
    assert run(cluster) == [Assigned(both), Revoke(both), Left()]
    assert cluster.beats() == [(7, 0), (7, 1), (7, 1), (7, 1), (7, -1)]


@pytest.mark.parametrize("commit", [Assigned, Revoke])
def test_the_host_may_commit_from_its_callback(commit):
    events = run(Cluster(beat(assigned=(0,))), commit=commit)
    assert Committed({TopicPartition("t", 0): 0}) in events


def test_the_coordinator_is_asked_for_again_when_it_moved_or_is_gone():
    cluster = Cluster(beat(), beat(code=E.NOT_COORDINATOR), Unreachable("gone"), coordinators=(7, 8, 9))
    run(cluster)
    assert [node for node, _ in cluster.beats()] == [7, 7, 8, 9, 9, 9]


def test_a_coordinator_that_is_not_there_yet_is_waited_for():
    cluster = Cluster(coordinators=(-1, -1, 7))
    run(cluster)
    assert cluster.beats()[0] == (7, 0)


@pytest.mark.parametrize(("newest", "key", "keys"), [(3, "g", ()), (4, "", ("g",))])
def test_a_coordinator_is_asked_for_as_the_broker_understands_it(newest, key, keys):
    cluster = Cluster(newest=newest)
    run(cluster)
    assert (cluster.asked[0][1].key, cluster.asked[0][1].coordinator_keys) == (key, keys)


def test_a_final_refusal_ends_the_run():
    assert run(Cluster(beat(code=E.GROUP_MAX_SIZE_REACHED))) == [Failed(81, "GROUP_MAX_SIZE_REACHED")]
    refused = BrokerRefused(E.UNSUPPORTED_VERSION, "too old")
    assert run(Cluster(refused)) == [Failed(35, "too old")]


def test_a_broker_gone_while_the_member_leaves_does_not_hold_it_up():
    events = run(Cluster(beat(), beat(), beat(), Unreachable("gone")))
    assert events == [Left()]
