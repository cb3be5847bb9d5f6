"""The network between clients and brokers: connections that keep order, are slow, hang, and break.

TCP neither loses nor duplicates within a connection. A lost packet is a connection that breaks; a request
sent twice arrives from an abandoned connection before the one that follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from kgroup.protocol.codec import Message
from kgroup.simulation.schedule import Schedule

Pair = tuple[str, int]
"""A client's name and a broker's id."""


@dataclass(slots=True)
class NetworkConditions:
    """The current network: delays in ms, and the share of messages whose connection breaks."""

    least_delay_ms: int = 1
    most_delay_ms: int = 5
    breaks: float = 0.0


@dataclass(slots=True)
class InFlight:
    """A request on its way or in progress, and until when its client waits for the answer.

    `answered_step` is the step of the run in which the broker answered.
    """

    message: Message
    version: int
    deadline_ms: int
    sent_ms: int
    answered_step: int = -1


class Endpoint(Protocol):
    """A client as the network sees it."""

    @property
    def name(self) -> str: ...

    def answered(self, connection: Connection, sent: InFlight, data: bytes) -> None:
        """Receive an answer, in the version of its request."""
        ...

    def gave_up(self, connection: Connection, requests: list[InFlight]) -> None:
        """Note that the connection is closed; these requests got no answer on it."""
        ...


class Broker(Protocol):
    """A broker as the network sees it."""

    def arrived(self, connection: Connection, ticket: int, sent: InFlight, data: bytes) -> None: ...

    def closed(self, tickets: list[int]) -> None:
        """Drop answers that no client waits for any more."""
        ...


class Connection:
    """From one client to one broker; once closed it stays closed.

    `lingers`: what was sent before it closed still arrives, though its answers go nowhere.
    """

    __slots__ = ("client", "closed", "due_ms", "in_flight", "lingers", "pair", "timer_ms", "to_client_ms")

    def __init__(self, client: Endpoint, broker_id: int) -> None:
        self.client = client
        self.pair: Pair = (client.name, broker_id)
        self.in_flight: dict[int, InFlight] = {}
        self.closed = False
        self.lingers = False
        self.due_ms = 0
        self.to_client_ms = 0
        self.timer_ms: int | None = None


class Network:
    """Carries and counts messages. Pairs in `cut` are separated and lose what they send; held ones wait."""

    def __init__(self, schedule: Schedule, rng: Random, brokers: dict[int, Broker]) -> None:
        self.schedule = schedule
        self.conditions = NetworkConditions()
        self.cut: set[Pair] = set()
        self._rng = rng
        self._brokers = brokers
        self._held: dict[Pair, list[tuple[Callable[..., None], tuple[object, ...]]]] = {}
        self._open: dict[Pair, Connection] = {}
        self._last_arrival: dict[Pair, int] = {}
        self._tickets = 0
        self.messages = 0

    def connection(self, client: Endpoint, broker_id: int) -> Connection:
        """Return the open connection of the pair, or a new one."""
        pair = (client.name, broker_id)
        connection = self._open.get(pair)
        if connection is None:
            connection = self._open[pair] = Connection(client, broker_id)
            connection.due_ms = self._last_arrival.get(pair, 0)
        return connection

    def send(self, client: Endpoint, broker_id: int, message: Message, version: int, timeout_ms: int) -> None:
        """Send a request; the client receives an answer, or notice that it must not wait any longer."""
        connection = self.connection(client, broker_id)
        self._tickets += 1
        self.messages += 1
        now = self.schedule.now_ms
        sent = InFlight(message, version, now + timeout_ms, now)
        connection.in_flight[self._tickets] = sent
        self._watch(connection, sent.deadline_ms)
        pair = connection.pair
        if pair in self.cut:
            return
        if self._unlucky():
            self.schedule.after(self._delay(), self.break_connection, connection)
            return
        connection.due_ms = max(now + self._delay(), connection.due_ms)
        self._last_arrival[pair] = connection.due_ms
        data = message.encode(version)
        self.schedule.at(connection.due_ms, self._arrive, connection, self._tickets, sent, data)

    def answer(self, connection: Connection, ticket: int, response: Message) -> None:
        """Send an answer back, if its client still waits for it."""
        sent = connection.in_flight.get(ticket)
        if sent is None or connection.closed or connection.pair in self.cut:
            return
        if self._unlucky():
            self.schedule.after(self._delay(), self.break_connection, connection)
            return
        self.messages += 1
        now = self.schedule.now_ms
        sent.answered_step = self.schedule.steps
        connection.to_client_ms = max(now + self._delay(), connection.to_client_ms)
        data = response.encode(sent.version)
        self.schedule.at(connection.to_client_ms, self._return, connection, ticket, data)

    def break_connection(self, connection: Connection) -> None:
        """Close the connection; half the time what is in flight to the broker still arrives."""
        if connection.closed:
            return
        connection.closed = True
        connection.lingers = self._rng.random() < 0.5
        self._open.pop(connection.pair, None)
        pending, connection.in_flight = connection.in_flight, {}
        self._brokers[connection.pair[1]].closed(list(pending))
        connection.client.gave_up(connection, list(pending.values()))

    def break_all(self, name: str | None = None, broker_id: int | None = None) -> None:
        """Close the connections of a client, or of a broker."""
        for pair, connection in list(self._open.items()):
            if name in (None, pair[0]) and broker_id in (None, pair[1]):
                self.break_connection(connection)

    def hold(self, pair: Pair) -> None:
        """Keep what the pair sends, in both directions, until `release`."""
        self._held.setdefault(pair, [])

    def release(self, pair: Pair) -> None:
        """Deliver what was held, in order."""
        for action, args in self._held.pop(pair, []):
            action(*args)

    def heal(self) -> None:
        """End every cut and hold; clients that waited in vain are notified."""
        self.cut.clear()
        self.break_all()
        for pair in list(self._held):
            self.release(pair)

    def _delay(self) -> int:
        return self._rng.randrange(self.conditions.least_delay_ms, self.conditions.most_delay_ms + 1)

    def _unlucky(self) -> bool:
        return self.conditions.breaks > 0 and self._rng.random() < self.conditions.breaks

    def _arrive(self, connection: Connection, ticket: int, sent: InFlight, data: bytes) -> None:
        if connection.closed and not connection.lingers:
            return
        held = self._held.get(connection.pair)
        if held is not None:
            held.append((self._arrive, (connection, ticket, sent, data)))
            return
        self._brokers[connection.pair[1]].arrived(connection, ticket, sent, data)

    def _return(self, connection: Connection, ticket: int, data: bytes) -> None:
        held = self._held.get(connection.pair)
        if held is not None:
            held.append((self._return, (connection, ticket, data)))
            return
        if connection.closed or connection.pair in self.cut:
            return
        sent = connection.in_flight.pop(ticket, None)
        if sent is not None:
            connection.client.answered(connection, sent, data)

    def _watch(self, connection: Connection, deadline_ms: int) -> None:
        if connection.timer_ms is None or deadline_ms < connection.timer_ms:
            connection.timer_ms = deadline_ms
            self.schedule.at(deadline_ms, self._overdue, connection, deadline_ms)

    def _overdue(self, connection: Connection, timer_ms: int) -> None:
        """Close the connection if an answer is overdue, as clients do; else check again later."""
        if connection.closed or connection.timer_ms != timer_ms:
            return
        connection.timer_ms = None
        first = min((sent.deadline_ms for sent in connection.in_flight.values()), default=None)
        if first is None:
            return
        if first <= self.schedule.now_ms:
            self.break_connection(connection)
        else:
            self._watch(connection, first)
