"""What the coordinator's machine is told and what it asks of its host: values, nothing else (era 3).

The host carries effects out in order. It has one ZooKeeper client for this machine alone, makes calls first
in, first out, and answers each once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from kgroup.zookeeper.store.operations import Change, Read, Result, Write
from kgroup.zookeeper.wire.messages import FromConsumer, FromCoordinator


@dataclass(frozen=True, slots=True)
class ZkConnected:
    """The client has a session, fresh or the one it had; `negotiated_ms` is how long it may be silent."""

    session: int
    negotiated_ms: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class ZkSuspended:
    """The connection is lost; the session may outlive that."""


@dataclass(frozen=True, slots=True)
class ZkExpired:
    """The session has ended, and its ephemeral nodes with it."""


@dataclass(frozen=True, slots=True)
class ZkFired:
    """A watch saw its one change, or went down with the connection (`Change.LOST`)."""

    path: str
    change: Change


@dataclass(frozen=True, slots=True)
class ZkDone:
    """A call's answer: a result for each operation, failures among them."""

    call: int
    results: Sequence[Result]


@dataclass(frozen=True, slots=True)
class Opened:
    """Somebody has connected; `conn` is a number that is never used again."""

    conn: int


@dataclass(frozen=True, slots=True)
class Received:
    """A whole message has come; `correlation` counts in header mode only."""

    conn: int
    message: FromConsumer
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class Malformed:
    """What has come is no message, or what was to be sent is none; `detail` says why."""

    conn: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection has ended: the other side's doing, the network's, or the host's with a slow reader."""

    conn: int


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The broker goes down."""


Event = (
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
    """Send a message; the host closes a connection that does not take `max_outbound_bytes`."""

    conn: int
    message: FromCoordinator
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


Effect = Zk | Send | Close | Log
