"""Many groups looked at round by round, so that memory is bounded whatever the size of the cluster.

A round is as many groups as have some ROWS offsets together: one request to each coordinator, then one to
each leader (docs/decisions/0049-large-clusters-in-rounds.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kgroup.admin.models import Description
from kgroup.admin.refusals import item_error
from kgroup.errors import KgroupError

FIRST = 500
"""Groups of the first round, before it is known how many partitions they have."""
ROWS = 50_000
MOST = 5_000


def in_rounds(
    group_ids: Iterable[str], look: Callable[[Sequence[str]], Description]
) -> Iterator[Description]:
    """What `look` tells of the groups, round by round in the order given; at least one round.

    A failure of the first round is raised; one of a later round ends the rounds, and is why each group
    that is left is missing.
    """
    wanted = list(dict.fromkeys(group_ids))
    start, size = 0, FIRST
    while True:
        named = wanted[start : start + size]
        try:
            told = look(named)
        except KgroupError as error:
            if not start:
                raise
            yield Description((), tuple(item_error(group, error) for group in wanted[start:]))
            return
        rows = sum(len(group.offsets) for group in told.groups)
        yield told
        del told  # its groups are not kept while the next ones are asked for
        start += size
        if start >= len(wanted):
            return
        size = min(max(ROWS * len(named) // max(rows, 1), 1), MOST)
