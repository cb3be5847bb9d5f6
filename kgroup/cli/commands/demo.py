"""`kgroup demo`: a tour on an embedded cluster with real librdkafka consumers, in under a minute."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from shutil import which
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.shell import word
from kgroup.cli.declaring import option
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make
from kgroup.cli.frame.tree import run
from kgroup.domain import count_of
from kgroup.errors import ConfigError, KgroupError, Unreachable
from kgroup.extras import install_command, require_extra

if TYPE_CHECKING:
    from confluent_kafka import Consumer, ShareConsumer, TopicPartition

GROUP, TOPIC = "orders-svc", "orders"
PARTITIONS, RECORDS = 6, 300
INSTANCES = ("orders-0", "orders-1", "orders-2")
WORKERS, QUEUE = "workers", "jobs"
BATCH, JOB_S = 5, 0.03
"""Jobs per batch, which goes to one worker as a whole, and the duration of a job."""
JOBS, BROKEN, MALFORMED, LIMIT = 60, 7, 13, 3
"""Number of jobs, the one that fails, the one that is rejected, and the delivery limit."""
SETTINGS = (
    "group.initial.rebalance.delay.ms=500",
    "group.min.session.timeout.ms=1000",
    "group.share.heartbeat.interval.ms=500",
    "group.share.min.heartbeat.interval.ms=500",
)
PATIENCE_S = 30.0
QUIET = {"log_level": 0}
WITH_SHARES = "confluent-kafka>=2.16"
NEXT = """# Try next, each line as it stands. A cluster of your own, in the folder ./data, with a topic:
{kgroup} cluster create-topic orders --partitions 6 --local ./data
# A group at the start of the topic: the plan first, and then the change.
{kgroup} reset-offsets orders-svc --topic orders --to-earliest --create --local ./data
{kgroup} reset-offsets orders-svc --topic orders --to-earliest --create --local ./data --execute
{kgroup} describe orders-svc --local ./data
# What an error in a client's log means:
{kgroup} explain FENCED_INSTANCE_ID
# That cluster for your tests, on TCP until Ctrl-C:
{kgroup} serve --local ./data
# On a Kafka: {kgroup} doctor --all-groups -b HOST:PORT"""


@make(
    "demo",
    examples=(
        ("kgroup demo", "list, describe, bounce, remove, describe"),
        ("kgroup demo --share", "a queue: deliveries, a release, and which records were given up"),
    ),
    has_json=False,
)
def command(
    env: Env,
    share: Annotated[
        bool, option("--share", "Show a share group (KIP-932): members that work through a queue.")
    ] = False,
) -> ExitCode:
    """Show what kgroup does, on an embedded cluster that real consumers join.

    Needs no Kafka: the cluster runs for the tour in a temporary folder. Your own settings are not used.
    """
    require_extra("demo", "kgroup demo", "confluent_kafka")
    tour = _share_tour if share else _tour
    with tempfile.TemporaryDirectory(prefix="kgroup-demo-") as folder, _cluster(folder) as bootstrap:
        # The tour's removal belongs in a journal of its own.
        os.environ["XDG_STATE_HOME"] = folder
        _say(f"An embedded cluster serves Kafka's protocol on {bootstrap}.")
        failed = tour(bootstrap)
    if failed:
        raise KgroupError(f"{count_of(failed, 'step')} of the tour failed", "kgroup demo --debug")
    print("\n" + NEXT.format(kgroup=program()))
    return ExitCode.OK


def _tour(bootstrap: str) -> int:
    """Run the tour; return how many commands failed."""
    codes = [_run("cluster", "create-topic", TOPIC, "--partitions", str(PARTITIONS), "-b", bootstrap)]
    _produce(bootstrap, TOPIC, ((number % PARTITIONS, b"order %d" % number) for number in range(RECORDS)))
    _say(f"{RECORDS} records are in. Three librdkafka consumers with instance ids join and commit.")
    fleet = {name: _Consumer(bootstrap, name) for name in INSTANCES}
    try:
        _until(
            "the consumers have read and committed",
            lambda: (
                sum(consumer.read for consumer in fleet.values()) >= RECORDS
                and all(consumer.partitions == 2 for consumer in fleet.values())
            ),
        )
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


def _share_tour(bootstrap: str) -> int:
    """Run the tour of a share group; return how many commands failed."""
    try:
        from confluent_kafka import ShareConsumer
    except ImportError:
        import confluent_kafka

        what = f"confluent-kafka {confluent_kafka.__version__} has no share consumer"
        raise ConfigError(what, install_command(WITH_SHARES)) from None
    where = ("-b", bootstrap)
    codes = [_run("cluster", "create-topic", QUEUE, "--partitions", "1", *where)]
    rules = ("share.auto.offset.reset=earliest", f"share.delivery.count.limit={LIMIT}")
    codes.append(_run("config", "set", WORKERS, *rules, "--execute", "--yes", *where))
    _say("Two librdkafka share consumers join. Both read the one partition, and acknowledge job by job.")
    workers = [_Worker(bootstrap, f"worker-{number}", ShareConsumer) for number in (1, 2)]
    try:
        for first in range(0, JOBS, BATCH):
            _produce(bootstrap, QUEUE, ((0, b"job %d" % number) for number in range(first, first + BATCH)))
        _say(
            f"{JOBS} jobs are in. Job {BROKEN} fails each time, and its worker releases it. "
            f"Job {MALFORMED} is malformed, and its worker rejects it."
        )
        ends = Counter(ACCEPT=JOBS - 2, RELEASE=LIMIT, REJECT=1)
        _until(
            "all jobs are done or given up",
            lambda: sum((worker.done for worker in workers), Counter[str]()) == ends,
        )
        shares = " and ".join(f"{worker.name} {worker.done['ACCEPT']}" for worker in workers)
        _say(f"Accepted: {shares}. Job {BROKEN} was delivered {LIMIT} times, the group's limit.")
        codes += [_run("list", *where), _run("describe", WORKERS, *where), _run("lag", WORKERS, *where)]
        _say("Nothing waits, but not every job was done. No broker reports which; the log has it:")
        codes += [_run("replay-log", WORKERS, *where), _run("blame", WORKERS, *where)]
    finally:
        for worker in workers:
            worker.stop()
    return sum(code != 0 for code in codes)


def program() -> str:
    """Return how to start this program from the current shell, whose PATH may not have it."""

    typed = sys.argv[0]
    if os.path.basename(typed) != "kgroup":
        return f"{word(sys.executable)} -m kgroup"
    installed = which("kgroup")
    return "kgroup" if installed and os.path.samefile(installed, typed) else word(typed)


class _Consumer:
    """A librdkafka consumer with an instance id, polling and committing in its own thread."""

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


class _Worker:
    """A librdkafka share consumer that works through the queue in its own thread.

    `done` counts its acknowledgements by type; the broker has confirmed each.
    """

    def __init__(self, bootstrap: str, name: str, client: "type[ShareConsumer]") -> None:
        self.name = name
        self.done = Counter[str]()
        settings = {"group.id": WORKERS, "client.id": name, "max.poll.records": BATCH, **QUIET}
        mode = {"share.acknowledgement.mode": "explicit"}
        self._consumer = client({"bootstrap.servers": bootstrap, **settings, **mode})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the consumer: it leaves the group."""
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        from confluent_kafka import AcknowledgeType

        unlike = {b"job %d" % BROKEN: AcknowledgeType.RELEASE, b"job %d" % MALFORMED: AcknowledgeType.REJECT}
        with self._consumer as consumer:
            consumer.subscribe([QUEUE])
            while not self._stop.is_set():
                taken = Counter[str]()
                for job in consumer.poll(0.1):
                    if job.error() is None:
                        how = unlike.get(job.value() or b"", AcknowledgeType.ACCEPT)
                        time.sleep(JOB_S)
                        self._consumer.acknowledge(job, how)
                        taken[how.name] += 1
                if all(error is None for error in consumer.commit_sync(PATIENCE_S).values()):
                    self.done += taken


@contextmanager
def _cluster(folder: str) -> Iterator[str]:
    """Run `kgroup serve` in a process of its own; yield its host:port."""
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


def _produce(bootstrap: str, topic: str, records: Iterable[tuple[int, bytes]]) -> None:
    """Send records, each to the partition given with it."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for partition, value in records:
        producer.produce(topic, value, partition=partition)
    if producer.flush(PATIENCE_S):
        raise Unreachable("the demo's cluster took no records", "kgroup demo --debug")


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
