"""A replayed state against what a cluster says: the differences, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kgroup.domain import TopicPartition
from kgroup.history.events import partitions_text
from kgroup.history.state import CLASSIC, CONSUMER, GroupState

REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance"})
"""States of a classic group that no record shows: then its members and state are not compared."""


def differences(state: GroupState, said: Mapping[str, Any]) -> Iterator[str]:
    """How the replayed group differs from `said`, one group of `kgroup describe -o json`; nothing if equal.

    What DescribeGroups does not carry (a classic generation, member epochs) is not compared.
    """
    view = state.view()
    kind = CLASSIC if view.kind not in (CLASSIC, CONSUMER) else view.kind
    if said["type"] and said["type"] != kind:
        yield f"type: replayed {kind}, the cluster says {said['type']}"
        return
    moving = said["state"] in REBALANCING
    if not moving:
        shown = view.state if view.kind in (CLASSIC, CONSUMER) else "Empty"
        if said["state"] != shown:
            yield f"state: replayed {shown}, the cluster says {said['state']}"
        yield from _members(state, said)
    if kind == CONSUMER:
        for field, value in (("group_epoch", view.epoch), ("assignment_epoch", view.assignment_epoch)):
            if said[field] is not None and said[field] != value:
                yield f"{field}: replayed {value}, the cluster says {said[field]}"
    yield from _offsets(state, said)


def _members(state: GroupState, said: Mapping[str, Any]) -> Iterator[str]:
    told = {m["member_id"]: m for m in said["members"]}
    for member_id in sorted(state.members.keys() ^ told.keys()):
        where = "in the log only" if member_id in state.members else "in the cluster only"
        yield f"member {member_id}: {where}"
    for member_id in sorted(state.members.keys() & told.keys()):
        ours, theirs = state.members[member_id], told[member_id]
        pairs: list[tuple[str, object, object]] = [
            ("instance id", ours.instance_id, theirs["instance_id"]),
            ("owns", partitions_text(ours.holds), partitions_text(_flat(theirs["assignment"]))),
        ]
        if theirs.get("target_assignment") is not None and ours.target is not None:
            target = partitions_text(_flat(theirs["target_assignment"]))
            pairs.append(("target", partitions_text(ours.target), target))
        if theirs.get("member_epoch") is not None and state.kind == CONSUMER:
            pairs.append(("epoch", ours.epoch, theirs["member_epoch"]))
        for what, mine, other in pairs:
            if mine != other:
                yield f"member {ours.label}, {what}: replayed {mine}, the cluster says {other}"


def _offsets(state: GroupState, said: Mapping[str, Any]) -> Iterator[str]:
    told = {
        TopicPartition(o["topic"], o["partition"]): o["committed_offset"]
        for o in said["offsets"]
        if o["committed_offset"] is not None
    }
    ours = {place: commit.offset for place, commit in state.offsets.items()}
    for place in sorted(ours.keys() | told.keys()):
        mine, other = ours.get(place), told.get(place)
        if mine != other:
            yield f"offset of {place}: replayed {mine}, the cluster says {other}"


def _flat(assignment: Any) -> list[TopicPartition]:
    return [TopicPartition(entry["topic"], p) for entry in assignment or () for p in entry["partitions"]]
