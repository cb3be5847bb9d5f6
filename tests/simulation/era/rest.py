"""That a cluster comes to rest and stays so (era 12.3, 12.9)."""

from __future__ import annotations

from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.world.world import World, data_at, running, unrest
from tests.simulation.era.invariants import Violation

LOOK_MS = 500
CALM_MS = 20_000


def come_to_rest(world: World) -> int:
    """Run until the cluster is at rest, and return how long it took; Violation if too long (era 12.9)."""
    sessions = [consumer.config.session_timeout_ms for consumer in world.consumers]
    longest, config = max(sessions), world.config
    # The old coordinator's lease is beside what the specification counts, and so are its successor's election
    # and the consumers' way to it.
    attempts = config.max_rebalance_retries * config.rebalance_backoff_ms
    bound = 3 * longest + 2 * longest + attempts + 2 * config.zk_session_ms + 5_000
    began = world.now_ms
    while (why := unrest(world)) is not None:
        if world.now_ms - began > bound:
            raise Violation("12.9 the cluster comes to rest", f"after {bound} ms: {why}")
        world.schedule.run_until(world.now_ms + LOOK_MS)
    return world.now_ms - began


def stay_at_rest(world: World) -> None:
    """Nothing moves any more, and what consumers have reported is in ZooKeeper (era 12.3, 6.7)."""
    world.schedule.run_until(world.now_ms + world.config.commit_interval_ms + CALM_MS)
    why = unrest(world)
    if why is not None:
        raise Violation("12.3 a cluster at rest stays so", why)
    for consumer in running(world):
        if not consumer.config.auto_commit:
            continue
        for partition, position in consumer.machine.positions.items():
            path = paths.offset(consumer.config.group_id, partition)
            stored = data_at(world, path)
            if position is not None and stored != str(position):
                detail = f"{path} is {stored}, {consumer.name} has reported {position}"
                raise Violation("6.7 what is reported is stored", detail)
