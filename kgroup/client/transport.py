"""Requests to a remote cluster over blocking sockets: one connection per broker, opened on first use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from kgroup.client.link import Link
from kgroup.client.retry import Limit
from kgroup.client.settings import ConnectionSettings, address_text
from kgroup.errors import DecodeError, KgroupError, Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from kgroup.client.auth.login import Login


class SocketTransport:
    """The admin layer's Transport over TCP, TLS and SASL.

    Nothing is opened before the first request. A request is never sent twice: a connection found closed
    before anything was sent is replaced, all else is left to the caller's retry. Threads may share it: a
    connection serves one of them at a time. No request lasts longer than `limit`, whatever its own timeout. A
    pickled one reaches the same cluster from another process, with the time that is left and connections of
    its own.
    """

    concurrent = True

    def __init__(
        self,
        settings: ConnectionSettings,
        clock: Callable[[], float] = time.monotonic,
        limit: Limit | None = None,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._limit = limit or Limit(clock=clock)
        self._links: dict[tuple[str, int], Link] = {}
        self._nodes: dict[int, tuple[str, int]] = {}
        self._login: Login | None = None
        self._turns: dict[tuple[str, int], Lock] = {}
        self._login_made = Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return _another, (self.settings, self._limit.left())

    def request(
        self,
        node: int | None,
        message: Message,
        *,
        min_version: int = 0,
        max_version: int | None = None,
        timeout_s: float | None = None,
    ) -> Message:
        """Return the response of broker `node`, or of any, within `timeout_s` (default: the settings')."""
        deadline = self._deadline(timeout_s)
        with self._link(node, deadline) as link:
            version = link.connection.pick_version(message, min_version, max_version)
            try:
                return link.call(message, version, deadline)
            except BaseException as error:
                # Also on Ctrl-C: an answer still under way would be taken for the next request's.
                self._drop(link)
                if isinstance(error, Unreachable) and node is not None:
                    self._nodes.pop(node, None)
                raise

    def versions(self, node: int | None, api_key: int) -> range | None:
        """Return the versions of an API that the broker serves; None when it does not serve it."""
        with self._link(node, self._deadline(None)) as link:
            return link.connection.served.get(api_key)

    def nodes(self) -> Mapping[int, tuple[str, int]]:
        """Return the brokers alive now, from any broker's Metadata."""
        self._learn_nodes(self._deadline(None))
        return dict(self._nodes)

    def close(self) -> None:
        """Close every connection."""
        while self._links:
            self._links.popitem()[1].close()

    def __enter__(self) -> SocketTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _deadline(self, timeout_s: float | None) -> float:
        own = self.settings.request_timeout_s if timeout_s is None else timeout_s
        if self._limit.left() <= 0:
            raise self._limit.over()
        return min(self._clock() + own, self._limit.ends)

    @contextmanager
    def _link(self, node: int | None, deadline: float) -> Iterator[Link]:
        """Yield a connection to broker `node`, or to any, for this thread alone."""
        if node is None:
            with self._any_link(deadline) as link:
                yield link
            return
        if node not in self._nodes:
            self._learn_nodes(deadline)
        address = self._nodes.get(node)
        if address is None:
            alive = ", ".join(f"{n} at {address_text(*self._nodes[n])}" for n in sorted(self._nodes))
            raise Unreachable(
                f"broker {node} is not among the brokers alive ({alive or 'none'})",
                "it may be down or restarting; try again",
            )
        with self._turn(address, deadline):
            try:
                link = self._fresh(address) or self._open(address, deadline)
            except Unreachable:
                self._nodes.pop(node, None)
                raise
            yield link

    @contextmanager
    def _turn(self, address: tuple[str, int], deadline: float) -> Iterator[None]:
        """Reserve the connection to an address for this thread; Unreachable if not free by `deadline`."""
        lock = self._turns.setdefault(address, Lock())
        if not lock.acquire(timeout=max(deadline - self._clock(), 0.001)):
            raise Unreachable(f"{address_text(*address)}: the requests before this one took too long")
        try:
            yield
        finally:
            lock.release()

    def _learn_nodes(self, deadline: float) -> None:
        left = max(deadline - self._clock(), 0.001)
        # In version 0 an empty list asks for all topics.
        lowest = 1 if self.settings.asks_versions else 0
        answer = self.request(None, MetadataRequest(topics=()), min_version=lowest, timeout_s=left)
        assert isinstance(answer, MetadataResponse)
        self._nodes = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}

    @contextmanager
    def _any_link(self, deadline: float) -> Iterator[Link]:
        for address in tuple(self._links):
            with self._turn(address, deadline):
                if link := self._fresh(address):
                    yield link
                    return
        addresses = tuple(dict.fromkeys((*self.settings.bootstrap, *self._nodes.values())))
        failures: list[KgroupError] = []
        for number, address in enumerate(addresses):
            now = self._clock()
            share = (deadline - now) / (len(addresses) - number)
            with self._turn(address, deadline):
                try:
                    link = self._fresh(address) or self._open(address, now + share)
                except (Unreachable, DecodeError) as error:
                    failures.append(error)
                    continue
                yield link
                return
        if len(failures) == 1:
            raise failures[0]
        tried = "; ".join(error.message for error in failures)
        hint = next((error.hint for error in failures if error.hint), None)
        raise Unreachable(f"no broker could be reached: {tried}", hint)

    def _fresh(self, address: tuple[str, int]) -> Link | None:
        link = self._links.get(address)
        if link and link.stale():
            self._drop(link)
            return None
        return link

    def _open(self, address: tuple[str, int], deadline: float) -> Link:
        with self._login_made:
            if self._login is None and self.settings.security.credentials is not None:
                from kgroup.client.auth.login import Login

                self._login = Login(self.settings.security.credentials)
        link = Link(address, self.settings, deadline, self._clock, self._login)
        self._links[address] = link
        return link

    def _drop(self, link: Link) -> None:
        link.close()
        self._links.pop(link.address, None)


def _another(settings: ConnectionSettings, left_s: float) -> SocketTransport:
    return SocketTransport(settings, limit=Limit(left_s))
