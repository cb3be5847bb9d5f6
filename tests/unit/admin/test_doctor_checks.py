"""The check-up: healthy is what was looked at and found so, stuck what a second look shows unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kgroup.admin.diagnose.checks import diagnoses
from kgroup.admin.diagnose.doctor import Checkup, examine_all
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.group_records import Recorded
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import GroupDescription
from kgroup.admin.read.describe import describe, groups_only
from kgroup.admin.statuses import LOOKS
from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of
from kgroup.errors import ErrorCode
from kgroup.history.fold.events import Kind
from kgroup.protocol import group_records as gr
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages import fetch as f
from kgroup.protocol.messages import list_offsets as lo
from kgroup.protocol.messages import offset_fetch as of
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kgroup.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from kgroup.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kgroup.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kgroup.protocol.messages.list_transactions import TransactionState as Listed
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member, consumer_group, consumer_member
from tests.unit.history.events import event

STABLE = classic_group("g", classic_member("m1", "orders:0,1", "a"))
WAITING = classic_group("g", dg.DescribedGroupMember(member_id="m1"), state="PreparingRebalance")
READ = {"orders:0": 4, "orders:1": 4}


def examine(cluster: ClusterView, group_id: str, **options: Any) -> Checkup:
    """The check-up of one group, which can be described."""
    found = examine_all(cluster, [group_id], **options)
    assert found.errors == ()
    (checkup,) = found.checkups
    return checkup


def cluster(committed: Mapping[str, int] = READ, group: dg.DescribedGroup = STABLE) -> FakeCluster:
    """A group on a cluster whose logs are as long as what is committed by default, and empty offsets logs."""
    fake = FakeCluster(topics={"orders": 2, OFFSETS_TOPIC: 4})
    groups = Groups(fake).add(group)
    groups.committed["g"] = dict(committed)
    groups.ends = {f"orders:{p}": 4 for p in range(2)} | {f"{OFFSETS_TOPIC}:{p}": 0 for p in range(4)}
    fake.on(DescribeConfigsRequest, lambda node, request: DescribeConfigsResponse())
    fake.on(ListTransactionsRequest, lambda node, request: ListTransactionsResponse())
    fake.on(DescribeProducersRequest, lambda node, request: DescribeProducersResponse())
    return remembers(fake, _nothing)


def groups_of(fake: FakeCluster) -> Groups:
    """What this cluster's brokers know."""
    known = fake.handlers[lo.ListOffsetsRequest].__self__  # type: ignore[union-attr]
    assert isinstance(known, Groups)
    return known


def remembers(fake: FakeCluster, history: Callable[[f.FetchRequest], f.FetchResponse]) -> FakeCluster:
    """Let the offsets topic answer so; other logs have the records that the groups' cluster knows."""
    known = groups_of(fake)

    def read(node: int, request: f.FetchRequest) -> object:
        if request.topics[0].topic == OFFSETS_TOPIC:
            return history(request)
        return known._records(node, request)

    return fake.on(f.FetchRequest, read)  # type: ignore[arg-type]


def _nothing(request: f.FetchRequest, code: ErrorCode = ErrorCode.NONE) -> f.FetchResponse:
    partitions = tuple(
        f.PartitionData(partition_index=p.partition, error_code=code, high_watermark=0)
        for p in request.topics[0].partitions
    )
    answer = f.FetchableTopicResponse(topic=OFFSETS_TOPIC, partitions=partitions)
    return f.FetchResponse(responses=(answer,))


def codes(found: Checkup) -> set[str]:
    return {each.code for each in found.findings}


@pytest.mark.parametrize(
    ("group", "verdict"), [(STABLE, "healthy"), (classic_group("g", state="Empty"), "sick")]
)
def test_records_deleted_before_they_were_read(group: dg.DescribedGroup, verdict: str) -> None:
    """The log is empty. A reader that lives may have read them: there was no later record to commit."""
    fake = cluster({"orders:0": 2, "orders:1": 4}, group)
    groups_of(fake).starts = {"orders:0": 4}
    found = examine(fake.cluster(), "g", left_out=["settings"])
    (diagnosis,) = [each for each in found.findings if each.code == "KG308"]
    assert diagnosis.evidence[0].startswith("orders-0: 2 records, from 2 to 4: deleted")
    assert (found.verdict, diagnosis.severity) == (verdict, "warn" if verdict == "healthy" else "error")


def test_all_looked_at_and_nothing_found() -> None:
    found = examine(cluster().cluster(), "g")
    assert (found.verdict, found.unseen, found.findings) == ("healthy", (), ())


def test_history_that_may_not_be_read_makes_no_healthy_group() -> None:
    """It said healthy, exit code 0."""
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    fake = remembers(cluster(), lambda request: _nothing(request, denied))
    found = examine(fake.cluster(), "g")
    assert (found.verdict, found.healthy) == ("unknown", None)
    assert [(each.look, each.code) for each in found.unseen] == [("history", "TOPIC_AUTHORIZATION_FAILED")]
    assert examine(fake.cluster(), "g", left_out=["history"]).verdict == "healthy"


def test_settings_are_asked_for_where_they_matter() -> None:
    denied = DescribeConfigsResult(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    empty = classic_group("g", state="Empty")
    for group, verdict in ((STABLE, "healthy"), (empty, "unknown")):
        fake = cluster(group=group)
        fake.on(DescribeConfigsRequest, lambda node, request: DescribeConfigsResponse(results=(denied,)))
        assert examine(fake.cluster(), "g").verdict == verdict
        assert examine(fake.cluster(), "g", left_out=["settings"]).verdict == "healthy"


def test_a_retention_that_is_not_told_makes_no_healthy_group() -> None:
    """Nobody could say whether the offsets expire soon, and nobody said so."""
    fake = cluster(group=classic_group("g", state="Empty"))
    fake.on(
        DescribeConfigsRequest,
        lambda node, request: DescribeConfigsResponse(results=(DescribeConfigsResult(),)),
    )
    found = examine(fake.cluster(), "g")
    assert (found.verdict, [(u.look, u.code) for u in found.unseen]) == (
        "unknown",
        [("offsets.retention.minutes", "NOT_TOLD")],
    )


def test_offsets_that_may_not_be_read_make_no_healthy_group() -> None:
    def deny(node: int, request: of.OffsetFetchRequest) -> of.OffsetFetchResponse:
        refused = of.OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return of.OffsetFetchResponse(groups=(refused,))

    found = examine(cluster().on(of.OffsetFetchRequest, deny).cluster(), "g", left_out=LOOKS)
    assert found.verdict == "unknown"
    assert "GROUP_AUTHORIZATION_FAILED" in {each.code for each in found.unseen}


def test_a_rebalance_that_goes_on_is_stuck() -> None:
    found = examine(cluster(group=WAITING).cluster(), "g", patience_s=10)
    (stuck,) = [each for each in found.findings if each.code == "KG112"]
    assert (found.verdict, stuck.severity) == ("sick", "error")
    assert stuck.message.startswith("PreparingRebalance for at least 10 s, and nothing is read")


def test_a_rebalance_seen_once_is_neither_stuck_nor_healthy() -> None:
    found = examine(cluster(group=WAITING).cluster(), "g", patience_s=0)
    assert (found.verdict, "KG112" in codes(found)) == ("unknown", False)
    assert [each.code for each in found.unseen] == ["SEEN_ONCE"]


def test_a_rebalance_that_ends_meanwhile_is_none_to_speak_of() -> None:
    looks = iter([WAITING, WAITING])

    def describe(node: int, request: dg.DescribeGroupsRequest) -> dg.DescribeGroupsResponse:
        return dg.DescribeGroupsResponse(groups=(next(looks, STABLE),))

    fake = cluster(group=WAITING).on(dg.DescribeGroupsRequest, describe)
    found = examine(fake.cluster(), "g", patience_s=60)
    assert (found.verdict, found.group.state, codes(found)) == ("healthy", "Stable", set())
    assert fake.time.now < 5


def test_a_rebalance_that_could_not_be_looked_at_again_is_not_stuck() -> None:
    """Looks that failed counted as looks that showed no change."""
    looks = iter([WAITING])
    denied = dg.DescribedGroup(group_id="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)

    def describe(node: int, request: dg.DescribeGroupsRequest) -> dg.DescribeGroupsResponse:
        return dg.DescribeGroupsResponse(groups=(next(looks, denied),))

    fake = cluster(group=WAITING).on(dg.DescribeGroupsRequest, describe)
    found = examine(fake.cluster(), "g", patience_s=10)
    assert (found.verdict, "KG112" in codes(found)) == ("unknown", False)
    assert [(u.look, u.code) for u in found.unseen] == [("a second look", "GROUP_AUTHORIZATION_FAILED")]


def test_a_cluster_that_is_gone_at_the_second_look_leaves_what_the_first_one_showed() -> None:
    fake = cluster(group=WAITING)
    sleep = fake.time.sleep

    def leave(seconds: float) -> None:
        sleep(seconds)
        fake.down |= {1, 2}

    fake.time.sleep = leave  # type: ignore[method-assign]
    found = examine(fake.cluster(), "g", patience_s=10)
    assert (found.verdict, found.group.state) == ("unknown", "PreparingRebalance")
    assert [(u.look, u.code) for u in found.unseen] == [("a second look", "UNREACHABLE")]


def _held(fake: FakeCluster, looks: int) -> FakeCluster:
    """orders-1 is held open by a transaction for so many looks at stable offsets."""
    answer, left = fake.handlers[of.OffsetFetchRequest], [looks]

    def fetch(node: int, request: of.OffsetFetchRequest) -> of.OffsetFetchResponse:
        told = answer(node, replace(request, require_stable=False))
        if not request.require_stable or not left[0]:
            return told  # type: ignore[return-value]
        left[0] -= 1
        part = of.OffsetFetchResponsePartitions(
            partition_index=1, committed_offset=-1, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT
        )
        topic = of.OffsetFetchResponseTopics(name="orders", partitions=(part,))
        return of.OffsetFetchResponse(groups=(of.OffsetFetchResponseGroup(group_id="g", topics=(topic,)),))

    return fake.on(of.OffsetFetchRequest, fetch)


def test_offsets_that_a_transaction_holds_open() -> None:
    found = examine(_held(cluster(), 99).cluster(), "g", patience_s=5)
    (held,) = [each for each in found.findings if each.code == "KG309"]
    assert (found.verdict, held.severity) == ("sick", "error")
    assert held.message == "offsets of partition orders-1 are held open by a transaction for at least 5 s"
    assert any("DESCRIBE on the TransactionalId" in fact for fact in held.evidence)
    # What was committed before is asked for again, without that.
    assert {partition for alike in found.statuses for partition in alike.partitions} == {
        "orders-0",
        "orders-1",
    }


def test_offsets_that_could_not_be_looked_at_again_are_not_stuck() -> None:
    fake = _held(cluster(), 99)
    held, left = fake.handlers[of.OffsetFetchRequest], [1]

    def fetch(node: int, request: of.OffsetFetchRequest) -> of.OffsetFetchResponse:
        if request.require_stable:
            left[0] -= 1
        if left[0] >= 0:
            return held(node, request)  # type: ignore[return-value]
        refused = of.OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return of.OffsetFetchResponse(groups=(refused,))

    found = examine(fake.on(of.OffsetFetchRequest, fetch).cluster(), "g", patience_s=5)
    assert (found.verdict, codes(found)) == ("unknown", set())
    assert [(u.look, u.code) for u in found.unseen] == [("a second look", "GROUP_AUTHORIZATION_FAILED")]


def test_a_partition_that_is_not_told_is_not_a_stable_one() -> None:
    """Only UNSTABLE_OFFSET_COMMIT was looked for; any other code read as "nothing holds it open"."""
    fake = cluster()
    plain = fake.handlers[of.OffsetFetchRequest]

    def fetch(node: int, request: of.OffsetFetchRequest) -> of.OffsetFetchResponse:
        told = plain(node, request)
        if not request.require_stable:
            return told  # type: ignore[return-value]
        part = of.OffsetFetchResponsePartitions(
            partition_index=1, committed_offset=-1, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        topic = of.OffsetFetchResponseTopics(name="orders", partitions=(part,))
        return of.OffsetFetchResponse(groups=(of.OffsetFetchResponseGroup(group_id="g", topics=(topic,)),))

    found = examine(fake.on(of.OffsetFetchRequest, fetch).cluster(), "g")
    (unseen,) = found.unseen
    assert (found.verdict, unseen.look, unseen.code) == (
        "unknown",
        "open transactions",
        "TOPIC_AUTHORIZATION_FAILED",
    )
    assert "orders-1" in unseen.message


def test_offsets_held_open_seen_once_are_neither_stuck_nor_healthy() -> None:
    found = examine(_held(cluster(), 99).cluster(), "g", patience_s=0, left_out=["history"])
    assert (found.verdict, [u.code for u in found.unseen]) == ("unknown", ["SEEN_ONCE"])


@pytest.mark.parametrize(("age_s", "verdict"), [(3, "unknown"), (60, "sick")])
def test_an_old_broker_s_open_offsets_are_as_old_as_the_log_says(age_s: int, verdict: str) -> None:
    """Kafka 2.4 does not tell which offsets are stable: after 10 s of asking it was stuck, however young."""
    key = gr.encode_key(gr.OffsetCommitKey(group="g", topic="orders", partition=1))
    value = gr.encode_value(gr.OffsetCommitValue(offset=9, commit_timestamp=100_000))
    record = LogRecord(key, value)
    batch = encode_batch([record], timestamp_ms=100_000, producer_id=7, producer_epoch=0, transactional=True)

    def read(node: int, request: f.FetchRequest) -> f.FetchResponse:
        part = f.PartitionData(partition_index=0, records=batch, high_watermark=1)
        return f.FetchResponse(responses=(f.FetchableTopicResponse(topic=OFFSETS_TOPIC, partitions=(part,)),))

    fake = cluster().on(f.FetchRequest, read)
    fake.topics[OFFSETS_TOPIC] = 1
    fake.served[9] = range(1, 7)
    looked_at = fake.cluster()
    began = looked_at.retry.clock()
    found = examine(looked_at, "g", now_ms=100_000 + age_s * 1000, patience_s=10)
    assert (found.verdict, "KG309" in codes(found)) == (verdict, verdict == "sick")
    assert [u.code for u in found.unseen] == ["SEEN_ONCE"]
    assert looked_at.retry.clock() - began < 2, "asking again tells nothing, and nobody waits for it"


@pytest.mark.parametrize("partitions", [1, 4])
def test_who_holds_offsets_open_is_named(partitions: int) -> None:
    """Of groups in partition 0 of the offsets topic it never was: with one partition that is every group."""
    fake = _held(cluster(), 99)
    fake.topics[OFFSETS_TOPIC] = partitions
    home = offsets_partition_of("g", partitions)
    topic = TopicData(topic=OFFSETS_TOPIC, partitions=(home,))
    state = TransactionState(
        transactional_id="tx", transaction_state="Ongoing", producer_id=7, topics=(topic,)
    )
    listed = ListTransactionsResponse(transaction_states=(Listed(transactional_id="tx"),))
    fake.on(ListTransactionsRequest, lambda node, request: listed)
    described = DescribeTransactionsResponse(transaction_states=(state,))
    fake.on(DescribeTransactionsRequest, lambda node, request: described)
    found = examine(fake.cluster(), "g", patience_s=5)
    (held,) = [each for each in found.findings if each.code == "KG309"]
    assert any("transactional id 'tx', producer 7" in fact for fact in held.evidence)


def test_a_transaction_that_ends_is_nothing_to_speak_of() -> None:
    assert examine(_held(cluster(), 2).cluster(), "g", patience_s=60).verdict == "healthy"


def test_a_broker_that_does_not_tell_stable_offsets_and_a_log_that_is_not_read() -> None:
    """Kafka 2.4 serves OffsetFetch up to 6: the log tells instead, where it may be read."""
    fake = cluster()
    fake.served[9] = range(1, 7)
    assert examine(fake.cluster(), "g", left_out=["history"]).verdict == "unknown"
    assert examine(fake.cluster(), "g", left_out=["history", "transactions"]).verdict == "healthy"


def test_a_lag_that_is_not_known_makes_no_healthy_group() -> None:
    """One partition committed, one with records read and never committed: it was healthy, lag 0."""
    fake = cluster({"orders:0": 4})
    at_end = fake.handlers[lo.ListOffsetsRequest]

    def list_offsets(node: int, request: lo.ListOffsetsRequest) -> lo.ListOffsetsResponse:
        told = at_end(node, request)
        assert isinstance(told, lo.ListOffsetsResponse)
        if request.topics[0].name == OFFSETS_TOPIC or request.topics[0].partitions[0].timestamp == -1:
            return told
        parts = tuple(replace(part, offset=0) for part in told.topics[0].partitions)
        return replace(told, topics=(replace(told.topics[0], partitions=parts),))

    fake.on(lo.ListOffsetsRequest, list_offsets)
    found = examine(fake.cluster(), "g")
    (unseen,) = found.unseen
    assert (found.verdict, unseen.look, unseen.code) == ("unknown", "lag", "NOT_SEEN")
    assert unseen.message.startswith("the status of orders-1 is unknown: when its owner got it is not in ")
    assert examine(fake.cluster(), "g", left_out=["lag"]).verdict == "healthy"


@pytest.mark.parametrize(
    ("protocol_type", "unseen"), [("other", ["assignments"]), ("connect", ["members", "members"])]
)
def test_assignments_of_another_protocol_make_no_healthy_group(protocol_type: str, unseen: list[str]) -> None:
    worker = dg.DescribedGroupMember(member_id="w", member_metadata=b"\1\2", member_assignment=b"\3")
    connect = classic_group("g", worker, protocol_type=protocol_type)
    found = examine(cluster({}, connect).cluster(), "g")
    assert (found.verdict, [each.look for each in found.unseen]) == ("unknown", unseen)


def test_a_group_that_cannot_be_described_is_an_error_beside_the_others() -> None:
    found = examine_all(cluster().cluster(), ["nope", "g"])
    assert [checkup.group.group_id for checkup in found.checkups] == ["g"]
    assert [(error.item, error.code) for error in found.errors] == [("nope", "GROUP_ID_NOT_FOUND")]


def test_each_offsets_partition_is_read_once_for_all_groups() -> None:
    """A look a group at the whole log took 0.2 s each: minutes for a cluster."""
    fake = cluster()
    groups = Groups(fake)
    groups.ends = {f"orders:{p}": 4 for p in range(2)} | {f"{OFFSETS_TOPIC}:{p}": 0 for p in range(4)}
    names = [f"g-{n}" for n in range(500)]
    groups.add(*(classic_group(name, classic_member("m", "orders:0,1")) for name in names))
    groups.committed |= {name: dict(READ) for name in names}
    found = examine_all(fake.cluster(), names)
    assert [checkup.verdict for checkup in found.checkups] == ["healthy"] * 500
    fetched = Counter(request.topics[0].partitions[0].partition for request in fake.requests(f.FetchRequest))
    assert fetched == dict.fromkeys({offsets_partition_of(name, 4) for name in names}, 1)
    asked = Counter(group.group_id for r in fake.requests(of.OffsetFetchRequest) for group in r.groups)
    assert asked == dict.fromkeys(names, 1)
    assert len(fake.sent) < 50


@pytest.mark.parametrize("look", LOOKS)
def test_what_is_left_out_is_not_asked_for(look: str) -> None:
    fake = cluster(group=classic_group("g", state="Empty"))
    examine(fake.cluster(), "g", left_out=[look])
    kinds = {"history": f.FetchRequest, "settings": DescribeConfigsRequest}
    if look in kinds:
        assert fake.requests(kinds[look]) == []
    stable = [r for r in fake.requests(of.OffsetFetchRequest) if r.require_stable]
    assert (stable == []) == (look == "transactions")


@pytest.mark.parametrize(
    ("began_s", "done_s", "stuck"),
    [(900, None, True), (990, None, False), (900, 910, False), (900, 890, True)],
)
def test_a_consumer_group_is_stuck_by_the_age_of_its_epoch(
    began_s: int, done_s: int | None, stuck: bool
) -> None:
    """Its members go on reading, so a look is not enough: the log tells since when the epoch holds."""
    away = consumer_member("m", "orders:0,1", "orders:0", epoch=6)
    fake = cluster()
    Groups(fake).add(consumer_group("g", away, state="Reconciling", epoch=7, assignment_epoch=7))
    group = groups_only(fake.cluster(), ["g"])["g"]
    assert isinstance(group, GroupDescription)
    events = [
        event(kind, offset=at_s, timestamp_ms=at_s * 1000, epoch=7)
        for kind, at_s in ((Kind.REBALANCE_STARTED, began_s), (Kind.REBALANCE_COMPLETED, done_s))
        if at_s is not None
    ]
    facts = Facts(group, now_ms=1_000_000, since_ms=0, patience_s=10, recorded=Recorded(events))
    found = [each for each in diagnoses(facts) if each.code == "KG112"]
    assert bool(found) == stuck
    for each in found:
        assert each.message == "Reconciling for 100 s: it waits for m (revoking)"


@pytest.mark.parametrize(("left_s", "expires"), [(359, True), (361, False), (-5, True)])
def test_offsets_of_an_empty_group_are_about_to_expire(left_s: int, expires: bool) -> None:
    """Within the last tenth of offsets.retention after the newest record, or when that is over."""
    view = cluster(group=classic_group("g", state="Empty")).cluster()
    (group,) = describe(view, ["g"], expected=False).groups
    now_ms, retention_ms = 10_000_000, 3_600_000
    last_ms = now_ms + left_s * 1000 - retention_ms
    events = [event(Kind.GROUP_EMPTIED, timestamp_ms=last_ms)]
    facts = Facts(group, now_ms, 0, 10, recorded=Recorded(events), retention_ms=retention_ms)
    found = [each for each in diagnoses(facts) if each.code == "KG307"]
    assert bool(found) == expires
    for each in found:
        assert each.hint == "kgroup reset-offsets g --all-topics --to-current renews them"
