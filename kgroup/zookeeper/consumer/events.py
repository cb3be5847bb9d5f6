"""What a consumer's machine is told, what it asks of its host, and its settings (9)."""

from __future__ import annotations

from dataclasses import dataclass

from kgroup.errors import ConfigError
from kgroup.zookeeper.coordinator.events import Close, Closed, Log, Malformed
from kgroup.zookeeper.wire.messages import Broker, FromConsumer, FromCoordinator, Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """One consumer's settings, times in ms; `reset` is where to begin without a stored offset."""

    group_id: str
    consumer_id: str
    brokers: tuple[Broker, ...]
    session_timeout_ms: int = 6000
    reconnect_backoff_ms: int = 1000
    auto_commit: bool = True
    reset: str = "smallest"

    def __post_init__(self) -> None:
        if not self.brokers:
            raise ConfigError("a consumer needs at least one broker to ask", "give brokers as host:port")
        if self.session_timeout_ms < 3 or self.reconnect_backoff_ms < 1:
            raise ConfigError("session_timeout_ms must be at least 3, reconnect_backoff_ms at least 1")


@dataclass(frozen=True, slots=True)
class Connected:
    """The connection that was asked for is there."""

    conn: int


@dataclass(frozen=True, slots=True)
class NotConnected:
    """It could not be made."""

    conn: int


@dataclass(frozen=True, slots=True)
class Received:
    """A whole message has come; `correlation` counts in header mode only."""

    conn: int
    message: FromCoordinator
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """A fetcher has ended: the partition's log does not have the position it asked for."""

    partition: Partition


@dataclass(frozen=True, slots=True)
class Leave:
    """The application is done."""


@dataclass(frozen=True, slots=True)
class CommitNow:
    """The application wants its positions written now (era 10.2)."""


Event = Connected | NotConnected | Received | Malformed | Closed | OutOfRange | Leave | CommitNow


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a connection, and say `Connected` or `NotConnected`; there is no other one (era 9.0)."""

    conn: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to the other side."""

    conn: int
    message: FromConsumer
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class Fetch:
    """A partition that a thread is to fetch; from `offset`, or None to apply the reset word."""

    thread_id: str
    partition: Partition
    offset: int | None


@dataclass(frozen=True, slots=True)
class Start:
    """Fetch exactly this."""

    fetches: tuple[Fetch, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """Close all fetchers and empty all queues: nothing is delivered any more."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Deliver nothing until `Resume`, though fetchers may go on."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Deliver again."""


@dataclass(frozen=True, slots=True)
class Committed:
    """How a commit ended: 0, or why nothing says it is written."""

    error: int


Effect = Connect | Send | Close | Start | Stop | Pause | Resume | Committed | Log
