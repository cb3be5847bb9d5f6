"""From API key to handler: the one way into the brokers of a cluster, over TCP and embedded alike."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from kgroup.broker.call import Answer, Call, NoResponse, Peer
from kgroup.broker.fetch_sessions import FetchSessions
from kgroup.broker.producers import ProducerStates
from kgroup.broker.share_partitions import SharePartitions
from kgroup.broker.share_sessions import ShareSessions
from kgroup.broker.share_state import ShareState
from kgroup.broker.tickets import Tickets
from kgroup.broker.transactions import Transactions
from kgroup.broker.wakeups import Wakeups
from kgroup.broker.watchers import Watchers
from kgroup.domain import offsets_partition_of
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.log.interface import DamagedLog
from kgroup.protocol import registry
from kgroup.protocol.codec import Message
from kgroup.protocol.requests import refusal
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.complaints import line_of

if TYPE_CHECKING:
    from kgroup.broker.authentication.described import Described

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Message)
Done = TypeVar("Done")
GROUPS_REMEMBERED = 20_000
LONGEST_REMEMBERED = 256  # characters of a group id
PARTS_AT_ONCE = 100  # of one request, before the others have their turn

Work: TypeAlias = Generator[None, None, Answer]
"""A request carried out in parts, such as one partition each; it pauses after each."""


@dataclass(frozen=True, slots=True)
class Api(Generic[R]):
    """How a broker serves the requests of one class."""

    request: type[R]
    handle: Callable[[Dispatcher, Call[R]], Answer]

    @property
    def key(self) -> int:
        return self.request.API


AnyApi: TypeAlias = Api[Any]
"""An API from a table; looked up by a request's key it is the API of that request's class."""


def at_once(work: Generator[None, None, Done]) -> Done:
    """Return the result of work that pauses after its parts, without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as ended:
            done: Done = ended.value
            return done


class Dispatcher:
    """All brokers of one cluster in this process: same logs, same shards, one node id each.

    Of `apis` those that its release of Kafka has are served, kgroup's own only when client-side assignors are
    switched on.
    """

    def __init__(self, cluster: Cluster, apis: Iterable[AnyApi]) -> None:
        self.cluster = cluster
        self.clock = cluster.clock
        own = registry.PRIVATE_APIS if not cluster.group_config.client_assignors else ()
        self.apis = {api.key: api for api in apis if api.key not in own and cluster.kafka.versions(api.key)}
        self.watchers = Watchers()
        self.tickets = Tickets(cluster, self.watchers)
        self.producers = ProducerStates(cluster)
        self.transactions = Transactions(cluster, self.tickets, self.watchers)
        self.share_state = ShareState(cluster, self.tickets)
        self.share_partitions = SharePartitions(cluster, self.share_state, self.tickets.wakeups)
        self.addresses: Mapping[str, Mapping[int, tuple[str, int]]] = {}
        """Where clients of each listener find the brokers, by name of the listener and node id."""
        self.later: Callable[[Callable[[], None]], None] | None = None
        """Calls back in a later turn of the loop; None where nobody else waits."""
        self.of_listeners: Callable[[int], Iterable[Described]] = lambda node: ()
        """The settings of a broker's listeners, once they are open."""
        self._partitions: dict[str, int] = {}
        self._sessions: dict[int, FetchSessions] = {}
        self._share_sessions: dict[int, ShareSessions] = {}

    @property
    def wakeups(self) -> Wakeups:
        return self.tickets.wakeups

    def sessions(self, node: int) -> FetchSessions:
        """Return the fetch sessions of a broker."""
        sessions = self._sessions.get(node)
        if sessions is None:
            sessions = self._sessions[node] = FetchSessions(self.cluster.settings.fetch_sessions_max)
        return sessions

    def share_sessions(self, node: int) -> ShareSessions:
        """Return the share sessions of a broker."""
        sessions = self._share_sessions.get(node)
        if sessions is None:
            most = self.cluster.group_config.share_max_sessions
            sessions = self._share_sessions[node] = ShareSessions(self.share_partitions, node, most)
        return sessions

    def disconnected(self, peer: Peer) -> None:
        """Release what members acquired whose connection is gone (KIP-932)."""
        for sessions in self._share_sessions.values():
            sessions.disconnected(peer)

    def endpoints(self, call: Call[Any]) -> Mapping[int, tuple[str, int]]:
        """Return the brokers' addresses on the listener by which this call came."""
        return self.addresses.get(call.listener, self.cluster.endpoints)

    def versions(self, key: int) -> range | None:
        """Return the versions of an API that are served; None for none."""
        return self.cluster.kafka.versions(key) if key in self.apis else None

    def handle(self, call: Call[Message]) -> Answer:
        """Return the response to a call, NoResponse, or None when `call.answer` will be called later.

        Never raises: errors are logged and answered with UNKNOWN_SERVER_ERROR.
        """
        api = self.apis[call.body.API]
        try:
            return api.handle(self, call)
        except Exception as error:
            return self._failed(api, call, error)

    def _failed(self, api: AnyApi, call: Call[Message], error: Exception) -> Message:
        """Return the refusal of a call whose handler raised."""
        if isinstance(error, Refused):
            return refusal(call.body, error.code, error.message)
        if isinstance(error, StorageError):
            self.complain(call, error)
            return refusal(call.body, ErrorCode.KAFKA_STORAGE_ERROR, error.message)
        name = registry.name_of(api.key)
        log.error("%s v%d from %s failed", name, call.version, call.client_id, exc_info=error)
        return refusal(call.body, ErrorCode.UNKNOWN_SERVER_ERROR)

    def in_turns(self, call: Call[Any], work: Work) -> Answer:
        """Return the answer of `work`; None when the rest of it is done in later turns of the loop."""
        if self.later is None:
            return at_once(work)
        try:
            for _ in range(PARTS_AT_ONCE):
                next(work)
        except StopIteration as ended:
            answer: Answer = ended.value
            return answer
        self.later(partial(self._go_on, call, work))
        return None

    def _go_on(self, call: Call[Any], work: Work) -> None:
        try:
            answer = self.in_turns(call, work)
        except Exception as error:
            answer = self._failed(self.apis[call.body.API], call, error)
        if answer is NoResponse.CLOSE_CONNECTION and call.peer is not None:
            call.peer.cut_after(0)
        elif answer is not None:
            self.answer(call, answer)

    def complain(self, call: Call[Message], error: StorageError) -> None:
        """Log requests that the disk refused, with limited frequency; each damage by itself."""
        api, complaints = registry.name_of(call.body.API), self.cluster.complaints
        if isinstance(error, DamagedLog):
            complaints.say(log, line_of(error), f"{api} is refused")
        else:
            complaints.say(log, api, line_of(error))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all changes of topics and settings inside once; StorageError undoes them all."""
        with self.cluster.together() as replies:
            yield
        self.tickets.topics_changed(replies)
        self.share_state.topics_changed()
        self.share_partitions.topics_changed()

    def answer(self, call: Call[Message], response: Answer) -> None:
        """End a parked call."""
        call.answer(None if isinstance(response, NoResponse) else response)

    def partition_of(self, group_id: str) -> int:
        """Return the offsets partition of a group, cached: the hash costs more than the lookup."""
        partition = self._partitions.get(group_id)
        if partition is None:
            partition = offsets_partition_of(group_id, len(self.cluster.shards))
            if len(group_id) <= LONGEST_REMEMBERED:
                if len(self._partitions) >= GROUPS_REMEMBERED:
                    self._partitions.clear()
                self._partitions[group_id] = partition
        return partition
