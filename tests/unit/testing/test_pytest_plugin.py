"""The fixtures of pytest as a project of a user has them: in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from tests import own_home

ROOT = Path(__file__).parents[3]
FAILING = """
import pytest
from confluent_kafka import Consumer


def read_one(kafka, group, topic):
    consumer = Consumer({**kafka.client(), "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    assert consumer.poll(120).value() == b"a"
    consumer.close()


def test_before(kafka):
    kafka.create_topic("early", 1)
    kafka.produce("early", ["a"])
    read_one(kafka, "group-of-another-test", "early")


def test_shared(kafka, unique_name):
    topic = unique_name("orders")
    kafka.create_topic(topic, 1)
    kafka.produce(topic, ["a"])
    read_one(kafka, "pay-shared", topic)
    assert kafka.describe("pay-shared").member_count == 1


@pytest.mark.kafka_cluster(topics={"orders": 3}, brokers=2)
def test_fresh(kafka_fresh):
    assert len(kafka_fresh.brokers) == 2
    kafka_fresh.produce("orders", ["a"])
    read_one(kafka_fresh, "pay-fresh", "orders")
    kafka_fresh.delete_group("pay-fresh")
    kafka_fresh.describe("pay-fresh")


def test_untouched(kafka_fresh):
    raise ValueError("of another kind")
"""
PASSING = """
import pytest

names = set()


@pytest.mark.parametrize("number", range(6))
def test_names(kafka, unique_name, number):
    for name in (unique_name("orders"), unique_name("orders")):
        kafka.create_topic(name, 1)
        assert name.startswith("orders-test_names-") and len(kafka.topics()) > len(names)
        names.add(name)


def test_fresh(kafka, kafka_fresh):
    assert kafka_fresh.bootstrap != kafka.bootstrap
    assert {topic.name for topic in kafka_fresh.topics()} == {"__consumer_offsets"}
"""
MISUSED = """
import pytest


@pytest.mark.kafka_cluster(brokers=2)
def test_shared(kafka):
    pass


@pytest.mark.kafka_cluster({"orders": 3})
def test_position(kafka_fresh):
    pass


@pytest.mark.kafka_cluster(topics="orders")
def test_topics(kafka_fresh):
    pass
"""


def run(folder: Path, text: str, *argv: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text, "utf-8")
    plugin = ("-p", "kgroup.pytest_plugin", "-p", "no:cacheprovider", "-W", "error", "--strict-markers")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, *argv],
        cwd=folder,
        env=own_home.environment(folder),
        capture_output=True,
        text=True,
        timeout=580,
    )


def section(report: str, test: str) -> str:
    """What stands behind the traceback of a test, up to that of the next."""
    return report.partition(f" {test} __")[2].partition("\n____")[0].partition("---- groups of ")[2]


def test_a_failure_shows_what_happened_to_the_groups_of_that_test(tmp_path: Path) -> None:
    done = run(tmp_path, FAILING)
    assert "3 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    shared = section(done.stdout, "test_shared")
    assert shared.startswith("kafka -") and "group-of-another-test" not in shared
    for words in ("pay-shared: ", "member-joined: ", "rebalance-completed: ", "because: ", "group-emptied"):
        assert words in shared, shared
    fresh = section(done.stdout, "test_fresh")
    assert "pay-fresh: " in fresh and "group-deleted" in fresh, fresh
    assert "no group has changed" in section(done.stdout, "test_untouched")


def test_tests_in_several_processes_do_not_meet(tmp_path: Path) -> None:
    done = run(tmp_path, PASSING, "-n", "2")
    assert done.returncode == 0 and "7 passed" in done.stdout, done.stdout + done.stderr


def test_a_marker_that_makes_no_sense_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, MISUSED)
    assert "3 errors" in done.stdout, done.stdout + done.stderr
    for said in (
        "the cluster of `kafka` is shared",
        "takes arguments by name",
        "topics is 'orders'",
    ):
        assert said in done.stdout


def test_the_plugin_is_found_and_imports_nothing_before_it_is_used(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {*project["entry-points"]["pytest11"].values()} == {"kgroup.pytest_plugin"}
    text = """
import sys

def test_modules():
    ours = {name for name in sys.modules if name.startswith("kgroup")}
    assert ours == {"kgroup", "kgroup.pytest_plugin", "kgroup.version"}
"""
    done = run(tmp_path, text)
    assert done.returncode == 0, done.stdout


FAULTS = """
import pytest


def test_unused(kafka):
    kafka.fault(keys=["Heartbeat"], group="nobody", error="UNKNOWN_MEMBER_ID", must_fire=True)


def test_they_end_with_the_test(kafka):
    assert kafka.faults() == ()


def test_unused_by_choice(kafka_fresh):
    kafka_fresh.fault(keys=["Heartbeat"], group="nobody", error="UNKNOWN_MEMBER_ID")
"""


def test_a_rule_that_must_fire_fails_the_test_that_set_it(tmp_path: Path) -> None:
    done = run(tmp_path, FAULTS)
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "FaultUnused: no request met the rule" in done.stdout
