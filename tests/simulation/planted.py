"""Faults to plant in the coordinator: each breaks one rule, and some seed must notice.

A fault takes pytest's monkeypatch and changes functions where they are used. docs/simulation.md says what
kinds there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kgroup.coordinator import coordinator as machine
from kgroup.coordinator import deletion
from kgroup.coordinator import offset_store as store
from kgroup.coordinator.classic import heartbeat as classic_heartbeat
from kgroup.coordinator.classic import leave as classic_leave
from kgroup.coordinator.classic import rebalance, static
from kgroup.coordinator.classic import sync as classic_sync
from kgroup.coordinator.consumer import advance, commit_check, heartbeat, leave, reconcile, target
from kgroup.coordinator.migration import classic_members, downgrade, upgrade
from kgroup.coordinator.offsets import accepting, transactions
from kgroup.coordinator.outcome import Outcome
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.domain import NO_EPOCH
from kgroup.errors import StorageError
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord
from kgroup.protocol.group_records import encode_key, encode_value
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.runtime.shard import Shard
from kgroup.timers import TimerKey

Plant = Callable[[Any], None]


def nothing(*args: Any, **more: Any) -> None:
    """Takes the place of a step that is forgotten."""


def commit_of_an_old_generation(patch: Any) -> None:
    patch.setattr(accepting, "refuse_if_generation_differs", nothing)


def heartbeat_of_an_old_generation(patch: Any) -> None:
    patch.setattr(classic_heartbeat, "refuse_if_generation_differs", nothing)


def sync_of_an_old_generation(patch: Any) -> None:
    patch.setattr(classic_sync, "refuse_if_generation_differs", nothing)


def commit_of_an_old_epoch(patch: Any) -> None:
    patch.setattr(commit_check.OlderEpoch, "__call__", nothing)


def commit_at_the_assignment_epoch_refused(patch: Any) -> None:
    right = commit_check.OlderEpoch.__init__

    def init(self: Any, member: Any, epoch: int, refusal: Any) -> None:
        right(self, member, epoch - 1, refusal)

    patch.setattr(commit_check.OlderEpoch, "__init__", init)


def heartbeat_of_an_old_epoch(patch: Any) -> None:
    patch.setattr(heartbeat, "_refuse_epoch", nothing)


def generation_of_classic_member_in_consumer_group(patch: Any) -> None:
    patch.setattr(classic_members, "_refuse_generation", nothing)


def instance_fence_missing(patch: Any) -> None:
    right = classic_heartbeat.refuse_if_unknown

    def by_member_id_only(group: Any, member_id: str, instance_id: str | None) -> None:
        if member_id:
            right(group, group.static.get(instance_id, member_id), None)

    for module in (classic_heartbeat, classic_sync, accepting):
        patch.setattr(module, "refuse_if_unknown", by_member_id_only)


def heartbeat_does_not_renew_classic_session(patch: Any) -> None:
    patch.setattr(classic_heartbeat, "renew_session", nothing)


def heartbeat_does_not_renew_consumer_session(patch: Any) -> None:
    right = heartbeat.renew_session

    def renew(step: Any, group_id: str, member: Any) -> None:
        if TimerKey(TimerKind.CONSUMER_SESSION, group_id, member.member_id) not in step.state.timers:
            right(step, group_id, member)

    patch.setattr(heartbeat, "renew_session", renew)


def no_sessions_after_a_reload(patch: Any) -> None:
    patch.setattr(machine.Coordinator, "loaded", lambda self, now_ms: Outcome())


def join_phase_never_ends(patch: Any) -> None:
    patch.setattr(rebalance, "join_timer_fired", nothing)


def revocation_may_take_for_ever(patch: Any) -> None:
    patch.setattr(advance, "limit_revocation", nothing)


def left_for_now_without_a_record(patch: Any) -> None:
    right = leave.write_current

    def write(step: Any, group_id: str, member: Any) -> None:
        if member.epoch != leave.LEFT_EPOCH:
            right(step, group_id, member)
            return
        step.state.groups[group_id].put_member(member)

    patch.setattr(leave, "write_current", write)


def static_place_taken_without_a_record(patch: Any) -> None:
    right = static._keep_place

    def keep(step: Any, *rest: Any) -> Any:
        response = right(step, *rest)
        step.records.clear()
        return response

    patch.setattr(static, "_keep_place", keep)


def tombstone_of_the_target_dropped(patch: Any) -> None:
    def remove(step: Any, group_id: str, member_id: str) -> None:
        step.write(r.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
        step.write(r.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)

    patch.setattr(leave, "remove_member", remove)


def offsets_survive_the_group(patch: Any) -> None:
    right = deletion.forget_group

    def forget(step: Any, *rest: Any) -> Any:
        result = right(step, *rest)
        step.records[:] = [x for x in step.records if not isinstance(x.key, r.OffsetCommitKey)]
        return result

    patch.setattr(deletion, "forget_group", forget)


def epoch_stays_when_a_member_leaves(patch: Any) -> None:
    right = leave.write_epoch
    patch.setattr(
        leave, "write_epoch", lambda step, group, epoch, hash_: right(step, group, epoch - 1, hash_)
    )


def partition_given_before_it_is_free(patch: Any) -> None:
    right = advance.reconcile
    patch.setattr(
        advance,
        "reconcile",
        lambda current, goal: right(current, replace(goal, owner_epoch=lambda topic, number: NO_EPOCH)),
    )


def revocation_not_awaited(patch: Any) -> None:
    patch.setattr(reconcile.Goal, "still_owns", lambda self, partitions: False)


def commit_acknowledged_but_not_written(patch: Any) -> None:
    right = machine.HANDLERS[OffsetCommitRequest]

    def forgetful(step: Any, request: Any) -> Any:
        response = right(step, request)
        if step.now_ms % 7 == 0:
            step.committed = ()
        return response

    patch.setitem(machine.HANDLERS, OffsetCommitRequest, forgetful)


def replies_although_the_append_failed(patch: Any) -> None:
    def settle(self: Any, outcome: Any, now_ms: int, ticket: int | None = None) -> Any:
        encoded = [LogRecord(encode_key(r.key), encode_value(r.value)) for r in outcome.records]
        try:
            self._append(outcome, encoded, now_ms)
        except StorageError:
            self.load(now_ms)
        return outcome.replies

    patch.setattr(Shard, "_settle", settle)


def silent_members_are_kept(patch: Any) -> None:
    right = rebalance.drop_member

    def drop(step: Any, group: Any, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is None or member.instance_id is not None or len(group.members) < 2:
            right(step, group, member_id)

    patch.setattr(rebalance, "drop_member", drop)


def expired_member_stays(patch: Any) -> None:
    patch.setattr(rebalance, "session_timer_fired", nothing)


def static_place_never_kept(patch: Any) -> None:
    patch.setattr(static, "_keep_place", nothing)


def leave_without_a_rebalance(patch: Any) -> None:
    patch.setattr(classic_leave, "after_removal", nothing)


def classic_record_survives_the_upgrade(patch: Any) -> None:
    patch.setattr(upgrade, "_forget", nothing)


def downgrade_starts_from_generation_zero(patch: Any) -> None:
    right = downgrade._convert

    def convert(step: Any, group: Any, members: Any) -> Any:
        epoch, group.epoch = group.epoch, 0
        result = right(step, group, members)
        group.epoch = epoch
        return result

    patch.setattr(downgrade, "_convert", convert)


def target_not_computed_for_the_new(patch: Any) -> None:
    patch.setattr(target, "may_compute", lambda step, group: group.assignment_timestamp_ms == 0)


def aborted_offsets_show(patch: Any) -> None:
    right = store.OffsetStore.end_transaction
    patch.setattr(
        store.OffsetStore, "end_transaction", lambda self, producer, committed: right(self, producer, True)
    )


def committed_offsets_do_not_show(patch: Any) -> None:
    right = store.OffsetStore.end_transaction
    patch.setattr(
        store.OffsetStore, "end_transaction", lambda self, producer, committed: right(self, producer, False)
    )


def fetch_does_not_wait_for_transactions(patch: Any) -> None:
    patch.setattr(store.OffsetStore, "has_pending", lambda self, *where: False)


def transactional_commit_of_an_old_generation(patch: Any) -> None:
    patch.setattr(transactions, "refuse_if_not_committer", nothing)


def transactional_commit_of_an_old_epoch(patch: Any) -> None:
    patch.setattr(transactions, "check_commit", nothing)


def marker_acknowledged_but_not_written(patch: Any) -> None:
    right = Shard.end_transaction

    def end(self: Any, marker: Any, now_ms: int) -> Any:
        return (True, []) if now_ms % 7 == 0 else right(self, marker, now_ms)

    patch.setattr(Shard, "end_transaction", end)


IN_TRANSACTIONS: tuple[Plant, ...] = (
    aborted_offsets_show,
    committed_offsets_do_not_show,
    fetch_does_not_wait_for_transactions,
    transactional_commit_of_an_old_generation,
    transactional_commit_of_an_old_epoch,
    marker_acknowledged_but_not_written,
)
"""Found by seeds from `chaos.WITH_TRANSACTIONS` on."""
FAULTS: tuple[Plant, ...] = (
    commit_of_an_old_generation,
    heartbeat_of_an_old_generation,
    sync_of_an_old_generation,
    commit_of_an_old_epoch,
    commit_at_the_assignment_epoch_refused,
    heartbeat_of_an_old_epoch,
    generation_of_classic_member_in_consumer_group,
    instance_fence_missing,
    heartbeat_does_not_renew_classic_session,
    heartbeat_does_not_renew_consumer_session,
    no_sessions_after_a_reload,
    join_phase_never_ends,
    revocation_may_take_for_ever,
    left_for_now_without_a_record,
    static_place_taken_without_a_record,
    tombstone_of_the_target_dropped,
    offsets_survive_the_group,
    epoch_stays_when_a_member_leaves,
    partition_given_before_it_is_free,
    revocation_not_awaited,
    commit_acknowledged_but_not_written,
    replies_although_the_append_failed,
    silent_members_are_kept,
    expired_member_stays,
    static_place_never_kept,
    leave_without_a_rebalance,
    classic_record_survives_the_upgrade,
    downgrade_starts_from_generation_zero,
    target_not_computed_for_the_new,
)
