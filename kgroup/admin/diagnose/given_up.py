"""Records of share groups that were given up or came back: only the log of their deliveries shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgroup.admin.diagnose.deliveries import waits
from kgroup.admin.diagnose.facts import Facts, missed
from kgroup.admin.diagnose.handled import REJECTED_AFTER
from kgroup.admin.diagnose.wording import Found
from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.findings import SHOWN
from kgroup.admin.settings import number_of, settings_seen
from kgroup.admin.shell import command
from kgroup.admin.statuses import LOOPS
from kgroup.domain import count_of
from kgroup.durations import utc
from kgroup.errors import KgroupError
from kgroup.history.fold.events import Delivered, Event, Kind

Piece = tuple[Event, Delivered]
"""Neighbouring records that were delivered equally often, with the event that ended it."""
LIMIT, LOCK = "share.delivery.count.limit", "share.record.lock.duration.ms"
_RELEASED = Kind.RECORDS_RELEASED


def look_at_delivery_limits(cluster: ClusterView, facts: list[Facts]) -> list[Facts]:
    """Read how often, and for how long, share groups give a record to a member, where that decides."""
    names = [f.group.group_id for f in facts if waits(f) or _gave_up(f)]
    answers = settings_seen(cluster, names, (LIMIT, LOCK))
    return [_with_limits(f, answers[f.group.group_id]) if f.group.group_id in answers else f for f in facts]


def _with_limits(facts: Facts, values: dict[str, str] | KgroupError) -> Facts:
    if isinstance(values, KgroupError):
        unread = [missed(LIMIT, values)] if _gave_up(facts) else []
        return facts.also(*unread, lock_ms=missed(LOCK, values))
    return facts.also(
        delivery_limit=number_of(values.get(LIMIT)) or None, lock_ms=number_of(values.get(LOCK)) or 0
    )


def _gave_up(facts: Facts) -> bool:
    """Return whether records were given up after more than one delivery."""
    return any(piece.deliveries > REJECTED_AFTER for _, piece in _ended(facts))


def given_up(facts: Facts) -> Iterator[Found]:
    """Yield records delivered as often as the group allows, certainly or perhaps, and not accepted."""
    limit = facts.delivery_limit
    over = [piece for piece in _ended(facts) if piece[1].deliveries >= (limit or REJECTED_AFTER + 1)]
    if over:
        how = "rejected, or at the delivery limit" if limit is None else f"at the limit of {limit} deliveries"
        yield (
            f"{_counted(over)} given up since {utc(_since(facts))}, {how}",
            f"look at what the members make of them: {_log(facts)} names each",
            [*_listed(over), "a record that was rejected at its last delivery looks the same"],
        )


def all_given_up(facts: Facts) -> Iterator[str]:
    """Yield the partitions of which members give up each record, and finish none."""
    handled = facts.delivered.handled if facts.delivered is not None else {}
    given_up = {p: those.given_up(facts.delivery_limit) for p, those in handled.items()}
    for partition, count in sorted(given_up.items()):
        if count >= LOOPS and handled[partition].failed[-1].at_ms >= facts.since_ms:
            yield f"{partition}: {count_of(count, 'record')} given up since one was finished"


def rejected(facts: Facts) -> Iterator[Found]:
    """Yield records that members rejected: they were given up before the limit."""
    below = facts.delivery_limit or REJECTED_AFTER + 1
    early = [piece for piece in _ended(facts) if piece[1].deliveries < below]
    if early:
        sure = all(piece.deliveries <= REJECTED_AFTER for _, piece in early)
        yield (
            f"{_counted(early)} rejected by members since {utc(_since(facts))}",
            f"{_log(facts)} names each",
            [*_listed(early), *(() if sure else ["unless the limit was lower then"])],
        )


def came_back(facts: Facts) -> Iterator[Found]:
    """Yield records that came back unfinished; the log does not show whether their locks timed out."""
    released = [piece for piece in _recent(facts) if piece[0].kind == _RELEASED]
    if released:
        times = count_of(sum(piece.records for _, piece in released), "time")
        yield (
            f"records came back {times} since {utc(_since(facts))}: released, or their locks timed out",
            "the log does not say which: the brokers' metric AcquisitionLockTimeoutPerSec counts time-outs",
            _listed(released),
        )


def known_deliveries(facts: Facts) -> Iterator[str]:
    """Yield the time from which the log has what was released and given up."""
    if facts.delivered is None:
        return
    if facts.delivered.complete_from_ms < 0:
        yield "the log has every record that was released or given up"
    else:
        begins = utc(facts.delivered.complete_from_ms)
        yield f"the log has what was released or given up from {begins} on; brokers deleted what was before"


def _since(facts: Facts) -> int:
    """Return the time from which history counts: the span requested, or the part that the log has."""
    return max(facts.since_ms, facts.delivered.complete_from_ms if facts.delivered is not None else -1)


def _recent(facts: Facts) -> list[Piece]:
    """Return how deliveries ended in this span; an event that is not proven has no certain time."""
    events = facts.delivered.events if facts.delivered is not None else ()
    recent = [event for event in events if event.proven and event.timestamp_ms >= facts.since_ms]
    return [(event, piece) for event in recent for piece in event.records]


def _ended(facts: Facts) -> list[Piece]:
    return [piece for piece in _recent(facts) if piece[0].kind != _RELEASED]


def _counted(pieces: Sequence[Piece]) -> str:
    count = sum(piece.records for _, piece in pieces)
    return f"{count_of(count, 'record')} {'was' if count == 1 else 'were'}"


def _listed(pieces: Sequence[Piece]) -> list[str]:
    """Return the newest events, and the number of earlier ones."""
    events = list(dict.fromkeys(event for event, _ in pieces))
    earlier = len(events) - SHOWN
    newest = (f"{utc(e.timestamp_ms)}: {e.detail} (log offset {e.offset})" for e in events[-SHOWN:])
    return [*([f"{earlier} more before"] if earlier > 0 else ()), *newest]


def _log(facts: Facts) -> str:
    return command("replay-log", facts.group.group_id, options=f"--since {utc(_since(facts))}")
