"""`kgroup member run --legacy`: a consumer of the ZooKeeper era that joins, reads and leaves."""

import json
import socket

import pytest
from confluent_kafka import Producer

from kgroup.cli.exit_codes import ExitCode
from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served_with_coordinators


@pytest.fixture(scope="module")
def served():
    with served_with_coordinators(Cluster(None, brokers=2, offsets_partitions=1)) as where:
        bootstrap = where[0]
        client = Client(bootstrap)
        client.create_topic("orders", 3)
        client.close()
        producer = Producer({"bootstrap.servers": bootstrap})
        for number in range(30):
            producer.produce("orders", b"x", partition=number % 3)
        assert producer.flush(20) == 0
        yield where


def _events(kgroup, served, group, *more):
    bootstrap, legacy, _ = served
    ran = kgroup(
        *("member", "run", group, "--topic", "orders", "--legacy", legacy, "-b", bootstrap),
        *("--session-timeout", "1500ms", "-o", "ndjson", *more),
    )
    return ran, [json.loads(line) for line in ran.out.splitlines()]


def test_joins_reads_commits_and_leaves(kgroup, served):
    """LC-01, LC-78: the second one begins where the first has stopped, for its positions are in the tree."""
    # Three seconds are enough unless the machine is busy; each try has a group of its own.
    for seconds in (3, 30, 120):
        ran, events = _events(kgroup, served, group := f"g-{seconds}", "--stop-after", f"{seconds}s")
        assert ran.code == 0, ran.err
        if sum(e["event"] == "read" for e in events) == 3:
            break
    assert [e["event"] for e in events[:1] + events[-1:]] == ["assigned", "left"]
    given = [[p["partition"] for p in e["partitions"]] for e in events if e["event"] == "assigned"]
    assert given[-1] == [0, 1, 2]
    reads = {
        e["partitions"][0]["partition"]: (e["records"], e["position"]) for e in events if e["event"] == "read"
    }
    assert reads == dict.fromkeys(range(3), (10, 10))
    tree = served[2].tree
    nodes = dict(tree.walk(f"/consumers/{group}/offsets/orders"))
    assert [node.data for path, node in nodes.items() if path[-1].isdigit()] == [b"10"] * 3
    again, later = _events(kgroup, served, group, "--stop-after", f"{seconds}s")
    assert again.code == 0, again.err
    assert later[0]["event"] == "assigned"
    assert "read" not in [e["event"] for e in later]


def test_nobody_coordinates_there(kgroup, served):
    """LC-77: it looks for ever, and having found nothing at its end is no success."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    ran, events = _events(kgroup, (served[0], f"127.0.0.1:{port}", None), "g", "--stop-after", "1s")
    assert ran.code == ExitCode.UNREACHABLE
    assert "none of 1 brokers can be asked" in ran.err
    assert [e["event"] for e in events] == ["left"]


@pytest.mark.parametrize(
    "argv",
    [
        ("--legacy", "h:1", "--instance-id", "i"),
        ("--legacy", "h:1", "--protocol", "consumer"),
        ("--legacy", "h:1", "--session-timeout", "10ms"),
        ("--legacy", "h:x"),
        ("--session-timeout", "5s"),
    ],
)
def test_wrong_usage(on_cluster, argv):
    assert on_cluster("member", "run", "g", "--topic", "orders", *argv).code == ExitCode.USAGE


@pytest.mark.parametrize("argv", [("--legacy-port", "0"), ("--zookeeper", "h:1"), ("--legacy-set", "a=1")])
def test_serve_refuses_what_it_would_not_heed(kgroup, argv):
    ran = kgroup("serve", "--memory", "--port", "0", *argv)
    assert ran.code == ExitCode.USAGE
    assert "give --legacy, too" in ran.err


@pytest.mark.parametrize("pair", ["pings=3", "queue_size", "max_failed_pings=0"])
def test_serve_refuses_settings_there_are_not(kgroup, pair):
    assert kgroup("serve", "--memory", "--legacy", "--legacy-set", pair).code == ExitCode.USAGE


def test_serve_with_an_ensemble_that_does_not_answer(kgroup):
    """It would coordinate nothing, and say nothing of it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    where = ("--zookeeper", f"127.0.0.1:{port}/k", "--timeout", "2s")
    ran = kgroup("serve", "--memory", "--port", "0", "--legacy", *where)
    assert ran.code == ExitCode.UNREACHABLE
    assert "cannot be reached" in ran.err
    assert "serving on" not in ran.out
