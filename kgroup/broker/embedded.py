"""The cluster without sockets: the same requests through the same dispatch, in this process."""

from __future__ import annotations

from collections.abc import Mapping

from kgroup.broker.call import Call, NoResponse
from kgroup.broker.dispatch import Dispatcher
from kgroup.broker.handlers import ALL
from kgroup.broker.rights import guarded
from kgroup.errors import BrokerRefused, ErrorCode, Unreachable
from kgroup.protocol import registry
from kgroup.protocol.codec import Message
from kgroup.protocol.headers import unsendable
from kgroup.runtime.cluster import Cluster
from kgroup.security.principals import ANONYMOUS, Principal

TIMEOUT_S = 60.0
CLIENT_ID = "kgroup"
CLIENT_HOST = "/127.0.0.1"


class _Slot:
    """Where the answer of a parked call arrives."""

    __slots__ = ("filled", "response")

    def __init__(self) -> None:
        self.filled = False
        self.response: Message | None = None

    def put(self, response: Message | None) -> None:
        self.filled = True
        self.response = response


class EmbeddedTransport:
    """A Transport (see kgroup.protocol.transport) over a cluster in this process.

    Requests and responses pass through their encoding, so that nothing gets across that a socket would
    not carry. While an answer is parked, the cluster's clock is waited on deadline by deadline: with a
    ManualClock no real time passes. For one thread, and without a Server on the same cluster.

    The owner of the process may do everything, whatever the cluster's access rules say; with `principal`,
    only what they allow that one.
    """

    concurrent = False

    def __init__(self, cluster: Cluster, principal: Principal | None = None) -> None:
        self.cluster = cluster
        self.principal = principal or ANONYMOUS
        self.dispatcher = Dispatcher(cluster, ALL if principal is None else guarded(cluster, ALL))

    def request(
        self,
        node: int | None,
        message: Message,
        *,
        min_version: int = 0,
        max_version: int | None = None,
        timeout_s: float | None = None,
    ) -> Message:
        """Return the response of broker `node` (None: the first), in the highest version within the limits.

        Unreachable for a missing broker, or when no answer came in time (of the cluster's clock).
        """
        if node is None:
            node = min(self.cluster.endpoints)
        elif node not in self.cluster.endpoints:
            raise Unreachable(f"there is no broker {node}", f"brokers: {sorted(self.cluster.endpoints)}")
        served = self.dispatcher.versions(message.API) or range(0)
        highest = served.stop if max_version is None else max_version
        shared = [v for v in served if v in message.VERSIONS and min_version <= v <= highest]
        if not shared:
            name = registry.name_of(message.API)
            raise BrokerRefused(
                ErrorCode.UNSUPPORTED_VERSION, f"the embedded cluster does not serve this {name}"
            )
        version = shared[-1]
        slot = _Slot()
        try:
            sent = message.encode(version)
        except ValueError as error:
            raise unsendable(message, error) from None
        body = type(message).decode(sent, version)
        call = Call(body, version, CLIENT_ID, CLIENT_HOST, node, slot.put, principal=self.principal)
        answer = self.dispatcher.handle(call)
        if isinstance(answer, NoResponse):
            raise Unreachable(f"{registry.name_of(message.API)} was sent so that it gets no answer")
        if answer is None:
            answer = self._await(call, slot, TIMEOUT_S if timeout_s is None else timeout_s)
        return type(answer).decode(answer.encode(version), version)

    def versions(self, node: int | None, api_key: int) -> range | None:
        """Return the versions of an API that every broker here serves; None if they do not serve it."""
        return self.dispatcher.versions(api_key)

    def nodes(self) -> Mapping[int, tuple[str, int]]:
        """Return the brokers: id → (host, port); port 0, as there is no listener."""
        return dict(self.cluster.endpoints)

    def close(self) -> None:
        """Close the cluster, and with it the data folder."""
        self.dispatcher.tickets.abandon()
        self.cluster.close()

    def run_until(self, deadline_ms: int) -> None:
        """Let time pass, and do what falls due on the way."""
        clock, wakeups = self.cluster.clock, self.dispatcher.wakeups
        while (due := wakeups.next_ms()) is not None and due <= deadline_ms:
            clock.wait_until(due)
            wakeups.run(clock.now_ms())
        clock.wait_until(deadline_ms)

    def _await(self, call: Call[Message], slot: _Slot, timeout_s: float) -> Message:
        clock, wakeups = self.cluster.clock, self.dispatcher.wakeups
        deadline_ms = clock.now_ms() + int(timeout_s * 1000)
        while not slot.filled:
            due = wakeups.next_ms()
            if due is None or due > deadline_ms:
                clock.wait_until(deadline_ms)
                if call.forget is not None:
                    call.forget()
                raise Unreachable(f"no answer to {registry.name_of(call.body.API)} in {timeout_s:g} s")
            clock.wait_until(due)
            wakeups.run(clock.now_ms())
        if slot.response is None:
            raise Unreachable(f"{registry.name_of(call.body.API)} was ended without an answer")
        return slot.response
