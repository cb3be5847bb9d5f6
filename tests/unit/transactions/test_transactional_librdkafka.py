"""librdkafka's transactions over TCP: consume-transform-produce, fencing, and kill -9 of the broker."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.unit.transactions.librdkafka_load import (
    IMPATIENT,
    PATIENCE_S,
    Load,
    committed_position,
    committed_records,
)

KILLS = int(os.environ.get("KGROUP_TRANSACTION_KILLS", "3"))
SEED = int(os.environ.get("KGROUP_TRANSACTION_SEED", "1"))


class Process:
    """`kgroup serve` on a folder and a port of its own; may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        code = (
            "import sys; from pathlib import Path; from kgroup.broker.server import serve; "
            "from kgroup.runtime.cluster import Cluster; "
            "config = {'transaction.state.log.num.partitions': '3'}; "
            "cluster = Cluster(Path(sys.argv[1]), offsets_partitions=3, config=config); "
            "serve(cluster, port=int(sys.argv[2]))"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(self.folder), str(self.port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("kgroup: serving")

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.wait(300)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    made = Process(tmp_path / "data")
    admin = AdminClient({"bootstrap.servers": made.bootstrap})
    for made_topic in admin.create_topics([NewTopic("in", 1), NewTopic("out", 2)]).values():
        made_topic.result(300)
    yield made
    made.end()


def producer_of(process: Process, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": process.bootstrap, "transactional.id": name, **IMPATIENT})
    producer.init_transactions(PATIENCE_S)
    return producer


def test_consume_transform_produce(process: Process) -> None:
    feed = Producer({"bootstrap.servers": process.bootstrap})
    for number in range(10):
        feed.produce("in", str(number))
    feed.flush(10)
    settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False, **IMPATIENT}
    reader = Consumer({"bootstrap.servers": process.bootstrap, "group.id": "g", **settings})
    reader.subscribe(["in"])
    producer = producer_of(process, "copy")
    for aborts in (True, False, False):
        producer.begin_transaction()
        for message in reader.consume(5, PATIENCE_S):
            assert message.error() is None
            producer.produce("out", message.value(), partition=0)
        at = reader.position(reader.assignment())
        producer.send_offsets_to_transaction(at, reader.consumer_group_metadata(), PATIENCE_S)
        if aborts:
            producer.abort_transaction(PATIENCE_S)
            for back in reader.committed(reader.assignment(), PATIENCE_S):
                back.offset = max(back.offset, 0)
                reader.seek(back)
        else:
            producer.commit_transaction(PATIENCE_S)
    reader.close()
    assert committed_records(process.bootstrap, "out", 0) == list(range(10))
    assert committed_position(process.bootstrap, "g", "in") == 10


def test_zombie_producer(process: Process) -> None:
    zombie = producer_of(process, "p")
    zombie.begin_transaction()
    zombie.produce("out", b"1", partition=0)
    zombie.flush(PATIENCE_S)
    heir = producer_of(process, "p")
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].fatal()
    heir.begin_transaction()
    heir.produce("out", b"2", partition=0)
    heir.commit_transaction(PATIENCE_S)
    assert committed_records(process.bootstrap, "out", 0) == [2]


@pytest.mark.timeout(600 + 30 * KILLS)
def test_kill_9_amid_transactions(process: Process) -> None:
    """Committed is there, aborted is not, nothing hangs; what nobody was told of is whole or not there."""
    chance = random.Random(SEED)
    load = Load(process.bootstrap)
    load.start()
    try:
        for _ in range(KILLS):
            progress(load, chance.randrange(3, 12))
            time.sleep(chance.random() * 0.05)
            process.end()
            process.start()
        progress(load, 5)
    finally:
        load.stopped.set()
        load.join(3 * PATIENCE_S)
    assert not load.is_alive(), load.books.failures
    check(process, load)
    process.end()
    process.start()
    check(process, load)


def progress(load: Load, count: int) -> None:
    """Wait for some more transactions."""
    goal = len(load.books.committed) + count
    deadline = time.monotonic() + 300
    while len(load.books.committed) < goal:
        assert load.is_alive() and time.monotonic() < deadline, load.books.failures
        time.sleep(0.001)


def check(process: Process, load: Load) -> None:
    books = load.books
    producer_of(process, "load")  # aborts what the last one may have left open
    seen = [committed_records(process.bootstrap, "out", partition) for partition in (0, 1)]
    assert seen[0] == seen[1] == sorted(set(seen[0])), "each transaction once, in both partitions, in order"
    there = set(seen[0])
    assert books.committed <= there, sorted(books.committed - there)
    assert not books.aborted & there
    assert there <= books.committed | books.unsure
    assert committed_position(process.bootstrap, "g", "in") == max(there)
