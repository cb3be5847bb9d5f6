"""A seed's run: the one place of the machine's world that makes chance."""

from __future__ import annotations

from random import Random

from kgroup.zookeeper.world import chaos
from kgroup.zookeeper.world.faults import Fault, planted


def run(seed: int, fault: Fault | None = None) -> chaos.Run:
    """The same seed, the same run; with a fault that is planted meanwhile."""
    with planted(fault):
        return chaos.run(Random(seed))
