"""`kgroup doctor`: findings with what shows them; only errors make a bad verdict."""

import itertools
import re
import threading

import jsonschema
import pytest

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for
from kgroup.protocol.messages import txn_offset_commit
from kgroup.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest
from kgroup.protocol.subscription import Subscription
from tests.cli.committed import commit_fully

_numbers = itertools.count()


@pytest.fixture
def group(cluster):
    name = f"doctor-{next(_numbers)}"
    cluster.create_topic(name, 2)
    return name


def examined(ran, code=ExitCode.OK):
    assert ran.code == code, ran.err
    jsonschema.validate(ran.document, schema_for("doctor"))
    (told,) = ran.document["data"]["groups"]
    assert told["skipped"] == []
    return told, {finding["code"]: finding for finding in told["findings"]}


def test_a_healthy_group(on_cluster, cluster, group):
    cluster.classic_group(group, group, {"i-0": [0, 1]})
    told, found = examined(on_cluster("doctor", group, "-o", "json"))
    assert (told["healthy"], found) == (True, {})
    text = on_cluster("doctor", group).out
    assert "healthy" in text and f"kgroup blame {group}" in text


def test_partitions_nobody_reads_are_an_error(on_cluster, cluster, group):
    cluster.classic_group(group, group, {"i-0": [0]})
    told, found = examined(on_cluster("doctor", group, "-o", "json"), ExitCode.BAD_VERDICT)
    assert not told["healthy"]
    assert found["KG104"]["severity"] == "error"
    assert "NOT HEALTHY" in on_cluster("doctor", group).out


def test_who_is_away_and_when_it_expires(on_cluster, cluster, group):
    member = cluster.consumer_member(group, group, "s-0")
    cluster.leave_for_now(group, member, "s-0")
    _, found = examined(on_cluster("doctor", group, "-o", "json"))
    (fact,) = found["KG103"]["evidence"]
    assert fact.startswith("s-0 left at ")
    assert "its session ends at " in fact


def test_an_empty_group_and_when_its_offsets_expire(on_cluster, cluster, group):
    commit_fully(cluster, group, group, {0: (0, -1, "")})
    _, found = examined(on_cluster("doctor", group, "-o", "json"))
    assert "offsets.retention.minutes" in found["KG304"]["evidence"][0]


def test_who_a_stuck_rebalance_waits_for(on_cluster, cluster, group):
    """A third member joins, and the two of the generation before do not come: it was healthy, exit code 0."""
    commit_fully(cluster, group, group, {1: (0, -1, "")})
    cluster.classic_group(group, group, {"i-0": [0], "i-1": [1]})
    metadata = Subscription(topics=(group,)).encode(1)
    joining = threading.Thread(target=cluster._join, args=(group, "i-2", "", metadata))
    joining.start()
    while cluster.state(group) == "Stable":
        pass
    told, found = examined(
        on_cluster("doctor", group, "--patience", "1s", "-o", "json"), ExitCode.BAD_VERDICT
    )
    stuck = found["KG112"]
    assert (told["verdict"], told["healthy"], stuck["severity"]) == ("sick", False, "error")
    assert "it waits for one or more of i-0, i-1 to rejoin" in stuck["message"]
    facts = "\n".join(stuck["evidence"])
    assert "generation 2 was complete at" in facts
    assert re.search(r"i-0 \(client \S+\) on 127.0.0.1 has committed nothing, removed by", facts)
    assert re.search(r"i-1 \(client \S+\) on 127.0.0.1 last committed at 2", facts)
    assert "not waited for: i-2 joined since" in facts
    once = on_cluster("doctor", group, "--patience", "0s")
    assert (once.code, "UNKNOWN" in once.out) == (ExitCode.PARTIAL, True)
    removed = on_cluster("remove-members", group, "--instance-id", "i-0,i-1", "--execute", "--yes")
    assert removed.code == ExitCode.OK
    joining.join(300)


def test_offsets_that_a_transaction_leaves_open(on_cluster, cluster, group):
    commit_fully(cluster, group, group, {0: (0, -1, "")})
    ask = cluster.transport.request
    producer = ask(None, InitProducerIdRequest(transactional_id=group, transaction_timeout_ms=60_000))
    who = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    added = ask(None, AddOffsetsToTxnRequest(transactional_id=group, group_id=group, **who), max_version=3)
    part = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=1, committed_offset=0)
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(name=group, partitions=(part,))
    request = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=group, group_id=group, topics=(topic,), **who
    )
    written = ask(None, request, max_version=3)
    assert (added.error_code, written.topics[0].partitions[0].error_code) == (0, 0)
    told, found = examined(
        on_cluster("doctor", group, "--patience", "1s", "-o", "json"), ExitCode.BAD_VERDICT
    )
    held = found["KG309"]
    assert held["message"].startswith(
        f"offsets of partition {group}-1 are held open by a transaction for at least"
    )
    assert any(f"transactional id '{group}'" in fact and "Ongoing since" in fact for fact in held["evidence"])
    assert any(fact.startswith(f"producer {producer.producer_id} wrote") for fact in held["evidence"])


def test_what_may_be_left_out(on_cluster, cluster, group):
    cluster.classic_group(group, group, {"i-0": [0, 1]})
    told = on_cluster("doctor", group, "--without", "history,settings")
    assert (told.code, told.out.splitlines()[0]) == (
        ExitCode.OK,
        "left out of each verdict: history, settings",
    )
    told = on_cluster("doctor", group, "--without", "history", "-o", "json")
    assert told.document["data"]["left_out"] == ["history"]
    assert on_cluster("doctor", group, "--without", "spleen").code == ExitCode.USAGE
    assert on_cluster("doctor").code == on_cluster("doctor", group, "--all-groups").code == ExitCode.USAGE


def test_all_groups(on_cluster, cluster, group):
    cluster.classic_group(group, group, {"i-0": [0]})
    ran = on_cluster("doctor", "--all-groups", "--patience", "0s", "-o", "json")
    assert ran.code == ExitCode.BAD_VERDICT
    assert group in {told["group_id"] for told in ran.document["data"]["groups"]}


def test_an_instance_id_that_changes_hands(on_cluster, cluster, group):
    from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
    from kgroup.protocol.subscription import Subscription

    cluster.classic_group(group, group, {"i-0": [0, 1]})
    for _ in range(3):
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            group_instance_id="i-0",
            protocol_type="consumer",
            protocols=(
                JoinGroupRequestProtocol(name="range", metadata=Subscription(topics=(group,)).encode(1)),
            ),
        )
        assert cluster.transport.request(None, request).error_code == 0
    _, found = examined(on_cluster("doctor", group, "-o", "json"))
    assert "i-0 was taken over 3 times" in found["KG110"]["message"]


def test_several_groups_and_unknown_ones(on_cluster, cluster, group):
    commit_fully(cluster, group, group, {0: (0, -1, "")})
    assert on_cluster("doctor", group, "never-was").code == ExitCode.PARTIAL
    assert on_cluster("doctor", "never-was").code == ExitCode.NOT_FOUND


def test_its_codes_are_explained(kgroup):
    out = kgroup("explain", "KG308").out
    assert "kgroup doctor GROUP" in out


def test_of_several_groups_the_sick_come_first_and_a_healthy_one_is_one_line(on_cluster, cluster, group):
    for name, owned in (("a-healthy", [0, 1]), ("b-sick", [0]), ("c-healthy", [0, 1])):
        cluster.classic_group(f"{group}-{name}", group, {"i-0": owned})
    ran = on_cluster("doctor", f"{group}-*", "--color", "always")
    assert ran.code == ExitCode.BAD_VERDICT
    lines = ran.out.splitlines()
    assert lines[0] == f"\x1b[31m\x1b[1m{group}-b-sick   classic   Stable   NOT HEALTHY\x1b[0m"
    assert any(line.startswith("\x1b[31m!! KG104") for line in lines)
    healthy = [
        f"\x1b[32m{group}-{name}   classic   Stable   healthy\x1b[0m" for name in ("a-healthy", "c-healthy")
    ]
    assert lines[-3:] == ["", *healthy]
    groups = on_cluster("doctor", f"{group}-*", "-o", "json").document["data"]["groups"]
    assert [each["verdict"] for each in groups] == ["healthy", "sick", "healthy"]


def test_top_bounds_the_findings_of_doctor(on_cluster, cluster, group):
    cluster.commit(group, group, {0: 0, 1: 9})
    every = [line for line in on_cluster("doctor", group).out.splitlines() if line[:2] in ("!!", "! ", "· ")]
    assert len(every) > 1
    out = on_cluster("doctor", group, "--top", "1").out
    assert every[0] in out and every[1] not in out
    assert f"and {len(every) - 1} more finding" in out


@pytest.mark.parametrize("command", ["doctor", "describe", "lag", "list"])
def test_no_headers_leaves_the_rows_alone(on_cluster, cluster, group, command):
    """Title lines stood between them: a script had to know which lines are rows."""
    cluster.commit(group, group, {0: 0, 1: 9})
    names = (f"{group}*",) if command == "list" else (group,)
    more = ("--section", "summary,offsets,findings") if command == "describe" else ()
    rows = on_cluster(command, *names, *more, "-o", "csv", "--no-headers").out.splitlines()
    lines = on_cluster(command, *names, *more, "--no-headers").out.splitlines()
    assert len(lines) == len(rows) > 0
    assert all(group in line for line in lines)
