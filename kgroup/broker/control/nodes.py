"""How a broker that does not exist is refused."""

from __future__ import annotations

from collections.abc import Sequence


def of_nodes(node: int, nodes: Sequence[int]) -> tuple[str, str]:
    """Return the message and the hint for a node id that no broker has."""
    ids = ", ".join(map(str, nodes))
    return f"there is no broker {node}", f"the ids are {ids}" if len(nodes) > 1 else f"the only id is {ids}"
