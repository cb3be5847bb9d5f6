"""What happened in a group, written as a scenario and played again, also with librdkafka in it."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer

from kgroup.api import Event, Kafka, Kind
from kgroup.broker.call import Call
from kgroup.domain import TopicPartition
from kgroup.errors import ConfigError, TimedOut
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.scenario.playing.consumer import ConsumerGate
from kgroup.scenario.recorded import Heartbeat
from kgroup.testing import Cluster
from tests.ran import Ran, ran
from tests.unit.history.incidents import INCIDENTS, KAFKA, story_of
from tests.unit.testing.test_time import streams_members

GROUP, TOPIC = "pay", "orders"
PATIENCE_S = 120.0
PARTITIONS = 6
UUID = 37
CLASSIC = {"heartbeat.interval.ms": 50, "partition.assignment.strategy": "range"}
Shape = list[tuple[Kind, int, str | None]]


def shape(events: tuple[Event, ...], *, without: tuple[Kind, ...] = ()) -> Shape:
    """What has to be the same: kinds, in order, epochs and members by their names.

    Members that joined or left with one generation have no order of their own on record.
    """
    ids = {id: f"#{n}" for n, id in enumerate(dict.fromkeys(e.member_id for e in events if e.member_id))}
    found = [
        (each.offset, each.kind, each.epoch, each.instance_id or _name(each.member_id, ids))
        for each in events
        if each.kind not in without
    ]
    return [
        (kind, epoch, name) for _, kind, epoch, name in sorted(found, key=lambda f: (f[0], _rank(f[1]), f[3]))
    ]


def _name(member_id: str | None, ids: dict[str, str]) -> str:
    """The client id in front of a classic member's id; of the others, the order in which they came."""
    return "" if member_id is None else member_id[:-UUID] or ids[member_id]


def _rank(kind: Kind) -> int:
    together = {Kind.MEMBER_JOINED: -2, Kind.MEMBER_LEFT_OR_EXPIRED: -1}
    return together.get(kind, 0)


def committed(kafka: Kafka) -> dict[tuple[str, int], int | None]:
    offsets = kafka.describe(GROUP).offsets
    assert offsets is not None
    return {(each.topic, each.partition): each.committed_offset for each in offsets}


class People:
    """Consumers of librdkafka by name; one with a name in `static` has it as its instance id."""

    def __init__(self, kafka: Kafka, static: tuple[str, ...], protocol: str = "classic") -> None:
        self.kafka = kafka
        self.protocol = protocol
        self.static = static
        self.there: dict[str, Consumer] = {}
        self.gone: list[Consumer] = []

    def start(self, name: str) -> None:
        more = {"group.instance.id": name} if name in self.static else {}
        if name in self.there:
            self.gone.append(self.there[name])
        self.there[name] = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap,
                "group.id": GROUP,
                "client.id": name,
                **(CLASSIC if self.protocol == "classic" else {"group.protocol": "consumer"}),
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 2,
                **more,
            }
        )
        self.there[name].subscribe([TOPIC])

    def close(self, name: str) -> None:
        self.there.pop(name).close()

    def poll(self) -> bool:
        for each in self.there.values():
            each.poll(0.005)
        return True

    def settle(self, others: int = 0) -> None:
        """Poll until these and so many others have all partitions between them, and the group is stable."""
        members = len(self.there) + others

        def shared() -> bool:
            self.poll()
            owned = [len(each.assignment()) for each in self.there.values()]
            return all(owned) and (sum(owned) == PARTITIONS) is not bool(others)

        end = time.monotonic() + PATIENCE_S
        while not shared():
            assert time.monotonic() < end, self.kafka.last_events(GROUP)
        waited = self.kafka.wait_for(GROUP, f"members={members}", PATIENCE_S)
        while not shared() or waited.state != "Stable":
            assert time.monotonic() < end, self.kafka.last_events(GROUP)
            waited = self.kafka.wait_for(GROUP, f"members={members}", PATIENCE_S)

    def start_each(self, *names: str) -> None:
        for name in names:
            self.start(name)
            self.settle()

    def restart(self, *names: str) -> None:
        """One after the other leaves and comes back."""
        for name in names:
            self.close(name)
            self.settle()
            self.start_each(name)

    def miss_session(self, kafka: Cluster, name: str) -> None:
        """A member is frozen until its session has ended, and thawed again."""
        kafka.freeze(name)
        kafka.advance("45s")
        frozen = self.there.pop(name)
        self.settle()
        kafka.thaw(name)
        self.there[name] = frozen
        self.settle()

    def commit(self, name: str, offset: int) -> None:
        consumer = self.there[name]
        places = consumer.assignment()
        for place in places:
            place.offset = offset
        consumer.commit(offsets=places, asynchronous=False)

    def end(self) -> None:
        """One after the other leaves, each from a group that has settled; those who keep their place last.

        One that leaves in the middle of a rebalance may have taken part in it or not: no play can tell.
        """
        for name in sorted(self.there, key=lambda name: name in self.static):
            self.close(name)
            if not self.there.keys() <= set(self.static):
                self.settle()
        for each in self.gone:
            each.close()


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path]]:
    """A cluster on which it happened: a session ends, a member is fenced, a rolling restart, commits."""
    with Cluster({TOPIC: PARTITIONS}, timeout_s=PATIENCE_S) as kafka:
        people = People(kafka, static=("orders-2",))
        people.start_each("orders-0", "orders-1", "orders-2")
        people.commit("orders-0", 5)
        people.miss_session(kafka, "orders-1")
        people.start_each("orders-2")  # a second process with its instance id
        people.restart("orders-0", "orders-1")
        people.commit("orders-1", 9)
        people.end()
        yield kafka, tmp_path_factory.mktemp("incident") / "incident.yaml"


@pytest.fixture
def written(incident: tuple[Cluster, Path], capsys: pytest.CaptureFixture[str]) -> Path:
    kafka, path = incident
    path.unlink(missing_ok=True)  # no file is replaced
    assert write(kafka, path, capsys).code == 0
    return path


def write(kafka: Kafka, path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> Ran:
    return ran(capsys, "replay-log", GROUP, "-b", kafka.bootstrap, "--scenario", str(path), *more)


def test_what_is_played_is_what_was_recorded(incident: tuple[Cluster, Path], written: Path) -> None:
    recorded = incident[0].history(GROUP)
    kinds = {event.kind for event in recorded}
    assert {Kind.MEMBER_LEFT_OR_EXPIRED, Kind.MEMBER_REPLACED, Kind.COMMITTED, Kind.LEADER_CHANGED} <= kinds
    with Cluster() as kafka:
        assert shape(kafka.play(written)) == shape(recorded)
        assert committed(kafka) == committed(incident[0])


NO_SCENARIO = {"share-group", "streams-application", "upgrade-and-back", "upgrade-for-good"}
"""Of groups of other kinds, or of one that changed its kind."""


@pytest.mark.parametrize("name", [name for name in KAFKA if name not in NO_SCENARIO])
def test_what_kafka_has_recorded_happens_again(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Transactions are counted in the file, and not played."""
    events = story_of(name).events
    [group] = {event.group for event in events if event.group}
    path = tmp_path / "incident.yaml"
    argv = ("replay-log", group, "--files", str(INCIDENTS / name), "--scenario", str(path))
    assert ran(capsys, *argv).code == 0
    with Cluster() as kafka:
        played = shape(kafka.play(path))
    without = (Kind.TRANSACTION_COMMITTED, Kind.TRANSACTION_ABORTED)
    assert played == shape(tuple(event for event in events if event.group), without=without)


def test_a_group_that_never_had_members_is_played_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "offsets.yaml"
    with Cluster({TOPIC: PARTITIONS}) as kafka:
        kafka.reset_offsets(GROUP, {TopicPartition(TOPIC, 0): 0})
        recorded = shape(kafka.history(GROUP))
        assert write(kafka, path, capsys).code == 0
    with Cluster() as kafka:
        assert shape(kafka.play(path)) == recorded


def test_what_no_record_says_is_unknown(written: Path) -> None:
    document = yaml.safe_load(written.read_text())
    stops = [step["stop"] for step in document["steps"] if "stop" in step]
    assert stops
    assert {stop["cause"] for stop in stops} == {"unknown"}
    assert all(stop["possible"] for stop in stops)
    assert any("heartbeats" in each for each in document["unknown"])
    assert any("how members went" in each for each in document["unknown"])


class Part:
    """A user's consumer, which does what the scenario has it do; `heard` is what its listener was told."""

    def __init__(self, kafka: Cluster, name: str, protocol: str = "classic") -> None:
        self.people = People(kafka, (), protocol)
        self.name = name
        self.heard: list[str] = []
        self.asked: list[str] = []

    def act(self, what: str) -> None:
        self.asked.append(what)
        if what == "stop":
            self.people.close(self.name)
        elif self.name not in self.people.there:
            self.people.start(self.name)
            self._listen()

    def _listen(self) -> None:
        self.people.there[self.name].subscribe(
            [TOPIC],
            on_assign=lambda _, found: self.heard.append(f"assigned {len(found)}"),
            on_revoke=lambda _, found: self.heard.append("revoked"),
            on_lost=lambda _, found: self.heard.append("lost"),
        )


def test_a_consumer_of_librdkafka_plays_one_part(
    incident: tuple[Cluster, Path], written: Path, tmp_path: Path
) -> None:
    """Its session ends as it did, it joins again, and it is restarted as it was."""
    document = yaml.safe_load(written.read_text())
    stop = next(s["stop"] for s in document["steps"] if s.get("stop", {}).get("member") == "orders-1")
    assert stop["possible"] == ["left", "session-ended", "removed"]
    stop |= {"cause": "session-ended", "possible": []}
    path = tmp_path / "edited.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    with Cluster(timeout_s=PATIENCE_S) as kafka:
        part = Part(kafka, "orders-1")
        played = kafka.play(path, part="orders-1", act=part.act, meanwhile=part.people.poll)
        part.people.end()
    own = (Kind.COMMITTED,)  # the part commits by itself
    assert shape(played, without=own) == shape(incident[0].history(GROUP), without=own)
    assert part.asked == ["start", "start", "stop", "start"]
    assert "lost" in part.heard


def test_other_names_are_the_same_everywhere_and_play_the_same(
    incident: tuple[Cluster, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shared.yaml"
    assert write(incident[0], path, capsys, "--replace-names").code == 0
    text = path.read_text()
    assert not [name for name in (GROUP, "orders", "127.0.0.1") if name in text.replace("records", "")]
    with Cluster() as kafka:
        played = kafka.play(path)
    recorded = incident[0].history(GROUP)
    assert [(kind, epoch) for kind, epoch, _ in shape(played)] == [
        (kind, epoch) for kind, epoch, _ in shape(recorded)
    ]
    assert {event.group for event in played} == {"group-1"}
    new = [name and name.replace("client-", "").replace("instance-", "") for _, _, name in shape(played)]
    old = [name and str(int(name[-1]) + 1) if name != "orders-2" else "1" for _, _, name in shape(recorded)]
    assert new == old


def test_a_span_of_time_begins_with_who_was_there(
    incident: tuple[Cluster, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its generations are counted from 1: those before it are not played."""
    recorded = incident[0].history(GROUP)
    replaced = next(event for event in recorded if event.kind is Kind.MEMBER_REPLACED)
    path = tmp_path / "later.yaml"
    assert write(incident[0], path, capsys, "--since", str(replaced.timestamp_ms)).code == 0
    document = yaml.safe_load(path.read_text())
    assert document["from_nothing"] is False
    assert any("at the beginning" in each for each in document["unknown"])
    with Cluster() as kafka:
        played = shape(kafka.play(path))
    later = shape(tuple(e for e in recorded if e.timestamp_ms >= replaced.timestamp_ms))
    earlier = replaced.epoch - 1
    assert played[-len(later) :] == [(kind, epoch - earlier, name) for kind, epoch, name in later]


def test_a_group_that_is_not_in_the_log_is_not_found_and_nothing_is_written(
    incident: tuple[Cluster, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.yaml"
    found = ran(capsys, "replay-log", "nobody", "-b", incident[0].bootstrap, "--scenario", str(path))
    assert found.code == 3
    assert "there is no record of group nobody" in found.err + found.out
    assert not path.exists()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["pay", "orders", "--scenario", "x.yaml"], "--scenario is of one group"),
        (["pay*", "--scenario", "x.yaml"], "--scenario is of one group"),
        (["pay", "--scenario", "x.yaml", "--raw"], "exclude each other"),
        (["pay", "--scenario", "x.yaml", "--events", "committed"], "leave --instance and --events out"),
        (["pay", "--replace-names"], "add --scenario FILE"),
    ],
)
def test_what_no_scenario_can_be_of_is_refused(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ran(capsys, "replay-log", *argv, "-b", "127.0.0.1:1")
    assert found.code == 2
    assert said in found.err


GOOD = """
scenario: 1
group: pay
topics: {orders: 6}
members: {a: {client_id: a}, b: {client_id: b}}
steps:
- start: {member: a}
- rebalance: {at: 3s, generation: 1, leader: a, assignor: range, assigned: {a: 'orders:0-5'}}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("scenario: 1", "scenario: 2", "of version 2, which a newer kgroup wrote"),
        ("scenario: 1", "scenario: x", "write scenario: 1"),
        ("group: pay", "grup: pay", "it is a plan, which kgroup simulate plays"),
        ("topics:", "topic:", "the key 'topic' is unknown.*one of.*topics"),
        ("client_id: a", "client: a", "member a: the key 'client' is unknown.*client_id"),
        ("start:", "begin:", "step 1: 'begin' is unknown.*start"),
        ("member: a}", "member: c}", "step 1: 'c' is not among the members.*a, b"),
        ("{member: a}", "{}", "step 1: start: member is missing"),
        ("at: 3s", "at: -3s", "step 2: rebalance: at: '-3s' is not a duration.*not negative"),
        ("{member: a}", "{member: a, at: 9s}", "step 2: rebalance is 6000 ms before the step above it"),
        ("'orders:0-5'", "'orders'", "'orders' is no partitions.*orders:0-3"),
        ("generation: 1", "generation: one", "generation: 'one' is not a number"),
        ("- rebalance", "- stop: {member: a, cause: unknown}\n- rebalance", "step 2.*nothing is possible"),
        ("- rebalance", "- stop: {member: a, cause: died}\n- rebalance", "cause: 'died' is unknown.*left"),
        ("steps:", "steps: [", "is not valid YAML"),
        ("generation: 1", "generation: 0", "generation 0 does not follow"),
    ],
)
def test_a_file_that_makes_no_sense_says_what_would_be_right(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with Cluster() as kafka, pytest.raises(ConfigError) as raised:
        kafka.play(path)
    assert re.search(said, f"{raised.value.message} {raised.value.hint}", re.DOTALL)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    return path


def test_a_part_that_is_not_there_is_refused(good: Path) -> None:
    with Cluster() as kafka, pytest.raises(ConfigError, match="no member is called 'c'"):
        kafka.play(good, part="c")


def test_a_file_that_is_missing_is_named() -> None:
    with Cluster() as kafka, pytest.raises(ConfigError, match="cannot read scenario nowhere.yaml"):
        kafka.play("nowhere.yaml")


def test_a_group_that_is_there_already_is_refused(good: Path) -> None:
    with Cluster() as kafka:
        kafka.play(good)
        with pytest.raises(ConfigError, match="there is a group pay already"):
            kafka.play(good)


def test_a_part_that_does_not_come_is_named_with_what_it_needs(good: Path) -> None:
    with Cluster() as kafka:
        with pytest.raises(TimedOut, match=r"a did not join.*client.id=a, group.id=pay.*orders"):
            kafka.play(good, part="a", timeout_s=0.2)
        kafka.wait_for(GROUP, "gone")  # and nothing is held up any more


def test_simulate_plays_plans_alone(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = ran(capsys, "simulate", "--scenario", str(good))
    assert found.code == 2
    assert "is what happened in group pay, not a plan" in found.err


def test_it_plays_beside_asynchronous_code_and_leaves_no_thread(good: Path) -> None:
    before = set(threading.enumerate())

    async def played() -> list[Kind]:
        async with Cluster(users={"alice": "secret"}) as kafka:
            events = await asyncio.to_thread(kafka.play, good)
            assert kafka.describe(GROUP).state == "Stable"
            return [event.kind for event in events]

    kinds = asyncio.run(played())
    assert kinds == [Kind.GROUP_CREATED, Kind.MEMBER_JOINED, Kind.REBALANCE_COMPLETED]
    assert {thread for thread in threading.enumerate() if thread.is_alive()} <= before


@pytest.fixture(scope="module")
def of_consumers() -> Iterator[Cluster]:
    """A cluster with a consumer group: a session ends, a static member and another restart, commits."""
    with Cluster({TOPIC: PARTITIONS}, timeout_s=PATIENCE_S) as kafka:
        people = People(kafka, ("orders-2",), "consumer")
        people.start_each("orders-0", "orders-1", "orders-2")
        people.commit("orders-0", 5)
        people.miss_session(kafka, "orders-1")
        people.close("orders-2")
        people.start_each("orders-2")
        people.restart("orders-0")
        people.commit("orders-1", 9)
        people.end()
        yield kafka


@pytest.fixture
def consumers_file(of_consumers: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "consumers.yaml"
    assert write(of_consumers, path, capsys).code == 0
    return path


def test_a_consumer_group_is_played_heartbeat_by_heartbeat(
    of_consumers: Cluster, consumers_file: Path
) -> None:
    recorded = of_consumers.history(GROUP)
    kinds = {event.kind for event in recorded}
    assert {
        Kind.MEMBER_LEFT_FOR_NOW,
        Kind.MEMBER_REPLACED,
        Kind.MEMBER_REVOKING,
        Kind.TARGET_COMPUTED,
    } <= kinds
    with Cluster(timeout_s=PATIENCE_S) as kafka:
        assert shape(kafka.play(consumers_file)) == shape(recorded)
        assert committed(kafka) == committed(of_consumers)


def test_a_consumer_of_the_consumer_protocol_plays_one_part(
    of_consumers: Cluster, consumers_file: Path
) -> None:
    """Its member id is its own, and yet it is assigned what was recorded."""
    document = yaml.safe_load(consumers_file.read_text())
    stop = next(s["stop"] for s in document["steps"] if s.get("stop", {}).get("member") == "orders-0")
    assert stop["possible"][0] == "left"
    with Cluster(timeout_s=PATIENCE_S) as kafka:
        part = Part(kafka, "orders-0", "consumer")
        played = kafka.play(consumers_file, part="orders-0", act=part.act, meanwhile=part.people.poll)
        part.people.end()
    own = (Kind.COMMITTED,)
    assert shape(played, without=own) == shape(of_consumers.history(GROUP), without=own)
    assert part.asked == ["start", "stop", "start", "stop"]
    assert part.heard[0] == "assigned 6"
    assert part.heard.count("revoked") >= 3  # two joins, and one that came back


def test_a_topic_of_a_consumer_group_grows_as_it_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "grown.yaml"
    path.write_text(
        """
scenario: 1
group: pay
protocol: consumer
topics: {orders: 2}
members: {a: {client_id: a, topics: [orders]}}
steps:
- start: {member: a}
- heartbeat: {epoch: 2, assignment_epoch: 2, target: {a: 'orders:0-1'}, member: a, member_epoch: 2, state: stable, owns: 'orders:0-1'}
- grow: {at: 9s, topics: {orders: 3}}
- heartbeat: {epoch: 3, assignment_epoch: 3, target: {a: 'orders:0-2'}, member: a, member_epoch: 3, state: stable, owns: 'orders:0-2'}
"""  # noqa: E501 - a step a line, as they are written
    )
    with Cluster() as kafka:
        played = kafka.play(path)
        assert Kind.TOPICS_CHANGED in {event.kind for event in played}
        again = tmp_path / "again.yaml"
        assert write(kafka, again, capsys).code == 0
    steps = [yaml.safe_load(each.read_text())["steps"] for each in (path, again)]
    for each in (step for listed in steps for entry in listed for step in entry.values()):
        each.pop("at", None)
    assert steps[0] == steps[1]


def test_a_group_of_another_kind_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "streams.yaml"
    with Cluster({TOPIC: PARTITIONS}) as kafka, streams_members(kafka, "a"):
        kafka.until_stable("app", members=1, timeout_s=PATIENCE_S)
        found = ran(capsys, "replay-log", "app", "-b", kafka.bootstrap, "--scenario", str(path))
    assert found.code == 2
    assert "app is a streams group" in found.err
    assert not path.exists()


def test_a_consumer_group_without_its_beginning_is_refused(
    of_consumers: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replaced = next(e for e in of_consumers.history(GROUP) if e.kind is Kind.MEMBER_REPLACED)
    path = tmp_path / "later.yaml"
    found = write(of_consumers, path, capsys, "--since", str(replaced.timestamp_ms))
    assert found.code == 2
    assert "leave --since out" in found.err
    assert not path.exists()


def test_a_member_that_fell_silent_is_not_served_what_it_sent_before() -> None:
    """It is played no more, so its request has no name; where it is nobody's turn, that is nobody's."""
    step = Heartbeat(at_ms=0, epoch=4, assignment_epoch=3)
    names = {"m2": "app#2"}

    def name_of(member_id: str, instance_id: str | None, client_id: str) -> str | None:
        return names.get(member_id)

    with Cluster() as kafka:
        control = kafka._running().control
        for turn, served in ((None, []), ("app", []), ("app#2", ["m2"])):
            gate = ConsumerGate(control, GROUP, name_of, str, expected=step, turn=turn)
            calls = [
                Call(ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=each, member_epoch=2), 1)
                for each in ("m1", "m2")
            ]
            assert [call.body.member_id for call in calls if gate.admits(call)] == served
