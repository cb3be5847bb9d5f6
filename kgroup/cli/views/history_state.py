"""A replayed group in the words of `kgroup describe`."""

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import replace

from kgroup.admin.models import Assignment, GroupDescription, ItemError, Member, OffsetRow, TopicAssignment
from kgroup.admin.read.applications import of_application, told_by
from kgroup.domain import TopicPartition
from kgroup.history.fold.state import CLASSIC, CONSUMER, KINDS, UNDECODED, GroupState, RecordedMember
from kgroup.protocol.embedded.member import Application, application_of, embedded


def description(state: GroupState, partition: int) -> GroupDescription:
    """The group as `describe` shows one; what only a live cluster knows (lag, log ends) is None."""
    view = state.view()
    consumer, unread = view.kind == CONSUMER, view.kind in UNDECODED
    application = application_of(state.group_id, view.protocol_type, view.assignor)
    group = GroupDescription(
        group_id=state.group_id,
        type=view.kind if view.kind in KINDS else CLASSIC,
        protocol_type=view.kind if unread else view.protocol_type,
        state=view.state if view.kind in KINDS else "Empty",
        assignor=view.assignor,
        generation=view.epoch if view.kind == CLASSIC else None,
        group_epoch=view.epoch if consumer else None,
        assignment_epoch=view.assignment_epoch if consumer else None,
        coordinator=None,
        offsets_partition=partition,
        members=None if unread else _members(state, application),
        offsets=_offsets(state),
        total_lag=None,
        findings=(),
        errors=(_unread(state.group_id, view.kind),) if unread else (),
    )
    found = of_application(group, application)
    return replace(found, no_offsets=None) if found.offsets else found


def _unread(group_id: str, kind: str) -> ItemError:
    text = (
        f"{group_id}: the records of {kind} groups are not decoded: state, members and epochs are not known "
        "from the log"
    )
    return ItemError("members", "NOT_DECODED", text, "kgroup describe asks the cluster")


def _members(state: GroupState, application: Application | None) -> tuple[Member, ...]:
    consumer, leader = state.kind == CONSUMER, state.view().leader
    told = (
        Member(
            member_id=m.member_id,
            instance_id=m.instance_id,
            client_id=m.client_id,
            host=m.host.removeprefix("/"),
            rack_id=m.rack_id,
            protocol=m.protocol,
            member_epoch=m.epoch,
            state=m.state,
            subscribed_topics=None if m.protocol == CLASSIC and _opaque(m) else m.topics,
            subscribed_regex=m.regex,
            assignment=_assignment(m.holds) if m.given is None else None,
            target_assignment=None if m.target is None else _assignment(m.target),
            is_leader=None if consumer else m.member_id == leader,
            user_data_bytes=None if consumer or m.given is not None else m.user_data,
            raw_metadata=_text(m.metadata) if _opaque(m) else None,
            raw_assignment=None if m.given is None else _text(m.given),
        )
        for m in _in_order(state)
    )
    return tuple(
        told_by(member, embedded(application, m.client_id, m.metadata, m.assignment))
        for member, m in zip(told, _in_order(state), strict=True)
    )


def _in_order(state: GroupState) -> list[RecordedMember]:
    return sorted(state.members.values(), key=lambda m: (m.label, m.member_id))


def _opaque(member: RecordedMember) -> bool:
    """Whether a classic member joined with something else than a subscription of the consumer protocol."""
    return member.joined_with is None and bool(member.metadata)


def _text(data: bytes) -> str | None:
    return b64encode(data).decode() if data else None


def _offsets(state: GroupState) -> tuple[OffsetRow, ...]:
    holders = {place: m for m in state.members.values() for place in m.holds}
    return tuple(
        OffsetRow(
            topic=place.topic,
            partition=place.partition,
            committed_offset=commit.offset,
            log_end_offset=None,
            lag=None,
            leader_epoch=None if commit.leader_epoch < 0 else commit.leader_epoch,
            metadata=commit.metadata,
            member_id=holders[place].member_id if place in holders else None,
            instance_id=holders[place].instance_id if place in holders else None,
            assigned_epoch=holders[place].assignment_epochs.get(place) if place in holders else None,
        )
        for place, commit in sorted(state.offsets.items())
    )


def _assignment(places: Iterable[TopicPartition]) -> Assignment:
    topics: dict[str, list[int]] = {}
    for place in sorted(places):
        topics.setdefault(place.topic, []).append(place.partition)
    return tuple(TopicAssignment(topic, tuple(numbers)) for topic, numbers in topics.items())
