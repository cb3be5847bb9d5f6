"""Each fault, through two clients that nobody here wrote: it does what docs/testing.md says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kgroup.errors import ConfigError, FaultUnused, TimedOut
from kgroup.testing import Cluster
from tests.unit.testing.clients import CLIENTS, PATIENCE_S, REQUEST_MS, Client

TOPIC = "orders"
# kafka-python leaves sockets of connections that failed to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    settings = {"default.replication.factor": 3}
    with Cluster({TOPIC: 3}, brokers=3, settings=settings, timeout_s=PATIENCE_S) as kafka:
        yield kafka


@pytest.fixture(params=CLIENTS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[Client]:
    found: type[Client] = request.param
    return found


@contextmanager
def client(
    kind: type[Client],
    kafka: Cluster,
    name: str = "shop",
    *,
    idempotent: bool = False,
    request_ms: int = REQUEST_MS,
) -> Iterator[Client]:
    made = kind(kafka, name, idempotent=idempotent, request_ms=request_ms)
    try:
        yield made
    finally:
        kafka.remove_faults()
        made.close()


def values(kafka: Cluster, partition: int) -> list[bytes | None]:
    return [record.value for record in kafka.read(TOPIC, partition=partition)]


def test_an_error_for_the_next_requests_of_one_partition(kafka: Cluster, kind: type[Client]) -> None:
    fault = kafka.fault(
        keys=["Produce"], topic=TOPIC, partitions=[0], error="NOT_LEADER_OR_FOLLOWER", count=2
    )
    with client(kind, kafka) as shop:
        assert shop.send(TOPIC, 1, b"another") == 0
        assert fault.hits == 0
        assert shop.send(TOPIC, 0, b"a") == 0
    assert fault.left == 0
    assert [(hit.request, hit.client_id, hit.topics) for hit in fault.fired] == [
        ("Produce", "shop", (TOPIC,)),
        ("Produce", "shop", (TOPIC,)),
    ]
    assert [hit.at_ms for hit in fault.fired] == sorted(hit.at_ms for hit in fault.fired)
    assert values(kafka, 0) == [b"a"] and values(kafka, 1) == [b"another"]


def test_an_error_that_cannot_be_retried_is_raised(kafka: Cluster, kind: type[Client]) -> None:
    with client(kind, kafka) as shop:
        shop.commit("pay", TOPIC, 0, 3)
        fault = kafka.fault(keys=["OffsetCommit"], group="pay", error="GROUP_AUTHORIZATION_FAILED")
        with pytest.raises(Exception, match="(?i)authoriz"):
            shop.commit("pay", TOPIC, 0, 4)
        shop.commit("ship", TOPIC, 0, 9)
        assert fault.hits == 1
        assert shop.committed("pay", TOPIC, 0) == 3 and shop.committed("ship", TOPIC, 0) == 9


def test_an_error_after_the_work_was_done(kafka: Cluster, kind: type[Client]) -> None:
    """REQUEST_TIMED_OUT leaves a record that a client without idempotence sends again."""
    kafka.fault(keys=["Produce"], topic=TOPIC, error="REQUEST_TIMED_OUT")
    with client(kind, kafka) as shop:
        assert shop.send(TOPIC, 0, b"a") == 1
    assert values(kafka, 0) == [b"a", b"a"]


def test_fetches_fail_also_in_a_session(kafka: Cluster, kind: type[Client]) -> None:
    kafka.produce(TOPIC, ["a", "b"], partition=0)
    fault = kafka.fault(keys=["Fetch"], topic=TOPIC, partitions=[0], error="NOT_LEADER_OR_FOLLOWER", count=3)
    with client(kind, kafka) as shop:
        assert shop.read(TOPIC, 0, 2) == [b"a", b"b"]
    assert fault.hits == 3


def test_only_one_client_and_only_one_broker(kafka: Cluster, kind: type[Client]) -> None:
    of_client = kafka.fault(client="shop", keys=["Produce"], error="POLICY_VIOLATION", count=-1)
    with client(kind, kafka) as shop, client(kind, kafka, "office") as office:
        assert office.send(TOPIC, 0, b"office") == 0
        with pytest.raises(Exception, match="(?i)policy"):
            shop.send(TOPIC, 0, b"shop")
        of_client.remove()
        leader = next(t for t in kafka.topics() if t.name == TOPIC).partitions[1].leader
        assert leader is not None
        at_broker = kafka.fault(nodes=[leader], keys=["Produce"], error="POLICY_VIOLATION", count=-1)
        assert shop.send(TOPIC, 0, b"shop") == 1
        with pytest.raises(Exception, match="(?i)policy"):
            shop.send(TOPIC, 1, b"shop")
        assert {hit.node for hit in at_broker.fired} == {leader}


def test_delay(kafka: Cluster, kind: type[Client]) -> None:
    fault = kafka.fault(keys=["Produce"], delay="2s")
    with client(kind, kafka) as shop:
        sending = threading.Thread(target=shop.send, args=(TOPIC, 0, b"late"))
        sending.start()
        fault.wait(timeout_s=PATIENCE_S)
        assert values(kafka, 0) == []
        sending.join()
        assert values(kafka, 0) == [b"late"]


@pytest.mark.parametrize("how", [{"drop": True}, {"cut_after": 0}, {"cut_after": 7}], ids=str)
@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_an_answer_is_lost(
    kafka: Cluster, kind: type[Client], how: dict[str, object], idempotent: bool
) -> None:
    """The work is done: only an idempotent producer does not do it twice."""
    with client(kind, kafka, idempotent=idempotent, request_ms=1000) as shop:
        shop.send(TOPIC, 0, b"first")
        fault = kafka.fault({"keys": ["Produce"], "topic": TOPIC, **how})
        shop.send(TOPIC, 0, b"a")
        assert fault.hits == 1
    found = values(kafka, 0)
    if idempotent:
        assert found == [b"first", b"a"]
    else:
        # Where answers take a second, it is sent even more often.
        assert found.count(b"a") >= 2 and set(found) == {b"first", b"a"}


def test_appends_fail(kafka: Cluster, kind: type[Client]) -> None:
    fault = kafka.fault(topic=TOPIC, partitions=[0], append_fails=True, count=2)
    with client(kind, kafka) as shop:
        assert shop.send(TOPIC, 1, b"another") == 0 and fault.hits == 0
        assert shop.send(TOPIC, 0, b"a") == 0
        assert [hit.request for hit in fault.fired] == ["append", "append"]
        assert values(kafka, 0) == [b"a"]


def test_appends_of_a_coordinator_fail(kafka: Cluster, kind: type[Client]) -> None:
    with client(kind, kafka) as shop:
        shop.commit("pay", TOPIC, 0, 1)
        fault = kafka.fault(group="pay", append_fails=True)
        for _ in range(2):
            try:
                shop.commit("pay", TOPIC, 0, 2)
                break
            except Exception as error:  # librdkafka reports it, kafka-python retries
                assert "COORDINATOR_NOT_AVAILABLE" in str(error)
        assert fault.hits == 1
        assert shop.committed("pay", TOPIC, 0) == 2


def test_a_coordinator_moves_and_loads(kafka: Cluster, kind: type[Client]) -> None:
    with client(kind, kafka) as shop:
        shop.commit("pay", TOPIC, 0, 1)
        moved = kafka.move_coordinator("pay", loading="1h")
        seen = kafka.observe(keys=["OffsetFetch"], group="pay")
        found: list[int | None] = []
        asking = threading.Thread(target=lambda: found.append(shop.committed("pay", TOPIC, 0)))
        asking.start()
        seen.wait(2, timeout_s=PATIENCE_S)
        assert found == [] and seen.fired[-1].node == moved
        kafka.advance("1h")
        asking.join()
        assert found == [1]
        assert kafka.move_coordinator("pay", moved) == moved


def test_a_broker_is_down_and_up_again(kafka: Cluster, kind: type[Client]) -> None:
    with client(kind, kafka) as shop:
        for partition in range(3):
            shop.send(TOPIC, partition, b"before")
        kafka.stop_broker(1)
        kafka.move_coordinator("pay")
        for partition in range(3):
            assert shop.send(TOPIC, partition, b"meanwhile") == 1
        shop.commit("pay", TOPIC, 0, 1)
        leaders = {p.leader for t in kafka.topics() if t.name == TOPIC for p in t.partitions}
        assert leaders == {0, 2}
        kafka.start_broker(1)
        kafka.move(TOPIC, 0, 1)
        assert shop.send(TOPIC, 0, b"after") == 2
        seen = kafka.observe(keys=["Produce"], nodes=[1])
        assert shop.send(TOPIC, 0, b"again") == 3 and seen.hits == 1


def test_a_partition_without_another_replica_has_no_leader(kind: type[Client]) -> None:
    with Cluster({TOPIC: 2}, brokers=2, timeout_s=PATIENCE_S) as kafka, client(kind, kafka) as shop:
        shop.send(TOPIC, 1, b"before")
        kafka.stop_broker(1)
        sending = threading.Thread(target=shop.send, args=(TOPIC, 1, b"waits"))
        sending.start()
        seen = kafka.observe(keys=["Metadata"], topic=TOPIC)
        seen.wait(2, timeout_s=PATIENCE_S)
        assert sending.is_alive()
        kafka.start_broker(1)
        sending.join()
        assert values(kafka, 1) == [b"before", b"waits"]


def test_a_broker_is_frozen(kafka: Cluster, kind: type[Client]) -> None:
    """What it was sent is done once it goes on, as in a process that was stopped."""
    with client(kind, kafka, idempotent=True, request_ms=1000) as shop:
        shop.send(TOPIC, 1, b"before")
        leader = next(t for t in kafka.topics() if t.name == TOPIC).partitions[1].leader
        assert leader is not None
        kafka.freeze_broker(leader)
        sending = threading.Thread(target=shop.send, args=(TOPIC, 1, b"waits"))
        sending.start()
        kafka.until(lambda: held(kafka, leader), timeout_s=PATIENCE_S)
        assert values(kafka, 1) == [b"before"] and sending.is_alive()
        kafka.thaw_broker(leader)
        sending.join()
        assert values(kafka, 1) == [b"before", b"waits"]


def held(kafka: Cluster, node: int) -> int:
    serving = kafka._running()
    return serving.do(lambda: serving.control.dispatcher.held(node))


def test_metadata_is_stale(kafka: Cluster, kind: type[Client]) -> None:
    """A client led astray is refused, asks again or goes where the refusal sends it, and gets there."""
    before = next(t for t in kafka.topics() if t.name == TOPIC).partitions[0].leader
    assert before is not None
    fault = kafka.fault(keys=["Metadata"], topic=TOPIC, stale=True, count=2)
    at_old = kafka.observe(keys=["Produce"], nodes=[before])
    kafka.move(TOPIC, 0, (before + 1) % 3)
    with client(kind, kafka) as shop:
        assert shop.send(TOPIC, 0, b"a") == 0
        # The refusal names the leader (KIP-951): who heeds that asks only once.
        assert fault.hits in (1, 2) and at_old.hits >= 1


def test_requests_that_are_seen(kafka: Cluster, kind: type[Client]) -> None:
    commits = kafka.observe(keys=["OffsetCommit"], group="pay")
    with client(kind, kafka, "billing") as billing:
        billing.commit("pay", TOPIC, 0, 5)
        billing.commit("ship", TOPIC, 0, 6)
        assert [(hit.request, hit.client_id, hit.group, hit.topics) for hit in commits.fired] == [
            ("OffsetCommit", "billing", "pay", (TOPIC,))
        ]
        assert commits.left == -1
        commits.remove()
        billing.commit("pay", TOPIC, 0, 7)
        assert commits.hits == 1


def test_a_rule_that_must_fire(kafka: Cluster) -> None:
    with (
        pytest.raises(FaultUnused, match="'group': 'nobody'"),
        kafka.fault(keys=["Heartbeat"], group="nobody", error="UNKNOWN_MEMBER_ID", must_fire=True),
    ):
        pass
    with pytest.raises(FaultUnused), Cluster() as other:
        other.fault(keys=["Produce"], error="NOT_LEADER_OR_FOLLOWER", must_fire=True)
    with pytest.raises(ZeroDivisionError), Cluster() as other:
        other.fault(keys=["Produce"], error="NOT_LEADER_OR_FOLLOWER", must_fire=True)
        raise ZeroDivisionError
    with kafka.fault(keys=["Produce"], error="NOT_LEADER_OR_FOLLOWER"):
        pass
    fault = kafka.fault(keys=["Produce"], error="NOT_LEADER_OR_FOLLOWER")
    with pytest.raises(TimedOut, match="fault 3 had 0 of 1 request "):
        fault.wait(timeout_s=0.01)


def test_rules_are_kfakes(kafka: Cluster) -> None:
    """Names in any case or numbers; an unset count is one."""
    fault = kafka.fault(
        {"topic": "foo", "error": "NOT_LEADER_FOR_PARTITION", "count": 3, "keys": ["fetch", "0"]},
        {"group": "g1", "nodes": [0], "keys": ["heartbeat"], "error": "27"},
        {"txn_id": "t", "top_level": True, "error": "-1"},
        {"count": -5, "observe": True},
    )
    assert [each.rule.code for each in fault._set.rules] == [6, 27, -1, None]
    assert [each.left for each in fault._set.rules] == [3, 1, 1, -1]


@pytest.mark.parametrize(
    ("rule", "said", "hint"),
    [
        ({"keys": ["Prodce"]}, "'Prodce' is not a Kafka request", "Produce"),
        ({"keys": ["Produce"]}, "a rule has no effect", "error"),
        ({"observe": True, "count": 0}, "count is 0", "-1 without limit"),
        ({"delay": "500"}, "'500' has no unit", "250ms"),
        ({"keys": ["999"]}, "'999' is not a Kafka request", "as 'Produce'"),
        ({"keys": ["--1"]}, "'--1' is not a Kafka request", "as 'Produce'"),
        ({"error": "²"}, "'²' is not a Kafka error", "its number"),
        ({"keys": "Fetch"}, "keys is 'Fetch'", "a list"),
        ({"error": "NOT_LEADR"}, "'NOT_LEADR' is not a Kafka error", "did you mean"),
        ({"error": "NONE"}, "NONE is no error", "observe"),
        ({"kyes": []}, "no field 'kyes'", "did you mean keys"),
        ({"count": "3"}, "count is '3'", "a number"),
        ({"count": True}, "count is True", "a number"),
        ({"nodes": [7], "drop": True}, "there is no broker 7", "the ids are 0, 1, 2"),
        ({"partitions": [-1], "topic": TOPIC}, "partitions has -1", "leave it out"),
        ({"partitions": [1]}, "partitions are those of a topic", "name the topic"),
        ({"delay": "-1s"}, "'-1s' is not a duration", "not negative"),
        ({"cut_after": -1}, "cut_after is -1", "from 0 on"),
        ({"drop": True, "error": "NOT_COORDINATOR"}, "error and drop", "two rules"),
        ({"keys": ["Heartbeat"], "topic": TOPIC}, "Heartbeat names no topic", "group"),
        ({"topic_id": "short"}, "'short' is no topic id", "hexadecimal"),
        ({"top_level": True, "topic": TOPIC}, "exclude each other", "group and txn_id"),
        ({"append_fails": True}, "needs a topic or a group", "partitions=[0]"),
        ({"append_fails": True, "topic": "none"}, "no topic none", TOPIC),
        ({"append_fails": True, "topic": TOPIC, "partitions": [9]}, "no partition 9", "from 0 on"),
        ({"keys": ["Produce"], "stale": True}, "Produce has no stale answer", "Metadata"),
    ],
    ids=str,
)
def test_what_a_rule_cannot_be(kafka: Cluster, rule: dict[str, object], said: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=said) as told:
        kafka.fault(rule)
    assert hint in (told.value.hint or "")


def test_what_cannot_be_done_to_brokers(kafka: Cluster) -> None:
    for verb in (kafka.stop_broker, kafka.start_broker, kafka.freeze_broker, kafka.thaw_broker):
        with pytest.raises(ConfigError, match="no broker 7") as told:
            verb(7)
        assert told.value.hint == "the ids are 0, 1, 2"
    with pytest.raises(ConfigError, match="broker 0 is up"):
        kafka.start_broker(0)
    with pytest.raises(ConfigError, match="broker 0 is not frozen"):
        kafka.thaw_broker(0)
    kafka.stop_broker(0)
    for verb in (kafka.stop_broker, kafka.freeze_broker):
        with pytest.raises(ConfigError, match="broker 0 is down"):
            verb(0)
    kafka.stop_broker(1)
    with pytest.raises(ConfigError, match="the only one that is up"):
        kafka.stop_broker(2)
    with pytest.raises(ConfigError, match="no topic lost"):
        kafka.move("lost", 0, 2)
    with pytest.raises(ConfigError, match="no partition 9"):
        kafka.move(TOPIC, 9, 2)
    with pytest.raises(ConfigError, match="broker 1 is down"):
        kafka.move_coordinator("pay", 1)
    with pytest.raises(ConfigError, match="no rules given"):
        kafka.fault()
