"""One consumer in a thread of its own: polls, and between polls does what it is asked to."""

from __future__ import annotations

import abc
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

POLL_S = 0.05
HEARTBEAT_MS = 300


def code_of(failure: BaseException) -> str:
    """The name of Kafka's error code, else the exception's class."""
    inner = failure.args[0] if failure.args else None
    if callable(getattr(inner, "name", None)):  # librdkafka: KafkaException(KafkaError)
        return str(inner.name()).removeprefix("_")
    return str(getattr(failure, "message", "") or type(failure).__name__)


class Member(abc.ABC):
    """What the kinds share; a kind fills in the abstract methods, all called in the member's thread."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.read: list[tuple[str, int, int, str]] = []
        self.heard: list[tuple[str, list[int]]] = []
        self.rebalances = 0
        self.fatal: str | None = None
        self._seen: dict[str, Any] = {"assignment": []}
        self._asked: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue()
        self._running = True
        self._thread = threading.Thread(target=self._run, daemon=True, name=request["name"])
        self._thread.start()

    @abc.abstractmethod
    def open(self) -> None:
        """Make the consumer and subscribe."""

    @abc.abstractmethod
    def poll(self) -> None:
        """Poll for `POLL_S`, adding what came to `read`; raise what ends the member."""

    @abc.abstractmethod
    def membership(self) -> dict[str, Any]:
        """assignment as [topic, partition] pairs; generation and member_id where the client tells."""

    @abc.abstractmethod
    def commit(self, offsets: list[list[Any]] | None) -> None:
        """Commit [topic, partition, offset] rows, or all positions, synchronously."""

    @abc.abstractmethod
    def committed(self, partitions: list[list[Any]]) -> list[list[Any]]:
        """Committed offsets of [topic, partition] pairs as rows."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the consumer as the client does by itself."""

    def _run(self) -> None:
        try:
            self.open()
        except Exception as failure:
            self.fatal = code_of(failure)
        while self._running:
            if self.fatal is None:
                try:
                    self.poll()
                    self._seen = self.membership()
                except Exception as failure:
                    self.fatal = code_of(failure)
            self._answer(wait=self.fatal is not None)

    def _answer(self, wait: bool) -> None:
        try:
            what, future = self._asked.get(wait)
        except queue.Empty:
            return
        try:
            future.set_result(what())
        except Exception as failure:
            future.set_exception(failure)

    def ask(self, what: Callable[[], Any]) -> Any:
        """Run in the member's thread, between two polls."""
        future: Future[Any] = Future()
        self._asked.put((what, future))
        return future.result()

    def note(self, callback: str, partitions: Any) -> None:
        """What a rebalance listener heard: the callback and its partitions, of whatever topics."""
        self.heard.append((callback, sorted(each.partition for each in partitions)))

    def state(self) -> dict[str, Any]:
        return {**self._seen, "fatal": self.fatal, "rebalances": self.rebalances, "read": len(self.read)}

    def stop(self, leave: bool | None) -> None:
        """Close and end the thread."""
        if leave is not None:
            raise ValueError("only Java and Go members choose whether to leave")

        def ending() -> None:
            self._running = False
            self.close()

        self.ask(ending)
