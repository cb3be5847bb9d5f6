"""`kgroup demo`: a tour on an embedded cluster with real librdkafka consumers, in under a minute."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import which
from typing import TYPE_CHECKING

from kgroup.admin.shell import word
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import command as make
from kgroup.cli.frame.tree import run
from kgroup.errors import KgroupError, Unreachable

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

GROUP, TOPIC = "orders-svc", "orders"
PARTITIONS, RECORDS = 6, 300
INSTANCES = ("orders-0", "orders-1", "orders-2")
SETTINGS = ("group.initial.rebalance.delay.ms=500", "group.min.session.timeout.ms=1000")
PATIENCE_S = 30.0
QUIET = {"log_level": 0}
NEXT = """# Try next, each line as it stands. A cluster of your own, in the folder ./data, with a topic:
{kgroup} cluster create-topic orders --partitions 6 --local ./data
# A group at the start of the topic: the plan first, and then the change.
{kgroup} reset-offsets orders-svc --topic orders --to-earliest --local ./data
{kgroup} reset-offsets orders-svc --topic orders --to-earliest --local ./data --execute
{kgroup} describe orders-svc --local ./data
# What an error in a client's log means:
{kgroup} explain FENCED_INSTANCE_ID
# That cluster for your tests, on TCP until Ctrl-C:
{kgroup} serve --local ./data
# On a Kafka: {kgroup} doctor --all-groups -b HOST:PORT"""


@make("demo", examples=(("kgroup demo", "list, describe, bounce, remove, describe"),), has_json=False)
def command(env: Env) -> ExitCode:
    """Show what kgroup does, on an embedded cluster that real consumers join.

    Needs no Kafka: the cluster runs for the tour in a temporary folder. Your own settings are not used.
    """
    with tempfile.TemporaryDirectory(prefix="kgroup-demo-") as folder, _cluster(folder) as bootstrap:
        # The tour's removal belongs into a journal of its own.
        os.environ["XDG_STATE_HOME"] = folder
        _say(f"An embedded cluster serves Kafka's protocol on {bootstrap}.")
        failed = _tour(bootstrap)
    if failed:
        raise KgroupError(f"{failed} step(s) of the tour failed", "kgroup demo --debug")
    print("\n" + NEXT.format(kgroup=program()))
    return ExitCode.OK


def _tour(bootstrap: str) -> int:
    """Run the tour; the number of commands that ended with another code than 0."""
    codes = [_run("cluster", "create-topic", TOPIC, "--partitions", str(PARTITIONS), "-b", bootstrap)]
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"order %d" % number, partition=number % PARTITIONS)
    if producer.flush(PATIENCE_S):
        raise Unreachable("the demo's cluster took no records", "kgroup demo --debug")
    _say(f"{RECORDS} records are in. Three librdkafka consumers with instance ids join and commit.")
    fleet = {name: _Consumer(bootstrap, name) for name in INSTANCES}
    try:
        _until("the consumers have read and committed", lambda: _settled(fleet))
        codes += [_run("list", "-b", bootstrap), _run("describe", GROUP, "-b", bootstrap)]
        _say("A rolling restart: orders-1 stops and comes back. It is static, so no other member notices.")
        others = {name: fleet[name].assignments for name in ("orders-0", "orders-2")}
        fleet.pop("orders-1").stop()
        fleet["orders-1"] = _Consumer(bootstrap, "orders-1")
        _until("orders-1 is back", lambda: fleet["orders-1"].partitions == 2)
        moved = sum(fleet[name].assignments - before for name, before in others.items())
        _say(f"orders-1 has its partitions again. Rebalances seen by the others: {moved}.")
        codes += [moved, _run("replay-log", GROUP, "-b", bootstrap)]
        _say("Now the pod of orders-2 is gone for good; its partitions wait for it. Remove it:")
        fleet.pop("orders-2").stop()
        removal = ("remove-members", GROUP, "--instance-id", "orders-2", "--reason", "demo", "-b", bootstrap)
        codes += [_run(*removal), _run(*removal, "--execute", "--yes")]
        _until("two consumers have all partitions", lambda: all(c.partitions == 3 for c in fleet.values()))
        codes.append(_run("describe", GROUP, "-b", bootstrap))
    finally:
        for consumer in fleet.values():
            consumer.stop()
    return sum(code != 0 for code in codes)


def program() -> str:
    """How to start this program from the shell it was started from, which need not have it on its PATH."""

    typed = sys.argv[0]
    if os.path.basename(typed) != "kgroup":
        return f"{word(sys.executable)} -m kgroup"
    found = which("kgroup")
    return "kgroup" if found and os.path.samefile(found, typed) else word(typed)


def _settled(fleet: "dict[str, _Consumer]") -> bool:
    read = sum(consumer.read for consumer in fleet.values())
    return read >= RECORDS and all(consumer.partitions == 2 for consumer in fleet.values())


class _Consumer:
    """A librdkafka consumer with an instance id, polling and committing in a thread of its own."""

    def __init__(self, bootstrap: str, instance_id: str) -> None:
        self.read = self.partitions = self.assignments = 0
        self._config = {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "group.instance.id": instance_id,
            "client.id": instance_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 20_000,
            "heartbeat.interval.ms": 300,
            **QUIET,
        }
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name=instance_id, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the consumer; a static one keeps its place in the group."""
        self._stop.set()
        self._thread.join()

    def _poll(self) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(self._config)
        consumer.subscribe([TOPIC], on_assign=self._assigned)
        try:
            while not self._stop.is_set():
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    self.read += 1
                    consumer.commit(message=message, asynchronous=False)
        finally:
            consumer.close()

    def _assigned(self, consumer: "Consumer", partitions: "list[TopicPartition]") -> None:
        self.partitions = len(partitions)
        self.assignments += 1


@contextmanager
def _cluster(folder: str) -> Iterator[str]:
    """`kgroup serve` in a process of its own; its host:port."""
    settings = (part for setting in SETTINGS for part in ("--set", setting))
    argv = [sys.executable, "-m", "kgroup", "serve", "--local", f"{folder}/data", "--port", "0", *settings]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            ready = process.stdout.readline()
            if "serving on" not in ready:
                raise KgroupError("the demo's cluster did not start", "kgroup serve")
            yield ready.split()[-1]
        finally:
            process.terminate()


def _run(*argv: str) -> int:
    print(f"\n$ kgroup {' '.join(argv)}", flush=True)
    return run(argv)


def _until(what: str, done: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > give_up:
            raise Unreachable(f"waited {PATIENCE_S:.0f} s until {what}", "kgroup demo --debug")
        time.sleep(0.05)


def _say(text: str) -> None:
    print(f"\n# {text}", flush=True)
