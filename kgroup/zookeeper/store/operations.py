"""Operations on ZooKeeper and their answers, as values that a machine, a tree in memory and kazoo share.

Source: ZooKeeper 3.9's wire protocol; this is the part that the coordinator of the ZooKeeper era needs.
"""

from dataclasses import dataclass
from enum import Enum

ANY_VERSION = -1
"""As the version of a write: the node may have any version."""


class Failure(Enum):
    """Why an operation was not done."""

    NO_NODE = "no node"
    NODE_EXISTS = "node exists"
    BAD_VERSION = "bad version"
    NOT_EMPTY = "not empty"
    NO_CHILDREN_FOR_EPHEMERALS = "no children for ephemerals"
    NO_AUTH = "no auth"
    ROLLED_BACK = "rolled back"
    """An operation of a multi that would have been done if another had not failed."""
    CONNECTION_LOSS = "connection loss"
    """It is unknown whether it was done."""
    SESSION_EXPIRED = "session expired"
    BAD_ARGUMENTS = "bad arguments"


@dataclass(frozen=True, slots=True)
class Exists:
    """Read whether a node exists; answered by a `Stat` or `NO_NODE`."""

    path: str


@dataclass(frozen=True, slots=True)
class Get:
    """Read a node's data; answered by a `Node`."""

    path: str


@dataclass(frozen=True, slots=True)
class Children:
    """Read the names of a node's children; answered by a tuple of them, sorted."""

    path: str


@dataclass(frozen=True, slots=True)
class Sync:
    """Make later reads see every write done before; answered by None."""

    path: str


@dataclass(frozen=True, slots=True)
class Create:
    """Create a node whose parent exists; answered by None. Ephemeral: it ends with its session."""

    path: str
    data: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace a node's data if it has this version; answered by the new `Stat`."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a node without children if it has this version; answered by None."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Let a multi succeed only if the node has this version; answered by None."""

    path: str
    version: int


Read = Exists | Get | Children | Sync
Write = Create | SetData | Delete | Check


@dataclass(frozen=True, slots=True)
class Stat:
    """ZooKeeper's metadata of a node; times in ms, `owner` is a session or 0."""

    version: int
    owner: int
    created_ms: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Node:
    """A node's data as it was read."""

    data: bytes
    stat: Stat


Result = Stat | Node | tuple[str, ...] | None | Failure
"""The answer to one operation; a multi has one each: all done, or all failed."""


class Change(Enum):
    """What a watch saw; a watch fires once."""

    CREATED = "created"
    DELETED = "deleted"
    DATA = "data"
    CHILDREN = "children"
    LOST = "lost"
    """The connection was lost and the watch with it: read again and watch again."""
