"""The cluster's features and their finalized levels (KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgroup.transactions.state import LATEST_VERSION

GROUP_VERSION, STREAMS_VERSION = "group.version", "streams.version"
SUPPORTED = {GROUP_VERSION: 1, STREAMS_VERSION: 1, "transaction.version": LATEST_VERSION}
"""The highest level of each feature, the lowest is 0. Kafka's others tell of what is not here."""


@dataclass(frozen=True, slots=True)
class Features:
    """Finalized levels; `epoch` rises with every change, so that clients know the newer of two answers."""

    levels: Mapping[str, int] = field(default_factory=SUPPORTED.copy)
    epoch: int = 0
