"""Static members whose restarts take longer than their session: each of them costs two rebalances.

From the group's records (kgroup/history/fold/restarts.py): who was absent, and for how long (KIP-345; SM-51).
"""

from __future__ import annotations

from collections.abc import Iterator

from kgroup.admin.diagnose.facts import SESSION_TIMEOUT, Facts
from kgroup.admin.diagnose.wording import Found
from kgroup.admin.models import CLASSIC
from kgroup.admin.read.findings import SHOWN
from kgroup.admin.shell import command
from kgroup.domain import count_of, first_of
from kgroup.durations import utc


def slow_restarts(facts: Facts) -> Iterator[Found]:
    """Yield slow restarts since history counts, what to do about them, and each with its figures.

    A member whose session would by now cover its restart is omitted.
    """
    recent = [restart for restart in facts.log.restarts if restart.back_ms >= facts.since_ms]
    members = facts.recorded_members.values()
    slow = [
        restart
        for restart in recent
        if restart.took_ms is None
        or not any(
            m.instance_id == restart.instance_id and m.session_timeout_ms > restart.took_ms for m in members
        )
    ]
    if not slow:
        return
    names = sorted({restart.instance_id for restart in slow})
    took_ms = [restart.took_ms for restart in slow if restart.took_ms is not None]
    who = f"{count_of(len(names), 'static member')} rejoined after the session had ended"
    longest = f", away for up to {_s(max(took_ms))}" if took_ms else ""
    above = f" above {_s(max(took_ms))}" if took_ms else ""
    if facts.group.type == CLASSIC:
        hint = (
            f"session.timeout.ms of the clients{above}, longer than a restart takes, "
            "up to the broker's group.max.session.timeout.ms; kgroup explain static"
        )
    else:
        hint = (
            f"{SESSION_TIMEOUT} of the group{above}, longer than a restart takes, up to the broker's "
            "group.consumer.max.session.timeout.ms (60 s by default): "
            f"{command('config get', facts.group.group_id)}"
        )
    evidence = []
    for restart in slow[-SHOWN:]:
        session = "unknown length" if restart.session_ms is None else _s(restart.session_ms)
        took = "" if restart.took_ms is None else f", {_s(restart.took_ms)} after its last sign of life"
        evidence.append(
            f"{restart.instance_id} was back at {utc(restart.back_ms)}{took}: {_s(restart.late_ms)} after "
            f"the end of a session of {session}, unless an admin had removed it (log offset {restart.offset})"
        )
    if len(slow) > SHOWN:
        evidence.append(f"and {count_of(len(slow) - SHOWN, 'time')} before")
    yield (
        f"{who}: {first_of(names)}{longest}; others had their partitions meanwhile",
        hint,
        evidence,
    )


def _s(ms: int) -> str:
    return f"{ms / 1000:g} s"
