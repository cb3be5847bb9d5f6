"""The entry of a cluster under control: it knows senders, holds frozen requests, and obeys rules."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from kgroup.broker.call import Answer, AnyCall, Call, NoResponse
from kgroup.broker.control.faults.answers import failing
from kgroup.broker.control.faults.installed import Faults, Verdict
from kgroup.broker.control.faults.sites import Site, sites_of
from kgroup.broker.control.gates import Gate
from kgroup.broker.control.presence import OWN_CLIENT, Presence, sender
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.fetch_sessions import IDS_SINCE
from kgroup.protocol import registry
from kgroup.protocol.anatomy import Entry
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.metadata import MetadataRequestTopic
from kgroup.protocol.registry import ApiKey
from kgroup.runtime.cluster import Cluster

GATE = "gate"
"""What the gate of a group holds is held for (GATE, group)."""
MOVE = "move"
"""What is held until time has moved."""


class ControlledDispatcher(Dispatcher):
    """A Dispatcher; calls of a frozen member wait, and are served in their order once it is thawed.

    So do those to a frozen broker. Without a rule in force, a request costs one look at a list.
    """

    def __init__(self, cluster: Cluster, apis: Iterable[AnyApi]) -> None:
        super().__init__(cluster, apis)
        self.presence = Presence()
        self.faults = Faults(cluster)
        self.frozen_nodes: set[int] = set()
        self.moves: set[object] = set()
        """Moves of time under way during which clients are not served."""
        self.gates: dict[str, Gate] = {}
        self._held: dict[Hashable, list[AnyCall]] = {}

    def handle(self, call: Call[Message]) -> Answer:
        spoke = sender(call)
        if spoke is not None:
            self.presence.note(call, spoke[1])
        return self._admit(call)

    def release(self, why: Hashable) -> None:
        """Serve what was held for that reason, unless another holds it."""
        for call in self._held.pop(why, ()):
            call.forget = None
            answer = self._admit(call)
            if answer is not None:
                self.answer(call, answer)

    def held(self, why: Hashable) -> int:
        """Return how many calls wait for that reason."""
        return len(self._held.get(why, ()))

    def endpoints(self, call: AnyCall) -> Mapping[int, tuple[str, int]]:
        endpoints = super().endpoints(call)
        down = self.cluster.down
        return {node: at for node, at in endpoints.items() if node not in down} if down else endpoints

    def _admit(self, call: AnyCall) -> Answer:
        """Serve a call by the rules, if there are any, unless it or its broker is frozen."""
        if call.client_id == OWN_CLIENT:
            return self._serve(call)
        if self.moves:
            self._hold(call, MOVE)
            return None
        if call.node in self.frozen_nodes:
            self._hold(call, call.node)
            return None
        frozen = self.presence.frozen_by(call)
        if frozen is not None:
            self._hold(call, frozen)
            return None
        gate = self.gates.get(getattr(call.body, "group_id", "")) if self.gates else None
        if gate is None:
            return self._obey(call)
        if not gate.admits(call):
            self._hold(call, (GATE, call.body.group_id))
            return None
        answer = self._obey(call)
        gate.served(call)
        return answer

    def _obey(self, call: AnyCall) -> Answer:
        faults = self.faults
        verdict = faults.judge(call, self._sites) if faults.active or faults.loading else None
        if verdict is None:
            return self._serve(call)
        if not verdict.delay_s:
            return self._judged(call, verdict)

        def go_on() -> None:
            call.forget = None
            answer = self._judged(call, verdict)
            if answer is not None:
                self.answer(call, answer)

        timer = asyncio.get_running_loop().call_later(verdict.delay_s, go_on)
        call.forget = timer.cancel
        return None

    def _serve(self, call: AnyCall) -> Answer:
        answer = super().handle(call)
        # Before version 1 of ConsumerGroupHeartbeat it is the coordinator that names a member.
        named = getattr(answer, "member_id", None)
        if named and hasattr(call.body, "group_id"):
            self.presence.note(call, named)
        return answer

    def _judged(self, call: AnyCall, verdict: Verdict) -> Answer:
        """Serve a call as the rules say, and change or drop its answer."""
        if verdict.top_level is not None:
            answer: Message = registry.response_class_at(call.body.API, call.version)(  # type: ignore[call-arg]
                error_code=verdict.top_level
            )
            return answer

        def later(response: Message | None) -> None:
            if not verdict.drop:
                call.answer(None if response is None else self._sent(call, verdict, response))

        part = call.part(call.body, later)
        part.peer = call.peer
        if verdict.codes:
            part.body = self._named(part)
            api = self.apis[part.body.API]
            served = failing(self._serve, api, part, verdict.sites, verdict.codes, verdict.entries)
        else:
            served = self._serve(part)
        if served is None:
            call.forget = part.forget
            return None
        if verdict.drop:
            return None
        return served if isinstance(served, NoResponse) else self._sent(call, verdict, served)

    def _sent(self, call: AnyCall, verdict: Verdict, answer: Message) -> Message:
        if verdict.stale is not None:
            answer = verdict.stale.aged(answer, call, super().endpoints(call))
        if verdict.cut_after is not None and call.peer is not None:
            call.peer.cut_after(verdict.cut_after)
        return answer

    def _named(self, call: AnyCall) -> Message:
        """Return a request; one about all topics is replaced by one that names them."""
        body: Entry = call.body
        every = body.API == ApiKey.METADATA and (
            body.topics is None or (call.version == 0 and not body.topics)
        )
        names = self.cluster.catalog.topics if every else ()
        named: Message = (
            replace(body, topics=tuple(MetadataRequestTopic(name=name) for name in names)) if names else body
        )
        return named

    def _sites(self, call: AnyCall) -> list[Site]:
        """Return the parts of a request; in a fetch session also those that it does not repeat."""
        body: Entry = self._named(call)
        sites = sites_of(body, call.version, self.cluster.catalog.image.name_of)
        if body.API != ApiKey.FETCH:
            return sites
        named = {(site.topic, site.partition) for site in sites}
        session = self.sessions(call.node).partitions_of(body.session_id)
        by_id = call.version >= IDS_SINCE
        more = (
            Site((-1, index), partition.name, partition.topic_id if by_id else None, partition.ask.partition)
            for index, partition in enumerate(session)
            if (partition.name, partition.ask.partition) not in named
        )
        known = [site for site in (*sites, *more) if site.topic is not None]
        return known or sites

    def _hold(self, call: AnyCall, why: Hashable) -> None:
        held = self._held.setdefault(why, [])
        held.append(call)
        call.forget = partial(held.remove, call)
