"""State names of a classic group, as Kafka displays them."""

from enum import Enum, StrEnum, auto


class ClassicState(StrEnum):
    """The states ListGroups and DescribeGroups show; derived from a group's committed and forming parts."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Phase(Enum):
    """The phase of a forming rebalance: it awaits joins, or syncs."""

    PREPARING = auto()
    COMPLETING = auto()
