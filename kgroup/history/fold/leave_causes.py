"""How a member may have left: the records show only that it is gone, and what it did before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kgroup.domain import CLASSIC, MemberStatus, TopicPartition
from kgroup.history.fold.events import duration_text
from kgroup.history.fold.view import RecordedMember
from kgroup.history.log_items import Committed

MAX_REMEMBERED = 10_000
"""Member ids kept in a group: a bound for groups whose members never rejoin."""
SLACK_MS = 5_000
"""Up to one interval of automatic commits lies between a member's last commit and its last poll."""


class Way(StrEnum):
    """How a member can leave. The values are an interface: the steps of scenarios name them."""

    LEFT = "left"
    SESSION_ENDED = "session-ended"
    REMOVED = "removed"
    FENCED = "fenced"


class WayOut(NamedTuple):
    """The ways in which a member may have left, likeliest first, and the same for people."""

    ways: tuple[Way, ...]
    text: str


@dataclass(slots=True)
class Lives:
    """Since when members are in a group, and when others were gone, by member id (ms)."""

    joined: dict[str, int] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)

    def begin(self, member_id: str, at_ms: int) -> int | None:
        """Note that a member joined; return when the same id was gone before, None if it never was."""
        _remember(self.joined, member_id, at_ms)
        return self.gone.pop(member_id, None)

    def end(self, member_id: str, at_ms: int) -> int | None:
        """Note that a member is gone; return when it joined, None if that was not seen."""
        _remember(self.gone, member_id, at_ms)
        return self.joined.pop(member_id, None)


def _remember(times: dict[str, int], member_id: str, at_ms: int) -> None:
    times[member_id] = at_ms
    if len(times) > MAX_REMEMBERED:
        del times[next(iter(times))]


def last_commit(
    member: RecordedMember, joined_ms: int | None, offsets: Mapping[TopicPartition, Committed]
) -> int:
    """Return when what a member owns was last committed (ms); -1 if not since it joined.

    A commit names no member: one from before it joined is not its own. `joined_ms` is None if that was not
    seen.
    """
    newest = max((offsets[p].commit_timestamp_ms for p in member.holds if p in offsets), default=-1)
    return -1 if joined_ms is not None and newest < joined_ms else newest


def way_out(
    member: RecordedMember,
    at_ms: int,
    joined_ms: int | None,
    offsets: Mapping[TopicPartition, Committed],
) -> WayOut:
    """Return how a member that is gone at `at_ms` may have left.

    `joined_ms` is when it joined, if that was seen; `offsets` are the group's committed offsets.
    """
    committed = last_commit(member, joined_ms, offsets)
    session = member.session_timeout_ms
    alive = at_ms - (joined_ms if joined_ms is not None else -session)
    classic_static = member.protocol == CLASSIC and member.instance_id is not None
    if 0 <= alive < session:
        early = "it was removed, or left for good" if classic_static else "it left, or was removed"
        possible = (Way.REMOVED, Way.LEFT) if classic_static else (Way.LEFT, Way.REMOVED)
        text = f"{early}: its session of {duration_text(session)} had not passed since it joined"
        return WayOut(possible, text)
    stays = classic_static or member.state == MemberStatus.LEFT
    ways = (Way.SESSION_ENDED, Way.REMOVED) if stays else (Way.LEFT, Way.SESSION_ENDED, Way.REMOVED)
    return WayOut(ways, _later(member, at_ms, committed, classic_static=classic_static))


def _later(member: RecordedMember, at_ms: int, committed: int, *, classic_static: bool) -> str:
    """Return how a member may have left that was in the group for longer than its session."""
    session, poll = member.session_timeout_ms, member.rebalance_timeout_ms
    silent = at_ms - committed if committed >= 0 else -1
    # A dynamic client leaves when it has not polled for too long, a static one just stops sending.
    hung = poll + (max(session, 0) if classic_static else 0)
    # A process that ends is silent for its session, which some clients send as the rebalance timeout too.
    expired = 0 < session <= silent + SLACK_MS // 10 <= session + SLACK_MS
    if poll > 0 and hung <= silent + SLACK_MS // 10 <= hung + SLACK_MS and not (expired and poll <= session):
        return (
            "it hung between two polls, unless it left by itself: its last commit was "
            f"{duration_text(silent)} before, and max.poll.interval.ms (its rebalance timeout) is "
            f"{duration_text(poll)}"
        )
    # A static client sends no LeaveGroup when it closes (KIP-345; SM-47).
    if classic_static:
        ways = "expired, or removed by an admin: static members do not leave when they close"
    elif member.state == MemberStatus.LEFT:
        ways = "did not come back before its session ended, or was removed for good"
    else:
        ways = "left, expired, or was removed: the records do not say"
    if session <= 0:
        return ways
    if 0 <= silent < session:
        return (
            f"{ways}; what it owned was committed {duration_text(silent)} before, within its session of "
            f"{duration_text(session)}: if that was its own commit, it did not expire"
        )
    return f"{ways}; if it expired, it was silent for its session of {duration_text(session)}"
