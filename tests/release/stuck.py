"""An installed kgroup serves a cluster, a group gets stuck in it, and doctor names the cause."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

GROUP, TOPIC = "shipping", "orders"


def verdict(
    kgroup: Sequence[str | Path], cwd: Path, data: str = "./stuck", env: Mapping[str, str] = os.environ
) -> str:
    """Return what `doctor` of that kgroup says of a stuck group in a cluster that the same kgroup serves."""
    how = {"cwd": cwd, "env": env, "text": True}
    serve = [*kgroup, "serve", "--local", data, "--port", "0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, **how) as server:
        try:
            assert server.stdout is not None
            ready = server.stdout.readline()
            assert "serving on" in ready, ready
            at = ready.split()[-1]
            create = [*kgroup, "cluster", "create-topic", TOPIC, "--partitions", "2", "-b", at]
            subprocess.run(create, check=True, capture_output=True, **how)
            with stuck(at):
                doctor = [*kgroup, "doctor", GROUP, "--patience", "1s", "-b", at]
                done = subprocess.run(doctor, capture_output=True, check=False, **how)
        finally:
            server.kill()  # what enters a root passes on no other signal
    assert done.returncode == 8, f"doctor ended with {done.returncode}: {done.stderr}"
    return done.stdout


@contextmanager
def stuck(bootstrap: str) -> Iterator[None]:
    """Hold a group in a rebalance that waits for a member which does not poll any more."""
    silent = _consumer(bootstrap, "ship-0")
    while not silent.assignment():
        silent.poll(0.1)
    other = _consumer(bootstrap, "ship-1")
    try:
        while _state(bootstrap) != "PREPARING_REBALANCING":
            other.poll(0.1)
        yield
    finally:
        silent.close()
        other.close()


def _consumer(bootstrap: str, client: str) -> Consumer:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": GROUP, "client.id": client, "heartbeat.interval.ms": 300}
    )
    # With a callback the client revokes only while it is polled.
    consumer.subscribe([TOPIC], on_revoke=lambda *_: None)
    return consumer


def _state(bootstrap: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return str(admin.describe_consumer_groups([GROUP])[GROUP].result().state.name)
