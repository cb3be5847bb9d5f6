"""`kgroup.testing.Cluster` with a client that nobody here wrote, and what it leaves behind: nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer

import kgroup
from kgroup.api import Kind, TopicPartition
from kgroup.errors import (
    BrokerRefused,
    ConfigError,
    ErrorCode,
    GroupNotFound,
    Incomplete,
    KgroupError,
    SafetyRefused,
    TimedOut,
    Unreachable,
)
from kgroup.testing import Cluster

PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster({"orders": 2}, brokers=2, timeout_s=PATIENCE_S) as kafka:
        yield kafka


@contextmanager
def consumer(properties: dict[str, str], group: str, topic: str, **more: str) -> Iterator[Consumer]:
    """A consumer that has read its first record."""
    settings = {"group.id": group, "auto.offset.reset": "earliest", **properties}
    made = Consumer({**settings, **{name.replace("_", "."): text for name, text in more.items()}})
    try:
        made.subscribe([topic])
        first = made.poll(PATIENCE_S)
        assert first is not None and first.error() is None, first
        yield made
    finally:
        made.close()


def test_what_is_produced_is_read_by_a_client_and_the_other_way_round(kafka: Cluster) -> None:
    kafka.create_topic("both", 2)
    assert kafka.produce("both", ["a", ("k", b"b")]) == (TopicPartition("both", 0), TopicPartition("both", 1))
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce("both", b"c", key=b"x", headers=[("h", b"1")], partition=1)
    assert producer.flush(PATIENCE_S) == 0
    found = kafka.read("both")
    assert [(r.partition, r.offset, r.key, r.value) for r in found] == [
        (0, 0, None, b"a"),
        (1, 0, b"k", b"b"),
        (1, 1, b"x", b"c"),
    ]
    assert found[2].headers == (("h", b"1"),) and found[2].timestamp_ms > 1_700_000_000_000
    assert [record.value for record in kafka.read("both", partition=0)] == [b"a"]


def test_of_transactions_only_what_was_committed_is_read(kafka: Cluster) -> None:
    kafka.create_topic("paid", 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "t"})
    producer.init_transactions(PATIENCE_S)
    for end, text in ((producer.commit_transaction, b"1"), (producer.abort_transaction, b"2")):
        producer.begin_transaction()
        producer.produce("paid", text)
        producer.flush(PATIENCE_S)
        end(PATIENCE_S)
    kafka.produce("paid", ["3"])
    producer.begin_transaction()
    producer.produce("paid", b"open")
    producer.flush(PATIENCE_S)
    assert [record.value for record in kafka.read("paid")] == [b"1", b"3"]
    producer.commit_transaction(PATIENCE_S)
    assert [record.value for record in kafka.read("paid")] == [b"1", b"3", b"open"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_life_of_a_group(kafka: Cluster, protocol: str) -> None:
    kafka.produce("orders", ["a", "b"])
    where = {"bootstrap.servers": kafka.bootstrap}
    with consumer(where, f"pay-{protocol}", "orders", group_protocol=protocol) as reader:
        assert kafka.wait_for(f"pay-{protocol}", "members=1", PATIENCE_S).held
        described = kafka.wait_for(f"pay-{protocol}", "stable", PATIENCE_S)
        assert described.state == "Stable"
        found = kafka.describe(f"pay-{protocol}")
        assert (found.type, [m.partition_count for m in found.known_members]) == (protocol, [2])
        assert f"pay-{protocol}" in [group.group_id for group in kafka.groups()]
        reader.commit(offsets=None, asynchronous=False)
    kafka.wait_for(f"pay-{protocol}", "empty", PATIENCE_S)
    kinds = [event.kind for event in kafka.history(f"pay-{protocol}")]
    assert kinds[0] is Kind.GROUP_CREATED and kinds[-1] is Kind.GROUP_EMPTIED, kinds
    assert {Kind.MEMBER_JOINED, Kind.REBALANCE_COMPLETED, Kind.COMMITTED} <= {*kinds}
    assert [each.about for each in kafka.blame(f"pay-{protocol}")] == ["rebalance"]
    assert kafka.doctor(f"pay-{protocol}").group.state == "Empty"
    verdict = kafka.verify_history(f"pay-{protocol}")
    assert (verdict.word, verdict.differences) == ("same", [])


def test_an_upgrade_is_planned_and_rehearsed_without_touching_the_group(kafka: Cluster) -> None:
    kafka.produce("orders", ["a"], partition=0)
    with consumer({"bootstrap.servers": kafka.bootstrap}, "moving", "orders", group_protocol="classic"):
        kafka.wait_for("moving", "stable", PATIENCE_S)
        assert kafka.plan_upgrade("moving").verdict == "ready"
        done = kafka.rehearse_upgrade("moving")
        assert (done.upgrade, done.downgrade, done.offsets_kept) == ("converted", "converted", True)
        with pytest.raises(ConfigError, match="must be at least 1"):
            kafka.rehearse_upgrade("moving", {"group.consumer.max.size": "0"})
        assert kafka.describe("moving").type == "classic"
    with pytest.raises(ConfigError, match="grop"):
        kafka.rehearse_upgrade("moving", {"grop.consumer.migration.policy": "disabled"})
    for ask in (kafka.plan_upgrade, kafka.rehearse_upgrade, kafka.verify_history):
        with pytest.raises(BrokerRefused, match="nobody") as refused:
            ask("nobody")
        assert refused.value.name == "GROUP_ID_NOT_FOUND"


def test_offsets_are_moved_and_groups_deleted(kafka: Cluster) -> None:
    first = TopicPartition("orders", 0)
    kafka.produce("orders", ["a", "b", "c"], partition=0)
    with consumer({"bootstrap.servers": kafka.bootstrap}, "moved", "orders"):
        with pytest.raises(Incomplete, match="orders-0: moved is Stable with 1 member") as told:
            kafka.reset_offsets("moved", {first: 1})
        assert told.value.found is not None
        with pytest.raises(BrokerRefused, match="NON_EMPTY_GROUP"):
            kafka.delete_group("moved")
        with pytest.raises(SafetyRefused, match="no member is selected"):
            kafka.remove_members("moved")
    kafka.wait_for("moved", "empty", PATIENCE_S)
    kafka.reset_offsets("moved", {first: 1}, reason="a test")
    assert kafka.lag("moved").offsets[0].committed_offset == 1
    kafka.delete_group("moved")
    with pytest.raises(GroupNotFound):
        kafka.delete_group("moved")


def test_members_are_removed(kafka: Cluster) -> None:
    kafka.produce("orders", ["a"])
    where = {"bootstrap.servers": kafka.bootstrap}
    with consumer(where, "static", "orders", group_instance_id="s-0"):
        done = kafka.remove_members("static", instance_ids=["s-0"])
        assert [item.result for item in done.items] == ["removed"]
        with pytest.raises(Incomplete, match="s-9: was not in the group"):
            kafka.remove_members("static", instance_ids=["s-9"])


def test_a_group_that_is_not_there(kafka: Cluster) -> None:
    for ask in (kafka.describe, kafka.lag, kafka.doctor, kafka.delete_group):
        with pytest.raises(GroupNotFound) as told:
            ask("nobody")
        assert (told.value.code, told.value.name) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.GROUP_ID_NOT_FOUND.name,
        )
    assert kafka.history("nobody") == ()
    with pytest.raises(TimedOut) as late:
        kafka.wait_for("nobody", "members=1", 0.2)
    assert "nobody was not members=1" in str(late.value) and "there is no record" in str(late.value)


def test_what_was_waited_for_in_vain_comes_with_the_history(kafka: Cluster) -> None:
    kafka.produce("orders", ["a"])
    with (
        consumer({"bootstrap.servers": kafka.bootstrap}, "alone", "orders"),
        pytest.raises(TimedOut, match=r"(?s)last seen Stable, members 1.*member-joined.*because: ") as late,
    ):
        kafka.wait_for("alone", "members=3", 0.5)
    assert "rebalance-completed" in str(late.value)


def test_users_and_rules() -> None:
    users = {"alice": 'a "quoted" \\ one', "bob": "hidden"}
    rules = {"alice": ["All topic orders", "Read group pay-*", "Describe group pay-*"], "bob": []}
    with Cluster(["orders"], users=users, acls=rules, timeout_s=PATIENCE_S) as kafka:
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            with kgroup.connect(kafka.bootstrap, kafka.client("alice", mechanism)) as alice:
                alice.produce("orders", [mechanism])
        with consumer(kafka.client("alice"), "pay-1", "orders"):
            assert kafka.describe("pay-1").state == "Stable"
        with kgroup.connect(kafka.bootstrap, kafka.client("bob"), timeout_s=PATIENCE_S) as bob:
            with pytest.raises(BrokerRefused, match="TOPIC_AUTHORIZATION_FAILED"):
                bob.read("orders")
            with pytest.raises(Incomplete) as hidden:
                bob.groups()
            assert hidden.value.found == ()
        wrong = {**kafka.client("bob"), "sasl.password": "guessed"}
        with (
            kgroup.connect(kafka.bootstrap, wrong) as stranger,
            pytest.raises(KgroupError, match="did not authenticate bob"),
        ):
            stranger.groups()


def test_without_users_nobody_is_asked_and_with_them_everybody() -> None:
    with Cluster(["orders"], users={"alice": "secret"}) as kafka:
        kafka.produce("orders", ["a"])
        with kgroup.connect(kafka.bootstrap, timeout_s=1) as anonymous, pytest.raises(Unreachable):
            anonymous.groups()
        with pytest.raises(ConfigError, match="'carol' is not a user") as told:
            kafka.client("carol")
        assert told.value.hint == "its users are alice"
        with pytest.raises(ConfigError, match="mechanism 'GSSAPI'"):
            kafka.client("alice", "GSSAPI")
    with Cluster() as kafka:
        assert kafka.client() == {"bootstrap.servers": kafka.bootstrap}
        with pytest.raises(ConfigError, match="'alice' is not a user"):
            kafka.client("alice")


def test_settings_and_brokers() -> None:
    settings = {"auto.create.topics.enable": False, "num.partitions": 3}
    with Cluster(brokers=3, settings=settings) as kafka:
        assert len(kafka.brokers) == 3 and ",".join(kafka.brokers) == kafka.bootstrap
        assert len(kafka.create_topic("more").partitions) == 3
        assert {p.leader for topic in kafka.topics() for p in topic.partitions} == {0, 1, 2}
        reader = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g"})
        with pytest.raises(KafkaException):
            reader.get_watermark_offsets(confluent_kafka.TopicPartition("absent", 0), PATIENCE_S)
        reader.close()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Cluster("orders"), "topics is 'orders'"),
        (lambda: Cluster(kafka=2.8), "kafka is 2.8"),  # type: ignore[arg-type]
        (lambda: Cluster({"orders": "3"}), "topics is {'orders': '3'}"),  # type: ignore[dict-item]
        (lambda: Cluster({"orders": 0}), "topic orders cannot have 0 partitions"),
        (lambda: Cluster(acls={"alice": []}), "users is missing"),
        (lambda: Cluster(users={"a b": "x"}), "cannot be the name of a user"),
        (lambda: Cluster(users={"a": ""}), "has no password"),
        (lambda: Cluster(users={"a": "x"}, acls={"b": []}), "'b', who is not in users"),
        (lambda: Cluster(users={"a": "x"}, acls={"a": "Read topic t"}), "acls is"),
        (lambda: Cluster(users={"a": "x"}, acls={"a": ["Read"]}), "'Read' is not a rule"),
        (lambda: Cluster(users={"a": "x"}, acls={"a": ["Read topic"]}), "'Read topic' is not a rule"),
        (lambda: Cluster(users={"a": "x"}, acls={"a": ["Fly topic t"]}), "(?i)fly"),
        (lambda: Cluster(settings={"num.partitons": 3}).start(), "num.partitons"),
        (lambda: Cluster(brokers=0).start(), "at least one broker"),
        (lambda: Cluster({"or ders": 1}).start(), "(?i)invalid"),
        (lambda: Cluster().bootstrap, "does not run"),
        (lambda: Cluster().groups(), "does not run"),
        (lambda: kgroup.connect(""), "no broker address"),
        (lambda: kgroup.connect("h:0"), "not a broker address"),
        (lambda: kgroup.connect("h", {"security.protocol": "TLS"}), "security.protocol=TLS is unknown"),
    ],
)
def test_what_makes_no_sense_says_so(make: Callable[[], object], said: str) -> None:
    before = threading.active_count()
    with pytest.raises(KgroupError, match=said):
        make()
    assert threading.active_count() == before


def test_a_cluster_is_started_once_and_used_while_it_runs(kafka: Cluster) -> None:
    with pytest.raises(ConfigError, match="is running already"):
        kafka.start()
    with Cluster() as ended:
        ended.groups()
    ended.stop()
    with pytest.raises(ConfigError, match="does not run"):
        ended.groups()
    with pytest.raises(ConfigError, match="has no partition 7"):
        kafka.read("orders", partition=7)
    with pytest.raises(BrokerRefused, match="UNKNOWN_TOPIC_OR_PARTITION"):
        kafka.produce("absent", ["a"])
    with pytest.raises(ConfigError, match="not a condition"):
        kafka.wait_for("g", "asleep")


def test_asynchronous_use() -> None:
    async def played() -> list[bytes | None]:
        async with Cluster({"orders": 1}) as kafka:
            kafka.produce("orders", ["a"])
            return [record.value for record in await asyncio.to_thread(kafka.read, "orders")]

    assert asyncio.run(played()) == [b"a"]


def test_a_hundred_clusters_leave_nothing(tmp_path, monkeypatch) -> None:
    """No socket, thread, file, folder or task; the first has what is imported and cached behind it.

    Each has a rule in force, a broker that is down, and a client that does not close its connection.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other runs of the tests share the machine's

    def left() -> tuple[set[str], set[str], int, int]:
        threads = {thread.name for thread in threading.enumerate()}
        descriptors = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
        tasks = sum(type(each) is asyncio.Task and not each.done() for each in gc.get_objects())
        return threads, {path.name for path in tmp_path.iterdir()}, descriptors, tasks

    def played() -> str:
        with Cluster({"orders": 1}, brokers=2) as kafka:
            kafka.produce("orders", ["a"])
            kafka.fault(keys=["Fetch"], delay="1h", count=-1)
            kafka.stop_broker(1)
            address = kafka.brokers[0]
            host, _, port = address.partition(":")
            client = socket.create_connection((host, int(port)))
        assert client.recv(1) == b""  # the broker has closed it
        client.close()
        return address

    played()
    before = left()
    for _ in range(100):
        address = played()
    assert left() == before
    host, _, port = address.partition(":")
    with pytest.raises(OSError):
        socket.create_connection((host, int(port)), 1)


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_members_of_every_kind_are_heard_often_and_assigned_at_once(kind: str) -> None:
    with Cluster() as kafka:
        config = kafka._running().cluster.group_config
    assert getattr(config, f"{kind}_heartbeat_interval_ms") == 100
    assert getattr(config, f"{kind}_min_heartbeat_interval_ms") == 100
    prefix = "" if kind == "consumer" else f"{kind}_"
    assert getattr(config, f"{prefix}assignment_interval_ms") == 0
