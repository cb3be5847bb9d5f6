"""The consumer: finds the coordinator, registers, answers, and delivers while its lease is good (9)."""

from __future__ import annotations

from enum import Enum

from kgroup.errors import ConfigError
from kgroup.zookeeper.consumer.assignment import Assignment
from kgroup.zookeeper.consumer.discovery import Discovery
from kgroup.zookeeper.consumer.events import (
    CommitNow,
    Committed,
    Connect,
    Connected,
    ConsumerConfig,
    Effect,
    Event,
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
from kgroup.zookeeper.consumer.lease import Lease
from kgroup.zookeeper.coordinator.events import Close, Closed, Level, Log, Malformed
from kgroup.zookeeper.wire.codec import Awaiting
from kgroup.zookeeper.wire.messages import (
    Broker,
    ClusterMetadataRequest,
    ClusterMetadataResponse,
    CommitOffsetRequest,
    CommitOffsetResponse,
    ErrorMapping,
    FromConsumer,
    Offsets,
    Partition,
    PingRequest,
    PingResponse,
    RegisterConsumerRequest,
    RegisterConsumerResponse,
    StartFetcherRequest,
    StartFetcherResponse,
    StopFetcherRequest,
    StopFetcherResponse,
)

_ADVICE: dict[int, str] = {
    ErrorMapping.DUPLICATE_CONSUMER_ID: "another consumer has this id: give each its own",
    ErrorMapping.SESSION_TIMEOUT_OUT_OF_RANGE: "the broker does not allow this session timeout",
    ErrorMapping.BAD_SUBSCRIPTION: "the broker cannot read the topics and streams asked for",
    ErrorMapping.BAD_REQUEST: "the broker refuses the group's or the consumer's name, or the reset word",
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
    """One consumer, from its message streams to its leaving; it has one connection at a time (era 9.0).

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
        self._effects: list[Effect] = []
        self._now_ms = 0
        self._conn = 0
        self._made = 0
        self._broker: Broker | None = None
        self._coordinator: Broker | None = None
        self._heard_ms = 0
        self._sent_ms = 0
        self._backoff_until_ms = 0
        self._leaving = self._reported = False

    @property
    def awaiting(self) -> Awaiting:
        """What the next frame is, if it carries no type (era 2.5)."""
        waiting = {Phase.ASKING: Awaiting.METADATA, Phase.REGISTERING: Awaiting.REGISTRATION}
        return waiting.get(self.phase, Awaiting.NOTHING)

    def create_message_streams(self, topic_count: str, now_ms: int) -> list[Effect]:
        """Begin to consume; a second time would start over behind what was delivered already (KAFKA-242)."""
        if self.phase is not Phase.NEW:
            raise ConfigError("a consumer can create message streams at most once", "make another consumer")
        self._topic_count = topic_count
        self._now_ms = now_ms
        self._discover()
        return self._take_effects()

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Something has happened."""
        self._now_ms = now_ms
        self._look_at_the_clock()
        if self.phase not in (Phase.NEW, Phase.LEFT):
            self._handle(event)
        return self._take_effects()

    def wake(self, now_ms: int) -> list[Effect]:
        """Time has passed."""
        self._now_ms = now_ms
        self._look_at_the_clock()
        return self._take_effects()

    def next_wake_ms(self) -> int | None:
        """When it wants to be woken, None for never."""
        if self.phase in (Phase.NEW, Phase.LEFT):
            return None
        if self.phase is Phase.BACKOFF:
            return self._backoff_until_ms
        silent_ms = self._heard_ms + self.config.session_timeout_ms
        if self.phase is Phase.MEMBER and self.positions and not self.paused:
            return min(silent_ms, self.lease.end_ms)
        return silent_ms

    @property
    def positions(self) -> dict[Partition, int | None]:
        """What it fetches, and how far it has delivered; None where the reset word decides."""
        return self.assignment.positions

    def may_deliver(self, partition: Partition, now_ms: int) -> bool:
        """Whether a record may be handed to the application now: to be asked before each (era 9.6)."""
        return partition in self.positions and not self._leaving and self.lease.good(now_ms)

    def delivered(self, partition: Partition, next_offset: int) -> None:
        """A record was; the position is the one behind it."""
        self.positions[partition] = next_offset

    def enable_rebalance(self, now_ms: int) -> list[Effect]:
        """Take on what was withheld while `assignment.enabled` was off (KAFKA-364)."""
        self._now_ms = now_ms
        fetches = self.assignment.enable()
        if fetches is not None:
            self._fetch(fetches)
        return self._take_effects()

    def _handle(self, event: Event) -> None:
        match event:
            case OutOfRange(partition):
                self.assignment.out_of_range(partition)
            case Leave():
                self._leave()
            case CommitNow():
                self._commit()
            case Connected(conn) | NotConnected(conn) | Received(conn) | Malformed(conn) | Closed(conn):
                if conn == self._conn:
                    self._of_connection(event)

    def _of_connection(self, event: Event) -> None:
        match event:
            case Connected():
                self._connected()
            case Received(_, message, correlation):
                self._heard_ms = self._now_ms
                self._received(message, correlation)
            case Malformed(_, detail):
                self._log(Level.WARNING, f"what the broker sends makes no sense: {detail}")
                self._close()
                self._lost()
            case _:
                self._conn = 0
                self._lost()

    def _received(self, message: object, correlation: int) -> None:
        match message:
            case ClusterMetadataResponse() if self.phase is Phase.ASKING:
                self._learnt(message)
            case RegisterConsumerResponse(error) if self.phase is Phase.REGISTERING:
                self._registered(error)
            case PingRequest() if self.phase is Phase.MEMBER:
                self._ping(message, correlation)
            case StopFetcherRequest() if self.phase is Phase.MEMBER:
                self._stop(correlation)
            case StartFetcherRequest() if self.phase is Phase.MEMBER:
                self._start(message, correlation)
            case CommitOffsetResponse(error) if self.phase is Phase.MEMBER:
                self._effects.append(Committed(error))
            case _:
                self._log(Level.WARNING, f"a {type(message).__name__} that nobody has asked for")
                self._close()
                self._lost()

    # Discovery and registration

    def _discover(self) -> None:
        self._connect(self._discovery.next(), coordinator=None)

    def _connect(self, broker: Broker, coordinator: Broker | None) -> None:
        self._broker, self._coordinator = broker, coordinator
        self.phase = Phase.CONNECTING
        self._made += 1
        self._conn = self._made
        self._heard_ms = self._now_ms
        self._effects.append(Connect(self._conn, broker.host, broker.port))

    def _connected(self) -> None:
        if self.phase is not Phase.CONNECTING:
            return
        self._heard_ms = self._now_ms
        if self._coordinator is not None:
            self._register()
            return
        self.phase = Phase.ASKING
        self._send(ClusterMetadataRequest())

    def _learnt(self, answer: ClusterMetadataResponse) -> None:
        self._discovery.told(answer.brokers)
        coordinator = self._discovery.address_of(answer.coordinator_id)
        if answer.error != ErrorMapping.NONE or coordinator is None:
            # Nobody coordinates yet, or nobody whose address is known.
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
            RegisterConsumerRequest(
                config.group_id,
                config.consumer_id,
                self._topic_count,
                config.auto_commit,
                config.reset,
                config.session_timeout_ms,
            )
        )

    def _registered(self, error: int) -> None:
        if error == ErrorMapping.NONE:
            self._discovery.succeeded()
            self.phase = Phase.MEMBER
            self.paused = False
            self.lease.registered(self._sent_ms)
            return
        if error != ErrorMapping.NOT_COORDINATOR:
            advice = _ADVICE.get(error, f"the broker answers error {error}")
            self._log(Level.ERROR, f"{self.config.consumer_id} is not registered: {advice}")
        self._close()
        self._back_off()

    def _back_off(self) -> None:
        self.phase = Phase.BACKOFF
        self._backoff_until_ms = self._now_ms + self._discovery.backoff_ms

    def _lost(self) -> None:
        """The connection is gone: stop, and look for the coordinator again (era 9.7)."""
        was_member = self.phase is Phase.MEMBER
        self._stop_fetching()
        self.lease.ended()
        if self._leaving:
            self._left("its connection was lost before its last positions were known to have arrived")
        elif was_member:
            self._discover()
        elif self._discovery.failed():
            count = len(self._discovery.candidates())
            self._log(Level.ERROR, f"none of {count} brokers can be asked for the coordinator; trying on")
            self._back_off()
        else:
            assert self._broker is not None
            self._log(
                Level.WARNING, f"{self._broker.host}:{self._broker.port} cannot be asked, trying another"
            )
            self._discover()

    # Being a member

    def _look_at_the_clock(self) -> None:
        """What the clock alone decides, before anything that has come meanwhile is looked at."""
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
            self._effects.append(Pause())

    def _ping(self, ping: PingRequest, correlation: int) -> None:
        self.lease.pinged(ping.num_retries)
        if self.paused and self.lease.good(self._now_ms):
            self.paused = False
            self._effects.append(Resume())
        if self.assignment.must_reset and not self._leaving:
            # Registering again causes a rebalance, and the Start that follows resets the position (era 9.3).
            self.assignment.must_reset = False
            self._close()
            self._lost()
            return
        error = ErrorMapping.NONE
        if self._leaving and ping.num_retries == 0 and (self._reported or not self.config.auto_commit):
            error = ErrorMapping.CLOSING
        self._reported = self._leaving
        self.lease.answered(self._now_ms)
        self._send(PingResponse(error, self.config.consumer_id, self._offsets()), correlation)
        if error == ErrorMapping.CLOSING:
            self._close()
            self._left(None)

    def _stop(self, correlation: int) -> None:
        offsets = self._offsets()
        self._stop_fetching()
        self._send(StopFetcherResponse(ErrorMapping.NONE, self.config.consumer_id, offsets), correlation)

    def _start(self, request: StartFetcherRequest, correlation: int) -> None:
        self._discovery.told(request.brokers)
        if not self._leaving:
            self._fetch(self.assignment.take(request))
        self._send(StartFetcherResponse(ErrorMapping.NONE, self.config.consumer_id), correlation)

    def _fetch(self, fetches: tuple[Fetch, ...]) -> None:
        self._effects.append(Start(fetches))
        self.paused = False
        self._pause_if_over()

    def _stop_fetching(self) -> None:
        if self.positions:
            self._effects.append(Stop())
        self.assignment.drop()
        self.paused = False

    def _offsets(self) -> Offsets | None:
        return self.assignment.offsets() if self.config.auto_commit else None

    def _commit(self) -> None:
        offsets = self.assignment.offsets()
        if self.phase is Phase.MEMBER and offsets:
            self._send(CommitOffsetRequest(self.config.consumer_id, offsets))
        else:
            self._effects.append(Committed(ErrorMapping.UNKNOWN))

    # Leaving

    def _leave(self) -> None:
        if self.phase is not Phase.MEMBER:
            self._close()
            self._left(None)
        elif not self._leaving:
            # The positions stay, to be reported; nothing is delivered any more.
            self._leaving = True
            self._effects.append(Stop())

    def _left(self, why: str | None) -> None:
        self.assignment.drop()
        self.phase = Phase.LEFT
        if why is not None:
            self._log(Level.WARNING, f"{self.config.consumer_id} has left, but {why}")

    def _send(self, message: FromConsumer, correlation: int = 0) -> None:
        self._effects.append(Send(self._conn, message, correlation))

    def _close(self) -> None:
        if self._conn:
            self._effects.append(Close(self._conn))
        self._conn = 0

    def _log(self, level: Level, text: str) -> None:
        self._effects.append(Log(level, text))

    def _take_effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects
