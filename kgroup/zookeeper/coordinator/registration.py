"""Who becomes a member: the checks in their order, and what follows from being accepted (4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.registries import Group, RegisteredConsumer
from kgroup.zookeeper.coordinator.subscription import Subscription, parse
from kgroup.zookeeper.store.names import is_name
from kgroup.zookeeper.wire.messages import ErrorMapping, RegisterConsumerRequest, RegisterConsumerResponse

if TYPE_CHECKING:
    from kgroup.zookeeper.coordinator.term import Term

RESET_WORDS = ("smallest", "largest")


class Registration:
    """Answers registrations; a refused one leaves the connection open, its consumer closes it (era 4.1)."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def take(self, conn: int, request: RegisterConsumerRequest, correlation: int) -> bool:
        """Whether the connection is a member's now."""
        core = self._term.core
        error = ErrorMapping.BAD_REQUEST if conn in self._term.members else self._malformed(request)
        subscription = parse(request.topic_count)
        if error is None and subscription is None:
            error = ErrorMapping.BAD_SUBSCRIPTION
        error = error or self._refused(request)
        if error is not None:
            core.send(conn, RegisterConsumerResponse(error), correlation)
            return False
        assert subscription is not None
        core.send(conn, RegisterConsumerResponse(ErrorMapping.NONE), correlation)
        self._accept(conn, request, subscription)
        return True

    def _malformed(self, request: RegisterConsumerRequest) -> ErrorMapping | None:
        names = is_name(request.group_id) and is_name(request.consumer_id)
        reserved = request.group_id == paths.COORDINATOR_GROUP
        if names and not reserved and request.auto_offset_reset in RESET_WORDS:
            return None
        return ErrorMapping.BAD_REQUEST

    def _refused(self, request: RegisterConsumerRequest) -> ErrorMapping | None:
        core = self._term.core
        group = self._term.groups.get(request.group_id)
        present = group.members.get(request.consumer_id) if group is not None else None
        if present is not None and core.now_ms < present.lease_end_ms:
            return ErrorMapping.DUPLICATE_CONSUMER_ID
        # Strictly larger than the least, as the draft has it; its upper bound is ours.
        if not core.config.min_session_ms < request.session_timeout_ms <= core.config.max_session_ms:
            return ErrorMapping.SESSION_TIMEOUT_OUT_OF_RANGE
        return None

    def _accept(self, conn: int, request: RegisterConsumerRequest, subscription: Subscription) -> None:
        term, now_ms = self._term, self._term.core.now_ms
        group = term.groups.get(request.group_id)
        new = group is None
        if group is None:
            group = term.groups[request.group_id] = Group(request.group_id)
        self._replace(group, request.consumer_id)
        member = RegisteredConsumer(request, subscription, conn, now_ms, now_ms)
        term.members[conn] = member
        term.pings.start(member)
        group.members[request.consumer_id] = member
        term.interests.add(group, member)
        if group.run is not None:
            group.run.joined()
        if new:
            term.recovery.load(group)
        term.recovery.registered(group, member)

    def _replace(self, group: Group, consumer_id: str) -> None:
        """The consumer stopped its fetchers before it registered again: what it held is free (era 4.3)."""
        before = group.members.get(consumer_id)
        if before is not None:
            group.release(before)
            self._term.fail(before, "has registered on another connection")
        departed = group.departed.get(consumer_id)
        if departed is not None:
            group.release(departed)
