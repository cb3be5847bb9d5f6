"""Conditions on groups, and waiting for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import GroupDescription, ItemError
from kgroup.admin.read.describe import describe
from kgroup.admin.read.visibility import RIGHTS
from kgroup.admin.refusals import item_error, naming
from kgroup.client.retry import OutcomeUnknown, may_repeat
from kgroup.domain import MemberStatus
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError, Unreachable
from kgroup.numbers import whole_number

GONE = "gone"
SHORTEST_LOOK_S = 1.0
"""A poll gets the rest of the waiting time, but at least what a distant broker needs."""
STATIC = "static"
KINDS = ("stable", "empty", GONE, STATIC, "lag=N", "members=N", "member=ID")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a group, by its text.

    `stable`, `empty`, `gone`, `static` (all members have instance ids and are settled), `lag=N` (at most N
    offsets that may hold a record), `members=N`, `member=ID` (in and settled).

    `empty`  also holds for a group that does not exist; the others do not. An unknown does not hold; an
    instance id is refused where the broker never reports any.
    """

    kind: str
    number: int = 0
    name: str = ""

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Return the condition in words; raise ConfigError for anything else."""
        kind, equals, value = text.strip().partition("=")
        if kind in ("stable", "empty", GONE, STATIC) and not equals:
            return cls(kind)
        if kind in ("lag", "members") and equals:
            return cls(kind, whole_number(value, f"{kind}=N"))
        if kind == "member" and value:
            return cls(kind, name=value)
        raise ConfigError(f"{text!r} is not a condition to wait for", "one of " + ", ".join(KINDS))

    @property
    def needs_offsets(self) -> bool:
        return self.kind == "lag"

    def holds(self, group: GroupDescription | None) -> bool:
        """Return whether a group, or None for one that does not exist, is as wanted.

        Raise BrokerRefused if the broker, before 2.4, shows no instance ids and they are needed: by `static`,
        or by an ID in `member=ID` that is not a member id.
        """
        if group is None:
            return self.kind in ("empty", GONE)
        if self.kind == "lag":
            return group.work is not None and group.work <= self.number
        if self.kind == "members":
            return group.member_count == self.number
        if self.kind == "member":
            named = [m for m in group.known_members if self.name in (m.instance_id, m.member_id)]
            if not named and not group.instance_ids_known:
                other = "; here wait for a member id, or for members=N"
                raise _no_instance_ids(f"{self.name} may be in {group.group_id}", other)
            return any(m.state == MemberStatus.STABLE for m in named)
        if self.kind == STATIC:
            if not group.instance_ids_known:
                raise _no_instance_ids(f"{group.group_id} may be static")
            return bool(group.members) and all(
                m.instance_id is not None and m.state == MemberStatus.STABLE for m in group.known_members
            )
        return group.state.lower() in ({"empty", "dead"} if self.kind == "empty" else {self.kind})


def _no_instance_ids(so: str, instead: str = "") -> BrokerRefused:
    said = f"the broker reports no instance ids: {so}"
    return BrokerRefused(ErrorCode.UNSUPPORTED_VERSION, said, hint=f"Kafka 2.4 and later do{instead}")


@dataclass(frozen=True, slots=True)
class Waited:
    """The end of waiting for one group: whether the condition held, the last state seen, and how long.

    `state` is None for a group never seen, "absent" for one that does not exist; `members` and `total_lag`
    are None where unknown. `unseen` is why the last poll failed, or could not show it.
    """

    group_id: str
    held: bool
    state: Annotated[str | None, "absent: does not exist; null: never seen"]
    members: int | None
    total_lag: int | None
    waited_s: float
    lag_at_least: int | None = None
    unseen: Annotated[ItemError | None, "why the last poll failed, as in `errors`"] = None

    @property
    def never_known(self) -> bool:
        """Whether more polls would not show if the condition holds."""
        return self.unseen is not None and _never_served(self.unseen)


Find = Callable[[], tuple[Sequence[str], Sequence[ItemError]]]
"""The selected groups now, and why there may be more of them."""


class Looks:
    """Consecutive polls of the same groups, through the outages between them.

    A poll that fails for a passing reason (a broker restarts, a coordinator moves) keeps what was seen
    before; other failures, missing rights among them, are raised. `unseen` and `failed` are of the last poll,
    which was of all groups, or of those `pending`, and over after `passed_s`.
    """

    def __init__(self, cluster: ClusterView, find: Find, *, offsets: bool, until: float) -> None:
        self._cluster = cluster
        self._find = find
        self._offsets = offsets
        self._until = until
        self._names: Sequence[str] | None = None
        self.seen: dict[str, GroupDescription | None] = {}
        self.unseen: tuple[ItemError, ...] = ()
        self.failed: dict[str, ItemError] = {}
        self.pending: Collection[str] | None = None
        self.passed_s = 0.0

    @property
    def names(self) -> Sequence[str]:
        """The selected groups; none until the cluster has been reached."""
        return self._names or ()

    @property
    def problems(self) -> dict[str, ItemError]:
        """What the last poll could not see, by group, and what else hides groups."""
        return {error.item: error for error in self.unseen} | self.failed

    @property
    def complete(self) -> bool:
        """Whether the last poll showed everything that more polls can show."""
        return not self.failed and self._seen_in_full

    @property
    def _seen_in_full(self) -> bool:
        """Whether only missing rights hide groups: waiting does not change those."""
        return all(error.code in RIGHTS for error in self.unseen)

    def again(self) -> None:
        """Poll the groups, or the pending ones of them, in the time that is left."""
        pending = self.pending
        retry = self._cluster.retry
        began, left = retry.clock(), max(self._until - retry.clock(), SHORTEST_LOOK_S)

        def cut_short(error: object) -> bool:
            """Return whether too little time was left to see what the poll before has seen."""
            last = left <= SHORTEST_LOOK_S < retry.timeout_s
            return last and isinstance(error, Unreachable) and retry.clock() - began >= left * 0.9

        with self._cluster.within(left):
            try:
                # Searching again would not find more than a search that saw all.
                if not (self._names and self._seen_in_full):
                    names, unseen = self._find()
                    self._names, self.unseen = names, tuple(unseen)
                    pending = None
            except KgroupError as error:
                if not is_passing(error):
                    raise
                if not (cut_short(error) and self._names and not self.unseen):
                    self.unseen = (item_error("cluster", error),)
                return
            polled = self.names if pending is None else [name for name in self.names if name in pending]
            now = groups_now(self._cluster, polled, offsets=self._offsets)
        before = self.failed
        self.failed = {
            name: item_error(name, group)
            for name, group in now.items()
            if isinstance(group, KgroupError)
            and not (cut_short(group) and name in self.seen and name not in before)
        }
        self.seen |= {name: group for name, group in now.items() if not isinstance(group, KgroupError)}


def look_until(
    cluster: ClusterView, find: Find, limit_s: float, interval_s: float, *, offsets: bool = True
) -> Iterator[Looks]:
    """Yield the same looks after each poll of the groups that `find` returns, the last when time is up."""
    looks = Looks(cluster, find, offsets=offsets, until=cluster.retry.clock() + limit_s)
    start = cluster.retry.clock()
    for _ in cluster.retry.looks(interval_s, limit_s):
        looks.again()
        looks.passed_s = cluster.retry.clock() - start
        yield looks


def wait_for(
    cluster: ClusterView,
    groups: Iterable[str] | Find,
    condition: Condition,
    timeout_s: float,
    interval_s: float = 0.2,
    note: Callable[[str], None] = lambda text: None,
) -> tuple[tuple[Waited, ...], tuple[ItemError, ...]]:
    """Poll the groups until the condition holds for all of them, or time is up; at least once.

    Return how it ended for each, and what could not be seen at the end. Outages are survived and passed to
    `note`; a failure that more polls would not change is raised, but not for an absent group.
    """
    names = () if callable(groups) else tuple(dict.fromkeys(groups))
    find = groups if callable(groups) else lambda: (names, ())
    ended: dict[str, Waited] = {}
    noted: str | None = None
    for looks in look_until(cluster, find, timeout_s, interval_s, offsets=condition.needs_offsets):
        for name in looks.names:
            if name not in ended or not ended[name].held:
                ended[name] = _waited(name, looks, condition)
        reason = next((error.message for error in (*looks.unseen, *looks.failed.values())), None)
        if reason and reason != noted:
            note(f"not all can be seen now: {reason}")
        noted = reason
        looks.pending = [name for name in looks.names if not (ended[name].held or ended[name].never_known)]
        if ended and not looks.pending and looks.complete:
            break
    return tuple(ended[name] for name in looks.names), looks.unseen


def groups_now(
    cluster: ClusterView, group_ids: Iterable[str], *, offsets: bool
) -> Mapping[str, GroupDescription | None | KgroupError]:
    """Return each group, None for an absent one, or the passing reason why it cannot be described now.

    Raise reasons that do not pass.
    """
    names = list(group_ids)
    try:
        described = describe(cluster, names, offsets=offsets, expected=False, topologies=False)
    except KgroupError as error:
        if not is_passing(error):
            raise
        return dict.fromkeys(names, error)
    now: dict[str, GroupDescription | None | KgroupError] = dict.fromkeys(names)
    now |= {group.group_id: group for group in described.groups}
    for failed in described.errors:
        if failed.code != ErrorCode.GROUP_ID_NOT_FOUND.name:
            reason = raised(failed)
            if not is_passing(reason):
                raise reason
            now[failed.item] = reason
    return now


def is_passing(error: KgroupError) -> bool:
    """Return whether a later poll may succeed without any change by an operator."""
    if isinstance(error, Unreachable) and not isinstance(error, OutcomeUnknown):
        return True  # not retried within a request, as an address may be mistyped; brokers do come back
    return isinstance(error, (Unreachable, BrokerRefused)) and may_repeat(error, idempotent=True)


def raised(error: ItemError) -> KgroupError:
    """Return the exception behind an entry of a description's errors."""
    if error.code == "UNREACHABLE":
        return Unreachable(error.message, error.hint)
    code = ErrorCode.__members__.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR)
    return BrokerRefused(code, error.message, hint=error.hint)


def _never_served(error: ItemError) -> bool:
    """Return whether the group's coordinator is too old to report its offsets."""
    return error.item == "offsets" and error.code == ErrorCode.UNSUPPORTED_VERSION.name


def never_known(group: GroupDescription | None, condition: Condition) -> ItemError | None:
    """Return why more polls would not show whether the condition holds; None where they may."""
    errors = () if group is None or not condition.needs_offsets else group.errors
    return next((error for error in errors if _never_served(error)), None)


def _waited(group_id: str, looks: Looks, condition: Condition) -> Waited:
    failed, waited_s = looks.failed.get(group_id), round(looks.passed_s, 3)
    if group_id not in looks.seen:
        return Waited(group_id, False, None, None, None, waited_s, unseen=failed)
    group = looks.seen[group_id]
    held = failed is None and condition.holds(group)
    if group is None:
        return Waited(group_id, held, "absent", 0, None, waited_s, unseen=failed)
    members, total, least = group.member_count, group.total_lag, group.lag_at_least
    failed = failed or never_known(group, condition)
    if failed is None and condition.needs_offsets and total is None:
        failed = _lag_unseen(group)
    return Waited(group_id, held, group.state, members, total, waited_s, least, failed)


def _lag_unseen(group: GroupDescription) -> ItemError:
    """Return why a group's lag is not known."""
    from kgroup.admin.read.lag import readers_unknown, unknown_of

    for row in unknown_of(group.offsets):
        why = "the lag of " + naming(row.place, row.reason or row.error or "unknown")
        return ItemError(str(row.place), row.error_code or "NOT_SEEN", why)
    return next(iter(group.errors), ItemError(group.group_id, "NOT_SEEN", readers_unknown(group.state)))
