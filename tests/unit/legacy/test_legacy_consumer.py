"""The consumer: finding the coordinator, answering it, and delivering by its own clock."""

import pytest

from kgroup.errors import ConfigError
from kgroup.legacy.consumer.events import (
    CommitNow,
    Committed,
    Connect,
    Connected,
    ConsumerConfig,
    Fetch,
    Leave,
    NotConnected,
    OutOfRange,
    Pause,
    Received,
    Resume,
    Send,
    Start,
    Stop,
)
from kgroup.legacy.consumer.machine import LegacyConsumer, Phase
from kgroup.legacy.coordinator.events import Close, Closed, Log, Malformed
from kgroup.legacy.wire.codec import Awaiting
from kgroup.legacy.wire.messages import (
    Broker,
    ClusterMetadataRequest,
    ClusterMetadataResponse,
    CommitOffsetRequest,
    CommitOffsetResponse,
    ErrorMapping,
    Ownership,
    Partition,
    PartitionAndOffset,
    PingRequest,
    PingResponse,
    RegisterConsumerRequest,
    RegisterConsumerResponse,
    StartFetcherRequest,
    StartFetcherResponse,
    StopFetcherRequest,
    StopFetcherResponse,
)

S = 6000
HOSTS = tuple(Broker(n, f"h{n}", 9092) for n in (1, 2, 3))
T0, T1 = Partition("t", "0"), Partition("t", "1")


class Desk:
    """A consumer, and somebody who plays brokers and time."""

    def __init__(self, topics='{"t":1}', brokers=HOSTS, **config):
        config = ConsumerConfig(group_id="g", consumer_id="c1", brokers=brokers, **config)
        self.machine = LegacyConsumer(config)
        self.now = 1_000
        self.effects = self.machine.create_message_streams(topics, self.now)
        self.conn = self.of(Connect)[-1].conn

    def of(self, kind):
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def step(self, event):
        self.take(self.machine.step(event, self.now))

    def take(self, effects):
        self.effects = effects
        for connect in self.of(Connect):
            self.conn = connect.conn

    def says(self, message):
        self.step(Received(self.conn, message))

    def connected(self):
        self.step(Connected(self.conn))

    def after(self, ms):
        """Let time pass, every wake at its moment; all effects of it."""
        until, effects = self.now + ms, []
        while (due := self.machine.next_wake_ms()) is not None and due <= until:
            self.now = max(self.now, due)
            self.take(self.machine.wake(self.now))
            effects += self.effects
        self.now, self.effects = until, effects

    @property
    def sent(self):
        return [effect.message for effect in self.of(Send)]

    @property
    def logged(self):
        return [log.text for log in self.of(Log)]


def member(started=True, coordinator=1, **config):
    """A registered consumer; started, it has t-0 from 5 and t-1 by the reset word."""
    desk = Desk(**config)
    desk.connected()
    desk.says(ClusterMetadataResponse(0, coordinator, HOSTS))
    if coordinator != 1:
        desk.connected()
    desk.says(RegisterConsumerResponse(0))
    if started:
        desk.says(start((T0, 5), (T1, -1)))
    return desk


def start(*parts, brokers=HOSTS):
    owned = tuple(PartitionAndOffset(p.topic, p.name, offset) for p, offset in parts)
    return StartFetcherRequest("c1", (Ownership("c1-0", owned),) if parts else (), brokers)


def ping(retries=0):
    return PingRequest("c1", retries)


def test_discovery_and_registration():
    """LC-01, LC-07, LC-14, LC-77: one connection at a time; ask any broker, register with the right one."""
    desk = Desk()
    assert desk.effects == [Connect(1, "h1", 9092)]
    desk.connected()
    assert desk.sent == [ClusterMetadataRequest()] and desk.machine.awaiting is Awaiting.METADATA
    desk.says(ClusterMetadataResponse(0, 2, HOSTS))
    assert desk.effects == [Close(1), Connect(2, "h2", 9092)]
    desk.connected()
    (request,) = desk.sent
    assert request == RegisterConsumerRequest("g", "c1", '{"t":1}', True, "smallest", 6000)
    assert desk.machine.awaiting is Awaiting.REGISTRATION
    desk.says(RegisterConsumerResponse(0))
    assert desk.machine.phase is Phase.MEMBER and desk.effects == []


def test_the_coordinator_asked_first_keeps_its_connection():
    """LC-01: it is the one connection there is."""
    desk = Desk()
    desk.connected()
    desk.says(ClusterMetadataResponse(0, 1, HOSTS))
    assert isinstance(desk.sent[0], RegisterConsumerRequest) and desk.of(Connect) == []


def test_dead_brokers_are_passed_by():
    """LC-77: two dead, one alive."""
    desk = Desk()
    for host in ("h2", "h3"):
        desk.step(NotConnected(desk.conn))
        assert desk.of(Connect)[0].host == host and len(desk.logged) == 1
    desk.connected()
    assert desk.sent == [ClusterMetadataRequest()]


def test_all_dead_is_said_once_a_round_and_tried_for_ever():
    """LC-86: with a wait between, the consumer's own."""
    desk = Desk()
    backoff = None
    for _ in range(4):
        for _ in range(2):
            desk.step(NotConnected(desk.conn))
        desk.step(NotConnected(desk.conn))
        assert desk.logged == ["none of 3 brokers can be asked for the coordinator; trying on"]
        waited = desk.machine.next_wake_ms() - desk.now
        assert backoff in (None, waited) and 800 <= waited <= 1200
        backoff = waited
        desk.after(waited)
        assert len(desk.of(Connect)) == 1


def test_backoffs_are_spread():
    """LC-77, LC-87: by the consumer's id, so that thousands do not come back at one moment."""
    waits = set()
    for number in range(500):
        config = ConsumerConfig(group_id="g", consumer_id=f"consumer-{number}", brokers=HOSTS[:1])
        machine = LegacyConsumer(config)
        machine.create_message_streams('{"t":1}', 0)
        machine.step(NotConnected(1), 0)
        waits.add(machine.next_wake_ms())
    assert len(waits) > 150 and min(waits) >= 800 and max(waits) <= 1200


def test_nobody_coordinates_yet():
    """LC-49, LC-77, scenario 9: 7 at the question or at the registration: wait, then the next broker."""
    desk = Desk()
    desk.connected()
    desk.says(ClusterMetadataResponse(7, -1, ()))
    assert desk.effects == [Close(1)] and desk.machine.phase is Phase.BACKOFF
    desk.after(1_200)
    assert desk.of(Connect)[0].host == "h2"
    desk.connected()
    desk.says(ClusterMetadataResponse(0, 2, HOSTS))
    desk.says(RegisterConsumerResponse(7))
    assert desk.of(Close) and desk.machine.phase is Phase.BACKOFF and desk.logged == []


@pytest.mark.parametrize("error", [5, 6, 8, 9, -1, 77])
def test_refused_registrations_say_what_to_change_and_are_tried_again(error):
    """LC-48, LC-77: the consumer closes."""
    desk = Desk()
    desk.connected()
    desk.says(ClusterMetadataResponse(0, 1, HOSTS))
    desk.says(RegisterConsumerResponse(error))
    assert desk.of(Close) and len(desk.logged) == 1
    desk.after(1_200)
    assert len(desk.of(Connect)) == 1


def test_starting_and_reporting():
    """LC-40, LC-79, LC-80: where to begin, positions delivered, nothing behind a Stop."""
    desk = member(started=False)
    desk.says(start((T0, 5), (T1, -1)))
    assert desk.of(Start) == [Start((Fetch("c1-0", T0, 5), Fetch("c1-0", T1, None)))]
    assert desk.sent == [StartFetcherResponse(0, "c1")]
    desk.machine.delivered(T0, 8)
    desk.says(ping())
    assert desk.sent == [PingResponse(0, "c1", (PartitionAndOffset("t", "0", 8),))]
    desk.says(StopFetcherRequest("c1"))
    assert desk.effects[0] == Stop()
    assert desk.sent == [StopFetcherResponse(0, "c1", (PartitionAndOffset("t", "0", 8),))]
    assert not desk.machine.may_deliver(T0, desk.now)
    desk.says(ping())
    assert desk.sent == [PingResponse(0, "c1", ())]


def test_without_auto_commit_no_offsets():
    """LC-40, LC-42."""
    desk = member(auto_commit=False)
    desk.says(ping())
    assert desk.sent == [PingResponse(0, "c1", None)]
    desk.says(StopFetcherRequest("c1"))
    assert desk.sent == [StopFetcherResponse(0, "c1", None)]


def test_streams_of_a_wildcard_are_made_anew():
    """LC-80: a new topic's records come from the offset given."""
    desk = member(topics="*1*.*")
    assert desk.machine.assignment.streams == {"c1-0": ("t",)}
    new = Partition("new", "0")
    desk.says(StopFetcherRequest("c1"))
    desk.says(start((T0, 5), (new, 7)))
    assert desk.machine.assignment.streams == {"c1-0": ("new", "t")}
    assert desk.machine.positions[new] == 7


def test_brokers_of_a_start_are_asked_next():
    """LC-69: the cluster has moved."""
    desk = member(started=False)
    moved = (Broker(8, "h8", 9092),)
    desk.says(start((T0, 5), brokers=moved))
    desk.step(Closed(desk.conn))
    hosts = [desk.of(Connect)[0].host]
    for _ in range(3):
        desk.step(NotConnected(desk.conn))
        hosts += [connect.host for connect in desk.of(Connect)]
    assert "h8" in hosts and "h1" in hosts, "those given stay, should the others be dead"


def test_the_lease_begins_with_the_registration_as_it_was_sent():
    """LC-61, OC-34: not as it was answered."""
    desk = Desk()
    desk.connected()
    desk.says(ClusterMetadataResponse(0, 1, HOSTS))
    desk.now += 4_000
    desk.says(RegisterConsumerResponse(0))
    desk.says(start((T0, 5)))
    desk.after(1_999)
    assert desk.effects == [] and desk.machine.may_deliver(T0, desk.now)
    desk.after(1)
    assert desk.effects == [Pause()] and not desk.machine.may_deliver(T0, desk.now)


def test_the_lease_is_renewed_by_what_is_known_to_have_arrived():
    """LC-39, LC-61, LC-75: the answer before a ping without retries; Stop and Start renew nothing."""
    desk = member()
    registered = desk.now
    desk.after(2_000)
    desk.says(ping())
    answered = desk.now
    desk.after(2_000)
    assert desk.machine.lease.end_ms == registered + S, "nobody knows yet whether the answer arrived"
    desk.says(ping())
    assert desk.machine.lease.end_ms == answered + S
    desk.after(2_000)
    desk.says(ping(retries=1))
    assert desk.machine.lease.end_ms == answered + S
    desk.says(StopFetcherRequest("c1"))
    desk.says(start((T0, 5)))
    assert desk.machine.lease.end_ms == answered + S
    desk.after(2_000)
    assert desk.effects == [Pause()]
    desk.says(ping())
    assert desk.effects[0] == Resume() and desk.machine.may_deliver(T0, desk.now)


def test_a_start_past_the_lease_delivers_nothing():
    desk = member(started=False)
    for _ in range(3):
        desk.after(2_000)
        desk.says(ping(retries=1))
    desk.says(start((T0, 5)))
    assert [type(effect) for effect in desk.effects] == [Start, Pause, Send]
    assert not desk.machine.may_deliver(T0, desk.now)


def test_silence_for_a_session():
    """LC-75: no frame: stop, close, look for the coordinator."""
    desk = member()
    desk.after(2_000)
    desk.says(ping())
    desk.after(S - 1)
    assert desk.effects == [Pause()]
    conn = desk.conn
    desk.after(1)
    assert desk.effects == [Close(conn), Stop(), Connect(conn + 1, "h2", 9092)]


def test_a_long_pause_delivers_nothing():
    """LC-61, LC-89, OC-34, scenario 37: the clock is asked before each record and before each message."""
    desk = member()
    desk.after(2_000)
    desk.says(ping())
    conn, desk.now = desk.conn, desk.now + 20_000
    assert not desk.machine.may_deliver(T0, desk.now)
    desk.step(Received(conn, ping()))
    assert desk.effects[:2] == [Close(conn), Stop()] and desk.sent == []
    desk.connected()
    assert desk.sent == [ClusterMetadataRequest()]


def test_a_closed_connection():
    """LC-75: stop at once; what comes of it later is nobody's."""
    desk = member()
    old = desk.conn
    desk.step(Closed(old))
    assert desk.effects[0] == Stop() and not desk.machine.may_deliver(T0, desk.now)
    desk.step(Received(old, ping()))
    assert desk.effects == []


def test_an_out_of_range_position():
    """LC-78, OC-40, scenario 38: close, register anew, begin by the reset word."""
    desk = member()
    desk.step(OutOfRange(T0))
    assert desk.effects == []
    conn = desk.conn
    desk.says(ping())
    assert desk.effects[:2] == [Close(conn), Stop()] and desk.sent == []
    desk.connected()
    desk.says(ClusterMetadataResponse(0, 2, HOSTS))
    desk.says(RegisterConsumerResponse(0))
    desk.says(start((T0, 5), (T1, 5)))
    assert desk.of(Start) == [Start((Fetch("c1-0", T0, None), Fetch("c1-0", T1, 5)))]
    desk.says(StopFetcherRequest("c1"))
    desk.says(start((T0, 5)))
    assert desk.of(Start) == [Start((Fetch("c1-0", T0, 5),))]


def test_leaving_with_auto_commit_waits_for_the_ping_behind_its_report():
    """LC-78, scenario 36: only a ping without retries says that the offsets have arrived."""
    desk = member()
    desk.step(Leave())
    assert desk.effects == [Stop()] and not desk.machine.may_deliver(T0, desk.now)
    reported = (PartitionAndOffset("t", "0", 5),)
    for retries in (0, 1, 1):
        desk.says(ping(retries))
        assert desk.sent == [PingResponse(0, "c1", reported)]
    desk.says(ping())
    assert desk.sent == [PingResponse(ErrorMapping.CLOSING, "c1", reported)]
    assert desk.effects[-1] == Close(desk.conn) and desk.machine.phase is Phase.LEFT
    assert desk.machine.next_wake_ms() is None


def test_leaving_without_auto_commit_ends_with_the_next_ping():
    """LC-78."""
    desk = member(auto_commit=False)
    desk.step(Leave())
    desk.says(StopFetcherRequest("c1"))
    desk.says(start((T0, 5)))
    assert desk.of(Start) == [] and desk.sent == [StartFetcherResponse(0, "c1")]
    desk.says(ping())
    assert desk.sent == [PingResponse(ErrorMapping.CLOSING, "c1", None)]


def test_leaving_that_loses_its_connection_says_so():
    desk = member()
    desk.step(Leave())
    desk.step(Closed(desk.conn))
    assert desk.machine.phase is Phase.LEFT and "before its last positions" in desk.logged[0]


def test_leaving_before_there_is_anything_to_leave():
    desk = Desk()
    desk.step(Leave())
    assert desk.effects == [Close(1)] and desk.machine.phase is Phase.LEFT


def test_message_streams_are_made_once():
    """LC-02, scenario 40: KAFKA-242; offsets are untouched."""
    desk = member()
    desk.machine.delivered(T0, 8)
    with pytest.raises(ConfigError, match="at most once"):
        desk.machine.create_message_streams('{"t":2}', desk.now)
    assert desk.machine.positions[T0] == 8


def test_rebalancing_can_be_off():
    """LC-02: KAFKA-364; what it had goes on, what is new waits, and nothing is kept that it was not given."""
    desk = member()
    desk.machine.assignment.enabled = False
    desk.says(StopFetcherRequest("c1"))
    t2 = Partition("t", "2")
    desk.says(start((T0, 8), (t2, 1)))
    assert desk.of(Start) == [Start((Fetch("c1-0", T0, 8),))] and desk.sent == [StartFetcherResponse(0, "c1")]
    desk.take(desk.machine.enable_rebalance(desk.now))
    assert desk.of(Start) == [Start((Fetch("c1-0", T0, 8), Fetch("c1-0", t2, 1)))]
    desk.take(desk.machine.enable_rebalance(desk.now))
    assert desk.effects == []


def test_commits_on_demand():
    """LC-82: what has no position cannot be committed, and is not said to be."""
    desk = member()
    desk.step(CommitNow())
    assert desk.sent == [CommitOffsetRequest("c1", (PartitionAndOffset("t", "0", 5),))]
    desk.says(CommitOffsetResponse(0, "c1"))
    assert desk.effects == [Committed(0)]
    desk.says(StopFetcherRequest("c1"))
    desk.step(CommitNow())
    assert desk.effects == [Committed(-1)]


@pytest.mark.parametrize("event", [Malformed(1, "garbage"), Received(1, RegisterConsumerResponse(0))])
def test_brokers_that_talk_nonsense_are_left(event):
    desk = Desk()
    desk.connected()
    desk.step(event)
    assert desk.of(Close) == [Close(1)] and desk.of(Connect)[0].host == "h2"


def test_brokers_that_say_nothing_are_left():
    """LC-77: an open port alone is no answer."""
    desk = Desk()
    desk.connected()
    desk.after(S)
    assert desk.of(Close) == [Close(1)] and desk.of(Connect)[0].host == "h2"


def test_a_coordinator_whose_address_nobody_tells():
    desk = Desk(brokers=HOSTS[:1])
    desk.connected()
    desk.says(ClusterMetadataResponse(0, 9, HOSTS))
    assert desk.machine.phase is Phase.BACKOFF


def test_settings():
    """LC-14: brokers are required."""
    with pytest.raises(ConfigError):
        ConsumerConfig(group_id="g", consumer_id="c", brokers=())
    assert ConsumerConfig(group_id="g", consumer_id="c", brokers=HOSTS).session_timeout_ms == 6000
