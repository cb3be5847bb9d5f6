"""The `cooperative-sticky` assignor of the classic protocol (KIP-429), balanced and sticky as `uniform` is.

A partition that another member may still own is withheld from its new owner for one rebalance: its
owner finds it missing, revokes it and rejoins, and the next assignment moves it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from kgroup.coordinator.assignors.client_side import (
    NO_RACKS,
    MemberSubscription,
    Owned,
    RacksByTopic,
    by_topic_name,
    group_spec,
)
from kgroup.coordinator.assignors.uniform import UniformAssignor

_GENERATION = struct.Struct(">i")
Partition = tuple[str, int]


class CooperativeStickyAssignor:
    """Sticky and balanced; moves a partition in two rebalances so that it never has two owners."""

    name = "cooperative-sticky"
    cooperative = True

    def user_data(self, generation: int) -> bytes | None:
        """Return the generation as four bytes, which members with subscriptions before version 2 rely on."""
        return _GENERATION.pack(generation)

    def assign(
        self,
        partitions: Mapping[str, int],
        members: Mapping[str, MemberSubscription],
        racks: RacksByTopic = NO_RACKS,
    ) -> dict[str, dict[str, tuple[int, ...]]]:
        claims = _claims(partitions, members)
        owners = _owners(claims)
        current = _owned_by(owners)
        targets = by_topic_name(UniformAssignor().assign(group_spec(partitions, members, current)))
        return {
            member_id: _without_transfers(member_id, target, claims, owners)
            for member_id, target in targets.items()
        }


def generation_of(member: MemberSubscription) -> int:
    """Return the generation of a member's owned partitions, -1 if not reported.

    From the subscription (version 2 on), else from the user data: Java sends the generation alone,
    librdkafka its assignment followed by the generation.
    """
    if member.generation >= 0 or member.user_data is None or len(member.user_data) < _GENERATION.size:
        return member.generation
    generation: int = _GENERATION.unpack(member.user_data[-_GENERATION.size :])[0]
    return max(generation, -1)


def _claims(
    partitions: Mapping[str, int], members: Mapping[str, MemberSubscription]
) -> dict[Partition, list[tuple[int, str]]]:
    """Return each existing partition's claimants, with the claim's generation."""
    claims: dict[Partition, list[tuple[int, str]]] = {}
    for member_id, member in members.items():
        generation = generation_of(member)
        for topic, held in member.owned.items():
            for partition in held:
                if partition < partitions.get(topic, 0):
                    claims.setdefault((topic, partition), []).append((generation, member_id))
    return claims


def _owners(claims: dict[Partition, list[tuple[int, str]]]) -> dict[Partition, str]:
    """Return the claimant of the latest generation; None if two claim it for that generation."""
    owners: dict[Partition, str] = {}
    for where, claimants in claims.items():
        latest = max(generation for generation, _ in claimants)
        newest = [member_id for generation, member_id in claimants if generation == latest]
        if len(newest) == 1:
            owners[where] = newest[0]
    return owners


def _owned_by(owners: dict[Partition, str]) -> dict[str, Owned]:
    held: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), member_id in sorted(owners.items()):
        held.setdefault(member_id, {}).setdefault(topic, []).append(partition)
    return {member_id: {t: tuple(ps) for t, ps in topics.items()} for member_id, topics in held.items()}


def _without_transfers(
    member_id: str,
    target: dict[str, tuple[int, ...]],
    claims: dict[Partition, list[tuple[int, str]]],
    owners: dict[Partition, str],
) -> dict[str, tuple[int, ...]]:
    """Return what the member may have now: what it owns, and what no other claims."""

    def at_once(where: Partition) -> bool:
        return owners.get(where) == member_id or all(name == member_id for _, name in claims.get(where, ()))

    kept = {
        topic: tuple(partition for partition in held if at_once((topic, partition)))
        for topic, held in target.items()
    }
    return {topic: held for topic, held in kept.items() if held}
