"""Fetch sessions (KIP-227): only what changed travels, and nothing is missed by it."""

from __future__ import annotations

import pytest

from kgroup.broker.call import Call
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.broker.fetch_sessions import STALE_MS, FetchSessions, Wanted
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.batches import LogRecord, batches_in, encode_batch
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kgroup.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.unit.broker.brokers import create_topic

BY_NAME = 12


@pytest.fixture
def transport(clock: ManualClock) -> EmbeddedTransport:
    """One broker that leads everything."""
    return EmbeddedTransport(Cluster(None, offsets_partitions=1, clock=clock))


def produce(transport: EmbeddedTransport, partition: int, value: bytes = b"x", topic: str = "t") -> None:
    data = PartitionProduceData(index=partition, records=encode_batch([LogRecord(None, value)]))
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    answer = transport.request(None, request, max_version=12)
    assert answer.responses[0].partition_responses[0].error_code == 0  # type: ignore[attr-defined]


def fetch(
    transport: EmbeddedTransport,
    session: tuple[int, int],
    offsets: dict[int, int],
    *,
    forget: tuple[int, ...] = (),
    topic: str = "t",
    topic_id: bytes = bytes(16),
    version: int = BY_NAME,
    max_bytes: int = 1 << 20,
    max_wait_ms: int = 0,
) -> FetchResponse:
    partitions = tuple(
        FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=1 << 20)
        for p, offset in offsets.items()
    )
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions),) if partitions else (),
        forgotten_topics_data=(
            (ForgottenTopic(topic=topic, topic_id=topic_id, partitions=forget),) if forget else ()
        ),
    )
    answer = transport.request(None, request, min_version=version, max_version=version)
    assert isinstance(answer, FetchResponse)
    return answer


def told(answer: FetchResponse) -> dict[int, int]:
    """Partition → number of records."""
    return {
        p.partition_index: sum(batch.count for batch in batches_in(p.records or b""))
        for topic in answer.responses
        for p in topic.partitions
    }


def test_only_what_changed_travels(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", 3)
    first = fetch(transport, (0, 0), {0: 0, 1: 0, 2: 0})
    assert (first.error_code, told(first)) == (0, {0: 0, 1: 0, 2: 0})
    assert first.session_id
    assert told(fetch(transport, (first.session_id, 1), {})) == {}
    produce(transport, 1)
    assert told(fetch(transport, (first.session_id, 2), {})) == {1: 1}
    # the consumer has not got on yet, so it is told again; then it has
    assert told(fetch(transport, (first.session_id, 3), {})) == {1: 1}
    assert told(fetch(transport, (first.session_id, 4), {1: 1})) == {}


def test_a_session_waits_for_any_of_its_partitions(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", 2)
    session = fetch(transport, (0, 0), {0: 0, 1: 0}).session_id
    arrived: list[Message | None] = []
    request = FetchRequest(max_wait_ms=5000, min_bytes=1, session_id=session, session_epoch=1)
    assert transport.dispatcher.handle(Call(request, BY_NAME, "c", "/h", 0, arrived.append)) is None
    produce(transport, 1)
    (answer,) = arrived
    assert isinstance(answer, FetchResponse)
    assert told(answer) == {1: 1}


def test_partitions_join_and_leave_a_session(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", 3)
    session = fetch(transport, (0, 0), {0: 0}).session_id
    assert told(fetch(transport, (session, 1), {2: 0})) == {2: 0}
    for partition in range(3):
        produce(transport, partition)
    assert told(fetch(transport, (session, 2), {}, forget=(0,))) == {2: 1}
    # with its last partition the session ends
    ended = fetch(transport, (session, 3), {}, forget=(2,))
    assert (ended.error_code, ended.session_id) == (0, 0)
    assert fetch(transport, (session, 4), {}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_sessions_nobody_knows_and_wrong_epochs_are_refused(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    unknown = fetch(transport, (77, 1), {0: 0})
    assert (unknown.error_code, unknown.session_id, unknown.responses) == (70, 0, ())
    session = fetch(transport, (0, 0), {0: 0}).session_id
    assert fetch(transport, (session, 2), {}).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert fetch(transport, (session, 1), {}).error_code == 0
    assert fetch(transport, (session, 1), {}).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    # by name in a session that goes by ids, or the other way round
    code = fetch(transport, (session, 2), {}, version=13).error_code
    assert code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_request_ends_the_session_it_names(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    session = fetch(transport, (0, 0), {0: 0}).session_id
    closed = fetch(transport, (session, -1), {0: 0})
    assert (closed.error_code, closed.session_id, told(closed)) == (0, 0, {0: 0})
    assert fetch(transport, (session, 1), {}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    session = fetch(transport, (0, 0), {0: 0}).session_id
    renewed = fetch(transport, (session, 0), {0: 0}).session_id
    assert renewed not in (0, session)


def test_a_request_that_was_overtaken_is_told_so(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    session = fetch(transport, (0, 0), {0: 0}).session_id
    arrived: list[Message | None] = []
    request = FetchRequest(max_wait_ms=5000, min_bytes=1, session_id=session, session_epoch=1)
    assert transport.dispatcher.handle(Call(request, BY_NAME, "c", "/h", 0, arrived.append)) is None
    assert fetch(transport, (session, 2), {}).error_code == 0
    produce(transport, 0)
    (answer,) = arrived
    assert isinstance(answer, FetchResponse)
    assert (answer.error_code, answer.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session)


def test_errors_are_told_each_time_and_the_partition_again_after_them(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", 2)
    session = fetch(transport, (0, 0), {0: 0, 1: 9}).session_id
    for epoch in (1, 2):
        (topic,) = fetch(transport, (session, epoch), {}).responses
        assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(1, 1)]
    assert told(fetch(transport, (session, 3), {1: 0})) == {1: 0}
    assert told(fetch(transport, (session, 4), {})) == {}


def test_a_partition_that_filled_an_answer_comes_last_the_next_time(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t", 2)
    for partition in (0, 1):
        produce(transport, partition, b"x" * 100)
        produce(transport, partition, b"x" * 100)
    session = fetch(transport, (0, 0), {0: 0, 1: 0}, max_bytes=1).session_id
    seen = [told(fetch(transport, (session, epoch), {}, max_bytes=1)) for epoch in range(1, 5)]
    assert [{p for p, count in each.items() if count} for each in seen] == [{0}, {1}, {0}, {1}]


def test_topics_by_id_in_a_session(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    topic_id = transport.cluster.catalog.topics["t"].topic_id
    full = fetch(transport, (0, 0), {0: 0}, topic_id=topic_id, version=18)
    assert full.responses[0].topic_id == topic_id
    deletion = DeleteTopicsRequest(topics=(DeleteTopicState(name="t", topic_id=bytes(16)),), timeout_ms=1000)
    transport.request(None, deletion)
    gone = fetch(transport, (full.session_id, 1), {}, version=18)
    assert gone.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create_topic(transport, "t")
    other = fetch(transport, (full.session_id, 2), {}, version=18)
    assert other.responses[0].partitions[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    unknown = fetch(transport, (0, 0), {0: 0}, topic_id=topic_id, version=18)
    assert unknown.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_partition_named_often_is_read_once(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    produce(transport, 0)
    one = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="t", partitions=(one,) * 50)
    request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=(topic,) * 50)
    answer = transport.request(None, request, max_version=BY_NAME)
    assert isinstance(answer, FetchResponse)
    assert [len(each.partitions) for each in answer.responses] == [1]


def test_an_unknown_partition_does_not_hurry_the_others(
    transport: EmbeddedTransport, clock: ManualClock
) -> None:
    create_topic(transport, "t", 1)
    before = clock.now_ms()
    assert told(fetch(transport, (0, 0), {0: 0, 5: 0}, max_wait_ms=500)) == {0: 0, 5: 0}
    assert clock.now_ms() == before + 500
    fetch(transport, (0, 0), {5: 0}, max_wait_ms=500)
    assert clock.now_ms() == before + 500


class TestTheNumberOfSessionsIsBounded:
    @staticmethod
    def opened(sessions: FetchSessions, size: int, now_ms: int) -> int:
        asks = [FetchPartition(partition=p, fetch_offset=0, partition_max_bytes=1) for p in range(size)]
        wanted = {("t", ask.partition): Wanted("t", bytes(16), "t", ask) for ask in asks}
        request = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0)
        plan = sessions.plan(request, BY_NAME, wanted, now_ms)
        answers = [(key, each, PartitionData(records=b"")) for key, each in wanted.items()]
        return sessions.answered(plan, answers, now_ms)[0]

    @staticmethod
    def alive(sessions: FetchSessions, session: int) -> bool:
        request = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session, session_epoch=99)
        with pytest.raises(Refused) as refused:
            sessions.plan(request, BY_NAME, {}, 0)
        return refused.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH

    @pytest.mark.parametrize("began_ms", [0, 10 * STALE_MS])
    def test_young_sessions_stay(self, began_ms: int) -> None:
        """However long the broker has been running."""
        sessions = FetchSessions(2)
        kept = [self.opened(sessions, 1, began_ms), self.opened(sessions, 1, began_ms)]
        follow_up = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=kept[0], session_epoch=1)
        sessions.plan(follow_up, BY_NAME, {}, began_ms + 1)
        assert self.opened(sessions, 10, began_ms + STALE_MS) == 0
        assert all(self.alive(sessions, session) for session in kept)

    def test_one_that_is_not_used_goes_first(self) -> None:
        sessions = FetchSessions(2)
        idle, used = self.opened(sessions, 9, 0), self.opened(sessions, 1, 0)
        follow_up = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=used, session_epoch=1)
        sessions.plan(follow_up, BY_NAME, {}, STALE_MS)
        assert self.opened(sessions, 1, STALE_MS + 1)
        assert [self.alive(sessions, session) for session in (idle, used)] == [False, True]

    def test_else_the_smallest_of_the_old_ones_makes_room_for_one_as_large(self) -> None:
        sessions = FetchSessions(20)
        large = [self.opened(sessions, 5, 0) for _ in range(19)]
        small = self.opened(sessions, 3, 0)
        for session in (*large, small):
            follow_up = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session, session_epoch=1)
            sessions.plan(follow_up, BY_NAME, {}, STALE_MS)
        assert self.opened(sessions, 2, STALE_MS + 1) == 0
        assert self.opened(sessions, 3, STALE_MS + 1)
        assert [self.alive(sessions, session) for session in (*large, small)] == [True] * 19 + [False]

    def test_none_at_all_are_kept_when_there_is_no_room(self) -> None:
        assert self.opened(FetchSessions(0), 1, 0) == 0
