"""A request on its way through the broker, and its handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from kgroup.coordinator.outcome import Request
from kgroup.protocol.codec import Message
from kgroup.security.principals import ANONYMOUS, Principal

R = TypeVar("R", bound=Message, covariant=True)
"""A `Call[Message]` takes a call of any class."""


class Peer(Protocol):
    """The connection a call came by."""

    @property
    def is_open(self) -> bool: ...

    def cut_after(self, size: int) -> None:
        """Close it after so many more bytes."""
        ...


def _discard(response: Message | None) -> None:
    """Discard the answer to a call that has no sender any more."""


@dataclass(slots=True)
class Call(Request, Generic[R]):
    """A request of class R that `principal` sent to broker `node`, by the listener of that name.

    `answer` takes the response of a parked call, once, and never while the handler still runs; None means
    that no response is to be sent. `forget`, if the handler set it, is called when the peer is gone and
    the answer is not wanted any more.
    """

    body: R
    node: int = 0
    answer: Callable[[Message | None], None] = _discard
    forget: Callable[[], None] | None = field(default=None)
    principal: Principal = ANONYMOUS
    listener: str = ""
    peer: Peer | None = None
    failing: Mapping[tuple[str | None, int], int] | None = None
    """Error codes that a Fetch answers partitions with, by topic and number; nearly always None."""

    def part(self, body: Message, answer: Callable[[Message | None], None]) -> Call[Message]:
        """Return a request of its own for a part of this one."""
        return Call(
            body,
            self.version,
            self.client_id,
            self.client_host,
            self.node,
            answer,
            principal=self.principal,
            describable=self.describable,
            listener=self.listener,
            peer=self.peer,
            failing=self.failing,
        )


AnyCall: TypeAlias = Call[Any]
"""A call with any request."""


class NoResponse(Enum):
    """The answer to a request that gets no response (Produce with acks=0)."""

    NO_OP = auto()
    CLOSE_CONNECTION = auto()
    """The only way to report a failure."""


Answer: TypeAlias = Message | NoResponse | None
"""What a handler returns: the response, NoResponse, or None for a parked call that `call.answer` ends."""
