"""What users of Windows run first, where kgroup sees nothing of what only POSIX has (`hidden`)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import own_home

HIDDEN = Path(__file__).parent / "hidden"
COMMANDS = """
import json, sys
from kgroup.cli.app import widen
from kgroup.cli.frame.tree import run

widen()

for line in json.loads(sys.argv[1]):
    print("$", line, flush=True)
    print("=", run(line.split()), flush=True)
"""
KIT = """
from confluent_kafka import Consumer
from kgroup.testing import Cluster

with Cluster({"orders": 2}) as kafka:
    kafka.produce("orders", ["a", "b"])
    consumer = Consumer({**kafka.client(), "group.id": "pay", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    print(sorted(kafka.until(lambda: consumer.poll(0.1)).value() for _ in range(2)))
    consumer.close()
    kafka.advance("1h")
    print(kafka.describe("pay").state)
"""


def windows(home: Path) -> dict[str, str]:
    """The environment of a process that sees no POSIX, and writes as a console of Windows does."""
    hidden = {} if sys.platform == "win32" else {"PYTHONPATH": str(HIDDEN)}
    return own_home.environment(home) | hidden | {"PYTHONIOENCODING": "cp1252"}


def python(home: Path, *arguments: str) -> str:
    """What a process prints there."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=windows(home), cwd=home, capture_output=True, encoding="cp1252")
    assert done.returncode == 0, done.stderr
    return done.stdout


def ran(home: Path, *lines: str) -> dict[str, tuple[str, int]]:
    """What commands print, and their exit codes, all run by one process."""
    said = python(home, "-c", COMMANDS, json.dumps(lines)).split("$ ")[1:]
    ends = [text.removeprefix(line).rpartition("=") for line, text in zip(lines, said, strict=True)]
    return {line: (out.strip(), int(code)) for line, (out, _, code) in zip(lines, ends, strict=True)}


@contextmanager
def served(home: Path) -> Iterator[str]:
    """`kgroup serve`, ended as Ctrl-C does; yields its address."""
    command = [sys.executable, "-m", "kgroup", "serve", "--local", "./data", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=windows(home), cwd=home, text=True, **pipes) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert "serving on" in ready, process.communicate()
            yield ready.split()[-1]
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
    assert process.returncode == 0, out + err


REFUSED = {
    "import fcntl": "ModuleNotFoundError",
    "from resource import getrlimit": "ModuleNotFoundError",
    "from os import pread": "ImportError",
    "import os; os.getuid()": "AttributeError",
    "import os; os.kill(os.getpid(), 0)": "AssertionError",
    "import os; os.open('.', os.O_RDONLY)": "PermissionError",
    "import os; os.write(os.open('text', os.O_WRONLY | os.O_CREAT), b'')": "AssertionError",
    "import os; file = open('open', 'w'); os.replace('open', 'other')": "PermissionError",
    "import pathlib; file = open('open', 'w'); pathlib.Path('open').unlink()": "PermissionError",
    "import shutil, os; os.mkdir('a'); file = open('a/open', 'w'); shutil.rmtree('a')": "PermissionError",
    "import signal; signal.SIGKILL": "AttributeError",
    "import asyncio; asyncio.SelectorEventLoop().add_signal_handler(2, print)": "NotImplementedError",
    "import asyncio; asyncio.run(main())": "NotImplementedError",
    "import multiprocessing; multiprocessing.get_context('forkserver')": "ValueError",
    "import subprocess; subprocess.Popen(['true'], pass_fds=[2])": "ValueError",
    "import sys; assert sys.platform != 'win32'": "AssertionError",
}
TRIED = """
import asyncio, json, sys

async def main():
    asyncio.get_running_loop().add_reader(0, print)

for line in json.loads(sys.argv[1]):
    try:
        exec(line, {"__name__": "kgroup.any", "main": main})
        print("ran")
    except Exception as error:
        print(type(error).__name__)
import fcntl, os
print(os.pread is not None)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it is Windows itself")
def test_kgroup_does_not_see_what_windows_lacks_and_others_do(tmp_path: Path) -> None:
    """The hiding itself: without it, the tests below show nothing."""
    *seen, others = python(tmp_path, "-c", TRIED, json.dumps(list(REFUSED))).split()
    assert dict(zip(REFUSED, seen, strict=True)) == REFUSED
    assert others == "True"


def test_a_cluster_is_served_and_asked(tmp_path: Path) -> None:
    change = "reset-offsets späte --topic orders --to-earliest --create --execute --yes"
    with served(tmp_path) as address:
        said = ran(
            tmp_path,
            f"cluster create-topic orders --partitions 2 -b {address}",
            f"{change} -b {address}",
            f"list -b {address}",
            f"describe späte -b {address}",
            f"lag späte -b {address}",
            f"doctor späte -b {address}",
            f"replay-log späte -b {address}",
            "list --local ./data",
        )
        assert [code for _, code in said.values()] == [0] * 8
        assert all("späte" in said[f"{name} späte -b {address}"][0] for name in ("describe", "lag", "doctor"))
        assert "2 commits on orders:0-1" in said[f"replay-log späte -b {address}"][0]
        second = ran(tmp_path, "serve --local ./data --port 0")
        assert [code for _, code in second.values()] == [1]
    after = ran(tmp_path, "list --local ./data", "replay-log späte --local ./data", "journal list")
    assert [code for _, code in after.values()] == [0] * 3
    assert "späte" in after["list --local ./data"][0]


def test_the_demo_runs(tmp_path: Path) -> None:
    assert "serve --local ./data" in python(tmp_path, "-m", "kgroup", "demo")


def test_the_test_kit_runs(tmp_path: Path) -> None:
    assert python(tmp_path, "-c", KIT).splitlines() == ["[b'a', b'b']", "Empty"]
