"""The consumer: finds the coordinator, registers, answers, and delivers while its lease is good (9)."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from kgroup.domain import java_string_hash
from kgroup.errors import ConfigError
from kgroup.zookeeper import events
from kgroup.zookeeper.wire import messages
from kgroup.zookeeper.wire.codec import Awaiting


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """One consumer's settings, times in ms; `reset` is where to begin without a stored offset."""

    group_id: str
    consumer_id: str
    brokers: tuple[messages.Broker, ...]
    session_timeout_ms: int = 6000
    reconnect_backoff_ms: int = 1000
    auto_commit: bool = True
    reset: str = "smallest"

    def __post_init__(self) -> None:
        if not self.brokers:
            raise ConfigError("a consumer needs at least one broker to ask", "give brokers as host:port")
        if self.session_timeout_ms < 3 or self.reconnect_backoff_ms < 1:
            raise ConfigError("session_timeout_ms must be at least 3, reconnect_backoff_ms at least 1")


class Assignment:
    """The draft's topic registry: the position after what was delivered, None before the first delivery.

    With `enabled` False the consumer keeps what it has: of a new assignment it takes only that, and never a
    partition it was not assigned, for others may own it (era 9.8).
    """

    def __init__(self) -> None:
        self.positions: dict[messages.Partition, int | None] = {}
        self.enabled = True
        self.must_reset = False
        self._threads: dict[messages.Partition, str] = {}
        self._out_of_range: dict[messages.Partition, int] = {}
        self._kept: set[messages.Partition] = set()
        self._withheld: tuple[events.Fetch, ...] = ()

    @property
    def streams(self) -> dict[str, tuple[str, ...]]:
        """The topics of each thread's stream; rebuilt with every Start, as wildcards require (era 9.5)."""
        topics: dict[str, dict[str, None]] = {}
        for partition, thread in sorted(self._threads.items()):
            topics.setdefault(thread, {})[partition.topic] = None
        return {thread: tuple(names) for thread, names in topics.items()}

    def out_of_range(self, partition: messages.Partition) -> None:
        """Note that the log lacks this position: the next Start applies the reset word (OC-40)."""
        position = self.positions.get(partition)
        if position is not None:
            self._out_of_range[partition] = position
            self.must_reset = True

    def take(self, request: messages.StartFetcherRequest) -> tuple[events.Fetch, ...]:
        """Return what to fetch from now on."""
        fetches = tuple(
            events.Fetch(
                thread, messages.Partition(topic, name), self._where(messages.Partition(topic, name), offset)
            )
            for thread, partitions in request.ownership
            for topic, name, offset in partitions
        )
        self._withheld = ()
        if not self.enabled and self._kept:
            self._withheld = tuple(fetch for fetch in fetches if fetch.partition not in self._kept)
            fetches = tuple(fetch for fetch in fetches if fetch.partition in self._kept)
        self._set(fetches)
        return fetches

    def enable(self) -> tuple[events.Fetch, ...] | None:
        """Take on what was withheld; return everything to be fetched then, None if nothing changes."""
        self.enabled = True
        if not self._withheld:
            return None
        now = [
            events.Fetch(self._threads[partition], partition, at) for partition, at in self.positions.items()
        ]
        fetches = (*now, *self._withheld)
        self._withheld = ()
        self._set(fetches)
        return fetches

    def drop(self) -> None:
        """Stop fetching everything."""
        self.positions, self._threads, self._withheld = {}, {}, ()

    def offsets(self) -> messages.Offsets:
        """Return the positions to report; a partition without a delivery has none."""
        known = sorted((p, offset) for p, offset in self.positions.items() if offset is not None)
        return tuple(messages.PartitionAndOffset(p.topic, p.name, offset) for p, offset in known)

    def _set(self, fetches: tuple[events.Fetch, ...]) -> None:
        self.positions = {fetch.partition: fetch.offset for fetch in fetches}
        self._threads = {fetch.partition: fetch.thread_id for fetch in fetches}
        self._kept = set(self.positions) or self._kept

    def _where(self, partition: messages.Partition, offset: int) -> int | None:
        """Return where to begin; None applies the reset word, also if the stored position is out of range."""
        if self._out_of_range.pop(partition, None) == offset:
            return None
        return None if offset < 0 else offset


class Discovery:
    """The brokers a consumer was given and those that brokers listed; `next` never ends."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._given = config.brokers
        self._listed: tuple[messages.Broker, ...] = ()
        self._position = 0
        self._failed = 0
        # A random part of the time per consumer, so that thousands do not reconnect at the same moment.
        share = java_string_hash(config.consumer_id) % 401 - 200
        self.backoff_ms = max(1, config.reconnect_backoff_ms * (1000 + share) // 1000)

    def listed(self, brokers: Iterable[messages.Broker]) -> None:
        """Note the cluster's brokers, as one of them lists them; an empty list changes nothing."""
        self._listed = tuple(brokers) or self._listed

    def next(self) -> messages.Broker:
        """Return the broker to ask."""
        candidates = self.candidates()
        broker = candidates[self._position % len(candidates)]
        self._position += 1
        return broker

    def candidates(self) -> list[messages.Broker]:
        """Return the brokers to ask: those listed, then those given at other addresses."""
        addresses = {(broker.host, broker.port) for broker in self._listed}
        return [*self._listed, *(b for b in self._given if (b.host, b.port) not in addresses)]

    def address_of(self, broker_id: int) -> messages.Broker | None:
        """Return the broker of that id, None if no broker has listed it."""
        return next((broker for broker in self.candidates() if broker.id == broker_id), None)

    def failed(self) -> bool:
        """Note that a broker did not answer; return whether that made a full round."""
        self._failed += 1
        if self._failed < len(self.candidates()):
            return False
        self._failed = 0
        return True

    def succeeded(self) -> None:
        """Note that one answered: the round begins again."""
        self._failed = 0


class Lease:
    """Valid for one session after the consumer SENT its newest answer that is known to have arrived."""

    def __init__(self, session_ms: int) -> None:
        self._session_ms = session_ms
        self.end_ms = 0
        self._answered_ms: int | None = None

    def registered(self, sent_ms: int) -> None:
        """Begin a lease: a registration sent at that time was accepted, on a new connection."""
        self.end_ms = sent_ms + self._session_ms
        self._answered_ms = None

    def pinged(self, num_retries: int) -> None:
        """Extend the lease: a ping without retries proves that the answer before it was in time (era 5.2)."""
        if num_retries == 0 and self._answered_ms is not None:
            self.end_ms = max(self.end_ms, self._answered_ms + self._session_ms)

    def answered(self, now_ms: int) -> None:
        """Note that a ping is being answered."""
        self._answered_ms = now_ms

    def ended(self) -> None:
        """End the lease with its connection."""
        self.end_ms = 0
        self._answered_ms = None

    def good(self, now_ms: int) -> bool:
        """Return whether records may be delivered at this moment."""
        return now_ms < self.end_ms


_ADVICE: dict[int, str] = {
    messages.ErrorMapping.DUPLICATE_CONSUMER_ID: "another consumer has this id: give each its own",
    messages.ErrorMapping.SESSION_TIMEOUT_OUT_OF_RANGE: "the broker does not allow this session timeout",
    messages.ErrorMapping.BAD_SUBSCRIPTION: "the broker cannot read the topics and streams asked for",
    messages.ErrorMapping.BAD_REQUEST: "the broker refuses the group's or consumer's name, or the reset word",
}


class Phase(Enum):
    """What the consumer waits for."""

    NEW = "new"
    BACKOFF = "backoff"
    CONNECTING = "connecting"
    ASKING = "asking"
    REGISTERING = "registering"
    MEMBER = "member"
    LEFT = "left"


class LegacyConsumer:
    """One consumer, from its message streams until it leaves; it has one connection at a time (era 9.0).

    Its host asks `may_deliver` before each record and says `delivered` after it.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self.config = config
        self.phase = Phase.NEW
        self.assignment = Assignment()
        self.lease = Lease(config.session_timeout_ms)
        self.paused = False
        self._topic_count = ""
        self._discovery = Discovery(config)
        self._effects: list[events.ConsumerEffect] = []
        self._now_ms = 0
        self._conn = 0
        self._made = 0
        self._broker: messages.Broker | None = None
        self._coordinator: messages.Broker | None = None
        self._heard_ms = 0
        self._sent_ms = 0
        self._backoff_until_ms = 0
        self._leaving = self._reported = False

    @property
    def awaiting(self) -> Awaiting:
        """What the next frame is, if it has no type (era 2.5)."""
        waiting = {Phase.ASKING: Awaiting.METADATA, Phase.REGISTERING: Awaiting.REGISTRATION}
        return waiting.get(self.phase, Awaiting.NOTHING)

    def create_message_streams(self, topic_count: str, now_ms: int) -> list[events.ConsumerEffect]:
        """Begin to consume; not a second time, which would start over after delivered records (KAFKA-242)."""
        if self.phase is not Phase.NEW:
            raise ConfigError("a consumer can create message streams at most once", "make another consumer")
        self._topic_count = topic_count
        self._now_ms = now_ms
        self._discover()
        return self._take_effects()

    def step(self, event: events.ConsumerEvent, now_ms: int) -> list[events.ConsumerEffect]:
        """Handle an event and return the effects."""
        self._now_ms = now_ms
        self._look_at_the_clock()
        if self.phase not in (Phase.NEW, Phase.LEFT):
            self._handle(event)
        return self._take_effects()

    def wake(self, now_ms: int) -> list[events.ConsumerEffect]:
        """Do what is due now and return the effects."""
        self._now_ms = now_ms
        self._look_at_the_clock()
        return self._take_effects()

    def next_wake_ms(self) -> int | None:
        """Return when to wake it, None for never."""
        if self.phase in (Phase.NEW, Phase.LEFT):
            return None
        if self.phase is Phase.BACKOFF:
            return self._backoff_until_ms
        silent_ms = self._heard_ms + self.config.session_timeout_ms
        if self.phase is Phase.MEMBER and self.positions and not self.paused:
            return min(silent_ms, self.lease.end_ms)
        return silent_ms

    @property
    def positions(self) -> dict[messages.Partition, int | None]:
        """What it fetches and its position in each; None where the reset word decides."""
        return self.assignment.positions

    def may_deliver(self, partition: messages.Partition, now_ms: int) -> bool:
        """Return whether a record may be delivered now: ask before each record (era 9.6)."""
        return partition in self.positions and not self._leaving and self.lease.good(now_ms)

    def delivered(self, partition: messages.Partition, next_offset: int) -> None:
        """Note that a record was delivered; the position is the next offset."""
        self.positions[partition] = next_offset

    def enable_rebalance(self, now_ms: int) -> list[events.ConsumerEffect]:
        """Take on what was withheld while `assignment.enabled` was off (KAFKA-364)."""
        self._now_ms = now_ms
        fetches = self.assignment.enable()
        if fetches is not None:
            self._fetch(fetches)
        return self._take_effects()

    def _handle(self, event: events.ConsumerEvent) -> None:
        match event:
            case events.OutOfRange(partition):
                self.assignment.out_of_range(partition)
            case events.Leave():
                if self.phase is not Phase.MEMBER:
                    self._close()
                    self._left(None)
                elif not self._leaving:
                    # The positions are kept for the report; nothing more is delivered.
                    self._leaving = True
                    self._effects.append(events.Stop())
            case events.CommitNow():
                offsets = self.assignment.offsets()
                if self.phase is Phase.MEMBER and offsets:
                    self._send(messages.CommitOffsetRequest(self.config.consumer_id, offsets))
                else:
                    self._effects.append(events.Committed(messages.ErrorMapping.UNKNOWN))
            case (
                events.Connected(conn)
                | events.NotConnected(conn)
                | events.Received(conn)
                | events.Malformed(conn)
                | events.Closed(conn)
            ):
                if conn == self._conn:
                    self._of_connection(event)

    def _of_connection(self, event: events.ConsumerEvent) -> None:
        match event:
            case events.Connected():
                self._connected()
            case events.Received(_, message, correlation):
                self._heard_ms = self._now_ms
                self._received(message, correlation)
            case events.Malformed(_, detail):
                self._log(events.Level.WARNING, f"what the broker sends makes no sense: {detail}")
                self._close()
                self._lost()
            case _:
                self._conn = 0
                self._lost()

    def _received(self, message: object, correlation: int) -> None:
        match message:
            case messages.ClusterMetadataResponse() if self.phase is Phase.ASKING:
                self._learnt(message)
            case messages.RegisterConsumerResponse(error) if self.phase is Phase.REGISTERING:
                self._registered(error)
            case messages.PingRequest() if self.phase is Phase.MEMBER:
                self._ping(message, correlation)
            case messages.StopFetcherRequest() if self.phase is Phase.MEMBER:
                offsets = self._offsets()
                self._stop_fetching()
                self._send(
                    messages.StopFetcherResponse(
                        messages.ErrorMapping.NONE, self.config.consumer_id, offsets
                    ),
                    correlation,
                )
            case messages.StartFetcherRequest() if self.phase is Phase.MEMBER:
                self._discovery.listed(message.brokers)
                if not self._leaving:
                    self._fetch(self.assignment.take(message))
                self._send(
                    messages.StartFetcherResponse(messages.ErrorMapping.NONE, self.config.consumer_id),
                    correlation,
                )
            case messages.CommitOffsetResponse(error) if self.phase is Phase.MEMBER:
                self._effects.append(events.Committed(error))
            case _:
                self._log(events.Level.WARNING, f"a {type(message).__name__} that answers no request")
                self._close()
                self._lost()

    # Discovery and registration

    def _discover(self) -> None:
        self._connect(self._discovery.next(), coordinator=None)

    def _connect(self, broker: messages.Broker, coordinator: messages.Broker | None) -> None:
        self._broker, self._coordinator = broker, coordinator
        self.phase = Phase.CONNECTING
        self._made += 1
        self._conn = self._made
        self._heard_ms = self._now_ms
        self._effects.append(events.Connect(self._conn, broker.host, broker.port))

    def _connected(self) -> None:
        if self.phase is not Phase.CONNECTING:
            return
        self._heard_ms = self._now_ms
        if self._coordinator is not None:
            self._register()
            return
        self.phase = Phase.ASKING
        self._send(messages.ClusterMetadataRequest())

    def _learnt(self, answer: messages.ClusterMetadataResponse) -> None:
        self._discovery.listed(answer.brokers)
        coordinator = self._discovery.address_of(answer.coordinator_id)
        if answer.error != messages.ErrorMapping.NONE or coordinator is None:
            # There is no coordinator yet, or its address is unknown.
            self._close()
            self._back_off()
        elif coordinator == self._broker:
            self._coordinator = coordinator
            self._register()
        else:
            self._close()
            self._connect(coordinator, coordinator)

    def _register(self) -> None:
        # From here on others may own what it fetched: it stopped when its connection ended (era 9.2).
        assert not self.positions
        self.phase = Phase.REGISTERING
        self._sent_ms = self._now_ms
        config = self.config
        self._send(
            messages.RegisterConsumerRequest(
                config.group_id,
                config.consumer_id,
                self._topic_count,
                config.auto_commit,
                config.reset,
                config.session_timeout_ms,
            )
        )

    def _registered(self, error: int) -> None:
        if error == messages.ErrorMapping.NONE:
            self._discovery.succeeded()
            self.phase = Phase.MEMBER
            self.paused = False
            self.lease.registered(self._sent_ms)
            return
        if error != messages.ErrorMapping.NOT_COORDINATOR:
            advice = _ADVICE.get(error, f"the broker answers error {error}")
            self._log(events.Level.ERROR, f"{self.config.consumer_id} is not registered: {advice}")
        self._close()
        self._back_off()

    def _back_off(self) -> None:
        self.phase = Phase.BACKOFF
        self._backoff_until_ms = self._now_ms + self._discovery.backoff_ms

    def _lost(self) -> None:
        """Stop because the connection is gone, and look for the coordinator again (era 9.7)."""
        was_member = self.phase is Phase.MEMBER
        self._stop_fetching()
        self.lease.ended()
        if self._leaving:
            self._left("its connection was lost before its last positions were known to have arrived")
        elif was_member:
            self._discover()
        elif self._discovery.failed():
            count = len(self._discovery.candidates())
            self._log(
                events.Level.ERROR, f"none of {count} brokers can be asked for the coordinator; trying on"
            )
            self._back_off()
        else:
            assert self._broker is not None
            self._log(
                events.Level.WARNING,
                f"{self._broker.host}:{self._broker.port} cannot be asked, trying another",
            )
            self._discover()

    # Being a member

    def _look_at_the_clock(self) -> None:
        """Do what the clock alone decides, before any event that arrived meanwhile."""
        if self.phase in (Phase.NEW, Phase.LEFT):
            return
        if self.phase is Phase.BACKOFF:
            if self._now_ms >= self._backoff_until_ms:
                self._discover()
        elif self._now_ms >= self._heard_ms + self.config.session_timeout_ms:
            self._close()
            self._lost()
        elif self.phase is Phase.MEMBER and self.positions and not self.paused:
            self._pause_if_over()

    def _pause_if_over(self) -> None:
        if not self.lease.good(self._now_ms):
            self.paused = True
            self._effects.append(events.Pause())

    def _ping(self, ping: messages.PingRequest, correlation: int) -> None:
        self.lease.pinged(ping.num_retries)
        if self.paused and self.lease.good(self._now_ms):
            self.paused = False
            self._effects.append(events.Resume())
        if self.assignment.must_reset and not self._leaving:
            # Registering again causes a rebalance; the Start that follows resets the position (era 9.3).
            self.assignment.must_reset = False
            self._close()
            self._lost()
            return
        error = messages.ErrorMapping.NONE
        if self._leaving and ping.num_retries == 0 and (self._reported or not self.config.auto_commit):
            error = messages.ErrorMapping.CLOSING
        self._reported = self._leaving
        self.lease.answered(self._now_ms)
        self._send(messages.PingResponse(error, self.config.consumer_id, self._offsets()), correlation)
        if error == messages.ErrorMapping.CLOSING:
            self._close()
            self._left(None)

    def _fetch(self, fetches: tuple[events.Fetch, ...]) -> None:
        self._effects.append(events.Start(fetches))
        self.paused = False
        self._pause_if_over()

    def _stop_fetching(self) -> None:
        if self.positions:
            self._effects.append(events.Stop())
        self.assignment.drop()
        self.paused = False

    def _offsets(self) -> messages.Offsets | None:
        return self.assignment.offsets() if self.config.auto_commit else None

    # Leaving

    def _left(self, why: str | None) -> None:
        self.assignment.drop()
        self.phase = Phase.LEFT
        if why is not None:
            self._log(events.Level.WARNING, f"{self.config.consumer_id} has left, but {why}")

    def _send(self, message: messages.FromConsumer, correlation: int = 0) -> None:
        self._effects.append(events.Send(self._conn, message, correlation))

    def _close(self) -> None:
        if self._conn:
            self._effects.append(events.Close(self._conn))
        self._conn = 0

    def _log(self, level: events.Level, text: str) -> None:
        self._effects.append(events.Log(level, text))

    def _take_effects(self) -> list[events.ConsumerEffect]:
        effects, self._effects = self._effects, []
        return effects
