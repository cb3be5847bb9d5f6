"""Every message between a coordinator of the ZooKeeper era and its consumers, as values.

The fields and their order are the draft's; the numbers of types and errors are ours (era 2.3, 2.4).
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, NamedTuple

Int16 = Annotated[int, "int16"]
Int64 = Annotated[int, "int64"]
"""Numbers whose fields are not int32."""


class RequestKey(IntEnum):
    """The type in front of a request, and of the answers that carry one; 0 to 4 are 0.7's own requests."""

    CLUSTER_METADATA = 5
    REGISTER_CONSUMER = 6
    PING = 7
    STOP_FETCHER = 8
    START_FETCHER = 9
    COMMIT_OFFSET = 10
    DESCRIBE_GROUP = 11
    """Not in the draft: for operators of the cluster (decision 34). No consumer sends it."""


class ErrorMapping(IntEnum):
    """Every error code on the wire; 1 to 4 are 0.7's own."""

    UNKNOWN = -1
    NONE = 0
    DUPLICATE_CONSUMER_ID = 5
    SESSION_TIMEOUT_OUT_OF_RANGE = 6
    NOT_COORDINATOR = 7
    BAD_SUBSCRIPTION = 8
    BAD_REQUEST = 9
    CLOSING = 10
    """Only in the answer to a ping: the consumer leaves, and has stopped its fetchers."""


class Partition(NamedTuple):
    """A partition of a topic; the name is opaque, "0" or in 0.7 "broker-0" (era 1.1)."""

    topic: str
    name: str

    def __str__(self) -> str:
        return f"{self.topic}/{self.name}"


class Broker(NamedTuple):
    """Where a broker listens."""

    id: int
    host: str
    port: int


class PartitionAndOffset(NamedTuple):
    """A position; -1 if the consumer is to apply its reset word."""

    topic: str
    partition: str
    offset: Int64


class Ownership(NamedTuple):
    """What one thread of a consumer fetches."""

    thread_id: str
    partitions: tuple[PartitionAndOffset, ...]


Offsets = tuple[PartitionAndOffset, ...]


@dataclass(frozen=True, slots=True)
class ClusterMetadataRequest:
    """Ask for the brokers and the coordinator."""


@dataclass(frozen=True, slots=True)
class ClusterMetadataResponse:
    """The brokers and the coordinator's id, -1 with `NOT_COORDINATOR` if the coordinator is unknown."""

    error: Int16
    coordinator_id: int
    brokers: tuple[Broker, ...]


@dataclass(frozen=True, slots=True)
class RegisterConsumerRequest:
    """Ask to become a member; `auto_offset_reset` is the draft's auto_offset_rest."""

    group_id: str
    consumer_id: str
    topic_count: str
    auto_commit: bool
    auto_offset_reset: str
    session_timeout_ms: int


@dataclass(frozen=True, slots=True)
class RegisterConsumerResponse:
    """Whether the consumer is a member now; assignments come with Start."""

    error: Int16


@dataclass(frozen=True, slots=True)
class PingRequest:
    """Ask for a sign of life; `num_retries` 0: the previous answer arrived in time (era 5.2)."""

    consumer_id: str
    num_retries: int


@dataclass(frozen=True, slots=True)
class PingResponse:
    """The answer to a ping, with positions; `offsets` is None with auto-commit off (era 2.6)."""

    error: Int16
    consumer_id: str
    offsets: Offsets | None


@dataclass(frozen=True, slots=True)
class StopFetcherRequest:
    """Stop fetching and deliver nothing more."""

    consumer_id: str


@dataclass(frozen=True, slots=True)
class StopFetcherResponse:
    """The consumer has stopped at these positions; `offsets` is None with auto-commit off (era 2.6)."""

    error: Int16
    consumer_id: str
    offsets: Offsets | None


@dataclass(frozen=True, slots=True)
class StartFetcherRequest:
    """Fetch exactly these partitions from now on."""

    consumer_id: str
    ownership: tuple[Ownership, ...]
    brokers: tuple[Broker, ...]


@dataclass(frozen=True, slots=True)
class StartFetcherResponse:
    """The consumer fetches."""

    error: Int16
    consumer_id: str


@dataclass(frozen=True, slots=True)
class CommitOffsetRequest:
    """Write these offsets now (era 10.2)."""

    consumer_id: str
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class CommitOffsetResponse:
    """The offsets are written, if `error` is 0."""

    error: Int16
    consumer_id: str


class Registered(NamedTuple):
    """A member as its coordinator knows it; `held` counts its partitions, `failed` pings in a row."""

    consumer_id: str
    topic_count: str
    auto_commit: bool
    started: bool
    session_timeout_ms: int
    failed: int
    held: int


@dataclass(frozen=True, slots=True)
class DescribeGroupRequest:
    """Ask for a group's members; `after` is the last member of the page before, "" to begin (decision 34)."""

    group_id: str
    after: str


@dataclass(frozen=True, slots=True)
class DescribeGroupResponse:
    """A group's state and its members by id, as many as fit; `more` says that there are others."""

    error: Int16
    state: str
    more: bool
    members: tuple[Registered, ...]


FromConsumer = (
    ClusterMetadataRequest
    | RegisterConsumerRequest
    | PingResponse
    | StopFetcherResponse
    | StartFetcherResponse
    | CommitOffsetRequest
    | DescribeGroupRequest
)
FromCoordinator = (
    ClusterMetadataResponse
    | RegisterConsumerResponse
    | PingRequest
    | StopFetcherRequest
    | StartFetcherRequest
    | CommitOffsetResponse
    | DescribeGroupResponse
)
Message = FromConsumer | FromCoordinator
