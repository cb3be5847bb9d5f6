"""What a user of the package sees: its types, its page, what an import costs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import own_home

ROOT = Path(__file__).parents[3]
BLOCKS = [
    block
    for page in ("docs/testing.md", "README.md")
    for block in re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)
]
PROJECT = """
import asyncio
from kgroup import connect
from kgroup.api import Event, GroupDescription, Kafka, Kind, Member, Record, TopicPartition
from kgroup.errors import GroupNotFound, Incomplete, KgroupError
from kgroup.testing import Cluster


def joins(kafka: Kafka, group: str) -> list[str | None]:
    events: tuple[Event, ...] = kafka.history(group)
    return [event.member_id for event in events if event.kind is Kind.MEMBER_JOINED]


def members(kafka: Kafka, group: str) -> tuple[Member, ...]:
    try:
        found: GroupDescription = kafka.describe(group)
    except GroupNotFound as error:
        raise SystemExit(error.hint) from None
    return found.members or ()


async def main() -> None:
    async with Cluster(topics={"orders": 6}, users={"alice": "secret"}) as kafka:
        where: TopicPartition = kafka.produce("orders", ["a", ("k", b"v")])[0]
        records: tuple[Record, ...] = kafka.read("orders", partition=where.partition)
        with connect(kafka.bootstrap, kafka.client("alice")) as alice:
            print(joins(alice, "pay"), records[0].value)


with Cluster(["orders"], brokers=2, settings={"num.partitions": 3}) as kafka:
    print(kafka.bootstrap.upper(), kafka.lag("pay").total_lag, kafka.wait_for("pay", "stable").held)
asyncio.run(main())
"""
WRONG = """
from kgroup.testing import Cluster

with Cluster(topics={"orders": "6"}) as kafka:
    kafka.describe(7)
    kafka.history("pay")[0].kinds
"""


@pytest.mark.timeout(1200)
def test_a_project_of_a_user_passes_mypy_strict_and_its_mistakes_do_not(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(PROJECT, "utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, "utf-8")
    # As an installed package is looked up, where only its types are published: none of its errors count.
    argv = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache"]
    done = subprocess.run(
        [*argv, "right.py", "wrong.py"], cwd=tmp_path, capture_output=True, text=True, timeout=580
    )
    assert re.findall(r"^(\w+).py:\d+: error: .*\[([\w-]+)\]", done.stdout, re.M) == [
        ("wrong", "dict-item"),
        ("wrong", "arg-type"),
        ("wrong", "attr-defined"),
    ], done.stdout + done.stderr


@pytest.mark.parametrize("block", BLOCKS, ids=[block.splitlines()[-1].strip()[:40] for block in BLOCKS])
def test_the_examples_of_the_pages_run(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=tmp_path,
        env=own_home.environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_import_brings_no_client_no_test_tool_and_no_brokers() -> None:
    heavy = (
        "confluent_kafka",
        "pytest",
        "typer",
        "rich",
        "httpx",
        "yaml",
        "kgroup.coordinator",
        "kgroup.runtime",
    )
    code = (
        "import sys, kgroup; ours = {m for m in sys.modules if m.startswith('kgroup')}; "
        "assert ours == {'kgroup', 'kgroup.version'}; "
        f"import kgroup.testing; print(*(m for m in {heavy!r} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr
