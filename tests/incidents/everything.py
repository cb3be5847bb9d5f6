"""Every family of incidents, so that all of them are entered."""

from . import (
    applications,
    clusters,
    healthy,
    offsets,
    protocols,
    rebalances,
    stalled,
    static_members,
    topics,
    transactions,
)

__all__ = [
    "applications",
    "clusters",
    "healthy",
    "offsets",
    "protocols",
    "rebalances",
    "stalled",
    "static_members",
    "topics",
    "transactions",
]
