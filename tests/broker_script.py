"""What a broker does with the requests of an API, as a test tells it: stall them, or answer in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import Dispatcher
from kgroup.protocol.codec import Message

Hook: TypeAlias = Callable[[Call[Any]], Answer]


class Script:
    """Rules by API key, consulted before the handlers. An API without a rule is served as usual."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self.serve = dispatcher.handle
        self._hooks: dict[int, tuple[Hook, int]] = {}
        self.stalled: dict[int, list[Call[Message]]] = {}
        dispatcher.handle = self._handle  # type: ignore[method-assign]

    def answer(self, key: int, hook: Hook, times: int = 1 << 62) -> None:
        """Answer the next `times` requests with what the hook returns (None parks the call for good)."""
        self._hooks[key] = (hook, times)

    def stall(self, key: int, times: int = 1 << 62) -> None:
        """Hold the next `times` requests until `release`."""
        calls = self.stalled.setdefault(key, [])
        self.answer(key, calls.append, times)

    def release(self, key: int) -> None:
        """Serve the held requests as usual, oldest first, and hold no more of them."""
        self._hooks.pop(key, None)
        for call in self.stalled.pop(key, []):
            response = self.serve(call)
            if response is not None:
                self._dispatcher.answer(call, response)

    def _handle(self, call: Call[Message]) -> Answer:
        key = call.body.API
        found = self._hooks.get(key)
        if found is None:
            return self.serve(call)
        hook, times = found
        if times > 1:
            self._hooks[key] = (hook, times - 1)
        else:
            del self._hooks[key]
        return hook(call)
