"""Members that a group's settings expect and that are missing."""

from collections.abc import Iterator

from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.shell import command, list_item
from kgroup.domain import first_of
from kgroup.durations import utc

MISSING, TOO_FEW = "KG114", "KG115"
SHOWN = 5
Expected = tuple[str, str, str, tuple[str, ...]]
"""A code, the finding, what to do about it, and its evidence."""


def expected(facts: Facts) -> Iterator[Expected]:
    """Yield what is missing; only the group's history shows for how long."""
    yield from _missing(facts)
    yield from _too_few(facts)


def _missing(facts: Facts) -> Iterator[Expected]:
    registration = facts.group.registration
    if registration is None or not registration.missing or registration.held or facts.history is None:
        return
    bound_ms, since = _bound_ms(facts), {name: _seen_last(facts, name) for name in registration.missing}
    late = [name for name, at in since.items() if at is None or facts.now_ms - at > bound_ms]
    if not late:
        return
    setting = (
        "kgroup.registration.wait.ms" if registration.wait_ms is not None else "the group's rebalance timeout"
    )
    waits = f"the group waits {bound_ms / 1000:g} s ({setting})" if bound_ms else f"the wait is {setting}"
    are = "is" if len(late) == 1 else "are"
    drop = command("member unregister", facts.group.group_id, options=f"--instance-id {list_item(late[0])}")
    yield (
        MISSING,
        f"{first_of(late)} {are} registered and missing for longer than the group waits",
        f"start the missing, or remove them from the list: {drop}",
        (waits, *(_last(name, since[name]) for name in late[:SHOWN])),
    )


def _bound_ms(facts: Facts) -> int:
    """Return how long the group waits: 0 where that is its rebalance timeout and no member sent one."""
    registration = facts.group.registration
    if registration is not None and registration.wait_ms is not None:
        return registration.wait_ms
    members = facts.state.view().members.values() if facts.state is not None else ()
    return max((member.rebalance_timeout_ms for member in members), default=0)


def _seen_last(facts: Facts, instance_id: str) -> int | None:
    """Return when the log last mentions an id, or, if never, when the group last changed."""
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
    registration, count = facts.group.registration, facts.group.member_count
    if (
        registration is None
        or registration.target_size is None
        or count is None
        or count >= registration.target_size
    ):
        return
    yield (
        TOO_FEW,
        f"{count} of the {registration.target_size} members that should be active are there, and no standby",
        "start more members, or set kgroup.target.group.size to how many there are",
        (f"kgroup.target.group.size is {registration.target_size}",),
    )
