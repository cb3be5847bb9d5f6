"""What one may wait for: a condition on a group, and the waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgroup.admin.describe import describe
from kgroup.admin.discovery import Cluster
from kgroup.admin.models import GroupDescription, ItemError
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError, Unreachable

GONE = "gone"
KINDS = ("stable", "empty", GONE, "lag=N", "members=N", "member=ID")


@dataclass(frozen=True, slots=True)
class Condition:
    """`stable`, `empty`, `gone`, `lag=N` (at most N records), `members=N`, `member=ID` (in and settled).

    For `empty` a group that does not exist will do; for the others it has to.
    """

    kind: str
    number: int = 0
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Condition:
        """The condition in words; ConfigError for anything else."""
        kind, equals, value = text.strip().partition("=")
        if kind in ("stable", "empty", GONE) and not equals:
            return cls(kind)
        if kind in ("lag", "members") and value.isdigit():
            return cls(kind, int(value))
        if kind == "member" and value:
            return cls(kind, name=value)
        raise ConfigError(f"{text!r} is nothing to wait for", "one of " + ", ".join(KINDS))

    @property
    def needs_offsets(self) -> bool:
        return self.kind == "lag"

    def holds(self, group: GroupDescription | None) -> bool:
        """Whether a group, or None for one that does not exist, is as wanted."""
        if group is None:
            return self.kind in ("empty", GONE)
        if self.kind == "lag":
            return group.total_lag is not None and group.total_lag <= self.number
        if self.kind == "members":
            return group.member_count == self.number
        if self.kind == "member":
            return any(
                self.name in (m.instance_id, m.member_id) and m.state == "stable" for m in group.known_members
            )
        return group.state.lower() in ({"empty", "dead"} if self.kind == "empty" else {self.kind})


@dataclass(frozen=True, slots=True)
class Waited:
    """How waiting for one group ended: whether the condition held, the last state seen, and how long."""

    group_id: str
    held: bool
    state: str
    members: int | None
    total_lag: int | None
    waited_s: float


def wait_for(
    cluster: Cluster,
    group_ids: Iterable[str],
    condition: Condition,
    timeout_s: float,
    interval_s: float = 0.2,
) -> tuple[Waited, ...]:
    """Look at the groups until the condition holds for all of them, or time is up; at least once.

    Raises what describing raises, but not for a group that does not exist.
    """
    clock, pause = cluster.retry.clock, cluster.retry.sleep
    start = clock()
    wanted = list(dict.fromkeys(group_ids))
    ended: dict[str, Waited] = {}
    while True:
        pending = [group_id for group_id in wanted if group_id not in ended or not ended[group_id].held]
        for group_id, group in groups_now(cluster, pending, offsets=condition.needs_offsets).items():
            ended[group_id] = _waited(group_id, group, condition, clock() - start)
        left = start + timeout_s - clock()
        if all(waited.held for waited in ended.values()) or left <= 0:
            return tuple(ended[group_id] for group_id in wanted)
        pause(min(interval_s, left))


def groups_now(
    cluster: Cluster, group_ids: Iterable[str], *, offsets: bool
) -> Mapping[str, GroupDescription | None]:
    """Each group, None for one that does not exist; raises for one that cannot be described."""
    wanted = list(group_ids)
    told = describe(cluster, wanted, offsets=offsets)
    for error in told.errors:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND.name:
            raise raised(error)
    found = {group.group_id: group for group in told.groups}
    return {group_id: found.get(group_id) for group_id in wanted}


def raised(error: ItemError) -> KgroupError:
    """The exception behind an entry of a description's errors."""
    if error.code == "UNREACHABLE":
        return Unreachable(error.message, error.hint)
    code = ErrorCode.__members__.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR)
    return BrokerRefused(code, error.message, hint=error.hint)


def _waited(group_id: str, group: GroupDescription | None, condition: Condition, waited_s: float) -> Waited:
    held, waited_s = condition.holds(group), round(waited_s, 3)
    if group is None:
        return Waited(group_id, held, "absent", 0, None, waited_s)
    return Waited(group_id, held, group.state, group.member_count, group.total_lag, waited_s)
