"""`kgroup record URL`: nothing that was acknowledged is lost with the recorder, and readers take the URL."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.listing import list_groups
from kgroup.admin.recording import observed
from kgroup.admin.recording.gaps import gaps_in
from kgroup.admin.recording.lease import LOCK, Held
from kgroup.admin.recording.lines import OPEN, Began, Incident, Looked, Removed
from kgroup.admin.recording.look import Terms
from kgroup.admin.recording.observed import files_of, read
from kgroup.admin.recording.recorder import Limits, Recorder, changes_after
from kgroup.admin.topics import create_topic
from kgroup.cli.agents.serving import Agents
from kgroup.cli.agents.tools import Given
from kgroup.cli.commands import record
from kgroup.cli.env.invocation import Env, OutputOptions
from kgroup.cli.exit_codes import ExitCode
from kgroup.domain import ZERO_UUID
from kgroup.history.sources.capture import Gone
from kgroup.history.sources.folders import RemoteFolder
from kgroup.history.sources.live import LiveTopic
from kgroup.history.sources.logs import segment_logs
from kgroup.history.typed_json import Codec
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.storage.location import Location
from kgroup.storage.options import StorageOptions
from kgroup.testing import Cluster
from tests.cli.conftest import Kgroup
from tests.cli.live import SESSION_MS, Client
from tests.memory_store import AT, Killed, MemoryStore, opened
from tests.receiver import Receiver
from tests.s3 import S3Server

URL = str(AT)
STEP_MS = 10_000
EAGER = Limits(upload_s=0.0)


@pytest.fixture
def client() -> Iterator[Client]:
    settings = {"group.initial.rebalance.delay.ms": 0, "group.max.session.timeout.ms": SESSION_MS}
    with Cluster({"orders": 2, "pay": 1}, settings=settings) as cluster:
        made = Client(cluster.bootstrap)
        yield made
        made.close()


@dataclass
class Service:
    """A recorder at a URL, whose clock is the test's; `delivered` are the incidents that were posted."""

    client: Client
    monkeypatch: pytest.MonkeyPatch
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    delivered: list[Incident] = field(default_factory=list)
    noted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(lambda: self.now_ms)
        self.folder = opened(self.monkeypatch, self.store)
        self.view = ClusterView(self.client.transport, now_ms=lambda: self.now_ms)

    def begin(self, limits: Limits = EAGER) -> None:
        """Start a recorder that knows nothing but what is at the URL."""
        folder = opened(self.monkeypatch, self.store)
        number = self.delivered[-1].number if self.delivered else 0
        self.delivered += changes_after(folder, number)
        terms = Terms(patience_s=0.0)
        notes = {"note": self.noted.append, "changed": self.delivered.append}
        self.recorder = Recorder(self.view, folder, found, terms, limits, **notes)  # type: ignore[arg-type]

    def step(self) -> int:
        """Let ten seconds pass, poll and look; return the time of the look."""
        self.now_ms += STEP_MS
        self.recorder.poll()
        self.recorder.look()
        return self.now_ms

    def lines(self, kind: type) -> list[Any]:
        return [line for line in read(files_of(self.folder)) if isinstance(line, kind)]

    def whole(self) -> bool:
        """Whether all records of the log are recorded, each once."""
        topic = LiveTopic(self.client.transport, 30.0)
        ends = {number: topic.bounds(number)[1] for number in topic.partitions}
        recorded = dict.fromkeys(ends, 0)
        for log in segment_logs([AT]):
            for header in (each for _, found in log.batches() for each in found):
                assert header.base_offset == recorded[log.partition]
                recorded[log.partition] = header.last_offset + 1
            assert log.bad == []
        return recorded == ends

    def to(self, path: Path) -> Path:
        """Copy the recording to a folder."""
        for name in self.store.names:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(self.store[name])
        return path


def found(cluster: ClusterView) -> tuple[list[str], Any]:
    listing = list_groups(cluster)
    return [group.group_id for group in listing.groups], listing.errors


@pytest.fixture
def service(client: Client, monkeypatch: pytest.MonkeyPatch) -> Service:
    made = Service(client, monkeypatch)
    begun_often(monkeypatch, 500)
    made.begin()
    return made


def begun_often(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let objects be small, and all that is known be stored again and again, as within days."""
    monkeypatch.setattr(RemoteFolder, "best_bytes", size)
    monkeypatch.setattr(observed, "LEAST_BYTES", 2 * size)
    monkeypatch.setattr(observed, "TIMES", 1)


def lived(service: Service) -> list[int]:
    """Let things happen over two days and two runs; return the moments of the looks."""
    client, moments = service.client, []
    acts: list[Callable[[], object]] = [
        lambda: client.commit("batch", "orders", {0: 0}),
        lambda: client.classic_group("web", "orders", {"i-0": [0]}),
        lambda: None,
        lambda: client.classic_group("web", "orders", {"i-0": [0], "i-1": [1]}),
        lambda: client.commit("batch", "pay", {0: 0}),
        lambda: service.begin(),
        lambda: setattr(service, "now_ms", service.now_ms + 86_400_000),
        lambda: None,
        lambda: client.commit("batch", "orders", {1: 0}),
    ]
    for act in acts:
        act()
        moments.append(service.step())
    service.recorder.end()
    return moments


def test_readers_answer_as_of_the_same_recording_in_a_folder(
    service: Service, kgroup: Kgroup, tmp_path: Path
) -> None:
    moments = lived(service)
    assert len(files_of(service.folder)) > 6 and service.whole()
    folder = str(service.to(tmp_path / "copy"))
    asked: list[tuple[str, ...]] = [
        ("blame", "web", "batch"),
        ("blame", "batch", "--until", str(moments[3])),
        ("replay-log",),
        ("replay-log", "web", "--at", str(moments[4])),
    ]
    for moment in (moments[0] - 1, *moments, *(each + 9_999 for each in moments), moments[-1] + 60_000):
        asked.append(("doctor", "--all-groups", "--at", str(moment)))
        asked.append(("lag", "*", "--time", "--at", str(moment)))
    verdicts, codes = set(), set()
    for words in asked:
        there = kgroup(*words, "--files", URL, "-o", "json")
        here = kgroup(*words, "--files", folder, "-o", "json")
        assert without_places(there.out, URL) == without_places(here.out, folder), words
        assert (there.code, there.err.replace(URL, folder)) == (here.code, here.err), words
        verdicts |= set(re.findall(r'"verdict": "(\w+)"', there.out))
        codes.add(there.code)
    assert {"healthy", "sick"} <= verdicts and {0, 5, 8} <= codes


def without_places(text: str, place: str) -> str:
    return text.replace(place, "PLACE")


def test_the_next_look_is_named_whichever_object_has_it(service: Service, kgroup: Kgroup) -> None:
    moments = lived(service)
    runs = (moments[:5], moments[5:])
    for run in runs:
        for now, following in pairwise(run):
            ran = kgroup("doctor", "--all-groups", "--at", str(now), "--files", URL, "-o", "json")
            recorded = ran.document["data"]["recorded"]
            assert (recorded["seen_ms"], recorded["next_ms"]) == (now, following)


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_change_of_the_store_it_goes_on_and_loses_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    kills, killed = -1, True
    while killed:
        kills += 1
        service = Service(client, monkeypatch)
        begun_often(monkeypatch, 1500)
        setattr(service.store, when, partial(dies, [kills]))
        killed = lived_through(service, f"g-{kills}")
        assert service.whole() and gaps_in(service.folder) == ()
        written = [line for line in service.lines(Incident) if line.event != OPEN]
        assert [each.number for each in written] == [*range(1, len(written) + 1)]
        assert service.delivered == written
        assert [each.event for each in written if each.groups == (f"g-{kills}",)] == ["opened", "closed"]
    assert kills > 15 and any(line.goes_on for line in service.lines(Began))


def dies(left: list[int], path: str) -> None:
    left[0] -= 1
    if left[0] == -1:
        raise Killed


def lived_through(service: Service, group: str) -> bool:
    """Record how a group turns sick and well, by another run after each kill; return whether one was."""
    looks = [service.step] * 3  # of three one may be lost, and two in a row open and close an incident
    acts: list[Callable[[], object]] = [
        service.begin,
        lambda: service.client.classic_group(group, "orders", {"i-0": [0]}),
        *looks,
        lambda: service.client.classic_group(group, "orders", {"i-0": [0], "i-1": [1]}),
        *looks,
        lambda: service.recorder.end(),
        service.begin,
        service.step,
    ]
    killed = False
    while acts:
        try:
            acts[0]()
            del acts[0]
        except Killed:
            killed = True
            service.begin()
    return killed


def test_an_incident_that_comes_back_after_a_restart_has_its_id(service: Service) -> None:
    """What says that it was closed stands in a file before the newest one."""
    client = service.client
    for _ in range(2):
        client.commit("batch", "pay", {0: 0})
        service.step()
        service.begin()
        named = (DeleteTopicState(name="pay", topic_id=ZERO_UUID),)
        client.transport.request(
            None, DeleteTopicsRequest(topics=named, topic_names=("pay",), timeout_ms=9999)
        )
        service.step()
        service.step()
        create_topic(client.admin, "pay", 1)
        client.commit("batch", "pay", {0: 0})
        service.step()
        service.step()
        service.begin()
    assert [each.event for each in service.delivered] == ["opened", "closed"] * 2
    assert len({each.id for each in service.delivered}) == 1


def test_a_store_that_is_away_is_waited_for(service: Service, kgroup: Kgroup) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0]})
    before = service.step()
    service.store.down()
    service.client.commit("batch", "orders", {0: 0})
    dark = [service.step() for _ in range(4)]
    assert service.delivered == [] and service.recorder.state.disk is not None
    service.store.up()
    after = service.step()
    assert sum("could not be reached" in text and not text.startswith("over") for text in service.noted) == 1
    over, incident = service.noted[-2:]
    assert over.startswith("over: ") and service.recorder.state.disk is None
    assert incident.startswith("opened error: web: ") and "; caused by: " in incident
    codes = {
        moment: kgroup("doctor", "web", "--at", str(moment), "--files", URL).code
        for moment in (before, dark[-1], after)
    }
    assert codes == {
        before: ExitCode.BAD_VERDICT,
        dark[-1]: ExitCode.PARTIAL,
        after: ExitCode.BAD_VERDICT,
    }
    service.step()
    assert [each.event for each in service.delivered] == ["opened"] and service.whole()


def test_what_waits_for_an_upload_is_there_at_the_end_and_a_gap_before_it_is_named_once(
    service: Service, kgroup: Kgroup
) -> None:
    service.client.classic_group("web", "orders", {"i-0": [0, 1]})
    service.step()
    service.begin(Limits(upload_s=3600.0))
    service.step()
    stored = set(service.store.names)
    service.client.commit("batch", "orders", {0: 0})
    for _ in range(2):  # a run that is killed, and the next one
        service.begin(Limits(upload_s=3600.0))
        service.recorder._log.poll()  # the first one of a run uploads
        part = next(part for part in service.recorder._log.parts.values() if part.next_offset > 0)
        part.noticed(part.folder.name, Gone(5, 9, 5))
        service.recorder.poll()
    service.client.commit("batch", "orders", {1: 0})
    service.step()
    assert not service.whole() and {name for name in service.store.names if ".log" in name} >= {
        name for name in stored if ".log" in name
    }
    service.recorder.end()
    assert service.whole()
    ran = kgroup("replay-log", "--files", URL)
    assert " ".join(ran.out.split()).count("GAP: offsets 5 to 9 are not recorded") == 1


def test_what_is_too_old_goes_and_is_named(service: Service) -> None:
    service.client.commit("batch", "orders", {0: 0})
    service.begin(Limits(upload_s=0.0, keep_ms=86_400_000))
    service.step()
    for _ in range(3):
        service.now_ms += 86_400_000
        service.client.commit("batch", "orders", {0: 0})
        service.step()
    first = service.store.names
    service.recorder.tidy()
    service.step()
    gone = {line.file for line in service.lines(Removed)}
    assert gone == set(first) - set(service.store.names) and len(gone) > 3
    assert any(name.startswith("observed/") for name in gone) and any(".log" in name for name in gone)
    service.store.requests.clear()
    service.recorder.tidy()
    assert service.store.requests == []


def test_without_limits_nothing_is_listed(service: Service) -> None:
    service.step()
    service.store.requests.clear()
    service.recorder.tidy()
    service.step()
    assert {kind for kind, _ in service.store.requests} == {"write"}


def test_a_recorder_whose_place_another_took_ends_and_says_so(
    client: Client, kgroup: Kgroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    opened(monkeypatch, store)
    monkeypatch.setattr("kgroup.admin.recording.lease.RENEWED_S", 0.01)
    another = Codec(Held).encode(Held("another, process 1", 1 << 50))

    def taken(path: str) -> None:
        if "observed/" in path:
            store.after = lambda path: None
            store.write(AT / LOCK, another)

    store.after = taken
    ran = kgroup("record", URL, "--interval", "1s", "--patience", "0s", "-b", client.bootstrap)
    assert ran.code == ExitCode.FAILED and store[LOCK] == another
    assert "s3://bucket/recording is recorded into by another, process 1 now: this recorder ends" in ran.err


def test_into_s3_it_posts_each_change_once_and_is_read_from_there(
    client: Client, kgroup: Kgroup, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a store and a signer of other people: run, ended, run again; the tools of an agent read it, too."""
    monkeypatch.setattr(record, "CLOSING_S", 0.2)
    client.classic_group("web", "orders", {"i-0": [0]})
    url = f"s3://{s3.bucket()}/recording"
    with closing(Receiver()) as receiver:

        def run(stop_after: str) -> None:
            words = ("--stop-after", stop_after, "--interval", "1s", "--patience", "0s", *s3.flags)
            ran = kgroup("record", url, "--notify", receiver.url, *words, "-b", client.bootstrap)
            assert (ran.code, "waiting" in ran.err) == (0, False), ran.err

        receiver.closed = True
        run("1500ms")
        assert receiver.taken == [] and receiver.refused
        receiver.closed = False
        run("10ms")
        run("10ms")
    assert [body["event"] for _, body in receiver.taken] == ["incident_opened"]
    keys = {key.removeprefix("recording/") for key in s3.keys(url.split("/")[2])}
    assert {"notified", "topics.json"} <= keys and LOCK not in keys
    folder = RemoteFolder(Location.parse(url), StorageOptions.of(s3.options))
    looks = [line for line in read(files_of(folder)) if isinstance(line, Looked)]
    at = {"at": str(looks[1].at_ms), "group": ["web"], "files": [url]}
    storage = [f"{name}={value}" for name, value in s3.options.items()]
    env = Env("mcp", {}, (), dict(os.environ), OutputOptions())
    agents = Agents(env, Given((), (url,), storage, 1 << 16, 100))
    for command, code in (("doctor", ExitCode.BAD_VERDICT), ("lag", ExitCode.OK)):
        ran = kgroup(command, "web", "--at", at["at"], "--files", url, "-o", "json", *s3.flags)
        assert ran.code == code and ran.document["data"]["recorded"]["seen_ms"] == looks[1].at_ms
        answer = anyio.run(agents.answer, command, at)
        assert json.loads(json.dumps(answer["data"])) == ran.document["data"]
    assert "because: i-0 joined" in kgroup("blame", "web", "--files", url, *s3.flags).out
