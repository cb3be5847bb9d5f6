"""Groups with racks, generated: what a range assignor is asked, as JSON that Ranges.java (interop) reads."""

from __future__ import annotations

import random
from typing import Any

from kgroup.coordinator.assignors.client_side import ClientRangeAssignor, MemberSubscription

Case = dict[str, Any]


def case(seed: int) -> Case:
    """Up to 5 topics on up to 4 racks, some told for none or for some partitions, and up to 9 members."""
    chance = random.Random(seed)
    racks = [f"r{n}" for n in range(chance.randint(1, 4))]
    told = [*racks, None] if chance.random() < 0.3 else racks
    replication = chance.randint(1, len(racks))
    sizes = [chance.randint(1, 12) for _ in range(2)]
    topics = {
        f"t{n}": [chance.sample(told, min(replication, len(told))) for _ in range(chance.choice(sizes))]
        for n in range(chance.randint(1, 5))
    }
    if chance.random() < 0.2:
        topics[chance.choice(sorted(topics))] = [[] for _ in range(3)]
    own = [*racks, "elsewhere", None, ""] if chance.random() < 0.4 else racks
    alike = chance.random() < 0.6
    members = {}
    for n in range(chance.randint(1, 9)):
        wanted = sorted(topics) if alike else chance.sample(sorted(topics), chance.randint(0, len(topics)))
        instance = f"i{chance.randint(0, 99):02}-{n}" if chance.random() < 0.3 else None
        members[f"m{chance.randint(0, 99):02}-{n}"] = {
            "topics": [*wanted, *(["gone"] if chance.random() < 0.1 else [])],
            "instance": instance,
            "rack": chance.choice(own),
        }
    return {"topics": topics, "members": members}


def assigned(group: Case) -> dict[str, dict[str, tuple[int, ...]]]:
    """What our assignor gives each member."""
    members = {
        name: MemberSubscription(
            frozenset(told["topics"]), instance_id=told["instance"], rack=told["rack"] or None
        )
        for name, told in group["members"].items()
    }
    racks = {
        name: tuple(tuple(rack for rack in replicas if rack) for replicas in partitions)
        for name, partitions in group["topics"].items()
    }
    counts = {name: len(partitions) for name, partitions in group["topics"].items()}
    return ClientRangeAssignor().assign(counts, members, racks)
