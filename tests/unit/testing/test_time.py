"""Time and members under a test's hand, with librdkafka, and streams members that speak for themselves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from kgroup.api import Kind
from kgroup.broker.control import moving
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.errors import ConfigError, GroupNotFound, KgroupError, TimedOut
from kgroup.members.driver import Driver
from kgroup.members.streams import Application, StreamsMember
from kgroup.protocol.headers import encode_request
from kgroup.protocol.messages.api_versions import ApiVersionsRequest
from kgroup.protocol.messages.streams_group_heartbeat import Topology
from kgroup.protocol.streams_records import Subtopology
from kgroup.testing import Cluster
from tests.unit.testing.consumers import PARTITIONS, PATIENCE_S, TOPIC, Consumers, consumers

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])
DAY_S = 86_400


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster({TOPIC: PARTITIONS}, brokers=2, timeout_s=PATIENCE_S) as kafka:
        yield kafka


def clients(kafka: Cluster, group: str) -> set[str]:
    return {member.client_id or "" for member in kafka.describe(group).known_members}


def gone_from(kafka: Cluster, group: str) -> list[str | None]:
    return [e.member_id for e in kafka.history(group) if e.kind is Kind.MEMBER_LEFT_OR_EXPIRED]


def rebalances(kafka: Cluster, group: str) -> bool:
    return kafka.describe(group).state == "PreparingRebalance"


@PROTOCOLS
def test_of_three_members_exactly_the_frozen_one_expires(kafka: Cluster, protocol: str) -> None:
    kafka.produce(TOPIC, [f"{n}" for n in range(60)])
    with consumers(kafka, "pay", protocol, 3) as three:
        kafka.until(lambda: three.poll() and len(set(three.records)) == 60, timeout_s=PATIENCE_S)
        frozen = kafka.freeze("orders-0")
        three.heard.clear()
        before_ms = kafka.now_ms()
        assert kafka.advance("45s") >= before_ms + 45_000
        three.share_all(1, 2)
        assert clients(kafka, "pay") == {"orders-1", "orders-2"}
        assert kafka.until_stable("pay", members=2).member_count == 2
        assert gone_from(kafka, "pay") == [frozen]
        assert {number for number, _, _ in three.heard} == {1, 2}
        assert "lost" not in {what for _, what, _ in three.heard}
        assert kafka.thaw("orders-0") == frozen
        three.share_all(0, 1, 2)
        assert [what for number, what, _ in three.heard if number == 0][:2] == ["lost", "assigned"]
        assert clients(kafka, "pay") == {"orders-0", "orders-1", "orders-2"}


@PROTOCOLS
def test_a_long_time_passes_and_members_that_are_there_stay(kafka: Cluster, protocol: str) -> None:
    """Also those of which a rebalance is still to hear: nobody is put out for what he had no time to do."""
    with consumers(kafka, "pay", protocol, 3) as three:
        kafka.freeze("orders-0")
        moving = threading.Thread(target=kafka.advance, args=("2h",), kwargs={"patience": "5m"})
        moving.start()
        three.share_all(1, 2)
        while moving.is_alive():
            three.poll()
        moving.join()
        assert clients(kafka, "pay") == {"orders-1", "orders-2"}
        assert len(gone_from(kafka, "pay")) == 1, kafka.last_events("pay")
        three.heard.clear()
        kafka.advance("3d")
        three.poll()
        assert three.heard == [] and clients(kafka, "pay") == {"orders-1", "orders-2"}
        kafka.thaw("orders-0")


@PROTOCOLS
def test_silence_has_everybody_expire(kafka: Cluster, protocol: str) -> None:
    with consumers(kafka, "pay", protocol, 2) as both:
        both.heard.clear()
        kafka.advance("45s", others="silent")
        both.hear((0, "lost"), (1, "lost"))
        both.share_all(0, 1)


@PROTOCOLS
def test_a_member_expires_without_a_move_of_time(kafka: Cluster, protocol: str) -> None:
    with consumers(kafka, "pay", protocol, 2) as both:
        both.heard.clear()
        before_ms = kafka.now_ms()
        gone = kafka.expire("orders-1")
        assert kafka.now_ms() - before_ms < 45_000 and gone in {e.member_id for e in kafka.history("pay")}
        both.hear((1, "lost"))
        both.share_all(0, 1)


def test_a_rebalance_waits_for_members_that_are_there_and_not_for_ever(kafka: Cluster) -> None:
    """They heartbeat, but whoever does not poll does not rejoin: after the patience its time runs out."""
    with consumers(kafka, "pay", "classic", 2, **{"max.poll.interval.ms": 300_000}):
        late = Consumers(kafka, "pay", "classic", 1, **{"client.id": "late"})
        kafka.until(lambda: late.poll() and rebalances(kafka, "pay"))
        kafka.advance("290s", patience="200ms")
        assert clients(kafka, "pay") == {"orders-0", "orders-1", "late"}
        kafka.advance("15s", patience="200ms")
        late.share_all(0)
        assert clients(kafka, "pay") == {"late"}
        late.of[0].close()


def test_a_member_that_waits_for_a_rebalance_cannot_expire(kafka: Cluster) -> None:
    with consumers(kafka, "pay", "classic", 2) as both:
        kafka.freeze("orders-0")
        late = Consumers(kafka, "pay", "classic", 1, **{"client.id": "late"})

        def refused() -> bool:
            both.poll(), late.poll()
            try:
                kafka.expire("orders-1")
            except KgroupError as error:
                return "Kafka expires no member that does" in error.message
            pytest.fail("it expired")

        kafka.until(lambda: both.poll() and late.poll() and rebalances(kafka, "pay"))
        kafka.until(lambda: both.poll() and late.poll() and both.heard[-1][:2] == (1, "revoked"))
        kafka.until(refused)
        kafka.thaw("orders-0")
        kafka.until(lambda: both.poll() and late.poll() and kafka.describe("pay").member_count == 3)
        late.of[0].close()


def test_retention_of_offsets_follows_the_clock(kafka: Cluster) -> None:
    kafka.produce(TOPIC, ["a"], partition=0)
    with consumers(kafka, "pay", "classic", 1) as one:
        one.of[0].commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
    kafka.wait_for("pay", "empty", PATIENCE_S)
    kafka.advance("6d")
    assert kafka.lag("pay").offsets[0].committed_offset == 1
    kafka.advance(timedelta(days=1, minutes=10))
    with pytest.raises(GroupNotFound):
        kafka.lag("pay")
    last = kafka.history("pay")[-1]
    assert last.kind is Kind.GROUP_DELETED and last.timestamp_ms > (time.time() + 6.9 * DAY_S) * 1000


def test_transactions_time_out_by_the_clock(kafka: Cluster) -> None:
    producer = Producer({**kafka.client(), "transactional.id": "t", "transaction.timeout.ms": 60_000})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(TOPIC, b"open", partition=0)
    producer.flush(PATIENCE_S)
    kafka.advance("59s")
    kafka.produce(TOPIC, ["behind"], partition=0)
    assert kafka.read(TOPIC, partition=0) == ()
    kafka.advance("2s")
    assert [record.value for record in kafka.read(TOPIC, partition=0)] == [b"behind"]
    with pytest.raises(KafkaException):
        producer.commit_transaction(PATIENCE_S)


def test_lag_in_time_follows_the_clock(kafka: Cluster) -> None:
    kafka.produce(TOPIC, ["a", "b"], partition=0)
    with consumers(kafka, "pay", "consumer", 1) as one:
        one.of[0].commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
        kafka.advance("10m")
        behind = next(row for row in kafka.lag("pay", times=True).offsets if row.partition == 0)
        assert behind.time_lag_ms is not None and 600_000 <= behind.time_lag_ms < 660_000
        kafka.produce(TOPIC, ["c"], partition=0)
        assert kafka.read(TOPIC, partition=0)[-1].timestamp_ms >= kafka.now_ms() - 60_000


@contextmanager
def streams_members(kafka: Cluster, *names: str) -> Iterator[dict[str, StreamsMember]]:
    """Members of a streams group on connections of their own, one thread each."""
    topology = Topology(epoch=1, subtopologies=(Subtopology(subtopology_id="0", source_topics=(TOPIC,)),))
    members = {name: StreamsMember("app", name, Application(name, topology)) for name in names}
    end, threads, transports = threading.Event(), [], []
    for member in members.values():
        transport = SocketTransport(ConnectionSettings(parse_bootstrap(kafka.bootstrap)))
        driver = Driver(member, transport, clock_ms=lambda: time.monotonic_ns() // 1_000_000, pause=end.wait)
        transports.append(transport)
        threads.append(threading.Thread(target=driver.run))
        threads[-1].start()
    try:
        yield members
    finally:
        end.set()
        for thread in threads:
            thread.join()
        for transport in transports:
            transport.close()


def test_members_of_a_streams_group(kafka: Cluster) -> None:
    with streams_members(kafka, "a", "b", "c") as members:
        kafka.until_stable("app", members=3, timeout_s=PATIENCE_S)
        kafka.until(lambda: sum(len(m.owned) for m in members.values()) == PARTITIONS, group="app")
        kafka.freeze("a", group="app")
        kafka.advance("45s")
        kafka.until(lambda: len(members["b"].owned) == len(members["c"].owned) == PARTITIONS / 2, group="app")
        assert {m.member_id for m in kafka.describe("app").known_members} == {"b", "c"}
        kafka.expire("c")
        kafka.until_stable("app", members=2, timeout_s=PATIENCE_S)  # it comes back at once
        kafka.thaw("a")
        kafka.until_stable("app", members=3, timeout_s=PATIENCE_S)


def test_what_nobody_is_called_and_what_more_than_one_is_called(kafka: Cluster) -> None:
    with pytest.raises(ConfigError, match="no member is called 'orders-0'") as told:
        kafka.freeze("orders-0")
    assert told.value.hint == "there is none"
    with consumers(kafka, "one", "classic", 1) as one, consumers(kafka, "two", "consumer", 1) as two:
        with pytest.raises(ConfigError, match="2 members are called 'orders-0'") as told:
            kafka.expire("orders-0")
        ids = {m.member_id for group in ("one", "two") for m in kafka.describe(group).known_members}
        assert told.value.hint is not None and all(member_id in told.value.hint for member_id in ids)
        assert kafka.freeze("orders-0", group="one") in ids
        with pytest.raises(ConfigError, match="no frozen member in two is called 'orders-0'"):
            kafka.thaw("orders-0", group="two")
        with pytest.raises(ConfigError, match="no member in one is called 'orders-7'") as told:
            kafka.freeze("orders-7", group="one")
        assert told.value.hint is not None and kafka.thaw("orders-0") in told.value.hint
        one.poll(), two.poll()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda kafka: kafka.advance("-5s"), "not negative"),
        (lambda kafka: kafka.advance("soon"), "'soon' is not a duration"),
        (lambda kafka: kafka.advance(45), "by is 45"),
        (lambda kafka: kafka.advance(timedelta(seconds=-1)), "is not a duration"),
        (lambda kafka: kafka.advance("1s", others="dead"), "others is 'dead'"),
        (lambda kafka: kafka.until_stable("pay", members=3, timeout_s=0.1), "last seen absent"),
        (lambda kafka: kafka.until(lambda: 0, timeout_s=0.1), "did not hold in 0.1 s"),
        (lambda kafka: kafka.until(lambda: 0, group="pay", timeout_s=0.1), "no record of it"),
    ],
)
def test_what_makes_no_sense_or_does_not_come_says_so(
    kafka: Cluster, ask: Callable[[Cluster], object], said: str
) -> None:
    with pytest.raises((ConfigError, TimedOut)) as told:
        ask(kafka)
    assert said in f"{told.value} {told.value.hint}"


@pytest.mark.parametrize("keep", [True, False])
def test_a_long_move_gives_others_their_turn_and_can_be_ended(
    kafka: Cluster, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    """A signal is heard meanwhile; a request is, too, unless all clients count as silent."""
    monkeypatch.setattr(moving, "SLICE_S", 0.0)
    serving = kafka._running()
    others = "kept" if keep else "silent"

    async def moved() -> tuple[bool, int]:
        host, port = serving.bootstrap.split(",")[0].split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        move = asyncio.ensure_future(serving.control.advance("10d", others))
        await asyncio.sleep(0)
        writer.write(encode_request(ApiVersionsRequest(), 0, 1, "other"))
        answer = asyncio.ensure_future(reader.read(1))
        await asyncio.wait((move, answer), return_when=asyncio.FIRST_COMPLETED)
        served_first = not move.done()
        assert await answer
        await move
        writer.close()
        before_ms = serving.control.clock.now_ms()
        cancelled = asyncio.ensure_future(serving.control.advance("10d", others))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait((cancelled,))
        return served_first, serving.control.clock.now_ms() - before_ms

    served_first, moved_ms = serving.call(moved())
    assert served_first == keep
    assert moved_ms < 10 * DAY_S * 1000
    kafka.create_topic("served-again")


@pytest.mark.parametrize("by", ["45", "0", 45, None, "367d", timedelta(days=400), "", "5 minutes", "-1s"])
def test_how_far_time_moves_has_a_unit_and_a_bound(kafka: Cluster, by: object) -> None:
    with pytest.raises(ConfigError) as told:
        kafka.advance(by)  # type: ignore[arg-type]
    assert told.value.hint
