"""Inputs of the ZooKeeper era's machines, and what they ask of their hosts: values only.

A coordinator's host carries effects out in order. It has one ZooKeeper client for this machine alone, makes
calls first in, first out, and answers each once (era 3). A consumer's has one connection at a time (era 9.0).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from kgroup.zookeeper.store.operations import Change, Read, Result, Write
from kgroup.zookeeper.wire.messages import Message, Partition


@dataclass(frozen=True, slots=True)
class ZkConnected:
    """The client has a session, new or resumed; `negotiated_ms` is how long it may be silent."""

    session: int
    negotiated_ms: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class ZkSuspended:
    """The connection is lost; the session may outlive it."""


@dataclass(frozen=True, slots=True)
class ZkExpired:
    """The session has ended, and its ephemeral nodes with it."""


@dataclass(frozen=True, slots=True)
class ZkFired:
    """A watch saw its one change, or was lost with the connection (`Change.LOST`)."""

    path: str
    change: Change


@dataclass(frozen=True, slots=True)
class ZkDone:
    """A call's answer: one result per operation, failures included."""

    call: int
    results: Sequence[Result]


@dataclass(frozen=True, slots=True)
class Opened:
    """A client has connected; `conn` is a number that is never used again."""

    conn: int


@dataclass(frozen=True, slots=True)
class Received:
    """A whole message has arrived; `correlation` counts in header mode only."""

    conn: int
    message: Message
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that are no message arrived, or a message could not be encoded; `detail` says why."""

    conn: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection has ended: by the peer, the network, or the host because of a slow reader."""

    conn: int


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The broker shuts down."""


CoordinatorEvent = (
    ZkConnected
    | ZkSuspended
    | ZkExpired
    | ZkFired
    | ZkDone
    | Opened
    | Received
    | Malformed
    | Closed
    | Shutdown
)


class Level(Enum):
    """How urgent a line for the broker's log is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Zk:
    """Make a call: reads, or writes as one multi; `watch` leaves a watch for each read."""

    call: int
    ops: tuple[Read, ...] | tuple[Write, ...]
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message; the host closes a connection whose backlog exceeds `max_outbound_bytes`."""

    conn: int
    message: Message
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class Close:
    """Close a connection; no `Closed` needs to follow."""

    conn: int


@dataclass(frozen=True, slots=True)
class Log:
    """A line for the broker's log."""

    level: Level
    text: str


CoordinatorEffect = Zk | Send | Close | Log


@dataclass(frozen=True, slots=True)
class Connected:
    """The requested connection is open."""

    conn: int


@dataclass(frozen=True, slots=True)
class NotConnected:
    """The connection failed."""

    conn: int


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """A fetcher has ended: the partition's log does not have the position it asked for."""

    partition: Partition


@dataclass(frozen=True, slots=True)
class Leave:
    """The application is done."""


@dataclass(frozen=True, slots=True)
class CommitNow:
    """The application wants its positions committed now (era 10.2)."""


ConsumerEvent = Connected | NotConnected | Received | Malformed | Closed | OutOfRange | Leave | CommitNow


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a connection and report `Connected` or `NotConnected`; there is no other one (era 9.0)."""

    conn: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """A partition that a thread fetches: from `offset`, or None to apply the reset word."""

    thread_id: str
    partition: Partition
    offset: int | None


@dataclass(frozen=True, slots=True)
class Start:
    """Fetch exactly these partitions."""

    fetches: tuple[Fetch, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """Close all fetchers and empty all queues: nothing more is delivered."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Deliver nothing until `Resume`, though fetchers may go on."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Deliver again."""


@dataclass(frozen=True, slots=True)
class Committed:
    """How a commit ended: 0, or why it is not known to be written."""

    error: int


ConsumerEffect = Connect | Send | Close | Start | Stop | Pause | Resume | Committed | Log
