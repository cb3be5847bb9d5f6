"""Groups with as many members as their broker allows: it rejects any other, without a record."""

from collections.abc import Iterator, Sequence

from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.wording import Found
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import CLASSIC, CONSUMER, STREAMS
from kgroup.admin.settings import asked_once, number_of
from kgroup.admin.statuses import SETTINGS
from kgroup.domain import count_of
from kgroup.errors import KgroupError

LIMITS = {CLASSIC: "group.max.size", CONSUMER: "group.consumer.max.size", STREAMS: "group.streams.max.size"}


def look_at_the_limits(cluster: ClusterView, facts: Sequence[Facts]) -> list[Facts]:
    """Read how many members groups may have: one request per coordinator and type of group."""
    setting = asked_once(cluster)
    known = []
    for group_facts in facts:
        group = group_facts.group
        if group.type in LIMITS and group.known_members and group.coordinator is not None:
            limit = setting(group.coordinator.id, LIMITS[group.type])
            group_facts = group_facts.also(
                max_size=limit if isinstance(limit, KgroupError) else number_of(limit)
            )
        known.append(group_facts)
    return known


def full(facts: Facts) -> Iterator[Found]:
    """Yield that no more members may join, or that this is unknown."""
    count, limit = len(facts.group.known_members), facts.max_size
    if isinstance(limit, KgroupError):
        yield (
            f"whether more than its {count_of(count, 'member')} may join is not known: {limit.message}",
            f"allow it to read {LIMITS[facts.group.type]}, or leave that out: --without {SETTINGS}",
            [],
        )
        return
    if limit is None or count < limit:
        return
    setting = LIMITS[facts.group.type]
    yield (
        f"{count_of(count, 'member')} of {setting} {limit}: the coordinator refuses any other",
        f"raise {setting} on the brokers, or stop a member first",
        ["whether one was rejected is unknown, because a rejected join leaves no record"],
    )
