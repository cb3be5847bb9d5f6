"""The group coordinator of one `__consumer_offsets` partition: requests and time in, records and replies out.

Deterministic and free of I/O. The host appends an outcome's records as one batch, passes each to `replay`,
and only then sends the replies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from kgroup.coordinator import deletion, describe
from kgroup.coordinator.admission import check_join, check_sync
from kgroup.coordinator.checks import refuse_if_no_group_id
from kgroup.coordinator.classic import rebalance
from kgroup.coordinator.classic.answers import refused_join
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.heartbeat import heartbeat
from kgroup.coordinator.classic.join import join
from kgroup.coordinator.classic.leave import leave
from kgroup.coordinator.classic.sync import sync
from kgroup.coordinator.classic.timers import renew_session
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer import client_assignor, subscription
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.epoch_group import AnyGroup
from kgroup.coordinator.ids import Ids
from kgroup.coordinator.member_timers import arm_after_load
from kgroup.coordinator.migration import classic_members, consumer_members, streams_members
from kgroup.coordinator.migration.downgrade import make_way
from kgroup.coordinator.migration.fence import fence
from kgroup.coordinator.offsets import expiry, transactions
from kgroup.coordinator.offsets.commit import commit
from kgroup.coordinator.offsets.delete import delete_offsets
from kgroup.coordinator.offsets.fetch import fetch
from kgroup.coordinator.outcome import Outcome, Record, Reply, Request, Ticket
from kgroup.coordinator.replay import replay
from kgroup.coordinator.roster import Roster
from kgroup.coordinator.share import heartbeat as share
from kgroup.coordinator.share import state_partitions
from kgroup.coordinator.share.group import Initialize, ShareGroup
from kgroup.coordinator.share.state_partitions import kept_of
from kgroup.coordinator.state import Group, State, Step
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.heartbeat import assign_at_last
from kgroup.coordinator.streams.heartbeat import fence as remove_streams_member
from kgroup.coordinator.timer_kinds import MEMBER_KINDS, SWEEP, TimerKind
from kgroup.domain import NO_PRODUCER_ID, TopicImage
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
)
from kgroup.protocol.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
)
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.protocol.messages.offset_delete import OffsetDeleteRequest
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest
from kgroup.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from kgroup.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kgroup.protocol.requests import refusal
from kgroup.protocol.streams_records import TopicInfo
from kgroup.timers import TimerKey

R = TypeVar("R")
LEAVE_BATCH_SINCE = 3
RETRY_BACKOFF_MS = 500


class Coordinator:
    """The state machine. `seed` decides every id it makes: the same seed and calls give the same bytes."""

    between_timers_ms = 1
    """Least time from a timer to one that it arms; 0 only for a host that fires them one by one."""

    def __init__(self, config: GroupConfig, seed: str, image: TopicImage) -> None:
        self.state = State(config, Ids(seed), image)

    def step(self, ticket: Ticket, request: Request, now_ms: int) -> Outcome:
        """Carry out a request; its reply is in the outcome, or in that of a later call.

        Requests that name several groups must name groups of this shard only.
        """
        body = request.body
        step = Step(
            self.state,
            now_ms,
            ticket,
            request.version,
            request.client_id,
            request.client_host,
            request.describable,
        )
        try:
            response = HANDLERS[type(body)](step, body)
        except Refused as refused:
            step.drop()
            response = refusal(body, refused.code, refused.message)
        step.commit()
        if response is not None:
            step.replies.append(Reply(ticket, response))
        return _outcome(step)

    def wake(self, now_ms: int) -> Outcome:
        """Fire the one timer that fell due first; nothing if none has. Call until `next_wake_ms` is later.

        It always becomes later: what a timer arms falls due after `now_ms`.
        """
        due = self.state.timers.pop_due(now_ms)
        step = Step(self.state, now_ms)
        if due is not None:
            try:
                _fire(step, *due)
            except Refused:
                step.drop()
                _try_again(step, *due)
        if self.between_timers_ms:
            step.postpone_timers(now_ms + self.between_timers_ms)
        step.commit()
        return _outcome(step)

    def next_wake_ms(self) -> int | None:
        """Return when the next timer falls due, or None."""
        return self.state.timers.next_ms()

    def replay(self, record: Record, offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply a record of the log; one of a transactional batch comes with its producer id."""
        replay(self.state, (record,), offset, producer_id)

    def replay_all(self, records: Iterable[Record], base: int, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply the records of a batch whose first offset is `base` and none of which is missing."""
        replay(self.state, records, base, producer_id)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply the control record that ends a producer's transaction."""
        self.state.offsets.end_transaction(producer_id, committed)

    def loaded(self, now_ms: int) -> Outcome:
        """Begin service after the last record of the log was replayed: arm the members' timers."""
        step = Step(self.state, now_ms)
        for group in list(self.state.groups.values()):
            if isinstance(group, ClassicGroup):
                # What joins said since the newest record is lost with the process, in Kafka too: the record
                # is all there is.
                group.note_subscriptions()
                for member in group.members.values():
                    renew_session(step, group, member)
                expected = self.state.expected.get(group.group_id)
                orphans = expected is not None and expected.has_orphans(step, group)
                if orphans or len(group.members) > step.config.max_size:
                    rebalance.prepare(step, group)
                continue
            arm_after_load(step, group)
            if isinstance(group, ShareGroup) and kept_of(group).initializing_topics:
                self.state.initializing_since_ms[group.group_id] = now_ms
        expiry.arm_sweep(step)
        step.commit()
        return _outcome(step)

    def configure(self, group_id: str, settings: dict[str, str]) -> None:
        """Replace a group's checked dynamic settings before the log is replayed."""
        self.state.configure(group_id, settings)
        roster, expected = self.state.roster_of(group_id), self.state.expected.get(group_id)
        if expected is not None:
            expected.roster = roster
        elif roster is not None:
            from kgroup.coordinator.classic.roster import Expected

            self.state.expected[group_id] = Expected(roster)

    def group_settings_changed(self, group_id: str, settings: dict[str, str], now_ms: int) -> Outcome:
        """Replace a group's checked dynamic settings; they apply from its next request on.

        Members whose instance ids are no longer registered are removed at once, in one batch (SM-81, OC-06).
        """
        before = self.state.roster_of(group_id) or Roster()
        self.configure(group_id, settings)
        now = self.state.roster_of(group_id) or Roster()
        gone = tuple(
            MemberIdentity(member_id="", group_instance_id=instance_id)
            for instance_id in before.registered
            if instance_id not in now.registered
        )
        step = Step(self.state, now_ms)
        try:
            _roster_changed(step, self.state.groups.get(group_id), gone)
        except Refused:
            step.drop()
        step.commit()
        return _outcome(step)

    def take_missing_topics(self, group_id: str) -> tuple[TopicInfo, ...]:
        """Return the internal topics that a streams group's last heartbeat missed, once; else none."""
        return self.state.missing_topics.pop(group_id, ())

    def take_to_initialize(self, group_id: str) -> Initialize | None:
        """Return the state that a share group's last heartbeat misses, once; else None."""
        return self.state.to_initialize.pop(group_id, None)

    def run(self, operation: Callable[[Step], R], now_ms: int) -> tuple[R, Outcome]:
        """Carry out an operation of a host that is no request; raise Refused if it is refused."""
        step = Step(self.state, now_ms)
        result = operation(step)
        step.commit()
        return result, _outcome(step)

    def count_on_from(self, before: Coordinator) -> None:
        """Never reuse a classic generation that `before`, whose place this takes, sent to members."""
        for group_id, group in self.state.groups.items():
            earlier = before.state.groups.get(group_id)
            if isinstance(group, ClassicGroup) and isinstance(earlier, ClassicGroup):
                group.sent_generation = earlier.sent_generation

    def topics_changed(self, image: TopicImage, now_ms: int) -> Outcome:
        """Apply a new topic image; remove the offsets of deleted topics."""
        before, self.state.image = self.state.image, image
        changes = image.changes_since(before)
        for group in self.state.groups.values():
            # A classic group's members watch their topics themselves.
            if not isinstance(group, ClassicGroup) and not changes.names.isdisjoint(group.looked_at_topics()):
                group.refresh_deadline_ms = 0
        step = Step(self.state, now_ms)
        if changes.gone:
            expiry.topics_deleted(step, changes.gone)
            gone = {topic.topic_id for topic in changes.gone.values()}
            for group in self.state.groups.values():
                if isinstance(group, ShareGroup):
                    state_partitions.topics_deleted(step, group, gone)
        step.commit()
        return _outcome(step)


def _outcome(step: Step) -> Outcome:
    records: Sequence[Record] = step.records
    if step.committed:  # and nothing else: then it need not be made into records
        records = [*records, *step.committed] if records else step.committed
    return Outcome(records, step.replies, step.producer, step.marker)


def _roster_changed(step: Step, group: Group | None, gone: tuple[MemberIdentity, ...]) -> None:
    if isinstance(group, ConsumerGroup):
        classic_members.leave(step, group, gone)
    elif isinstance(group, ClassicGroup):
        leave(step, group, gone)
        expected = step.state.expected.get(group.group_id)
        if expected is not None:
            expected.settings_changed(step, group)


def _join(step: Step, request: JoinGroupRequest) -> Message | None:
    check_join(step.config, request)
    group = step.state.groups.get(request.group_id)
    if group is None or isinstance(group, ClassicGroup):
        return join(step, group, request)
    if isinstance(group, ShareGroup):
        return refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    if group.is_empty:
        return make_way(step, group, request)
    # It could not be sent a topology, and Kafka converts no streams group with members.
    if isinstance(group, StreamsGroup):
        return refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    return _join_consumer_group(step, group, request)


def _join_consumer_group(step: Step, group: ConsumerGroup, request: JoinGroupRequest) -> Message:
    """Join a classic member; a refused one receives no member id, not even its own, as in Kafka."""
    try:
        return classic_members.join(step, group, request)
    except Refused as refused:
        step.drop()
        return refused_join(refused.code, "")


def _sync(step: Step, request: SyncGroupRequest) -> Message | None:
    check_sync(request, step.version)
    group = step.state.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        return classic_members.sync(step, group, request)
    return sync(step, _classic(group), request)


def _heartbeat(step: Step, request: HeartbeatRequest) -> Message:
    refuse_if_no_group_id(request.group_id)
    group = step.state.groups.get(request.group_id)
    if isinstance(group, ClassicGroup):
        return heartbeat(step, group, request)
    if isinstance(group, ConsumerGroup):
        return classic_members.heartbeat(step, group, request)
    return heartbeat(step, None, request)


def _leave(step: Step, request: LeaveGroupRequest) -> Message:
    refuse_if_no_group_id(request.group_id)
    group = step.state.groups.get(request.group_id)
    batch = step.version >= LEAVE_BATCH_SINCE
    leavers = request.members if batch else (MemberIdentity(member_id=request.member_id),)
    if isinstance(group, ConsumerGroup):
        response = classic_members.leave(step, group, leavers)
    else:
        response = leave(step, _classic(group), leavers)
    return response if batch else LeaveGroupResponse(error_code=response.members[0].error_code)


def _classic(group: Group | None) -> ClassicGroup | None:
    """Return the classic group; a share or streams group has no member of that id here."""
    return group if isinstance(group, ClassicGroup) else None


def _delete_offsets(step: Step, request: OffsetDeleteRequest) -> Message:
    refuse_if_no_group_id(request.group_id)
    return delete_offsets(step, request)


HANDLERS: dict[type[Message], Callable[[Step, Any], Message | None]] = {
    JoinGroupRequest: _join,
    SyncGroupRequest: _sync,
    HeartbeatRequest: _heartbeat,
    LeaveGroupRequest: _leave,
    OffsetCommitRequest: commit,
    OffsetFetchRequest: fetch,
    OffsetDeleteRequest: _delete_offsets,
    TxnOffsetCommitRequest: transactions.commit,
    ListGroupsRequest: describe.list_groups,
    DescribeGroupsRequest: describe.describe_groups,
    DeleteGroupsRequest: deletion.delete_groups,
    ConsumerGroupHeartbeatRequest: consumer_members.heartbeat,
    ConsumerGroupPrepareAssignmentRequest: client_assignor.prepare,
    ConsumerGroupInstallAssignmentRequest: client_assignor.install,
    ConsumerGroupDescribeRequest: describe.describe_consumer_groups,
    ShareGroupHeartbeatRequest: share.heartbeat,
    ShareGroupDescribeRequest: describe.describe_share_groups,
    StreamsGroupHeartbeatRequest: streams_members.heartbeat,
    StreamsGroupDescribeRequest: describe.describe_streams_groups,
}


def _fire(step: Step, key: TimerKey, what: object) -> None:
    if key == SWEEP:
        expiry.sweep(step)
        return
    group = step.state.groups.get(key.group_id)
    if isinstance(group, ClassicGroup):
        match key.kind:
            case TimerKind.CLASSIC_JOIN:
                rebalance.join_timer_fired(step, group, what)
            case TimerKind.CLASSIC_SYNC:
                rebalance.sync_timer_fired(step, group, what)
            case TimerKind.CLASSIC_HOLD if group.held:
                rebalance.rebalance_or_complete(step, group)
            case TimerKind.CLASSIC_SESSION:
                rebalance.session_timer_fired(step, group, key.member_id)
    elif group is not None:
        _fire_in_epoch_group(step, group, key, what)


def _try_again(step: Step, key: TimerKey, what: object) -> None:
    """Retry timers of consumer groups that could not do their work, but not those of classic groups.

    As in Kafka (CoordinatorTimerImpl, `retry`); a downgrade with a malformed subscription gets here.
    """
    if key.kind in MEMBER_KINDS:
        step.arm(key, RETRY_BACKOFF_MS, what)


def _fire_in_epoch_group(step: Step, group: AnyGroup, key: TimerKey, what: Any) -> None:
    member = group.members.get(key.member_id)
    timers = group.KIND.timers
    if isinstance(group, ConsumerGroup) and key.kind == TimerKind.CONSUMER_REGEX:
        subscription.resolve(step, group, what)
    elif isinstance(group, StreamsGroup) and key.kind == TimerKind.STREAMS_INITIAL:
        assign_at_last(step, group)
    # A timer may outlive its member, or its group's type: conversions and places taken over do not search for
    # every one. A member that moved on since has revoked in time; its next revocation has another timer.
    elif member is None or (key.kind == timers.revocation and member.epoch != what):
        return
    elif key.kind in timers.all:
        _FENCES[type(group)](step, group, member)


_FENCES: dict[type, Callable[..., None]] = {
    ConsumerGroup: lambda step, group, member: fence(step, group, [member]),
    ShareGroup: share.fence,
    StreamsGroup: remove_streams_member,
}
