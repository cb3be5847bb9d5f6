"""Turns the difference between two states of a share group into events (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable

from kgroup.domain import MemberStatus, TopicPartition, partitions_text
from kgroup.history.fold.events import Kind
from kgroup.history.fold.explain import Membership, cause_of_rebalance, labels
from kgroup.history.fold.member_events import (
    report_finished,
    report_members,
    report_regressed,
    report_settings,
    report_started,
)
from kgroup.history.fold.transition import Carry, GroupStep
from kgroup.history.fold.view import SHARE, ShareView


def report_share(step: GroupStep, carry: Carry, members: Membership) -> None:
    """Report all events of a step of a share group, in the order in which they make sense to a reader."""
    before, after = step.before, step.after
    report_regressed(step)
    report_members(step, carry, members)
    report_settings(step, members)
    if after.epoch > before.epoch or before.kind != SHARE:
        cause, proven = cause_of_rebalance(before, after, members)
        if not proven and before.share is not None:
            topics = {topic for m in after.members.values() for topic in m.topics}
            targets = {partition for m in before.members.values() for partition in m.target or ()}
            waiting = {p for p in before.share.initialized if p.topic in topics} - targets
            if waiting:
                places = partitions_text(waiting)
                cause = f"the delivery state of {places} exists, but no member was assigned it"
                proven = True
        if not members.joined and not members.left and before.metadata_hash != after.metadata_hash:
            step.report(Kind.TOPICS_CHANGED, "the metadata of subscribed topics changed", cause=cause)
        report_started(step, carry, cause, proven=proven)
    was, now = before.share or ShareView(), after.share or ShareView()
    if now.has_target and (not was.has_target or after.assignment_epoch > before.assignment_epoch):
        step.report_target([f"{m.label} {partitions_text(m.target or ())}" for m in after.members.values()])
    _assigned(step, members)
    _delivery_state(step, was, now)
    report_finished(step, carry)


def _assigned(step: GroupStep, members: Membership) -> None:
    """Report what each member reads from now on: nothing is revoked, and others may read the same."""
    old = {new.member_id: old for old, new in members.kept}
    for member in sorted(step.after.members.values(), key=lambda m: m.label):
        was = old.get(member.member_id)
        if was is member or member.state != MemberStatus.STABLE:
            continue
        places = tuple(sorted(member.assigned))
        unowned = tuple(u for u in step.unowned if TopicPartition(u.topic, u.partition) in member.assigned)
        more = {"partitions": places, "unowned": unowned, "member_epoch": member.epoch}
        if was is not None and member.epoch < was.epoch:
            text = f"suspicious: the epoch of {member.label} went back from {was.epoch} to {member.epoch}"
            step.report(Kind.EPOCH_REGRESSED, text, member, suspicious=True, **more)
        elif was is None or (was.state, was.epoch, was.assigned) != (
            member.state,
            member.epoch,
            member.assigned,
        ):
            lost = was.assigned - member.assigned if was is not None else frozenset()
            no_more = f", no longer {partitions_text(lost)}" if lost else ""
            text = f"{labels((member,))} reads {partitions_text(places)} at epoch {member.epoch}{no_more}"
            step.report(Kind.MEMBER_RECONCILED, text, member, **more)


def _delivery_state(step: GroupStep, was: ShareView, now: ShareView) -> None:
    """Report the partitions for which the group keeps delivery state, as type 15 lists them."""

    def report(kind: Kind, text: str, places: Iterable[TopicPartition], cause: str | None = None) -> None:
        step.report(kind, f"{text} {partitions_text(places)}", partitions=tuple(sorted(places)), cause=cause)

    begun = now.initializing - was.initializing
    if fresh := begun - was.initialized:
        report(Kind.DELIVERY_STATE_INITIALIZING, "the group begins to keep delivery state of", fresh)
    if again := begun & was.initialized:
        # By itself the coordinator initializes only missing state (KIP-932, AlterShareGroupOffsets).
        how = "an admin set start offsets (kafka-share-groups or kgroup reset-offsets)"
        report(Kind.DELIVERY_STATE_INITIALIZING, "the delivery state begins again of", again, how)
    if made := now.initialized - was.initialized:
        report(Kind.DELIVERY_STATE_INITIALIZED, "members may read", made)
    gone = was.initialized | was.initializing
    gone -= now.initialized | now.initializing
    if deleting := [name for name in now.deleting if name not in was.deleting]:
        ended = [partition for partition in gone if partition.topic in deleting]
        step.report(
            Kind.DELIVERY_STATE_DELETING,
            f"the delivery state of {', '.join(deleting)} is being deleted",
            partitions=tuple(sorted(ended)),
        )
        gone -= frozenset(ended)
    if gone:
        report(Kind.DELIVERY_STATE_DELETING, "the group no longer keeps delivery state of", gone)
