"""Where a partition lives: its replicas, its leader, and the epochs of its leaders.

All brokers of the cluster share one process and one log per partition, so a partition moves at once, and
every replica is in sync. Kafka's ReplicationControlManager and LeaderEpochFileCache are the source of the
rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kgroup.domain import NO_LEADER_EPOCH, NO_OFFSET
from kgroup.errors import ErrorCode, Refused

Noted: TypeAlias = dict[str, Any]
"""An object in the JSON of the catalog."""


@dataclass(frozen=True, slots=True)
class Placement:
    """`replicas`, the preferred leader first; `epochs` as (epoch, offset it began at), the present one last.

    One placement is of one partition, and `leader` is one of its replicas.
    """

    replicas: tuple[int, ...]
    leader: int
    epochs: tuple[tuple[int, int], ...] = ((0, 0),)

    @classmethod
    def by_rule(cls, partition: int, replicas: int, nodes: Sequence[int]) -> Placement:
        """Return the default placement: the brokers lead in turn, the next ones follow."""
        count = len(nodes)
        chosen = tuple(nodes[(partition + i) % count] for i in range(min(replicas, count)))
        return cls(chosen, chosen[0])

    @classmethod
    def at(cls, replicas: Iterable[int]) -> Placement:
        """Return a new partition's, on these brokers."""
        chosen = tuple(replicas)
        return cls(chosen, chosen[0])

    @classmethod
    def read(cls, noted: Noted) -> Placement:
        """Return it as it was written to a catalog."""
        epochs = tuple((int(epoch), int(start)) for epoch, start in noted["epochs"])
        return cls(tuple(int(r) for r in noted["replicas"]), int(noted["leader"]), epochs)

    @property
    def epoch(self) -> int:
        """The epoch of the present leader."""
        return self.epochs[-1][0]

    def elected(self, end_offset: int) -> Placement:
        """Return it led by the preferred replica, in a new epoch."""
        return replace(self, leader=self.replicas[0])._begun(end_offset)

    def led_by(self, node: int, end_offset: int) -> Placement:
        """Return it led by that broker, in a new epoch; if not a replica, it takes the old leader's place."""
        replicas = self.replicas
        if node not in replicas:
            replicas = tuple(node if replica == self.leader else replica for replica in replicas)
        return replace(self, replicas=replicas, leader=node)._begun(end_offset)

    def among(self, nodes: Container[int]) -> Placement | None:
        """Return what is left if only these brokers are up; None for nothing."""
        left = tuple(replica for replica in self.replicas if replica in nodes)
        if not left:
            return None
        return replace(self, replicas=left, leader=self.leader if self.leader in left else left[0])

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """Return the largest epoch up to the one asked for, and its end; -1 and -1 if unknown."""
        if epoch == self.epoch:
            return epoch, end_offset
        if not 0 <= epoch < self.epoch:
            return NO_LEADER_EPOCH, NO_OFFSET
        later = bisect_right(self.epochs, epoch, key=lambda known: known[0])
        return (self.epochs[later - 1][0] if later else epoch), self.epochs[later][1]

    def epoch_at(self, offset: int) -> int:
        """Return the epoch in which the record at an offset was written."""
        later = bisect_right(self.epochs, offset, key=lambda known: known[1])
        return self.epochs[max(later - 1, 0)][0]

    def _begun(self, end_offset: int) -> Placement:
        # an epoch in which nothing was written leaves no trace
        kept = tuple(known for known in self.epochs if known[1] < end_offset)
        return replace(self, epochs=(*kept, (self.epoch + 1, end_offset)))


def check_replicas(replicas: Collection[int], nodes: Container[int], others: int | None = None) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT for an impossible choice of brokers.

    `others` is the number of replicas of the topic's other partitions, None for any.
    """
    problem = None
    if not replicas:
        problem = "an empty replica list."
    elif unknown := [replica for replica in sorted(replicas) if replica not in nodes]:
        problem = f"broker {unknown[0]}, but no such broker is registered."
    elif len(set(replicas)) < len(replicas):
        twice = min(replica for replica in replicas if list(replicas).count(replica) > 1)
        problem = f"the broker {twice} more than once."
    elif others is not None and len(replicas) != others:
        problem = (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {others} replica(s)."
        )
    if problem is not None:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {problem}"
        )
