"""Counts of what the coordinator did, under the names of Kafka's group-coordinator-metrics."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Totals since birth; gauges are computed from the state on request (coordinator.describe).

    Offsets count by partition, those of a transaction when they are written, not when it commits. A completed
    rebalance is a classic group that reached Stable; the other three count bumps of the group epoch, except
    those of a member's leaving (CP-60).

    The last two are of consumer groups, one for each partition as `offset_commit` is: commits at an older
    epoch than the member's that KIP-1251's check accepted, and those that it refused for their epoch. The
    strict check before it refused both.
    """

    offset_commit: int = 0
    offset_expiration: int = 0
    offset_deletion: int = 0
    group_completed_rebalance: int = 0
    consumer_group_rebalance: int = 0
    streams_group_rebalance: int = 0
    share_group_rebalance: int = 0
    commits_only_relaxed_check_accepted: int = 0
    commits_both_checks_refused: int = 0
