"""Members that a group's settings expect and that are missing."""

from collections.abc import Iterator, Sequence

from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.wording import Found
from kgroup.admin.models import GroupDescription, Registration
from kgroup.admin.read.findings import SHOWN
from kgroup.admin.shell import command, list_item
from kgroup.domain import count_of, first_of
from kgroup.durations import utc
from kgroup.history.fold.events import Kind


def too_few(facts: Facts) -> Iterator[Found]:
    """Yield that fewer members are there than should be active."""
    registration, count = facts.group.registration, facts.group.member_count
    target = registration.target_size if registration is not None else None
    if target is not None and count is not None and count < target:
        yield (
            f"{count} of the {count_of(target, 'member')} that should be active are there, and no standby",
            "start more members, or set kgroup.target.group.size to how many there are",
            (f"kgroup.target.group.size is {target}",),
        )


def awaited(registration: Registration) -> str:
    """Return whom a group waits for before it forms, and for how long at most."""
    missing = first_of(registration.missing or ())
    if registration.wait_ms is None:
        return f"{missing}, registered and missing, for its rebalance timeout at most"
    return f"{missing}, registered and missing, for at most {registration.wait_ms / 1000:g} s"


def dropping(group: GroupDescription, missing: Sequence[str]) -> str:
    """Return the command that takes registered ids off a group's list."""
    ids = ",".join(map(list_item, missing))
    return command("member unregister", group.group_id, options=f"--instance-id {ids}")


def missing(facts: Facts) -> Iterator[Found]:
    """Yield registered ids that are missing for too long; only the group's history shows for how long."""
    registration = facts.group.registration
    if registration is None or not registration.missing or registration.held or facts.history is None:
        return
    bound_ms = registration.wait_ms
    if bound_ms is None:
        # The group's rebalance timeout; 0 where no member sent one.
        members = facts.recorded_members.values()
        bound_ms = max((member.rebalance_timeout_ms for member in members), default=0)
    ends = (Kind.REBALANCE_COMPLETED, Kind.GROUP_EMPTIED)
    changes = [event.timestamp_ms for event in facts.history if event.kind in ends]
    since: dict[str, int] = {}
    for name in registration.missing:
        own = [event.timestamp_ms for event in facts.history if event.instance_id == name]
        # The group has missed an id that its log never mentions since it last changed; before, it may wait.
        if own or changes:
            since[name] = max(own or changes)
    late = [name for name, at in since.items() if facts.now_ms - at > bound_ms]
    if not late:
        return
    setting = (
        "kgroup.registration.wait.ms" if registration.wait_ms is not None else "the group's rebalance timeout"
    )
    waits = f"the group waits {bound_ms / 1000:g} s ({setting})" if bound_ms else f"the wait is {setting}"
    are = "is" if len(late) == 1 else "are"
    yield (
        f"{first_of(late)} {are} registered and missing for longer than the group waits",
        f"start the missing, or remove them from the list: {dropping(facts.group, late[:1])}",
        (
            waits,
            *(f"nothing of {name} since {utc(since[name])}" for name in late[:SHOWN]),
        ),
    )
