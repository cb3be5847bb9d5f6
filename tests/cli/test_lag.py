"""`kgroup lag`: per partition and topic, in time, with a verdict; what cannot be read is said, not fatal."""

import itertools
import re
import time

import jsonschema
import pytest
from confluent_kafka import Producer

from kgroup.admin.read.lag_report import GroupLag
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for
from kgroup.cli.views.lagging import headline
from tests.cli.logs import append, delete_topic

_numbers = itertools.count()


@pytest.fixture
def topic(cluster):
    name = f"lag-{next(_numbers)}"
    cluster.create_topic(name, 2)
    return name


def document(ran, code=ExitCode.OK):
    assert ran.code == code, ran.err
    jsonschema.validate(ran.document, schema_for("lag"))
    return ran.document["data"]


def test_partition_by_partition_with_the_instance_that_reads_it(on_cluster, cluster, topic):
    append(cluster, topic, 0, ["a", "b", "c"])
    cluster.commit(topic, topic, {0: 1, 1: 0})
    cluster.classic_group(topic, topic, {"i-0": [0], "i-1": [1]})
    (group,) = document(on_cluster("lag", topic, "-o", "json"))["groups"]
    assert group["total_lag"] == 2
    assert [(r["partition"], r["lag"], r["instance_id"]) for r in group["offsets"]] == [
        (0, 2, "i-0"),
        (1, 0, "i-1"),
    ]
    out = on_cluster("lag", topic).out
    assert out.startswith(f"{topic}   Stable   lag 2\n")
    assert "i-0" in out


def test_by_topic(on_cluster, cluster, topic):
    append(cluster, topic, 0, ["a"])
    append(cluster, topic, 1, ["b", "c"])
    cluster.commit(topic, topic, {0: 0, 1: 0})
    ran = on_cluster("lag", topic, "--by-topic", "-o", "csv")
    assert ran.out == f"group_id,topic,partitions,lag\n{topic},{topic},2,3\n"


def test_time_lag_is_the_age_of_the_oldest_unread_record(on_cluster, cluster, topic):
    now = int(time.time() * 1000)
    append(cluster, topic, 0, ["a", "b", "c"], timestamps=[now - 7_200_000, now - 3_600_000, now])
    cluster.commit(topic, topic, {0: 1, 1: 0})
    (group,) = document(on_cluster("lag", topic, "--time", "-o", "json"))["groups"]
    assert [row["time_lag_ms"] for row in group["offsets"]][1] == 0
    assert 3_600_000 <= group["max_time_lag_ms"] < 3_700_000
    assert "oldest unread 1h" in on_cluster("lag", topic, "--time").out


def test_time_lag_looks_behind_the_first_record_of_a_batch_and_past_transactions(on_cluster, cluster, topic):
    now = int(time.time() * 1000)
    append(cluster, topic, 0, ["old"] * 50, timestamps=[now - 9_000_000] * 49 + [now - 1_000])
    cluster.commit(topic, topic, {0: 49})
    (group,) = document(on_cluster("lag", topic, "--time", "-o", "json"))["groups"]
    assert 1_000 <= group["max_time_lag_ms"] < 600_000


def test_an_open_transaction_stops_readers_of_committed_records(on_cluster, cluster, topic):
    """The end of the log said 3 more records, and nothing said why none of them arrived."""
    append(cluster, topic, 0, ["a"])
    cluster.commit(topic, topic, {0: 1, 1: 0})
    assert "STABLE" not in on_cluster("lag", topic).out
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(60)
    append(cluster, topic, 0, ["b", "c"])
    row, whole = document(on_cluster("lag", topic, "-o", "json"))["groups"][0]["offsets"]
    assert (row["last_stable_offset"], row["log_end_offset"]) == (1, 4)
    assert [by["start_offset"] for by in row["held_open_by"]] == [1]
    assert (whole["last_stable_offset"], whole["held_open_by"]) == (None, None)
    (by,) = row["held_open_by"]
    line = f"{topic}-0: readers of committed records stop at 1 of 4, at an open transaction: producer "
    for argv in (("lag", topic), ("describe", topic, "--section", "summary,offsets")):
        out = on_cluster(*argv).out
        assert f"{line}{by['producer_id']}, epoch 0, last record 20" in out
        assert re.search(rf"{topic} +0 +1 +4 +1 +3\b", out), out
    described = on_cluster("describe", topic, "-o", "json").group(topic)["offsets"][0]
    assert described["held_open_by"] == row["held_open_by"]
    producer.abort_transaction(60)
    assert "open transaction" not in on_cluster("lag", topic).out


@pytest.mark.parametrize(
    ("limit", "code"),
    [("2", ExitCode.BAD_VERDICT), ("3", ExitCode.OK), ("1h", ExitCode.BAD_VERDICT), ("3h", ExitCode.OK)],
)
def test_fail_above(on_cluster, cluster, topic, limit, code):
    two_hours_ago = int(time.time() * 1000) - 7_200_000
    append(cluster, topic, 0, ["a", "b", "c"], timestamps=[two_hours_ago] * 3)
    cluster.commit(topic, topic, {0: 0})
    ran = on_cluster("lag", topic, "--fail-above", limit, "-o", "json")
    data = document(ran, code)
    assert data["verdict"]["over"] == ([topic] if code else [])
    assert ran.document["status"] == "ok"


FIVE_MINUTES_MS = 300_000


@pytest.mark.parametrize(
    ("skew_ms", "bounded", "codes"),
    [
        (FIVE_MINUTES_MS, True, [ExitCode.BAD_VERDICT, ExitCode.PARTIAL, ExitCode.OK]),
        (-FIVE_MINUTES_MS, False, [ExitCode.BAD_VERDICT, ExitCode.PARTIAL, ExitCode.PARTIAL]),
    ],
    ids=["ahead", "behind"],
)
def test_a_clock_that_is_wrong_decides_no_lag_in_time(
    on_cluster, cluster, topic, monkeypatch, skew_ms, bounded, codes
):
    """Five minutes ahead, 18 s were 5m 18s, and over a limit of 5m; behind, they were 0 s and passed."""
    right_ns = time.time_ns
    written = right_ns() // 1_000_000 - 18_000
    append(cluster, topic, 0, ["a", "b", "c"], timestamps=[written] * 3)
    append(cluster, topic, 1, ["a"], timestamps=[written])
    cluster.commit(topic, topic, {0: 0, 1: 0})
    monkeypatch.setattr(time, "time_ns", lambda: right_ns() + skew_ms * 1_000_000)
    ran = on_cluster("lag", topic, "--time", "-o", "json")
    (group,) = document(ran)["groups"]
    true_ms = right_ns() // 1_000_000 - written
    assert group["max_time_lag_ms"] is None
    for part in (group, *group["offsets"]):
        assert 8_000 <= part["time_lag_at_least_ms"] <= true_ms
        most = part["time_lag_at_most_ms"]
        assert (true_ms <= most) if bounded else most is None
    assert {row["error_code"] for row in group["offsets"]} == {"CLOCK_UNSURE"}
    assert ran.err.count("clock is") == 1
    limits = [on_cluster("lag", topic, "--fail-above", limit) for limit in ("10s", "5m", "1h")]
    assert [each.code for each in limits] == codes
    assert "hint: set the clock right" in limits[1].err


@pytest.fixture
def half_known(cluster, topic):
    """A live reader of two partitions, three records in each, which has committed partition 0 alone."""
    for partition in range(2):
        append(cluster, topic, partition, ["a", "b", "c"])
    cluster.commit(topic, topic, {0: 3})
    cluster.classic_group(topic, topic, {"i-0": [0, 1]})
    return topic


def test_a_part_never_committed_makes_the_total_unknown(on_cluster, half_known):
    (group,) = document(on_cluster("lag", half_known, "-o", "json"))["groups"]
    assert (group["total_lag"], group["lag_at_least"], group["unknown_partitions"]) == (None, 0, 1)
    assert "earliest would read 3 records (0 to 3), latest none" in group["offsets"][1]["reason"]
    assert (group["topics"][0]["lag"], group["topics"][0]["unknown_partitions"]) == (None, 1)
    assert "lag at least 0 (1 of 2 partitions unknown)" in on_cluster("lag", half_known).out
    described = on_cluster("describe", half_known, "-o", "json")
    assert described.document["data"]["groups"][0]["total_lag"] is None
    assert "lag at least 0 (1 of 2 partitions unknown)" in on_cluster("describe", half_known).out


@pytest.mark.parametrize(
    "argv",
    [
        ("describe", "--by", "topic"),
        ("lag",),
        ("lag", "--by-topic"),
    ],
    ids=" ".join,
)
def test_an_unknown_lag_looks_unknown_in_every_row(on_cluster, half_known, argv):
    """A row showed "-", which is none, where its member showed "?"."""
    command, *options = argv
    ran = on_cluster(command, half_known, *options, "-o", "csv", "--columns", "topic,lag")
    assert f"{half_known},?" in ran.out.splitlines()


def test_an_unknown_age_looks_unknown_and_has_a_reason(on_cluster, cluster, topic):
    append(cluster, topic, 0, ["a"], timestamps=[-1])
    cluster.commit(topic, topic, {0: 0, 1: 0})
    ran = on_cluster("lag", topic, "--time", "-o", "csv", "--columns", "partition,time_lag")
    assert ran.out.splitlines()[1:] == ["0,?", "1,0s"]
    assert "the record there has no time" in ran.err


@pytest.mark.parametrize("limit", ["10", "5m"])
def test_no_verdict_is_a_bad_one(on_cluster, half_known, limit):
    ran = on_cluster("lag", half_known, "--fail-above", limit, "-o", "json")
    verdict = document(ran, ExitCode.BAD_VERDICT)["verdict"]
    assert verdict["over"] == []
    assert [(u["group_id"], u["never_committed"]) for u in verdict["unknown"]] == [(half_known, True)]
    assert "never committed: auto.offset.reset decides" in ran.err


def test_partitions_that_nobody_reads_yet_are_part_of_the_total(on_cluster, cluster):
    """Added to a subscribed topic and not yet assigned: lag said 0, exit code 0; wait likewise."""
    topic = f"lag-{next(_numbers)}"
    cluster.create_topic(topic, 3)
    cluster.commit(topic, topic, {0: 0, 1: 0})
    cluster.classic_group(topic, topic, {"i-0": [0, 1]})
    empty = document(on_cluster("lag", topic, "--fail-above", "0", "-o", "json"))
    assert [row["lag"] for row in empty["groups"][0]["offsets"]] == [0, 0, 0]
    append(cluster, topic, 2, ["a", "b", "c"])
    ran = on_cluster("lag", topic, "--fail-above", "10", "-o", "json")
    data = document(ran, ExitCode.BAD_VERDICT)
    (group,) = data["groups"]
    assert (group["total_lag"], group["lag_at_least"], group["unknown_partitions"]) == (None, 0, 1)
    assert "earliest would read 3 records (0 to 3), latest none" in group["offsets"][2]["reason"]
    assert data["verdict"]["unknown"][0]["never_committed"]
    assert on_cluster("wait", topic, "--for", "lag=0", "--stop-after", "10ms").code == ExitCode.UNREACHABLE


def test_a_commit_beyond_the_end_is_no_lag_of_less_than_zero(on_cluster, cluster, topic):
    """The row showed -4, the total 0, and --fail-above and wait passed."""
    append(cluster, topic, 0, ["a"])
    cluster.commit(topic, topic, {0: 5, 1: 0})
    cluster.classic_group(topic, topic, {"i-0": [0, 1]})
    data = document(on_cluster("lag", topic, "--fail-above", "10", "-o", "json"), ExitCode.BAD_VERDICT)
    (group,) = data["groups"]
    assert (group["total_lag"], group["offsets"][0]["lag"]) == (None, None)
    assert group["offsets"][0]["reason"] == "committed offset 5 is 4 beyond the end 1 of the log"
    (unknown,) = data["verdict"]["unknown"]
    assert (unknown["never_committed"], unknown["beyond_end"]) == (False, True)
    assert on_cluster("wait", topic, "--for", "lag=0", "--stop-after", "10ms").code == ExitCode.UNREACHABLE


def test_what_is_known_to_be_over_is_over(on_cluster, cluster, half_known):
    append(cluster, half_known, 0, ["d", "e"])
    data = document(on_cluster("lag", half_known, "--fail-above", "1", "-o", "json"), ExitCode.BAD_VERDICT)
    assert (data["verdict"]["over"], data["verdict"]["unknown"]) == ([half_known], [])


def test_an_empty_log_never_committed_is_no_lag(on_cluster, cluster, topic):
    append(cluster, topic, 0, ["a"])
    cluster.commit(topic, topic, {0: 1})
    cluster.classic_group(topic, topic, {"i-0": [0, 1]})
    data = document(on_cluster("lag", topic, "--fail-above", "0", "-o", "json"))
    assert data["groups"][0]["total_lag"] == 0


def test_a_group_that_has_committed_nothing_gets_no_good_verdict(on_cluster, cluster, topic):
    append(cluster, topic, 0, ["a"])
    cluster.classic_group(topic, topic, {"i-0": [0, 1]})
    assert on_cluster("lag", topic, "--fail-above", "10").code == ExitCode.BAD_VERDICT
    assert on_cluster("wait", topic, "--for", "lag=0", "--stop-after", "10ms").code == ExitCode.UNREACHABLE


def test_a_deleted_topic_is_said_and_not_fatal(on_cluster, cluster, topic):
    cluster.classic_group(topic, topic, {"i-0": [0, 1]})
    delete_topic(cluster, topic)
    ran = on_cluster("lag", topic, "-o", "json")
    (group,) = document(ran)["groups"]
    assert group["total_lag"] is None
    assert all("does not exist" in row["error"] for row in group["offsets"])
    assert f"{topic}-0 left out" in ran.err


def test_an_unknown_group_beside_a_known_one(on_cluster, cluster, topic):
    cluster.commit(topic, topic, {0: 0})
    ran = on_cluster("lag", topic, "never-was")
    assert ran.code == ExitCode.PARTIAL
    assert on_cluster("lag", "never-was").code == ExitCode.NOT_FOUND
    assert on_cluster("lag", "never-was-*").code == ExitCode.NOT_FOUND


def test_rates(on_cluster, cluster, topic):
    cluster.commit(topic, topic, {0: 0})
    append(cluster, topic, 0, ["a"])
    (group,) = document(on_cluster("lag", topic, "--rate", "10ms", "-o", "json"))["groups"]
    assert (group["consumed_per_s"], group["produced_per_s"], group["catches_up_in_s"]) == (0.0, 0.0, None)
    assert "does not catch up" in on_cluster("lag", topic, "--rate", "10ms").out


def test_globs(on_cluster, cluster, topic):
    for n in range(2):
        cluster.commit(f"{topic}-g{n}", topic, {0: 0})
    ran = on_cluster("lag", f"{topic}-g*", "-o", "name")
    assert ran.out.split() == [f"{topic}-g0", f"{topic}-g1"]


@pytest.mark.parametrize("argv", [["--rate", "0"], ["--fail-above", "soon"], ["--rate", "x"]])
def test_wrong_usage(on_cluster, argv):
    assert on_cluster("lag", "g", *argv).code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("read", "written", "left", "text"),
    [
        (100.0, 50.0, 200.0, "caught up in 3m 20s"),
        (100.0, 99.5, None, "as fast as records arrive"),
        (99.5, 100.0, None, "as fast as records arrive"),
        (50.0, 100.0, None, "does not catch up"),
        (0.0, 0.0, None, "does not catch up"),
    ],
)
def test_no_time_of_catching_up_comes_out_of_noise(read, written, left, text):
    """Two polls differ by chance: half a record per second made "caught up in 5h 33m"."""
    group = GroupLag("g", "classic", "Stable", 10_000, None, read, written, (), lag_at_least=10_000)
    assert group.catches_up_in_s == left
    assert headline(group).endswith(text)
