"""The coordinator of the ZooKeeper era: `step(event, now)` and `wake(now)` in, effects out (era 3)."""

from bisect import bisect_right

from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.coordinator.core import Core
from kgroup.zookeeper.coordinator.directory import Directory
from kgroup.zookeeper.coordinator.election import Elector, State
from kgroup.zookeeper.coordinator.registries import Group, RegisteredConsumer, Stage, has_let_go
from kgroup.zookeeper.coordinator.term import Answer, Term
from kgroup.zookeeper.events import (
    Closed,
    CoordinatorEffect,
    CoordinatorEvent,
    Level,
    Malformed,
    Opened,
    Received,
    Shutdown,
    ZkConnected,
    ZkDone,
    ZkExpired,
    ZkFired,
)
from kgroup.zookeeper.wire.messages import (
    ClusterMetadataRequest,
    ClusterMetadataResponse,
    CommitOffsetRequest,
    DescribeGroupRequest,
    DescribeGroupResponse,
    ErrorMapping,
    RegisterConsumerRequest,
    RegisterConsumerResponse,
    Registered,
)

NO_COORDINATOR = -1


class LegacyCoordinator:
    """One broker's coordinator: passive until it is elected; at most one per cluster is active.

    A host feeds it events and wakes it when it asks; the same events give the same effects.
    """

    def __init__(self, config: LegacyConfig, broker_id: int) -> None:
        self.core = Core(config, broker_id)
        self.directory = Directory(self.core)
        self.elector = Elector(self.core, self._won, self._lost)
        self.term: Term | None = None

    @property
    def state(self) -> State:
        """Its state in the election."""
        return self.elector.state

    def step(self, event: CoordinatorEvent, now_ms: int) -> list[CoordinatorEffect]:
        """Handle an event and return the effects."""
        if self._at(now_ms):
            self._handle(event)
        return self.core.take_effects()

    def wake(self, now_ms: int) -> list[CoordinatorEffect]:
        """Fire one timer, if one is due, and return the effects."""
        if self._at(now_ms):
            term_due = None if self.term is None else self.term.timers.next_ms()
            due = self.core.timers.next_ms()
            if self.term is None or term_due is None or (due is not None and due <= term_due):
                self.core.timers.fire(now_ms)
            else:
                self.term.timers.fire(now_ms)
        return self.core.take_effects()

    def next_wake_ms(self) -> int | None:
        """Return when to wake it, None for never."""
        if self.state is State.STOPPED:
            return None
        dues = [self.core.timers.next_ms()]
        if self.term is not None:
            dues += [self.term.timers.next_ms(), self.elector.lease_end_ms]
        return min((due for due in dues if due is not None), default=None)

    def _at(self, now_ms: int) -> bool:
        """Return whether anything is left to do; the lease is checked before anything else (era 3.3)."""
        if self.state is State.STOPPED:
            return False
        self.core.now_ms = max(now_ms, self.core.now_ms)
        if self.elector.lease_is_over():
            self.elector.resign_and_try_again("ZooKeeper has not confirmed the coordinator's node in time")
        return True

    def _handle(self, event: CoordinatorEvent) -> None:  # noqa: C901 - one case for each event
        match event:
            case Received():
                self._received(event)
            case ZkDone(call, results):
                self.core.answered(call, results)
            case Opened(conn):
                self.core.opened(conn)
            case Closed(conn):
                self.core.forget(conn)
                member = self._member(conn)
                if member is not None and self.term is not None:
                    self.term.fail(member, "its connection was closed", closed=True)
            case Malformed(conn, detail):
                self._malformed(conn, detail)
            case Shutdown():
                self._shut_down()
            case _:
                self._of_session(event)

    def _of_session(self, event: CoordinatorEvent) -> None:
        match event:
            case ZkConnected():
                self.core.connected = True
                self.core.negotiated_ms = event.negotiated_ms
                self.elector.connected(event)
                if event.fresh or not self.directory.known:
                    self.directory.read()
                self.core.reconnected()
            case ZkFired(path):
                if not (self.elector.fired(path) or self.directory.fired(path)) and self.term is not None:
                    self.term.interests.fired(path)
            case _:
                self.core.connected = False
                if isinstance(event, ZkExpired):
                    self.elector.expired()

    def _won(self, epoch: int) -> None:
        def started() -> None:
            self.elector.ready()
            self.core.log(Level.INFO, f"broker {self.core.broker_id} is the coordinator")

        why = "another broker is the coordinator"
        self.term = Term(self.core, self.directory, epoch, lambda: self.elector.resign_and_try_again(why))
        self.term.start(started)

    def _lost(self, why: str) -> None:
        if self.term is not None:
            self.term.end()
            self.term = None
        self.core.log(Level.WARNING, f"broker {self.core.broker_id} is no longer the coordinator: {why}")

    def _received(self, event: Received) -> None:
        if not self.core.heard(event.conn):
            return
        match event.message:
            case ClusterMetadataRequest():
                self._send_metadata(event)
            case RegisterConsumerRequest():
                self._register(event, event.message)
            case DescribeGroupRequest() as request:
                active = self.term if self.state is State.ACTIVE else None
                self.core.send(event.conn, describe(active, request), event.correlation)
            case message if isinstance(message, Answer | CommitOffsetRequest):
                member = self._member(event.conn)
                if self.term is None or member is None:
                    self._malformed(event.conn, "an answer from a connection that has not registered")
                    return
                why = self.term.answers.contradiction(member, message)
                if why is not None:
                    self._malformed(event.conn, why)
                elif isinstance(message, CommitOffsetRequest):
                    self.term.answers.commit(member, message, event.correlation)
                else:
                    self.term.answers.take(member, message, event.correlation)

    def _send_metadata(self, event: Received) -> None:
        """Answer on any broker at any time; omit a coordinator missing from the broker list (era 3.9)."""
        coordinator, brokers = self.elector.coordinator_id, self.directory.brokers
        if coordinator is None or not self.directory.known:
            answer = ClusterMetadataResponse(ErrorMapping.NOT_COORDINATOR, NO_COORDINATOR, brokers)
        else:
            answer = ClusterMetadataResponse(ErrorMapping.NONE, coordinator, brokers)
        self.core.send(event.conn, answer, event.correlation)

    def _register(self, event: Received, request: RegisterConsumerRequest) -> None:
        if self.term is None or self.state is not State.ACTIVE:
            refusal = RegisterConsumerResponse(ErrorMapping.NOT_COORDINATOR)
            self.core.send(event.conn, refusal, event.correlation)
        elif self.term.registration.take(event.conn, request, event.correlation):
            self.core.registered(event.conn)

    def _member(self, conn: int) -> RegisteredConsumer | None:
        return None if self.term is None else self.term.members.get(conn)

    def _malformed(self, conn: int, detail: str) -> None:
        self.core.log(Level.WARNING, f"connection {conn} is closed: {detail}")
        member = self._member(conn)
        if member is not None and self.term is not None:
            self.term.fail(member, "has broken the protocol")
        else:
            self.core.close(conn)

    def _shut_down(self) -> None:
        """Stop elector, scheduler, committer, rebalancers, connections, in the draft's order (era 3.7)."""
        self.elector.stop()
        if self.term is not None:
            for group in self.term.groups.values():
                changed = self.term.committer.changed(group)
                for multi in self.term.writes.multis(group, changed, ()):
                    self.core.ask(multi, lambda _: None)
            self.term.end()
            self.term = None
        self.core.close_all()


STABLE, REBALANCING, FAILED = "Stable", "Rebalancing", "Failed"
RECOVERING, LEAVING, EMPTY = "Recovering", "Leaving", "Empty"
PAGE_BYTES = 256 * 1024
"""Limit of an answer's size, so that the client that asks does not count as a slow reader."""
MEMBER_BYTES = 18


def describe(term: Term | None, request: DescribeGroupRequest) -> DescribeGroupResponse:
    """Return a broker's answer; NOT_COORDINATOR if it does not coordinate (`term` None)."""
    if term is None:
        return DescribeGroupResponse(ErrorMapping.NOT_COORDINATOR, "", False, ())
    group = term.groups.get(request.group_id)
    if group is None:
        # Soon after an election its consumers may still be reconnecting.
        state = EMPTY if term.core.now_ms >= term.recovery.all_known_ms() else RECOVERING
        return DescribeGroupResponse(ErrorMapping.NONE, state, False, ())
    names = sorted(group.members)
    page: list[Registered] = []
    size = 0
    at = bisect_right(names, request.after)
    while at < len(names) and size < PAGE_BYTES:
        member = group.members[names[at]]
        asked = member.registration
        page.append(
            Registered(
                member.consumer_id,
                asked.topic_count,
                asked.auto_commit,
                member.started,
                asked.session_timeout_ms,
                member.failed,
                len(member.holds),
            )
        )
        size += MEMBER_BYTES + len(names[at].encode()) + len(page[-1].topic_count.encode())
        at += 1
    state = state_of(group, term.core.now_ms)
    return DescribeGroupResponse(ErrorMapping.NONE, state, at < len(names), tuple(page))


def state_of(group: Group, now_ms: int) -> str:
    """Return the group's state: Stable only when every member has confirmed what it fetches.

    Empty only when no former member may still deliver and all reported offsets are written; until then
    Leaving.
    """
    if group.stage is not Stage.NORMAL:
        return RECOVERING
    if not group.members:
        delivers = any(not has_let_go(member, now_ms) for member in group.departed.values())
        return LEAVING if delivers or group.changed or group.jobs else EMPTY
    if group.run is not None or group.rebalance_initiated:
        return REBALANCING
    if group.given_up:
        return FAILED
    return STABLE if all(member.started for member in group.members.values()) else REBALANCING
