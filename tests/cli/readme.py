"""The sessions of README and docs: their cluster, how they are played, and what differs from run to run."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kgroup.admin.topic_records import produce
from kgroup.protocol.log_records import LogRecord
from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
SAID = "broker:9092"
COLUMNS = 100
"""The width of the terminal on which sessions are played."""
PAINT = re.compile(r"\x1b\[[\d;]*m")
# What differs from run to run: ids, times, places.
VARIES = (
    (re.compile(r"plan [0-9a-f]{8}"), "plan ID"),
    (re.compile(r"membership = [0-9a-f]{12}"), "membership = HASH"),
    # A table folds them at a hyphen.
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){1,3}-?([0-9a-f]{12})?"), "UUID"),
    (re.compile(r"\b([0-9a-f]{4}-){0,3}[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"journal j-\d+"), "journal J"),
    (re.compile(r"\d\d:\d\d:\d\d(\.\d+)?"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DAY"),
    (re.compile(r"\b\d+ s\b"), "N s"),
    (re.compile(r" +"), " "),
)


def blocks(*languages: str, page: str = "README.md") -> list[str]:
    """Return a page's blocks of these languages."""
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [text for language, text in found if language in languages]


def commands(session: str) -> Iterator[tuple[str, str]]:
    """Yield each command line of a session, and what is shown below it."""
    for part in re.split(r"^\$ ", session, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def uncoloured(text: str) -> str:
    """Return what a terminal was sent, without its colours and the blanks at the ends of lines."""
    return re.sub(r" +$", "", PAINT.sub("", text), flags=re.M)


def without_what_varies(text: str) -> list[str]:
    """Return the lines with ids, times and places replaced by their names."""
    for pattern, name in VARIES:
        text = pattern.sub(name, text)
    return [line.rstrip() for line in text.strip().splitlines()]


@contextmanager
def stuck_and_stable() -> Iterator[str]:
    """Serve the README's cluster: a stable group of three static members, and one that is stuck."""
    settings = {"group.initial.rebalance.delay.ms": "0", "group.consumer.assignment.interval.ms": "0"}
    with served(Cluster(config=settings, offsets_partitions=4)) as address:
        client = Client(address)
        client.create_topic("orders", 6)
        client.commit("pay-svc", "orders", {0: 0, 1: 0})
        client.classic_group("pay-svc", "orders", {f"pay-{n}": [2 * n, 2 * n + 1] for n in range(3)})
        client.create_topic("parcels", 4)
        client.commit("shipping", "parcels", dict.fromkeys(range(4), 0))
        client.classic_group("shipping", "parcels", {"ship-0": [0, 1], "ship-1": [2, 3]})
        client.join_unanswered("shipping", "parcels", "ship-2")
        yield address
        client.close()


@contextmanager
def stuck_and_moving() -> Iterator[str]:
    """Serve the same, and a consumer group in which a partition moves from one member to another."""
    with stuck_and_stable() as address:
        client = Client(address)
        client.create_topic("payments", 4)
        records = [LogRecord(None, b"x", (), 0)] * 310
        for partition in range(4):
            produce(client.admin, "payments", records, partition)
        client.commit("billing", "payments", {0: 310, 1: 310, 2: 0, 3: 310})
        first = client.consumer_member("billing", "payments", "bill-1")
        client.consumer_member("billing", "payments", "bill-2")
        client.stays("billing", first)
        yield address
        client.close()


SESSIONS = {"README.md": stuck_and_stable, "docs/reading-output.md": stuck_and_moving}
"""The pages with sessions, and the cluster of each."""


def environment(bootstrap: str, folder: Path) -> dict[str, str]:
    """Return the environment of a README reader whose files are in `folder`."""
    env = {
        key: value for key, value in os.environ.items() if not key.startswith("KGROUP_") and key != "NO_COLOR"
    }
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    env["KGROUP_BOOTSTRAP_SERVER"] = bootstrap
    env |= {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    for kind in ("CONFIG", "DATA", "STATE"):
        env[f"XDG_{kind}_HOME"] = str(folder / kind.lower())
    return env


def play(session: str, bootstrap: str, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Run a session's commands; yield each with what the README shows and what was printed."""
    code = 0
    for command, shown in commands(session):
        if command == "echo $?":
            yield command, shown, f"{code}\n"
            continue
        shell = ["bash", "-c", command.replace(SAID, bootstrap)]
        code, printed = on_terminal(shell, environment(bootstrap, folder), folder)
        yield command, shown, printed.replace(bootstrap, SAID)


def on_terminal(command: list[str], env: dict[str, str], folder: Path) -> tuple[int, str]:
    """Run a command whose output is a terminal; return its exit code and what it printed, errors last."""
    ours, its = os.openpty()
    with tempfile.TemporaryFile("w+") as errors, os.fdopen(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=its, stderr=errors)
        os.close(its)
        pieces = []
        # Reading fails when nothing has the terminal open any more.
        with suppress(OSError):
            while piece := screen.read(1 << 16):
                pieces.append(piece)
        code = process.wait(timeout=60)
        errors.seek(0)
        return code, b"".join(pieces).decode().replace("\r\n", "\n") + errors.read()
