"""The way into a cluster under control: it knows who speaks, and holds what is not to be heard yet."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial

from kgroup.broker.call import Answer, AnyCall, Call
from kgroup.broker.control.presence import Presence, sender
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.protocol.codec import Message
from kgroup.runtime.cluster import Cluster


class ControlledDispatcher(Dispatcher):
    """As a Dispatcher; calls of whoever is frozen wait, and are served in their order when that is over."""

    def __init__(self, cluster: Cluster, apis: Iterable[AnyApi]) -> None:
        super().__init__(cluster, apis)
        self.presence = Presence()
        self._held: dict[Hashable, list[AnyCall]] = {}

    def handle(self, call: Call[Message]) -> Answer:
        spoke = sender(call)
        if spoke is not None:
            self.presence.note(call, spoke[1])
        return self._serve(call)

    def release(self, why: Hashable) -> None:
        """Serve what was held for that reason, unless another holds it."""
        for call in self._held.pop(why, ()):
            call.forget = None
            answer = self._serve(call)
            if answer is not None:
                self.answer(call, answer)

    def _serve(self, call: AnyCall) -> Answer:
        frozen = self.presence.frozen_by(call)
        if frozen is not None:
            self._hold(call, frozen)
            return None
        answer = super().handle(call)
        # Before version 1 of ConsumerGroupHeartbeat it is the coordinator that names a member.
        named = getattr(answer, "member_id", None)
        if named and hasattr(call.body, "group_id"):
            self.presence.note(call, named)
        return answer

    def _hold(self, call: AnyCall, why: Hashable) -> None:
        held = self._held.setdefault(why, [])
        held.append(call)
        call.forget = partial(held.remove, call)
