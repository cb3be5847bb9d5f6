"""The `roundrobin` assignor of the classic protocol, as Java's RoundRobinAssignor deals."""

from __future__ import annotations

from collections.abc import Mapping

from kgroup.coordinator.assignors.client_side import NO_RACKS, MemberSubscription, RacksByTopic


class RoundRobinAssignor:
    """Deal the partitions of all topics, in order, to the members in turn; skip those not subscribed.

    Static members come first, by instance id; the others follow by member id.
    """

    name = "roundrobin"
    cooperative = False

    def user_data(self, generation: int) -> bytes | None:
        return None

    def assign(
        self,
        partitions: Mapping[str, int],
        members: Mapping[str, MemberSubscription],
        racks: RacksByTopic = NO_RACKS,
    ) -> dict[str, dict[str, tuple[int, ...]]]:
        order = sorted(members, key=lambda member_id: _turn(member_id, members[member_id]))
        dealt: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in members}
        turn = 0
        for topic in sorted(frozenset().union(*(member.topics for member in members.values()))):
            for partition in range(partitions.get(topic, 0)):
                while topic not in members[order[turn]].topics:
                    turn = (turn + 1) % len(order)
                dealt[order[turn]].setdefault(topic, []).append(partition)
                turn = (turn + 1) % len(order)
        return {m: {topic: tuple(held) for topic, held in topics.items()} for m, topics in dealt.items()}


def _turn(member_id: str, member: MemberSubscription) -> tuple[bool, str]:
    if member.instance_id is None:
        return True, member_id
    return False, member.instance_id
