"""State names of a classic group, as Kafka displays them."""

from enum import Enum, StrEnum, auto


class ClassicState(StrEnum):
    """What ListGroups and DescribeGroups show; derived from a group's committed and forming parts."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Phase(Enum):
    """How far a forming rebalance has come: joins are awaited, or syncs are."""

    PREPARING = auto()
    COMPLETING = auto()
