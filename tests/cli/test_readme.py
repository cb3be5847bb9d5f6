"""Every block of the README is run, and says what the README says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
BLOCKS = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
SESSIONS = [text for language, text in BLOCKS if language == "console"]
SCRIPTS = [text for language, text in BLOCKS if language == "sh"]
SAID = "broker:9092"
# What differs from run to run: ids, times, places.
VARIES = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"plan [0-9a-f]{8}"), "plan ID"),
    (re.compile(r"membership = [0-9a-f]{12}"), "membership = HASH"),
    (re.compile(r"journal j-\d+"), "journal J"),
    (re.compile(r"\d\d:\d\d:\d\d(\.\d+)?"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DAY"),
    (re.compile(r"\b\d+ s\b"), "N s"),
    (re.compile(r" +"), " "),
)


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """The cluster the README speaks of: a stable group of three static members, and one that is stuck."""
    settings = {"group.initial.rebalance.delay.ms": "0"}
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


@pytest.fixture
def shell(bootstrap: str, tmp_path: Path) -> dict[str, str]:
    """The environment of a README reader."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("KGROUP_")}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    env["KGROUP_BOOTSTRAP_SERVER"] = bootstrap
    for kind in ("CONFIG", "DATA", "STATE"):
        env[f"XDG_{kind}_HOME"] = str(tmp_path / kind.lower())
    return env


def told(text: str, bootstrap: str) -> list[str]:
    text = text.replace(bootstrap, SAID)
    for pattern, name in VARIES:
        text = pattern.sub(name, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def commands(session: str) -> Iterator[tuple[str, str]]:
    """Each command line of a session, and what is shown below it."""
    for part in re.split(r"^\$ ", session, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


@pytest.mark.parametrize("session", SESSIONS, ids=[s.splitlines()[0][2:42] for s in SESSIONS])
def test_session(session: str, shell: dict[str, str], bootstrap: str, tmp_path: Path) -> None:
    code = 0
    for command, shown in commands(session):
        if command == "echo $?":
            assert shown.strip() == str(code), command
            continue
        done = subprocess.run(
            ["bash", "-c", command.replace(SAID, bootstrap)],
            env=shell,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        code = done.returncode
        assert told(done.stdout + done.stderr, bootstrap) == told(shown, bootstrap), command


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script: str, shell: dict[str, str], bootstrap: str, tmp_path: Path) -> None:
    """`make` targets are looked at, not run: the tests run under one of them."""
    if script.startswith("make "):
        done = subprocess.run(["make", "-n", *script.split()[1:]], cwd=ROOT, capture_output=True, text=True)
    else:
        done = subprocess.run(
            ["bash", "-euc", script.replace(SAID, bootstrap)],
            env=shell,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr


def test_where_serve_cannot_start_no_script_waits_for_ever(shell: dict[str, str], tmp_path: Path) -> None:
    """What a reader types goes on line by line: the loop has to end by itself."""
    (script,) = (script for script in SCRIPTS if "kgroup serve" in script)
    (tmp_path / "data").write_text("a file, so no folder of a cluster")
    done = subprocess.run(
        ["bash", "-c", script], env=shell, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0 and "Traceback" not in done.stderr


def test_the_two_commands_come_first() -> None:
    assert [script.strip() for script in SCRIPTS[:2]] == ["make demo", "make test"]
