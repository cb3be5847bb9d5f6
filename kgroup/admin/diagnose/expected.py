"""Members that a group expects, by its settings, and that are not there."""

from collections.abc import Iterator

from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.shell import command, list_item
from kgroup.domain import first_of
from kgroup.durations import utc

MISSING, TOO_FEW = "KG114", "KG115"
SHOWN = 5
Expected = tuple[str, str, str, tuple[str, ...]]
"""A code, what was found, what to do about it, and what shows it."""


def expected(facts: Facts) -> Iterator[Expected]:
    """Yield what is missing; how long an id has been, only the group's history tells."""
    yield from _missing(facts)
    yield from _too_few(facts)


def _missing(facts: Facts) -> Iterator[Expected]:
    told = facts.group.registration
    if told is None or not told.missing or told.held or facts.history is None:
        return
    bound_ms, since = _bound_ms(facts), {name: _seen_last(facts, name) for name in told.missing}
    late = [name for name, at in since.items() if at is None or facts.now_ms - at > bound_ms]
    if not late:
        return
    setting = "kgroup.registration.wait.ms" if told.wait_ms is not None else "the group's rebalance timeout"
    waits = f"the group waits {bound_ms / 1000:g} s ({setting})" if bound_ms else f"the wait is {setting}"
    are = "is" if len(late) == 1 else "are"
    drop = command("member unregister", facts.group.group_id, options=f"--instance-id {list_item(late[0])}")
    yield (
        MISSING,
        f"{first_of(late)} {are} registered and missing for longer than the group waits",
        f"start the missing, or take them off the list: {drop}",
        (waits, *(_last(name, since[name]) for name in late[:SHOWN])),
    )


def _bound_ms(facts: Facts) -> int:
    """How long the group waits: 0 where that is its rebalance timeout and no member brings one."""
    told = facts.group.registration
    if told is not None and told.wait_ms is not None:
        return told.wait_ms
    members = facts.state.view().members.values() if facts.state is not None else ()
    return max((member.rebalance_timeout_ms for member in members), default=0)


def _seen_last(facts: Facts, instance_id: str) -> int | None:
    """When the log last tells of an id; of one it never saw, when the group last changed."""
    events = facts.history or ()
    own = [event.timestamp_ms for event in events if event.instance_id == instance_id]
    changes = [
        event.timestamp_ms for event in events if event.kind in ("rebalance-completed", "group-emptied")
    ]
    return max(own or changes, default=None)


def _last(name: str, at_ms: int | None) -> str:
    if at_ms is None:
        return f"the log says nothing of {name}"
    at = utc(at_ms)
    return f"nothing of {name} since {at}"


def _too_few(facts: Facts) -> Iterator[Expected]:
    told, count = facts.group.registration, facts.group.member_count
    if told is None or told.target_size is None or count is None or count >= told.target_size:
        return
    yield (
        TOO_FEW,
        f"{count} of the {told.target_size} members that should be active are there, and no standby",
        "start more members, or set kgroup.target.group.size to how many there are",
        (f"kgroup.target.group.size is {told.target_size}",),
    )
