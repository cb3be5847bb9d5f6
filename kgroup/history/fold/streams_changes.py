"""Turns the difference between two states of a streams group into events (KIP-1071)."""

from __future__ import annotations

from kgroup.history.fold.events import SHOWN, Kind
from kgroup.history.fold.explain import Membership, labels
from kgroup.history.fold.member_events import (
    report_finished,
    report_members,
    report_reconciliation,
    report_regressed,
    report_settings,
    report_started,
)
from kgroup.history.fold.tasks import StreamsClient
from kgroup.history.fold.transition import Carry, GroupStep
from kgroup.history.fold.view import INTERRUPTED, STREAMS, RecordedMember, StreamsView, View
from kgroup.protocol.streams_records import sources_of


def report_streams(step: GroupStep, carry: Carry, members: Membership) -> None:
    """Report all events of a step of a streams group, in the order in which they make sense to a reader."""
    before, after = step.before, step.after
    report_regressed(step)
    report_members(step, carry, members)
    report_settings(step, members)
    updated = _updated(step, members)
    _group(step)
    if after.epoch > before.epoch or before.kind != STREAMS:
        cause, proven = _cause(step, members, updated)
        if cause == _TOPICS:
            step.report(Kind.TOPICS_CHANGED, "the metadata of the topology's topics changed", cause=cause)
        report_started(step, carry, cause, proven=proven)
    # Until the first target is computed, its epoch is only assumed.
    had = before.streams is not None and before.streams.has_target
    has = after.streams is not None and after.streams.has_target
    if has and (not had or after.assignment_epoch > before.assignment_epoch):
        step.report_target([f"{m.label} {_of(m).target.text}" for m in after.members.values()])
    report_reconciliation(step, carry, members)
    ready = after.streams is None or after.streams.is_ready
    report_finished(step, carry, "" if ready else ", with no tasks: the topology is not ready")


def _updated(step: GroupStep, members: Membership) -> list[RecordedMember]:
    """Report new metadata of members; return the members that sent it."""
    updated = []
    for old, new in (*members.kept, *members.replaced):
        # Without a process id record 19 has not been read: the member's first one updates nothing.
        if old.streams is None or new.streams is None or not old.streams.process_id:
            continue
        was, now = old.streams, new.streams
        pairs = (
            ("process", was.process_id, now.process_id),
            ("topology epoch", was.topology_epoch, now.topology_epoch),
            ("endpoint", was.endpoint, now.endpoint),
            ("client tags", _settings_text(was.tags), _settings_text(now.tags)),
        )
        if changed := [f"{what} {before} → {after}" for what, before, after in pairs if before != after]:
            step.report(Kind.MEMBER_UPDATED, f"{new.label}: {', '.join(changed)}", new)
        if changed or (old.client_id, old.host, old.rack_id, old.rebalance_timeout_ms) != (
            new.client_id,
            new.host,
            new.rack_id,
            new.rebalance_timeout_ms,
        ):
            updated.append(new)
    return updated


def _settings_text(settings: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings) or "none"


def _group(step: GroupStep) -> None:
    """Report changes in records 17 and 23: the topology, whether it can run, the group's settings."""
    before, after = (
        step.before.streams or StreamsView(validated_epoch=-1),
        step.after.streams or StreamsView(),
    )
    if before.topology != after.topology:
        text, old, new = "the group no longer has a topology", before.topology, after.topology
        if new is not None:
            epochs = f"epoch {old.epoch} → {new.epoch}" if old is not None else f"epoch {new.epoch}"
            reads = [
                f"{p.subtopology_id} reads {', '.join(sources_of(p)) or 'nothing'}" for p in new.subtopologies
            ]
            more = f"; and {len(reads) - SHOWN} more" if len(reads) > SHOWN else ""
            text = f"topology {epochs}: {'; '.join(reads[:SHOWN])}{more}"
        step.report(Kind.TOPOLOGY_SET, text)
    if after.topology is not None and after.is_ready and not before.is_ready:
        step.report(
            Kind.TOPOLOGY_READY, f"all topics that topology epoch {after.topology.epoch} needs are there"
        )
    # A group that begins without its topics reports so too: nothing of it runs.
    elif after.topology is not None and not after.is_ready and (before.is_ready or before.topology is None):
        step.report(
            Kind.TOPOLOGY_NOT_READY,
            f"nothing of topology epoch {after.topology.epoch} can run",
            cause="topics are missing or wrongly partitioned: which, the records do not say",
        )
    if after.topology is not None:
        # The application's description of it is in no record (KIP-1331).
        stored, refused = after.stored_description, after.refused_description
        if stored == INTERRUPTED != before.stored_description:
            text = "an update of the topology's description was begun"
            step.report(Kind.DESCRIPTION_CHANGED, f"{text}: until it ends, it is unknown what is stored")
        elif stored != before.stored_description:
            what = f"the description of topology epoch {stored}" if stored >= 0 else "no description"
            step.report(Kind.DESCRIPTION_CHANGED, f"{what} is stored")
        if refused not in (-1, before.refused_description):
            text = f"the broker's plugin refused the description of topology epoch {refused} for good"
            step.report(Kind.DESCRIPTION_CHANGED, text)
    if before.configs != after.configs and step.before.kind == STREAMS:
        was, now = _settings_text(before.configs), _settings_text(after.configs)
        step.report(Kind.SETTINGS_CHANGED, f"targets are made with {now}, before with {was}")


_TOPICS = "the metadata of the topology's topics changed (created, deleted, more partitions or racks)"


def _cause(step: GroupStep, members: Membership, updated: list[RecordedMember]) -> tuple[str, bool]:
    """Return the cause of a rebalance, from what changed with it; False when the records leave it open."""
    before, after = step.before, step.after
    causes = []
    if members.joined:
        causes.append(f"{labels(members.joined)} joined")
    if members.left:
        causes.append(f"{labels(members.left)} left or expired")
    if members.replaced:
        causes.append(f"{labels(new for _, new in members.replaced)} came back under a new member id")
    if updated:
        causes.append(f"{labels(updated)} came with other metadata")
    causes += _group_causes(before, after)
    if causes:
        return "; ".join(causes), True
    if before.metadata_hash != after.metadata_hash:
        return _TOPICS, True
    return (
        "members, topology, topics and settings are as before: a member rejoined, or the records do not say",
        False,
    )


def _group_causes(before: View, after: View) -> list[str]:
    was, now = before.streams, after.streams
    if was is None or now is None:
        return []
    causes = []
    if was.topology is not None and was.topology != now.topology:
        causes.append("the topology changed")
    if was.is_ready != now.is_ready:
        causes.append(
            "the topics are all there now"
            if now.is_ready
            else "topics are missing now, or wrongly partitioned"
        )
    if was.configs != now.configs:
        causes.append("the group's settings changed")
    return causes


def _of(member: RecordedMember | None) -> StreamsClient:
    return (member.streams if member is not None else None) or StreamsClient()
