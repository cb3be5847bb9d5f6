"""The consumer: finding the coordinator, answering it, and delivering by its own clock."""

import pytest

from kgroup.errors import ConfigError
from kgroup.zookeeper.consumer.machine import ConsumerConfig, LegacyConsumer, Phase
from kgroup.zookeeper.events import (
    Close,
    Closed,
    CommitNow,
    Committed,
    Connect,
    Connected,
    Fetch,
    Leave,
    Log,
    Malformed,
    NotConnected,
    OutOfRange,
    Pause,
    Received,
    Resume,
    Send,
    Start,
    Stop,
)
from kgroup.zookeeper.wire.codec import Awaiting
from kgroup.zookeeper.wire.messages import (
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


class Client:
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
    client = Client(**config)
    client.connected()
    client.says(ClusterMetadataResponse(0, coordinator, HOSTS))
    if coordinator != 1:
        client.connected()
    client.says(RegisterConsumerResponse(0))
    if started:
        client.says(start((T0, 5), (T1, -1)))
    return client


def start(*parts, brokers=HOSTS):
    owned = tuple(PartitionAndOffset(p.topic, p.name, offset) for p, offset in parts)
    return StartFetcherRequest("c1", (Ownership("c1-0", owned),) if parts else (), brokers)


def ping(retries=0):
    return PingRequest("c1", retries)


def test_discovery_and_registration():
    """LC-01, LC-07, LC-14, LC-77: one connection at a time; ask any broker, register with the right one."""
    client = Client()
    assert client.effects == [Connect(1, "h1", 9092)]
    client.connected()
    assert client.sent == [ClusterMetadataRequest()] and client.machine.awaiting is Awaiting.METADATA
    client.says(ClusterMetadataResponse(0, 2, HOSTS))
    assert client.effects == [Close(1), Connect(2, "h2", 9092)]
    client.connected()
    (request,) = client.sent
    assert request == RegisterConsumerRequest("g", "c1", '{"t":1}', True, "smallest", 6000)
    assert client.machine.awaiting is Awaiting.REGISTRATION
    client.says(RegisterConsumerResponse(0))
    assert client.machine.phase is Phase.MEMBER and client.effects == []


def test_the_coordinator_asked_first_keeps_its_connection():
    """LC-01: it is the one connection there is."""
    client = Client()
    client.connected()
    client.says(ClusterMetadataResponse(0, 1, HOSTS))
    assert isinstance(client.sent[0], RegisterConsumerRequest) and client.of(Connect) == []


def test_dead_brokers_are_passed_by():
    """LC-77: two dead, one alive."""
    client = Client()
    for host in ("h2", "h3"):
        client.step(NotConnected(client.conn))
        assert client.of(Connect)[0].host == host and len(client.logged) == 1
    client.connected()
    assert client.sent == [ClusterMetadataRequest()]


def test_all_dead_is_said_once_a_round_and_tried_for_ever():
    """LC-86: with a wait between, the consumer's own."""
    client = Client()
    backoff = None
    for _ in range(4):
        for _ in range(2):
            client.step(NotConnected(client.conn))
        client.step(NotConnected(client.conn))
        assert client.logged == ["none of 3 brokers can be asked for the coordinator; trying on"]
        waited = client.machine.next_wake_ms() - client.now
        assert backoff in (None, waited) and 800 <= waited <= 1200
        backoff = waited
        client.after(waited)
        assert len(client.of(Connect)) == 1


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
    client = Client()
    client.connected()
    client.says(ClusterMetadataResponse(7, -1, ()))
    assert client.effects == [Close(1)] and client.machine.phase is Phase.BACKOFF
    client.after(1_200)
    assert client.of(Connect)[0].host == "h2"
    client.connected()
    client.says(ClusterMetadataResponse(0, 2, HOSTS))
    client.says(RegisterConsumerResponse(7))
    assert client.of(Close) and client.machine.phase is Phase.BACKOFF and client.logged == []


@pytest.mark.parametrize("error", [5, 6, 8, 9, -1, 77])
def test_refused_registrations_say_what_to_change_and_are_tried_again(error):
    """LC-48, LC-77: the consumer closes."""
    client = Client()
    client.connected()
    client.says(ClusterMetadataResponse(0, 1, HOSTS))
    client.says(RegisterConsumerResponse(error))
    assert client.of(Close) and len(client.logged) == 1
    client.after(1_200)
    assert len(client.of(Connect)) == 1


def test_starting_and_reporting():
    """LC-40, LC-79, LC-80: where to begin, positions delivered, nothing behind a Stop."""
    client = member(started=False)
    client.says(start((T0, 5), (T1, -1)))
    assert client.of(Start) == [Start((Fetch("c1-0", T0, 5), Fetch("c1-0", T1, None)))]
    assert client.sent == [StartFetcherResponse(0, "c1")]
    client.machine.delivered(T0, 8)
    client.says(ping())
    assert client.sent == [PingResponse(0, "c1", (PartitionAndOffset("t", "0", 8),))]
    client.says(StopFetcherRequest("c1"))
    assert client.effects[0] == Stop()
    assert client.sent == [StopFetcherResponse(0, "c1", (PartitionAndOffset("t", "0", 8),))]
    assert not client.machine.may_deliver(T0, client.now)
    client.says(ping())
    assert client.sent == [PingResponse(0, "c1", ())]


def test_without_auto_commit_no_offsets():
    """LC-40, LC-42."""
    client = member(auto_commit=False)
    client.says(ping())
    assert client.sent == [PingResponse(0, "c1", None)]
    client.says(StopFetcherRequest("c1"))
    assert client.sent == [StopFetcherResponse(0, "c1", None)]


def test_streams_of_a_wildcard_are_made_anew():
    """LC-80: a new topic's records come from the offset given."""
    client = member(topics="*1*.*")
    assert client.machine.assignment.streams == {"c1-0": ("t",)}
    new = Partition("new", "0")
    client.says(StopFetcherRequest("c1"))
    client.says(start((T0, 5), (new, 7)))
    assert client.machine.assignment.streams == {"c1-0": ("new", "t")}
    assert client.machine.positions[new] == 7


def test_brokers_of_a_start_are_asked_next():
    """LC-69: the cluster has moved."""
    client = member(started=False)
    moved = (Broker(8, "h8", 9092),)
    client.says(start((T0, 5), brokers=moved))
    client.step(Closed(client.conn))
    hosts = [client.of(Connect)[0].host]
    for _ in range(3):
        client.step(NotConnected(client.conn))
        hosts += [connect.host for connect in client.of(Connect)]
    assert "h8" in hosts and "h1" in hosts, "those given stay, should the others be dead"


def test_the_lease_begins_with_the_registration_as_it_was_sent():
    """LC-61, OC-34: not as it was answered."""
    client = Client()
    client.connected()
    client.says(ClusterMetadataResponse(0, 1, HOSTS))
    client.now += 4_000
    client.says(RegisterConsumerResponse(0))
    client.says(start((T0, 5)))
    client.after(1_999)
    assert client.effects == [] and client.machine.may_deliver(T0, client.now)
    client.after(1)
    assert client.effects == [Pause()] and not client.machine.may_deliver(T0, client.now)


def test_the_lease_is_renewed_by_what_is_known_to_have_arrived():
    """LC-39, LC-61, LC-75: the answer before a ping without retries; Stop and Start renew nothing."""
    client = member()
    registered = client.now
    client.after(2_000)
    client.says(ping())
    answered = client.now
    client.after(2_000)
    assert client.machine.lease.end_ms == registered + S, "nobody knows yet whether the answer arrived"
    client.says(ping())
    assert client.machine.lease.end_ms == answered + S
    client.after(2_000)
    client.says(ping(retries=1))
    assert client.machine.lease.end_ms == answered + S
    client.says(StopFetcherRequest("c1"))
    client.says(start((T0, 5)))
    assert client.machine.lease.end_ms == answered + S
    client.after(2_000)
    assert client.effects == [Pause()]
    client.says(ping())
    assert client.effects[0] == Resume() and client.machine.may_deliver(T0, client.now)


def test_a_start_past_the_lease_delivers_nothing():
    client = member(started=False)
    for _ in range(3):
        client.after(2_000)
        client.says(ping(retries=1))
    client.says(start((T0, 5)))
    assert [type(effect) for effect in client.effects] == [Start, Pause, Send]
    assert not client.machine.may_deliver(T0, client.now)


def test_silence_for_a_session():
    """LC-75: no frame: stop, close, look for the coordinator."""
    client = member()
    client.after(2_000)
    client.says(ping())
    client.after(S - 1)
    assert client.effects == [Pause()]
    conn = client.conn
    client.after(1)
    assert client.effects == [Close(conn), Stop(), Connect(conn + 1, "h2", 9092)]


def test_a_long_pause_delivers_nothing():
    """LC-61, LC-89, OC-34, scenario 37: the clock is asked before each record and before each message."""
    client = member()
    client.after(2_000)
    client.says(ping())
    conn, client.now = client.conn, client.now + 20_000
    assert not client.machine.may_deliver(T0, client.now)
    client.step(Received(conn, ping()))
    assert client.effects[:2] == [Close(conn), Stop()] and client.sent == []
    client.connected()
    assert client.sent == [ClusterMetadataRequest()]


def test_a_closed_connection():
    """LC-75: stop at once; what comes of it later is nobody's."""
    client = member()
    old = client.conn
    client.step(Closed(old))
    assert client.effects[0] == Stop() and not client.machine.may_deliver(T0, client.now)
    client.step(Received(old, ping()))
    assert client.effects == []


def test_an_out_of_range_position():
    """LC-78, OC-40, scenario 38: close, register anew, begin by the reset word."""
    client = member()
    client.step(OutOfRange(T0))
    assert client.effects == []
    conn = client.conn
    client.says(ping())
    assert client.effects[:2] == [Close(conn), Stop()] and client.sent == []
    client.connected()
    client.says(ClusterMetadataResponse(0, 2, HOSTS))
    client.says(RegisterConsumerResponse(0))
    client.says(start((T0, 5), (T1, 5)))
    assert client.of(Start) == [Start((Fetch("c1-0", T0, None), Fetch("c1-0", T1, 5)))]
    client.says(StopFetcherRequest("c1"))
    client.says(start((T0, 5)))
    assert client.of(Start) == [Start((Fetch("c1-0", T0, 5),))]


def test_leaving_with_auto_commit_waits_for_the_ping_behind_its_report():
    """LC-78, scenario 36: only a ping without retries says that the offsets have arrived."""
    client = member()
    client.step(Leave())
    assert client.effects == [Stop()] and not client.machine.may_deliver(T0, client.now)
    reported = (PartitionAndOffset("t", "0", 5),)
    for retries in (0, 1, 1):
        client.says(ping(retries))
        assert client.sent == [PingResponse(0, "c1", reported)]
    client.says(ping())
    assert client.sent == [PingResponse(ErrorMapping.CLOSING, "c1", reported)]
    assert client.effects[-1] == Close(client.conn) and client.machine.phase is Phase.LEFT
    assert client.machine.next_wake_ms() is None


def test_leaving_without_auto_commit_ends_with_the_next_ping():
    """LC-78."""
    client = member(auto_commit=False)
    client.step(Leave())
    client.says(StopFetcherRequest("c1"))
    client.says(start((T0, 5)))
    assert client.of(Start) == [] and client.sent == [StartFetcherResponse(0, "c1")]
    client.says(ping())
    assert client.sent == [PingResponse(ErrorMapping.CLOSING, "c1", None)]


def test_leaving_that_loses_its_connection_says_so():
    client = member()
    client.step(Leave())
    client.step(Closed(client.conn))
    assert client.machine.phase is Phase.LEFT and "before its last positions" in client.logged[0]


def test_leaving_before_there_is_anything_to_leave():
    client = Client()
    client.step(Leave())
    assert client.effects == [Close(1)] and client.machine.phase is Phase.LEFT


def test_message_streams_are_made_once():
    """LC-02, scenario 40: KAFKA-242; offsets are untouched."""
    client = member()
    client.machine.delivered(T0, 8)
    with pytest.raises(ConfigError, match="at most once"):
        client.machine.create_message_streams('{"t":2}', client.now)
    assert client.machine.positions[T0] == 8


def test_rebalancing_can_be_off():
    """LC-02: KAFKA-364; what it had goes on, what is new waits, and nothing is kept that it was not given."""
    client = member()
    client.machine.assignment.enabled = False
    client.says(StopFetcherRequest("c1"))
    t2 = Partition("t", "2")
    client.says(start((T0, 8), (t2, 1)))
    assert client.of(Start) == [Start((Fetch("c1-0", T0, 8),))] and client.sent == [
        StartFetcherResponse(0, "c1")
    ]
    client.take(client.machine.enable_rebalance(client.now))
    assert client.of(Start) == [Start((Fetch("c1-0", T0, 8), Fetch("c1-0", t2, 1)))]
    client.take(client.machine.enable_rebalance(client.now))
    assert client.effects == []


def test_commits_on_demand():
    """LC-82: what has no position cannot be committed, and is not said to be."""
    client = member()
    client.step(CommitNow())
    assert client.sent == [CommitOffsetRequest("c1", (PartitionAndOffset("t", "0", 5),))]
    client.says(CommitOffsetResponse(0, "c1"))
    assert client.effects == [Committed(0)]
    client.says(StopFetcherRequest("c1"))
    client.step(CommitNow())
    assert client.effects == [Committed(-1)]


@pytest.mark.parametrize("event", [Malformed(1, "garbage"), Received(1, RegisterConsumerResponse(0))])
def test_brokers_that_talk_nonsense_are_left(event):
    client = Client()
    client.connected()
    client.step(event)
    assert client.of(Close) == [Close(1)] and client.of(Connect)[0].host == "h2"


def test_brokers_that_say_nothing_are_left():
    """LC-77: an open port alone is no answer."""
    client = Client()
    client.connected()
    client.after(S)
    assert client.of(Close) == [Close(1)] and client.of(Connect)[0].host == "h2"


def test_a_coordinator_whose_address_nobody_tells():
    client = Client(brokers=HOSTS[:1])
    client.connected()
    client.says(ClusterMetadataResponse(0, 9, HOSTS))
    assert client.machine.phase is Phase.BACKOFF


def test_settings():
    """LC-14: brokers are required."""
    with pytest.raises(ConfigError):
        ConsumerConfig(group_id="g", consumer_id="c", brokers=())
    assert ConsumerConfig(group_id="g", consumer_id="c", brokers=HOSTS).session_timeout_ms == 6000
