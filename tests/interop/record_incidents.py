"""Record the incidents of tests/data/incidents on a real Kafka or on ours: scripted causes, real segments.

    python -m tests.interop.record_incidents [NAME ...]      # all of them without a name; about five minutes
    python -m tests.interop.record_incidents --on-kgroup NAME ...       # on `kgroup serve`, as kgroup-NAME

Each incident runs a group of its own on its own partition of `__consumer_offsets`; what is kept is that
partition's segment, with the topics' ids. The story an incident tells is known because it is scripted
here; the expected timeline is in tests/unit/history/golden. A new recording has new ids and times, so the
golden files have to be read, and written, again.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kgroup.domain import offsets_partition_of, uuid_bytes
from kgroup.history.sources.folders import LocalFolder
from kgroup.history.sources.logs import write_topics_file

from .kafka import RealKafka
from .kgroup_server import KgroupServer
from .server import Server
from .streams_incident import STREAMS_BROKER as STREAMS
from .streams_incident import streams_application
from .waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "tests" / "data" / "incidents"
PARTITIONS = 24
TOPICS = {"orders": 4, "pay": 2}
BROKER = {
    "offsets.topic.num.partitions": PARTITIONS,
    "group.consumer.session.timeout.ms": 5000,
    "group.consumer.assignment.interval.ms": 0,
}
RETENTION = {**BROKER, "offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 2000}
RETENTION |= {"offsets.topic.compression.codec": 4}
STREAMS_BROKER = {**BROKER, **STREAMS}


class Member:
    """A consumer in a process of its own, so that it can be killed, frozen or closed."""

    def __init__(self, kafka: Server, group: str, **settings: str) -> None:
        config = {"bootstrap.servers": kafka.bootstrap, "group.id": group, **settings}
        command = [sys.executable, "-m", "tests.interop.record_incidents", "--member", json.dumps(config)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
        )

    def owns(self, count: int, timeout: float = 40) -> None:
        """Wait until the member has been told, last of all, that it owns `count` partitions."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            said = self._said()
            if said.startswith("error"):
                raise AssertionError(said)
            if said.startswith("owns") and len(said.split()) - 1 == count:
                return
        raise AssertionError(f"never owned {count}")

    def fails(self) -> str:
        """Wait until the member gives up; what it says."""
        while not (said := self._said()).startswith("error"):
            pass
        return said

    def _said(self) -> str:
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise AssertionError(f"the member ended with {self.process.wait(20)}")
        return f"error {line}" if "|FATAL|" in line else line.strip()

    def tell(self, word: str) -> None:
        self.process.stdin.write(word + "\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]

    def commit(self, timeout: float = 40) -> None:
        """Wait until it has read something, committed that, and been told so."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            self.tell("commit")
            while not (said := self._said()).startswith(("committed", "refused", "error")):
                pass
            if said == "committed":
                return
            if said.startswith("error"):
                raise AssertionError(said)
        raise AssertionError(f"never committed: {said}")

    def close(self) -> None:
        """A clean shutdown, as an application does it."""
        self.process.send_signal(signal.SIGTERM)
        self._end()

    def kill(self) -> None:
        """A crash: the member gets no chance to say anything."""
        self.process.kill()
        self._end()

    def _end(self) -> None:
        self.process.wait(30)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]


def run_member(config: dict[str, str]) -> None:
    """The process behind `Member`: consume, say what it owns, commit on `commit`, stall on `stall`."""
    import select

    topics = config.pop("topics", "orders").split(",")
    done: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: done.append(1))
    owned: set[str] = set()

    def say() -> None:
        print("owns", *sorted(owned), flush=True)

    def assigned(consumer: Consumer, parts: list[TopicPartition]) -> None:
        owned.update(f"{p.topic}-{p.partition}" for p in parts)
        say()

    def revoked(consumer: Consumer, parts: list[TopicPartition]) -> None:
        owned.difference_update(f"{p.topic}-{p.partition}" for p in parts)
        say()

    consumer = Consumer({"auto.offset.reset": "earliest", "enable.auto.commit": False, **config})
    consumer.subscribe(topics, on_assign=assigned, on_revoke=revoked)
    while not done:
        consumer.poll(0.1)
        if select.select([sys.stdin], [], [], 0)[0]:
            word = sys.stdin.readline().strip()
            if word == "stall":
                while not done:
                    time.sleep(0.1)
            elif word == "commit":
                _commit(consumer)
    with contextlib.suppress(KafkaException):
        consumer.close()


def _commit(consumer: Consumer) -> None:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as refused:
        print("refused", refused.args[0].name(), flush=True)
    else:
        print("committed", flush=True)


def _commits(*members: Member) -> None:
    """Let the members read for a moment, and commit what they have read."""
    time.sleep(1)
    for member in members:
        member.tell("commit")
    time.sleep(0.5)


def classic(instance: str | None = None, **more: str) -> dict[str, str]:
    static = {"group.instance.id": instance} if instance else {}
    base = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500", "client.id": instance or "app"}
    return {**base, "partition.assignment.strategy": "range", **static, **more}


def consumer(instance: str | None = None, **more: str) -> dict[str, str]:
    static = {"group.instance.id": instance} if instance else {}
    return {"group.protocol": "consumer", "client.id": instance or "app", **static, **more}


@contextlib.contextmanager
def closing(*members: Member) -> Iterator[None]:
    try:
        yield
    finally:
        for member in members:
            if member.process.poll() is None:
                member.close()


def crashed_static_member(kafka: Server, group: str) -> None:
    """pay-1 of two static classic members is killed, expires after its session, and comes back."""
    first = Member(kafka, group, **classic("pay-0"))
    first.owns(4)
    second = Member(kafka, group, **classic("pay-1"))
    with closing(first, second):
        second.owns(2)
        first.owns(2)
        _commits(first, second)
        second.kill()
        first.owns(4)
        back = Member(kafka, group, **classic("pay-1"))
        with closing(back):
            back.owns(2)


def rolling_static_bounce(kafka: Server, group: str) -> None:
    """Two static classic members are closed and started again, one after the other: no rebalance."""
    first = Member(kafka, group, **classic("pay-0"))
    first.owns(4)
    second = Member(kafka, group, **classic("pay-1"))
    second.owns(2)
    first.owns(2)
    for instance, old in (("pay-0", first), ("pay-1", second)):
        _commits(old)
        old.kill()
        fresh = Member(kafka, group, **classic(instance))
        fresh.owns(2)
        if instance == "pay-0":
            first = fresh
        else:
            second = fresh
    first.kill()
    second.kill()


def duplicate_instance_classic(kafka: Server, group: str) -> None:
    """Two classic consumers with one instance id: the older is fenced, the newer takes its partitions."""
    old = Member(kafka, group, **classic("pay-0"))
    old.owns(4)
    new = Member(kafka, group, **classic("pay-0"))
    with closing(old, new):
        new.owns(4)
        assert "fenced" in old.fails()


def duplicate_instance_consumer(kafka: Server, group: str) -> None:
    """Two consumer-protocol consumers with one instance id: the newer is refused, and leaves no record."""
    old = Member(kafka, group, **consumer("pay-0"))
    old.owns(4)
    new = Member(kafka, group, **consumer("pay-0"))
    with closing(old, new):
        assert "instance" in new.fails()
        _commits(old)


def consumer_group_life(kafka: Server, group: str) -> None:
    """Two members join, partitions move; one leaves for a while and returns, then leaves and expires."""
    first = Member(kafka, group, **consumer("pay-0", topics="orders,pay"))
    first.owns(6)
    second = Member(kafka, group, **consumer("pay-1", topics="orders,pay"))
    with closing(first, second):
        second.owns(3)
        first.owns(3)
        _commits(first, second)
        second.close()
        second = Member(kafka, group, **consumer("pay-1", topics="orders,pay"))
        second.owns(3)
        second.close()
        first.owns(6)
        third = Member(kafka, group, **consumer(topics="orders,pay"))
        with closing(third):
            third.owns(3)


def stuck_revocation(kafka: Server, group: str) -> None:
    """A member stops polling and so never gives up the partitions that a second member waits for."""
    first = Member(kafka, group, **consumer(**{"max.poll.interval.ms": "8000"}))
    first.owns(4)
    first.tell("stall")
    time.sleep(0.5)
    second = Member(kafka, group, **consumer())
    with closing(second):
        second.owns(4)
    first.kill()


def upgrade_and_back(kafka: Server, group: str) -> None:
    """A consumer-protocol member joins a classic group, which converts, and converts back when it leaves."""
    old = Member(kafka, group, **classic("pay-0"))
    old.owns(4)
    _commits(old)
    new = Member(kafka, group, **consumer())
    with closing(old, new):
        new.owns(2)
        old.owns(2)
        new.close()
        old.owns(4)


def upgrade_for_good(kafka: Server, group: str) -> None:
    """Both members of a classic group are replaced by consumer-protocol members, rolling."""
    names = ("pay-0", "pay-1")
    members = [Member(kafka, group, **classic(names[0]))]
    members[0].owns(4)
    members.append(Member(kafka, group, **classic(names[1])))
    members[1].owns(2)
    for i, name in enumerate(names):
        members[i].kill()
        time.sleep(6.5)
        members[i] = Member(kafka, group, **consumer(name))
        members[i].owns(2)
    with closing(*members):
        _commits(*members)


def reset_by_hand(kafka: Server, group: str) -> None:
    """A group commits, stops, is reset to the earliest offsets with Kafka's tool, and goes on."""
    member = Member(kafka, group, **classic())
    member.owns(4)
    _commits(member)
    member.close()
    kafka.tool(
        "kafka-consumer-groups",
        *("--group", group, "--topic", "orders", "--reset-offsets", "--to-earliest", "--execute"),
    )
    member = Member(kafka, group, **classic())
    with closing(member):
        member.owns(4)
        _commits(member)


def deletion(kafka: Server, group: str) -> None:
    """A group that has consumed is stopped; one topic's offsets are deleted, then the whole group."""
    member = Member(kafka, group, **consumer(topics="orders,pay"))
    member.owns(6)
    _commits(member)
    member.close()
    tool = ("--group", group)
    kafka.tool("kafka-consumer-groups", *tool, "--delete-offsets", "--topic", "pay")
    kafka.tool("kafka-consumer-groups", *tool, "--delete")


def transactions(kafka: Server, group: str) -> None:
    """A consume-transform-produce member commits one transaction with its offsets and aborts another."""
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": group, **classic()}
    settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
    member = Consumer(settings)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "tx-1"})
    member.subscribe(["orders"])
    eventually(lambda: member.poll(0.1) and member.assignment())
    producer.init_transactions(20)
    for offset, finish in ((3, producer.commit_transaction), (5, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("pay", b"x")
        positions = [TopicPartition("orders", p, offset) for p in range(2)]
        producer.send_offsets_to_transaction(positions, member.consumer_group_metadata(), 20)
        finish(20)
        time.sleep(0.5)
    member.close()


def retention(kafka: Server, group: str) -> None:
    """A group commits, stops, and the broker expires its offsets and then the group (one minute here)."""
    member = Member(kafka, group, **classic())
    member.owns(4)
    _commits(member)
    member.close()
    eventually(lambda: group not in kafka.tool("kafka-consumer-groups", "--list").stdout, 150, every=5)


INCIDENTS: dict[str, tuple[Callable[[Server, str], None], dict[str, object]]] = {
    "crashed-static-member": (crashed_static_member, BROKER),
    "rolling-static-bounce": (rolling_static_bounce, BROKER),
    "duplicate-instance-classic": (duplicate_instance_classic, BROKER),
    "duplicate-instance-consumer": (duplicate_instance_consumer, BROKER),
    "consumer-group-life": (consumer_group_life, BROKER),
    "stuck-revocation": (stuck_revocation, BROKER),
    "upgrade-and-back": (upgrade_and_back, BROKER),
    "upgrade-for-good": (upgrade_for_good, BROKER),
    "reset-by-hand": (reset_by_hand, BROKER),
    "deletion": (deletion, BROKER),
    "transactions": (transactions, BROKER),
    "retention-zstd": (retention, RETENTION),
    "streams-application": (streams_application, STREAMS_BROKER),
}


def group_on(partition: int, name: str) -> str:
    """A group id, starting with `name`, that lives on `partition`."""
    return next(g for i in range(10**6) if offsets_partition_of(g := f"{name}.{i}", PARTITIONS) == partition)


def record(names: list[str], kind: type[RealKafka] | type[KgroupServer] = RealKafka) -> None:
    """Run the incidents, one broker of the kind per set of broker settings, and keep their segments."""
    for settings in (BROKER, RETENTION, STREAMS_BROKER):
        chosen = [n for n in INCIDENTS if n in names and INCIDENTS[n][1] is settings]
        if not chosen:
            continue
        with kind(settings) as kafka:
            topic_ids = _make_topics(kafka)
            for i, name in enumerate(chosen):
                group = group_on(i, name)
                try:
                    INCIDENTS[name][0](kafka, group)
                except AssertionError as failed:
                    print(name, "was not recorded:", failed, flush=True)
                    continue
                print(name, *_keep(kafka, name, group, i, topic_ids), flush=True)


def _make_topics(kafka: Server) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for made in admin.create_topics([NewTopic(t, n, 1) for t, n in TOPICS.items()]).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for i in range(400):
        producer.produce(
            "orders" if i % 2 else "pay",
            f"message {i}".encode(),
            partition=i // 2 % TOPICS["orders" if i % 2 else "pay"],
        )
    producer.flush(30)
    described = kafka.tool("kafka-topics", "--describe").stdout.splitlines()
    fields = [line.split() for line in described if "TopicId:" in line]
    return {line[line.index("Topic:") + 1]: line[line.index("TopicId:") + 1] for line in fields}


def _keep(kafka: Server, name: str, group: str, partition: int, topic_ids: dict[str, str]) -> list[object]:
    folder = TARGET / (name if kafka.kind == RealKafka.kind else f"{kafka.kind}-{name}")
    shutil.rmtree(folder, ignore_errors=True)
    sizes: list[object] = []
    for segment in kafka.segments():
        if segment.parent.name == f"__consumer_offsets-{partition}":
            to = folder / segment.parent.name
            to.mkdir(parents=True, exist_ok=True)
            data = segment.read_bytes()
            (to / segment.name).write_bytes(data)
            sizes.append(len(data))
    write_topics_file(
        LocalFolder(folder), {uuid_bytes(topic_id): topic for topic, topic_id in topic_ids.items()}
    )
    about = {"group": group, "script": INCIDENTS[name][0].__doc__}
    (folder / "incident.json").write_text(json.dumps(about, indent=2) + "\n")
    return sizes


if __name__ == "__main__":
    if sys.argv[1:2] == ["--member"]:
        run_member(json.loads(sys.argv[2]))
    elif sys.argv[1:2] == ["--on-kgroup"]:
        record(sys.argv[2:] or list(INCIDENTS), KgroupServer)
    else:
        record(sys.argv[1:] or list(INCIDENTS))
