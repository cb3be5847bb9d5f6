"""`kgroup record` and `doctor --at`: what was recorded says what was said live, and no more."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import jsonschema
import pytest
from confluent_kafka import Producer

from kgroup import connect as kgroup_connect
from kgroup.admin.change.committing import store
from kgroup.admin.diagnose.doctor import examine_all
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import ItemError
from kgroup.admin.read.lag_report import measure
from kgroup.admin.read.listing import list_groups
from kgroup.admin.recording.lines import (
    Began,
    Commits,
    Ended,
    Ends,
    Incident,
    Judged,
    Lags,
    Looked,
    Members,
    Removed,
    World,
)
from kgroup.admin.recording.look import Terms
from kgroup.admin.recording.metrics import Metrics
from kgroup.admin.recording.observed import Observed, begun, files_of, read
from kgroup.admin.recording.recorder import Limits, Recorder, changes_after
from kgroup.admin.topics import create_topic
from kgroup.cli.commands import record
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for
from kgroup.cli.views.checkups import document_of
from kgroup.cli.views.lagging import documents
from kgroup.domain import ZERO_UUID, OffsetAndMetadata, TopicPartition
from kgroup.history.sources.capture import Gone
from kgroup.history.sources.folders import LocalFolder
from kgroup.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.protocol.messages.metadata import MetadataRequest
from kgroup.testing import Cluster
from tests.cli.conftest import Kgroup
from tests.cli.live import SESSION_MS, Client
from tests.own_home import environment
from tests.receiver import Receiver
from tests.recorded_lag import as_recorded

TERMS = Terms(patience_s=0.0)


class Service:
    """A recorder whose clock is the test's: each `step` is ten seconds after the one before."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.client, self.folder = Client(bootstrap), folder
        self.place = LocalFolder(folder)
        self.now_ms = time.time_ns() // 1_000_000
        self.view = ClusterView(self.client.transport, now_ms=lambda: self.now_ms)
        self.noted: list[str] = []
        self.changes: list[Incident] = []
        self.begin()

    def begin(self) -> None:
        self.recorder = Recorder(
            self.view,
            self.place,
            self.found,
            TERMS,
            Limits(),
            note=self.noted.append,
            changed=self.changes.append,
        )

    def found(self, cluster: ClusterView) -> tuple[list[str], Any]:
        listing = list_groups(cluster)
        return [group.group_id for group in listing.groups], listing.errors

    def step(self) -> int:
        """Let ten seconds pass, poll and look; return the time of the look."""
        self.now_ms += 10_000
        self.recorder.poll()
        self.recorder.look()
        return self.now_ms

    def live(self) -> dict[str, Any]:
        """What doctor says now, by group."""
        names, _ = self.found(self.view)
        checkups = examine_all(self.view, names, window_ms=TERMS.window_ms, patience_s=0.0).checkups
        documents = [json.loads(json.dumps(document_of(checkup))) for checkup in checkups]
        return {document["group_id"]: document for document in documents}

    def live_lag(self, kgroup: Kgroup, *more: str) -> Any:
        """What lag says now of all groups."""
        return kgroup("lag", "*", *more, "-b", self.client.bootstrap, "-o", "json").document["data"]["groups"]

    def lines(self, kind: type) -> list[Any]:
        return [line for line in read(files_of(self.place)) if isinstance(line, kind)]

    def drop_topic(self, name: str) -> None:
        named = (DeleteTopicState(name=name, topic_id=ZERO_UUID),)
        request = DeleteTopicsRequest(topics=named, topic_names=(name,), timeout_ms=9999)
        assert {each.error_code for each in self.client.transport.request(None, request).responses} == {0}

    def grow_topic(self, name: str, count: int) -> None:
        grown = (CreatePartitionsTopic(name=name, count=count, assignments=None),)
        request = CreatePartitionsRequest(topics=grown, timeout_ms=9999, validate_only=False)
        assert {each.error_code for each in self.client.transport.request(None, request).results} == {0}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    settings = {"group.initial.rebalance.delay.ms": 0, "group.max.session.timeout.ms": SESSION_MS}
    with Cluster({"orders": 2, "pay": 1}, settings=settings) as cluster:
        made = Service(cluster.bootstrap, tmp_path / "recording")
        yield made
        made.client.close()


def then(kgroup: Kgroup, service: Service, at_ms: int, *more: str) -> Any:
    argv = more or ("--all-groups",)
    return kgroup("doctor", *argv, "--at", str(at_ms), "--files", str(service.folder), "-o", "json")


def test_at_ten_moments_it_says_what_doctor_said(service: Service, kgroup: Kgroup) -> None:
    client = service.client
    away: list[str] = []
    acts: list[Callable[[], object]] = [
        lambda: None,
        lambda: client.commit("batch", "orders", {0: 0}),
        lambda: client.classic_group("web", "orders", {"i-0": [0]}),
        lambda: client.classic_group("pay", "pay", {"p-0": [0]}),
        lambda: away.append(client.consumer_member("next", "orders", "s-0")),
        lambda: client.leave_for_now("next", away[0], "s-0"),
        lambda: client.join_unanswered("web", "orders", "i-1"),
        lambda: create_topic(client.admin, "other", 1),
        lambda: service.drop_topic("pay"),
        lambda: client.commit("batch", "orders", {1: 0}),
    ]
    said = {}
    for act in acts:
        act()
        at_ms = service.step()
        said[at_ms] = service.live()
    assert {document["verdict"] for live in said.values() for document in live.values()} > {"sick"}
    for at_ms, live in said.items():
        for moment in (at_ms, at_ms + 9_999):
            ran = then(kgroup, service, moment)
            data = ran.document["data"]
            assert {each["group_id"]: each for each in data["groups"]} == live
            assert (data["recorded"]["seen_ms"], data["recorded"]["interval_ms"]) == (at_ms, 10_000)
    jsonschema.validate(ran.document, schema_for("doctor"))


def lag_then(kgroup: Kgroup, service: Service, at_ms: int, *more: str) -> Any:
    argv = more or ("*",)
    return kgroup("lag", *argv, "--at", str(at_ms), "--files", str(service.folder), "-o", "json")


def test_at_each_moment_lag_is_what_it_was(service: Service, kgroup: Kgroup) -> None:
    """Rows with and without a commit, beyond the end, of a topic that goes; ends and members that move."""
    client = service.client
    away: list[str] = []
    acts: list[Callable[[], object]] = [
        lambda: client.commit("batch", "orders", {0: 0}),
        lambda: produce(client, "orders", 0, 5),
        lambda: client.classic_group("web", "orders", {"i-0": [0, 1]}),
        lambda: (produce(client, "orders", 0, 2), produce(client, "orders", 1, 3)),
        lambda: client.commit("batch", "orders", {0: 4, 1: 3}),
        lambda: client.commit("batch", "pay", {0: 7}),
        lambda: away.append(client.consumer_member("next", "orders", "s-0")),
        lambda: client.leave_for_now("next", away[0], "s-0"),
        lambda: produce(client, "pay", 0, 9),
        lambda: client.join_unanswered("web", "orders", "i-1"),
        lambda: service.drop_topic("pay"),
        lambda: service.begin(),
        lambda: produce(client, "orders", 1, 1),
    ]
    said = {}
    for act in acts:
        act()
        service.step()
        said[service.step()] = service.live_lag(kgroup)
    assert {len(groups) for groups in said.values()} == {1, 2, 3}
    crashed_ms = [*said][-3]
    for at_ms, live in said.items():
        for moment in (at_ms, at_ms + (0 if at_ms == crashed_ms else 9_999)):
            ran = lag_then(kgroup, service, moment)
            data = ran.document["data"]
            assert data["groups"] == live
            assert data["recorded"]["seen_ms"] == at_ms and ran.code == (5 if ran.document["errors"] else 0)
    jsonschema.validate(ran.document, schema_for("lag"))


def test_lag_in_time_is_what_it_was_and_no_status_less_certain(service: Service, kgroup: Kgroup) -> None:
    client = service.client
    client.classic_group("web", "orders", {"i-0": [0, 1]})
    said = {}
    for count in (0, 3, 1, 0, 0, 2, 0):
        if count:
            produce(client, "orders", 0, count)
        client.commit("batch", "orders", {0: count, 1: 0})
        at_ms = service.step()
        live = measure(service.view, ["batch", "web"], times=True).groups
        said[at_ms] = json.loads(json.dumps([*documents(live)]))
    assert max(group["max_time_lag_ms"] or 0 for live in said.values() for group in live) > 10_000
    for at_ms, live in said.items():
        then = lag_then(kgroup, service, at_ms, "batch", "web", "--time").document["data"]["groups"]
        for before, now in zip(then, live, strict=True):
            assert before == as_recorded(now, before)
    over = lag_then(kgroup, service, at_ms, "batch", "--fail-above", "30s")
    assert (over.code, over.document["data"]["verdict"]["over"]) == (ExitCode.BAD_VERDICT, ["batch"])
    text = kgroup("lag", "batch", "--by-topic", "--at", str(at_ms + 500), "--files", str(service.folder)).out
    assert (
        ", 0.5 s before; seen every 10 s, and what" in " ".join(text.split())
        and "batch   Empty   lag" in text
    )


def test_an_end_that_moves_is_stored_once_for_all_groups_and_no_row_with_it(service: Service) -> None:
    for name in ("a", "b", "c"):
        service.client.commit(name, "orders", {0: 0, 1: 0})
    produce(service.client, "orders", 0, 1)
    service.step()
    service.step()
    before = [*service.lines(Lags), *service.lines(Commits)]
    for _ in range(3):
        produce(service.client, "orders", 0, 1)
        service.step()
    assert [*service.lines(Lags), *service.lines(Commits)] == before and len(service.lines(Ends)) >= 4
    service.client.commit("b", "orders", {1: 0, 0: 1})
    service.step()
    *_, line = service.lines(Commits)
    assert (line.group_id, line.topic, line.partitions, line.offsets) == ("b", "orders", (0, 1), (1, 0))


def test_a_look_requests_all_topics_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster may have very many."""
    service.client.commit("a", "orders", {0: 0})
    service.step()
    requests: list[object] = []
    request = service.view.transport.request

    def counted(node: int | None, message: Any, **how: Any) -> Any:
        requests.append(message)
        return request(node, message, **how)

    monkeypatch.setattr(service.view.transport, "request", counted)
    create_topic(service.client.admin, "new", 1)
    service.client.consumer_member("next", "new", "s-0")
    service.recorder.poll()
    requests.clear()
    service.recorder.look()
    asked = [each for each in requests if isinstance(each, MetadataRequest) and each.topics is None]
    assert len(asked) == 1 and dict(service.lines(World)[-1].topics).keys() >= {"new", "orders"}


def test_a_lag_that_no_look_shows_is_unknown_and_never_none(service: Service, kgroup: Kgroup) -> None:
    service.client.commit("batch", "orders", {0: 0})
    first = service.step()
    service.now_ms += 1_000
    service.recorder.end()
    service.now_ms += 60_000
    terms = Terms(patience_s=0.0, left_out=("lag",))
    service.recorder = Recorder(service.view, service.place, service.found, terms, Limits())
    blind = service.step()
    for moment, names, code, why in (
        (first - 1, ("batch",), 5, "the recording begins at"),
        (first + 1_000, ("batch",), 5, "the recorder did not run at"),
        (first, ("never",), 3, "there was no group never at"),
        (first, ("never", "batch"), 5, "there was no group never at"),
        (first, ("n*",), 3, "there was no group n* at"),
        (blind, ("batch",), 5, "the lag of batch was not looked at"),
        (blind, ("batch", "--fail-above", "0"), 5, "the lag of batch was not looked at"),
        (first + 1_000, ("batch", "--fail-above", "0"), 5, "the recorder did not run at"),
    ):
        ran = lag_then(kgroup, service, moment, *names)
        assert (ran.code, why in ran.err) == (code, True), (ran.code, ran.err)
        assert all(group["group_id"] == "batch" for group in ran.document["data"]["groups"])


def test_an_end_that_could_not_be_seen_is_unknown_later(tmp_path: Path, kgroup: Kgroup) -> None:
    settings = {"offsets.topic.replication.factor": 1, "default.replication.factor": 1}
    with Cluster({"orders": 2}, brokers=2, settings=settings) as cluster:
        service = Service(cluster.bootstrap, tmp_path)
        places = {TopicPartition("orders", n): OffsetAndMetadata(0) for n in range(2)}
        for number in range(8):
            store(service.view, f"g-{number}", places)
        seen = service.step()
        cluster.stop_broker(1)
        blind = service.step()
        assert lag_then(kgroup, service, seen).code == 0
        ran = lag_then(kgroup, service, blind)
        assert ran.code == ExitCode.PARTIAL and "not known" in ran.err
        live = service.live_lag(kgroup)
        assert [group["total_lag"] for group in live].count(None) > 0
        assert ran.document["data"]["groups"] == live
        service.client.close()


def produce(client: Client, topic: str, partition: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": client.bootstrap, "log_level": 0})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=partition)
    assert producer.flush(60) == 0


def test_commits_over_several_looks_are_judged_as_doctor_judges_them(tmp_path: Path) -> None:
    """A tool that commits for longer than ten seconds: a look reads some of it, doctor all at once."""
    with Cluster({"orders": 2}) as cluster:
        service = Service(cluster.bootstrap, tmp_path)
        for _ in range(4):
            cluster.advance("10s")
            service.client.commit("tool", "orders", {0: 0, 1: 0})
            service.step()
        live = service.live()["tool"]
        assert "KG120" in {finding["code"] for finding in live["findings"]}
        judged = service.lines(Judged)[-1]
        assert json.loads(json.dumps(document_of(judged.checkup))) == live
        service.client.close()


def test_downtime_is_unknown_and_never_healthy(service: Service, kgroup: Kgroup) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0, 1]})
    first = service.step()
    service.now_ms += 1_000
    service.recorder.end()
    service.now_ms += 60_000
    service.begin()
    second = service.step()
    told = {
        moment: then(kgroup, service, moment, "web") for moment in (first - 1, first, first + 1_000, second)
    }
    assert [ran.code for ran in told.values()] == [5, 0, 5, 0]
    assert "it ended at" in told[first + 1_000].err and told[first + 1_000].document["data"]["groups"] == []
    text = kgroup("doctor", "web", "--at", str(first), "--files", str(service.folder)).out
    assert "seen every 10 s, and what began and ended between two looks is unknown" in " ".join(text.split())
    assert then(kgroup, service, second, "never").code == ExitCode.NOT_FOUND
    assert then(kgroup, service, second, "no-*", "web").code == ExitCode.PARTIAL


def test_groups_that_were_hidden_make_an_answer_partial(kgroup: Kgroup, tmp_path: Path) -> None:
    hidden = ItemError("broker 2", "UNREACHABLE", "broker 2 does not answer")
    judged = Judged(1000, "g", "classic", "Stable", (), (), ())
    lines = [Began(1000, "0.1.0", None, False, 0), judged, Looked(1000, 1000, 10_000, False, (hidden,))]
    Observed(LocalFolder(tmp_path)).append(lines, 1000)
    codes = [
        kgroup("doctor", name, "--at", "1970-01-01T00:00:02", "--files", str(tmp_path)).code
        for name in ("g", "--all-groups", "g*", "other")
    ]
    assert codes == [ExitCode.OK, ExitCode.PARTIAL, ExitCode.PARTIAL, ExitCode.PARTIAL]


def test_what_the_log_has_not_is_recorded_when_it_changes(service: Service) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0, 1]})
    service.step()
    service.step()
    (members,) = service.lines(Members)
    assert [(each.instance_id, each.client_id) for each in members.members] == [("i-0", "kgroup")]
    assert members.members[0].host.strip("/") == "127.0.0.1"
    (ends,) = service.lines(Ends)
    assert (ends.topic, ends.partitions, ends.starts, ends.ends) == ("orders", (0, 1), (0, 0), (0, 0))
    assert len(service.lines(Looked)) == 2
    service.client.classic_group("web", "orders", {"i-0": [0], "i-1": [1]})
    service.step()
    assert len(service.lines(Members)) == 2


def test_each_day_is_read_by_itself(service: Service, kgroup: Kgroup) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0, 1]})
    service.step()
    service.now_ms += 86_400_000
    at_ms = service.step()
    (first,), second = begun(service.place)
    first.folder.delete(first.name)
    assert then(kgroup, service, at_ms, "web").code == ExitCode.OK
    kinds = {type(line).__name__ for line in read(second)}
    assert kinds == {"Began", "Judged", "Members", "Ends", "Lags", "Commits", "World", "Looked"}


def test_the_segments_are_those_of_a_capture(service: Service, kgroup: Kgroup) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0, 1]})
    service.step()
    service.begin()
    service.client.commit("batch", "orders", {0: 0})
    service.step()
    ran = kgroup("replay-log", "--files", str(service.folder), "-o", "json")
    groups = {event["group_id"] for event in ran.document["data"]["events"]}
    assert (ran.code, groups) == (ExitCode.OK, {"web", "batch"})
    blamed = kgroup("blame", "web", "--files", str(service.folder))
    assert "because: i-0 joined" in blamed.out


def test_a_gap_is_in_the_coverage(service: Service, kgroup: Kgroup) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0, 1]})
    service.step()
    (name,) = [log.parent for log in service.folder.glob("*/*.log")]
    part = next(part for part in service.recorder._log.parts.values() if part.folder == name)
    part.noticed(name.name, Gone(5, 9, 5))
    for command in ("replay-log", "blame"):
        ran = kgroup(command, "web", "--files", str(service.folder))
        text = " ".join(ran.out.split())
        assert "GAP: offsets 5 to 9 are not recorded: the broker no longer had them" in text
    ran = kgroup("replay-log", "--files", str(service.folder), "-o", "json")
    (covered,) = ran.document["data"]["coverage"]
    assert len(covered["gaps"]) == 1 and not covered["from_the_start"]


def test_a_full_disk_is_waited_for(service: Service, kgroup: Kgroup, monkeypatch: pytest.MonkeyPatch) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0]})
    before = service.step()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        service.client.commit("batch", "orders", {0: 0})
        dark = [service.step() for _ in range(4)]
    assert service.changes == [] and service.recorder.state.disk is not None
    after = service.step()
    assert sum("No space left" in text and not text.startswith("over") for text in service.noted) == 1
    over, incident = service.noted[-2:]
    assert over.startswith("over: ") and service.recorder.state.disk is None
    assert incident.startswith("opened error: web: ") and "; caused by: " in incident
    assert then(kgroup, service, before, "web").code == ExitCode.BAD_VERDICT
    assert then(kgroup, service, dark[-1], "web").code == ExitCode.PARTIAL
    assert then(kgroup, service, after, "batch").document["data"]["groups"]
    service.step()
    assert [each.event for each in service.changes] == ["opened"]
    events = kgroup("replay-log", "--files", str(service.folder), "-o", "json").document["data"]["events"]
    assert {event["group_id"] for event in events} == {"web", "batch"}


def test_a_deleted_topic_is_one_incident_and_closes(service: Service) -> None:
    for name in ("a", "b", "c"):
        service.client.commit(name, "pay", {0: 0})
    # It subscribes to a topic that never existed: another cause.
    service.client.classic_group("d", "nowhere", {"i-0": []})
    service.step()
    service.drop_topic("pay")
    for _ in range(3):
        service.step()
    (opened,) = service.changes
    assert (opened.event, opened.key, opened.groups) == ("opened", "topic pay", ("a", "b", "c"))
    assert opened.caused_by == "no record says"
    service.begin()
    create_topic(service.client.admin, "pay", 1)
    for name in ("a", "b", "c"):
        service.client.commit(name, "pay", {0: 0})
    for _ in range(3):
        service.step()
    assert [each.event for each in service.changes if each.key == "topic pay"] == ["opened", "closed"]


def test_blame_says_then_what_it_said_live_of_a_topic_that_was_deleted(
    service: Service, kgroup: Kgroup
) -> None:
    """Whether a topic exists stands in no record: the recorder saw it."""
    service.client.commit("batch", "pay", {0: 0})
    before = service.step()
    service.drop_topic("pay")
    after = service.step()
    live = kgroup("blame", "batch", "-b", service.client.bootstrap, "-o", "json").document["data"]
    (deletion,) = live["groups"][0]["blames"]
    assert "topic pay was deleted: it no longer exists" in deletion["event"]["cause"]
    for until, known in ((after, True), (before + 5_000, False), (None, True)):
        span = () if until is None else ("--until", str(until))
        ran = kgroup("blame", "batch", *span, "--files", str(service.folder), "-o", "json")
        blames = [each for group in ran.document["data"]["groups"] for each in group["blames"]]
        assert (blames == [deletion]) == known
        assert known or "no longer exists" not in ran.out


def test_who_began_a_bad_rebalance_is_named_by_records(service: Service) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0, 1]})
    service.step()
    service.client.classic_group("web", "orders", {"i-0": [0], "i-1": []})
    service.step()
    service.step()
    (opened,) = service.changes
    assert opened.codes == ("KG104",) and "because i-1 joined" in opened.caused_by
    assert re.search(r"\(__consumer_offsets-\d+ offset \d+\)$", opened.caused_by)
    assert any("i-1 joined from" in fact for fact in opened.evidence)
    assert opened.run == "kgroup doctor web"
    assert changes_after(service.place, 0) == [opened] and changes_after(service.place, 1) == []


def test_a_rebalance_that_only_came_before_is_not_its_cause(service: Service) -> None:
    """Partitions that are added to a topic had no owner before the rebalance either."""
    service.client.classic_group("pay", "pay", {"p-0": [0]})
    service.step()
    service.client.classic_group("pay", "pay", {"p-0": [0], "p-1": []})
    service.grow_topic("pay", 2)
    service.step()
    service.step()
    (opened,) = service.changes
    assert opened.codes == ("KG104",) and opened.caused_by == "no record says"
    assert not any("joined" in fact for fact in opened.evidence)


def test_a_broker_that_is_down_is_one_incident(tmp_path: Path) -> None:
    settings = {"offsets.topic.replication.factor": 1}
    with Cluster({f"t-{n}": 1 for n in range(6)}, brokers=2, settings=settings) as cluster:
        service = Service(cluster.bootstrap, tmp_path)
        for number in range(6):
            store(service.view, f"g-{number}", {TopicPartition(f"t-{number}", 0): OffsetAndMetadata(0)})
        service.step()
        cluster.stop_broker(1)
        for _ in range(3):
            service.step()
        (opened,) = service.changes
        assert opened.key == "brokers" and len(opened.groups) > 1 and "broker 1 (127.0.0.1:" in opened.title
        cluster.start_broker(1)
        for _ in range(3):
            service.step()
        assert [each.event for each in service.changes] == ["opened", "closed"]
        service.client.close()


def test_metrics_are_of_the_last_look_and_an_old_one_says_nothing(service: Service) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0]})
    service.client.commit("batch", "orders", {0: 0})
    service.step()
    served = Metrics(lambda: service.recorder.state, 1000, clock=lambda: service.now_ms)
    told = {(name, labels): value for name, labels, value in served.samples()}
    assert told["kgroup_group_verdict", ("web", "sick")] == 1
    assert told["kgroup_partition_end_offset", ("batch", "orders", "0")] == 0
    assert told["kgroup_group_lag_records", ("batch",)] == told["kgroup_metrics_cut", ()] == 0
    assert served.unhealthy() is None
    few = list(Metrics(lambda: service.recorder.state, 3, clock=lambda: service.now_ms).samples())
    assert sum(name.startswith(("kgroup_group", "kgroup_partition")) for name, _, _ in few) == 3
    cut = next(value for name, _, value in few if name == "kgroup_metrics_cut")
    assert cut == len(told) - len(few) > 0
    service.now_ms += 31_000
    names = {name for name, _, _ in served.samples()}
    assert "last look was 31 s ago" in (served.unhealthy() or "")
    assert not any(name.startswith(("kgroup_group", "kgroup_partition")) for name in names)
    assert "kgroup_record_last_look_timestamp_seconds" in names


def test_rebalances_are_unknown_and_not_none_without_the_history(service: Service) -> None:
    terms = Terms(patience_s=0.0, left_out=("history",))
    service.client.classic_group("web", "orders", {"i-0": [0, 1]})
    service.recorder = Recorder(service.view, service.place, service.found, terms, Limits())
    service.step()
    served = Metrics(lambda: service.recorder.state, 1000, clock=lambda: service.now_ms)
    names = {name for name, _, _ in served.samples() if _known(served, name)}
    assert "kgroup_group_verdict" in names and "kgroup_group_rebalances_total" not in names
    service.begin()
    service.step()
    assert _known(served, "kgroup_group_rebalances_total") == [0]
    service.client.classic_group("web", "orders", {"i-0": [0], "i-1": [1]})
    service.step()
    assert _known(served, "kgroup_group_rebalances_total")[0] > 0


def _known(served: Metrics, name: str) -> list[float]:
    return [value for each, _, value in served.samples() if each == name and value is not None]


class Process:
    """`kgroup record` in a process of its own."""

    def __init__(self, bootstrap: str, folder: Path, home: Path, *more: str) -> None:
        argv = [sys.executable, "-m", "kgroup", "record", str(folder), "-b", bootstrap, "--interval", "1s"]
        self.process = subprocess.Popen(
            [*argv, "--patience", "0s", *more], env=environment(home), stderr=subprocess.PIPE, text=True
        )
        self.told: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self.told.append(line)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join()
        return code


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


def test_a_service_shows_its_state_keeps_others_out_and_ends_cleanly(
    service: Service, kgroup: Kgroup, tmp_path: Path
) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0]})
    running = Process(service.client.bootstrap, service.folder, tmp_path, "--metrics", "0")
    until(lambda: service.lines(Looked))
    ran = kgroup("record", str(service.folder), "-b", service.client.bootstrap)
    assert ran.code == ExitCode.FAILED and "another recorder does" in ran.err
    address = next(line for line in running.told if line.startswith("metrics: ")).split()[1].rstrip(",")
    until(lambda: b'kgroup_group_verdict{group="web",verdict="sick"} 1.0' in got(address))
    assert got(address.replace("/metrics", "/healthz")) == b"ok\n"
    assert running.end() == ExitCode.OK and service.lines(Ended)


def got(address: str) -> bytes:
    with urlopen(address) as answer:
        found: bytes = answer.read()
    return found


def test_each_change_is_posted_once_whatever_ends_between(
    service: Service, kgroup: Kgroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorder ends after an incident is stored and before it is posted, and while nobody takes posts."""
    monkeypatch.setattr(record, "CLOSING_S", 0.2)
    with closing(Receiver()) as receiver:

        def run() -> None:
            more = ("--stop-after", "10ms", "--patience", "0s", "--notify", receiver.url)
            kgroup("record", str(service.folder), "-b", service.client.bootstrap, *more)

        run()
        service.client.classic_group("web", "orders", {"i-0": [0]})
        service.begin()
        service.step()
        service.step()
        receiver.closed = True
        until(lambda: (run(), receiver.refused)[1])
        assert receiver.taken == []
        receiver.closed = False
        until(lambda: (run(), receiver.taken)[1])
        run()
        ((id_, body),) = receiver.taken
    assert body["event"] == "incident_opened" and body["groups"] == ["web"] and id_ == f"inc_{body['id']}-1"


def test_without_the_right_to_the_log_it_looks_only(tmp_path: Path, kgroup: Kgroup) -> None:
    acls = {"eye": ["Describe group *", "Describe topic *"], "owner": ["All group *", "All topic *"]}
    users = {"eye": "secret", "owner": "secret"}
    with Cluster({"orders": 1}, users=users, acls=acls) as cluster:
        properties = tmp_path / "client.properties"
        given = {name: text for name, text in cluster.client("eye").items() if name != "bootstrap.servers"}
        properties.write_text("".join(f"{name}={text}\n" for name, text in given.items()))
        properties.chmod(0o600)
        at = ("-b", cluster.bootstrap, "--command-config", str(properties))
        with kgroup_connect(cluster.bootstrap, cluster.client("owner")) as owner, owner.admin() as view:
            store(view, "g", {TopicPartition("orders", 0): OffsetAndMetadata(0)})
        ran = kgroup("record", str(tmp_path / "r"), "--stop-after", "1s", "--patience", "0s", *at)
        assert ran.code == ExitCode.NOT_AUTHORISED
        assert "__consumer_offsets is not recorded: " in ran.err and "lacks Read" in ran.err
        assert "error: " in ran.err
        answer = kgroup("doctor", "--all-groups", "--at", "0s", "--files", str(tmp_path / "r"), "-o", "json")
        assert answer.code == ExitCode.PARTIAL
        moment = str(answer.document["data"]["recorded"]["seen_ms"] or 0)
        assert moment != "0" or "ended" in answer.err
        for command in ("blame", "replay-log"):
            ran = kgroup(command, "g", "--files", str(tmp_path / "r"))
            assert "has no __consumer_offsets: " in ran.err and "lacks Read" in ran.err
            assert "doctor --at and lag --at show" in ran.err and ran.code == ExitCode.FAILED
        (look,) = (line for line in read(files_of(LocalFolder(tmp_path / "r"))) if isinstance(line, Looked))
        for command in ("doctor", "lag"):
            ran = kgroup(command, "g", "--at", str(look.at_ms), "--files", str(tmp_path / "r"))
            assert "seen every 10 s" in ran.out and "was not recorded: " in ran.out


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("--max-size", "much"), "'much' is not a size"),
        (("--incidents", "info"), "error or warn"),
        (("--notify-format", "smoke"), "one of json, alertmanager, slack"),
        (("--notify-secret-file", "x"), "add --notify URL"),
        (("--without", "spleen"), "--without 'spleen' is unknown"),
    ],
)
def test_wrong_usage_says_what_would_be_right(
    argv: tuple[str, ...], told: str, kgroup: Kgroup, tmp_path: Path
) -> None:
    ran = kgroup("record", str(tmp_path / "r"), "-b", "127.0.0.1:1", *argv)
    assert (ran.code, told in ran.err) == (ExitCode.USAGE, True), ran.err


@pytest.mark.parametrize(
    ("text", "more", "told"),
    [
        ("keep: 3\n", (), "--keep: '3' has no unit"),
        ("keep: 3\nmax-size: much\n", ("--keep", "3d"), "'much' is not a size"),
        ("incidents: info\ngroup: [a, b]\n", (), "error or warn"),
        ("metrics-limit: 0\n", (), "--metrics-limit"),
        ("kep: 3d\n", (), "has 'kep', which is none of group, every,"),
        ("keep: [3d]\n", (), "keep in FILE is not one text or number"),
        ("group: a\n", (), "group in FILE is not a list of texts"),
        ("- keep\n", (), "FILE is not a mapping of options"),
        ("keep: {\n", (), "FILE"),
    ],
)
def test_options_come_from_a_file_and_first_from_the_command_line(
    text: str, more: tuple[str, ...], told: str, kgroup: Kgroup, tmp_path: Path
) -> None:
    file = tmp_path / "record.yaml"
    file.write_text(text, encoding="utf-8")
    ran = kgroup("record", str(tmp_path / "r"), "-b", "127.0.0.1:1", "--config", str(file), *more)
    assert ran.code == ExitCode.USAGE and told in ran.err.replace(str(file), "FILE"), ran.err


@pytest.mark.parametrize("command", ["doctor", "lag"])
def test_of_a_moment_one_recording_is_asked(command: str, kgroup: Kgroup, tmp_path: Path) -> None:
    at = (command, "g", "--at", "1h")
    assert "add --files DIR or URL" in kgroup(*at).err
    assert kgroup(command, "g", "--files", str(tmp_path)).code == ExitCode.USAGE
    more = {"doctor": ("--without", "lag"), "lag": ("--rate", "1s")}[command]
    assert kgroup(*at, "--files", str(tmp_path), *more).code == ExitCode.USAGE
    ran = kgroup(*at, "--files", str(tmp_path))
    assert ran.code == ExitCode.FAILED and "has no observations" in ran.err


def test_a_recording_is_of_one_cluster(service: Service, kgroup: Kgroup) -> None:
    """Another cluster's log was set aside as one that was created again."""
    service.client.commit("batch", "orders", {0: 0})
    service.step()
    before = {file.name: file.bytes for file in service.place.files()}
    with Cluster({"orders": 1}) as other:
        argv = ("record", str(service.folder), "--stop-after", "1ms", "-b")
        ran = kgroup(*argv, other.bootstrap)
        assert ran.code == ExitCode.FAILED and "is a recording of the cluster " in ran.err, ran.err
        after = {file.name: file.bytes for file in service.place.files()}
        assert after == {**before, ".recorder": 0}
    assert kgroup(*argv, service.client.bootstrap).code == ExitCode.OK


def test_what_is_not_there_any_more_is_named_once_there_is_room_to_say_so(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that was too old was forgotten where the line about it could not be stored."""
    service.step()
    old = [service.folder / "__consumer_offsets-9" / f"{first:020d}.log" for first in (0, 40)]
    old[0].parent.mkdir()
    for path in old:
        path.write_bytes(b"")
        os.utime(path, (0, 0))
    service.recorder._limits = Limits(keep_ms=86_400_000)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        service.recorder.poll()
        service.recorder.tidy()
    assert not old[0].exists() and service.recorder.state.disk is not None
    service.step()
    assert [line.file for line in service.lines(Removed)] == ["__consumer_offsets-9/00000000000000000000.log"]
    assert service.recorder.state.disk is None


def test_what_was_removed_before_a_removal_failed_is_named(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.step()
    old = [service.folder / "__consumer_offsets-9" / f"{first:020d}.log" for first in (0, 40, 90)]
    old[0].parent.mkdir()
    for path in old:
        path.write_bytes(b"")
        os.utime(path, (0, 0))
    service.recorder._limits = Limits(keep_ms=86_400_000)
    unlink = Path.unlink

    def refused(path: Path, missing_ok: bool = False) -> None:
        if path == old[1]:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)
    service.recorder.tidy()
    service.step()
    assert not old[0].exists() and old[1].exists()
    assert [line.file for line in service.lines(Removed)] == ["__consumer_offsets-9/00000000000000000000.log"]
