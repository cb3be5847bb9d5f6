"""Server-side assignors by name."""

from collections.abc import Mapping

from kgroup.coordinator.assignors.interface import Assignor
from kgroup.coordinator.assignors.range import RangeAssignor
from kgroup.coordinator.assignors.uniform import UniformAssignor

SERVER_ASSIGNORS: Mapping[str, Assignor] = {"uniform": UniformAssignor(), "range": RangeAssignor()}
