"""Live groups of 0.8.2.2's and 1.1.1's own consumers: what kgroup says of them is what their tools say.

And moved to a Kafka of today, a consumer of today goes on at the very record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.own_home import move_in
from tests.ran import Ran, ran
from tests.sampled import FULL

from ..kafka import RealKafka
from .era import GROUP_COMMAND, OFFSET_CHECKER, SCALA, OldBroker, ZooKeeperServer, eventually, together

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
ROW = re.compile(
    r"^(?:(?P<group>\S+) +)?(?P<topic>t\d) +(\d+) +(\d+|unknown|-) +(\d+|unknown|-) +(\d+|unknown|-) +(\S+)"
)
READ, MORE = 5, 7


@pytest.fixture
def kgroup(capsys, tmp_path, monkeypatch):
    move_in(monkeypatch, tmp_path)

    def call(*argv: str) -> Ran:
        return ran(capsys, *argv)

    return call


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer() as running:
        yield running


@pytest.fixture(scope="module", params=SCALA if FULL else ["1.1.1"])
def broker(request, zookeeper: ZooKeeperServer, tmp_path_factory) -> Iterator[OldBroker]:
    """A broker with live groups that are behind.

    Read and committed up to record 5 of each partition: og in ZooKeeper, kg in Kafka. Then records came, and
    the same consumers again, that commit no more: what is committed stands still while they live. Nobody came
    back to the groups with the release in their names.
    """
    release = request.param
    base = tmp_path_factory.mktemp("era") / release
    with OldBroker(release, zookeeper, f"/kafka-{release}", base) as running:
        running.create_topic("t1", 3)
        running.create_topic("t2", 1)
        for partition in range(3):
            running.produce("t1", partition, _values("t1", partition, 0, READ))
        running.produce("t2", 0, _values("t2", 0, 0, READ))
        kafka = {"offsets_storage": "kafka", "dual_commit_enabled": "false"}
        with together(
            running.consumer("og", "--topic", "t1"),
            running.consumer("kg", "--topic", "t2", **kafka),
            running.consumer(f"og-{release}", "--topic", "t1"),
            running.consumer(f"kg-{release}", "--topic", "t2", **kafka),
        ):
            for group, lags in (("og", [0, 0, 0]), ("kg", [0])):
                for name in (group, f"{group}-{release}"):
                    eventually(lambda n=name, at=lags: _lags(running, n) == at, f"{name} has read all")
        for partition in range(3):
            running.produce("t1", partition, _values("t1", partition, READ, READ + MORE))
        running.produce("t2", 0, _values("t2", 0, READ, READ + MORE))
        # 1.1.1's console consumer does not start at "smallest" where a group has offsets.
        quiet = {"auto_commit_enable": "false", "auto_offset_reset": "largest"}
        with together(
            running.consumer("og", "--topic", "t1", **quiet),
            running.consumer("og", "--topic", "t1", **quiet),
            running.consumer("wl", "--whitelist", "t.*", **quiet),
            running.consumer("kg", "--topic", "t2", **kafka, **quiet),
        ):
            for group, members in (("og", 2), ("wl", 1), ("kg", 1)):
                eventually(lambda g=group, m=members: _settled(running, g, m), f"{group} has settled")
            yield running


def _values(topic: str, partition: int, start: int, end: int) -> list[str]:
    return [f"{topic}-{partition}-{number}" for number in range(start, end)]


def _described(broker: OldBroker, group: str):
    """As `kgroup describe` finds it, without its printing."""
    from kgroup.cli.env.invocation import Env
    from kgroup.cli.env.zookeeper import open_groups
    from kgroup.cli.frame.shared_options import shared_names

    options = dict.fromkeys(shared_names()) | {
        "no_headers": False,
        "quiet": True,
        "verbose": False,
        "debug": False,
    }
    with open_groups(Env.of("describe", options, {}), broker.connect) as opened:
        groups = opened.groups.describe([group]).groups
    return groups[0] if groups else None


def _lags(broker: OldBroker, group: str) -> list[int | None]:
    found = _described(broker, group)
    return [row.lag for row in found.offsets] if found else []


def _settled(broker: OldBroker, group: str, members: int) -> bool:
    found = _described(broker, group)
    return found is not None and found.state == "Stable" and found.member_count == members


def _as_tools_say(text: str) -> dict[tuple[str, int], tuple[int, int, int, str]]:
    """Offset, end, lag and owner by partition, out of either tool's table."""
    rows = (match for match in map(ROW.match, text.splitlines()) if match)
    return {(row["topic"], int(row[3])): (int(row[4]), int(row[5]), int(row[6]), row[7]) for row in rows}


def _as_kgroup_says(rows) -> dict[tuple[str, int], tuple[int, int, int, str]]:
    return {
        (r["topic"], r["partition"]): (r["committed_offset"], r["log_end_offset"], r["lag"], r["member_id"])
        for r in rows
    }


def test_list_agrees_with_the_tool_of_1_1_1(broker, kgroup):
    told = broker.run(GROUP_COMMAND, "--list", release="1.1.1").split("Note:")[0].split()
    ran = kgroup("list", "--zookeeper", broker.connect, "-o", "json")
    assert ran.code == 0, ran.err
    groups = {group["group_id"]: group for group in ran.data["groups"]}
    assert sorted(groups) == sorted(told)
    assert {name: (g["type"], g["state"], g["members"]) for name, g in groups.items()} == {
        "og": ("zookeeper", "Stable", 2),
        "wl": ("zookeeper", "Stable", 1),
        "kg": ("zookeeper", "Stable", 1),
        f"og-{broker.release}": ("zookeeper", "Empty", 0),
        f"kg-{broker.release}": ("zookeeper", "Empty", 0),
    }


@pytest.mark.parametrize("group", ["og", "kg"])
def test_describe_and_lag_agree_with_the_offset_checker(broker, kgroup, group):
    told = _as_tools_say(broker.run(OFFSET_CHECKER, "--group", group, release="0.8.2.2"))
    # The checker names threads, of which each of these consumers has one.
    told = {key: (*rest, owner.removesuffix("-0")) for key, (*rest, owner) in told.items()}
    assert {row[:3] for row in told.values()} == {(READ, READ + MORE, MORE)}
    lag = kgroup("lag", group, "--zookeeper", broker.connect, "-o", "json")
    described = kgroup("describe", group, "--zookeeper", broker.connect, "-o", "json")
    assert (lag.code, described.code) == (0, 0), lag.err + described.err
    assert _as_kgroup_says(lag.data["groups"][0]["offsets"]) == told
    assert _as_kgroup_says(described.data["groups"][0]["offsets"]) == told
    assert lag.data["groups"][0]["total_lag"] == MORE * len(told)


@pytest.mark.parametrize("group", ["og", "kg"])
def test_describe_agrees_with_the_group_command(broker, kgroup, group):
    if broker.release == "0.8.2.2":
        # 1.1.1's tool cannot read the registration of a broker that old: the checker above is its judge.
        said = broker.run(GROUP_COMMAND, "--describe", "--group", group, release="1.1.1")
        assert "failed due to" in said
        return
    told = _as_tools_say(broker.run(GROUP_COMMAND, "--describe", "--group", group))
    described = kgroup("describe", group, "--zookeeper", broker.connect, "-o", "json")
    assert told and _as_kgroup_says(described.data["groups"][0]["offsets"]) == told


def test_offsets_in_kafka_are_told_as_such(broker, kgroup):
    ran = kgroup("describe", "kg", "--zookeeper", broker.connect)
    assert ran.code == 0
    assert "offsets.storage=kafka: 1 offset in __consumer_offsets, none in ZooKeeper" in ran.out


def test_a_live_group_is_neither_exported_nor_deleted(broker, kgroup):
    export = kgroup("offsets", "export", "og", "--zookeeper", broker.connect, "-o", "json")
    assert export.code == 4 and "og has 2 live consumers" in export.err
    delete = kgroup("delete", "og", "--zookeeper", broker.connect, "--execute", "--yes")
    assert delete.code == 4
    assert kgroup("describe", "og", "--zookeeper", broker.connect, "-o", "name").out == "og\n"


@pytest.fixture(scope="module")
def today() -> Iterator[RealKafka]:
    """A Kafka of today that has the same records, mirrored: the same offsets."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    with RealKafka() as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for made in admin.create_topics([NewTopic("t1", 3, 1), NewTopic("t2", 1, 1)]).values():
            made.result(30)
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for topic, partition in (("t1", 0), ("t1", 1), ("t1", 2), ("t2", 0)):
            for value in _values(topic, partition, 0, READ + MORE):
                producer.produce(topic, value=value.encode(), partition=partition)
        assert producer.flush(30) == 0
        yield running


@pytest.mark.parametrize(("storage", "topic", "partitions"), [("og", "t1", 3), ("kg", "t2", 1)])
def test_moved_to_kafka_a_consumer_of_today_goes_on_at_the_very_record(
    broker, today, kgroup, tmp_path: Path, storage, topic, partitions
):
    """Of a group that committed to ZooKeeper, and of one that committed to Kafka (offsets.storage=kafka)."""
    name, file = f"{storage}-{broker.release}", tmp_path / "moved.json"
    eventually(lambda: _described(broker, name).state == "Empty", "nobody reads with it")
    export = kgroup("offsets", "export", name, "--zookeeper", broker.connect, "-o", "json")
    assert export.code == 0, export.err
    file.write_text(export.out)
    planned = kgroup("offsets", "import", str(file), "-b", today.bootstrap)
    assert planned.code == 0 and "Nothing changed" in planned.out
    done = kgroup("offsets", "import", str(file), "-b", today.bootstrap, "--execute", "--yes")
    assert done.code == 0, done.err
    expected = {partition: f"{topic}-{partition}-{READ}" for partition in range(partitions)}
    assert _first_records(today, name, topic, partitions) == expected


def _first_records(today: RealKafka, group: str, topic: str, partitions: int) -> dict[int, str]:
    """The first record of each partition that a consumer of the group is given."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": today.bootstrap,
            "group.id": group,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
        }
    )
    first: dict[int, str] = {}
    try:
        consumer.subscribe([topic])

        def more() -> bool:
            message = consumer.poll(0.2)
            if message is not None:
                assert message.error() is None, message.error()
                first.setdefault(message.partition(), message.value().decode())
            return len(first) == partitions

        eventually(more, f"{group} is given a record of each partition of {topic}")
    finally:
        consumer.close()
    return first


def test_a_plan_names_what_does_not_exist_in_the_new_cluster(today, kgroup, tmp_path: Path):
    file = tmp_path / "plan.csv"
    file.write_text("t1,0,3\nt1,7,3\nnowhere,0,3\n")
    to = ("--to", "fresh", "--create", "-b", today.bootstrap)
    ran = kgroup("offsets", "import", str(file), *to, "-o", "json")
    assert ran.code == 5
    told = {(i["topic"], i["partition"]): (i["result"], i["error_code"]) for i in ran.data["items"]}
    assert told == {
        ("t1", 0): ("planned", None),
        ("t1", 7): ("failed", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("nowhere", 0): ("failed", "UNKNOWN_TOPIC_OR_PARTITION"),
    }


def test_a_stopped_group_is_deleted_with_its_offsets_kept(broker, kgroup):
    name = f"stopped-{broker.release}"
    with broker.consumer(name, "--topic", "t2"):
        eventually(lambda: _lags(broker, name) == [0], "read to the end")
    eventually(lambda: _described(broker, name).state == "Empty", "nobody reads with it")
    ran = kgroup("delete", name, "--zookeeper", broker.connect, "--execute", "--yes", "-o", "json")
    assert ran.code == 0, ran.err
    kept = json.loads(Path(ran.data["export"]).read_text())["data"]["groups"][0]
    assert [(o["topic"], o["committed_offset"]) for o in kept["offsets"]] == [("t2", READ + MORE)]
    assert kgroup("describe", name, "--zookeeper", broker.connect).code == 3
    assert name not in broker.run(GROUP_COMMAND, "--list", release="1.1.1")
