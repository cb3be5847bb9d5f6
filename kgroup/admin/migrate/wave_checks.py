"""Judge whether the next wave may follow: measurements after a wave's groups moved, against the rules."""

from __future__ import annotations

from collections.abc import Iterator

from kgroup.admin.migrate.wave_state import BAD, NOT_JUDGED, OK, UNKNOWN, GroupRun, RuleCheck
from kgroup.admin.migrate.waves import Rules
from kgroup.admin.models import CONSUMER, GroupDescription
from kgroup.admin.statuses import PartitionStatus
from kgroup.domain import count_of, first_of, place_of

NO_ONE_READS = "the group has no members, so nothing reads"


def judged(
    rules: Rules, group: GroupRun, first: GroupDescription | None, last: GroupDescription | None
) -> tuple[RuleCheck, ...]:
    """Return each rule with its measurement: `first` when the group had moved, `last` after `observe`.

    None is a missing description; what depends on it is unknown.
    """
    if first is None or last is None:
        message = "the group could not be described when it had moved, or after it was observed"
        return (RuleCheck("moved", UNKNOWN, message),)
    empty = not last.known_members and not group.members_before
    return (
        _moved(last),
        _members(rules.fewer_members, group, last),
        RuleCheck("lag_growth", NOT_JUDGED, NO_ONE_READS) if empty else _lag(rules.lag_growth, group, last),
        RuleCheck("commits", NOT_JUDGED, NO_ONE_READS) if empty else _commits(rules.commits, first, last),
        _rebalances(rules.rebalances, first, last),
        _unowned(rules.unowned, group),
    )


def _moved(last: GroupDescription) -> RuleCheck:
    if last.members is None:
        return RuleCheck("moved", UNKNOWN, "which protocol the members use is unknown")
    behind = [member.called for member in last.members if member.protocol != CONSUMER]
    if last.type != CONSUMER or behind:
        which = f": {first_of(behind)}" if behind else ""
        return RuleCheck(
            "moved", BAD, f"it is a {last.type} group with {count_of(len(behind), 'classic member')}{which}"
        )
    return RuleCheck("moved", OK, f"{count_of(len(last.members), 'member')}, all with the consumer protocol")


def _members(most: int | None, group: GroupRun, last: GroupDescription) -> RuleCheck:
    if most is None:
        return RuleCheck("fewer_members", NOT_JUDGED, "the rule is null")
    if group.members_before is None or last.members is None:
        return RuleCheck("fewer_members", UNKNOWN, "how many members there are, or were, is unknown")
    message = f"{count_of(len(last.members), 'member')}, {group.members_before} before the wave"
    missing = group.members_before - len(last.members)
    return RuleCheck("fewer_members", BAD if missing > most else OK, message)


def _lag(most: int | None, group: GroupRun, last: GroupDescription) -> RuleCheck:
    if most is None:
        return RuleCheck("lag_growth", NOT_JUDGED, "the rule is null")
    if group.lag_before is None:
        return RuleCheck("lag_growth", UNKNOWN, "the lag before the wave is unknown")
    if (unknown := lag_unknown(last)) is not None or last.work is None:
        why, reason = unknown or ("", None)
        return RuleCheck("lag_growth", UNKNOWN, f"the lag is unknown: {why}", reason)
    message = f"lag {last.work}, {group.lag_before} before the wave, and {most} more are allowed"
    return RuleCheck("lag_growth", BAD if last.work - group.lag_before > most else OK, message)


def lag_unknown(group: GroupDescription) -> tuple[str, str | None] | None:
    """Return why the lag of a group is not fully known, and the code of the failure behind it."""
    if group.errors:
        return group.errors[0].message, group.errors[0].code
    if group.total_lag is not None:
        return None
    row = next((row for row in group.offsets if row.lag is None), None)
    if row is None:
        return group.no_offsets or "nothing is committed", None
    return f"{row.place}: {row.error or row.reason or 'unknown'}", row.error_code


def _commits(required: bool, first: GroupDescription, last: GroupDescription) -> RuleCheck:
    if not required:
        return RuleCheck("commits", NOT_JUDGED, "the rule is false")
    if last.errors or first.errors:
        error = (*last.errors, *first.errors)[0]
        return RuleCheck("commits", UNKNOWN, error.message, error.code)
    after = {row.place: row for row in last.offsets}
    unknown = [place_of(r.topic, r.partition) for r in first.offsets if r.lag is None]
    # A commit has to follow unread records that can be read, and that no open transaction hides.
    due = [
        row
        for row in first.offsets
        if row.work
        and row.committed_offset is not None
        and (row.status is None or row.status.name != PartitionStatus.HELD_BACK)
    ]
    idle = []
    for row in due:
        partition = row.place
        now = after.get(partition)
        if now is None or now.committed_offset is None:
            unknown.append(partition)
        elif now.committed_offset <= (row.committed_offset or 0):
            idle.append(partition)
    if idle:
        message = f"{count_of(len(idle), 'partition')} with unread records were not committed: "
        return RuleCheck("commits", BAD, message + first_of(sorted(idle)))
    if unknown:
        message = f"what is committed, or unread, is unknown of {first_of(sorted(set(unknown)))}"
        return RuleCheck("commits", UNKNOWN, message)
    if not due:
        return RuleCheck("commits", OK, "there was nothing to commit: nothing was unread")
    return RuleCheck(
        "commits", OK, f"all {count_of(len(due), 'partition')} with unread records were committed"
    )


def _rebalances(most: int | None, first: GroupDescription, last: GroupDescription) -> RuleCheck:
    if most is None:
        return RuleCheck("rebalances", NOT_JUDGED, "the rule is null")
    if first.group_epoch is None or last.group_epoch is None:
        return RuleCheck("rebalances", UNKNOWN, "the group epoch is unknown")
    risen = last.group_epoch - first.group_epoch
    message = f"the group epoch rose by {risen} after all had moved, to {last.group_epoch}"
    return RuleCheck("rebalances", BAD if risen > most else OK, message)


def _unowned(most_s: float | None, group: GroupRun) -> RuleCheck:
    """Judge the time per partition: bad when it was certainly longer, ok when it was certainly not."""
    if most_s is None:
        return RuleCheck("unowned", NOT_JUDGED, "the rule is null")
    partitions = max(group.partitions or 0, 1)
    least = group.unowned_partition_ms.at_least / partitions / 1000
    most = group.unowned_partition_ms.at_most / partitions / 1000
    message = f"a partition had no owner for {least:.1f} to {most:.1f} s on average, of {most_s:g} s allowed"
    if least > most_s:
        return RuleCheck("unowned", BAD, message)
    return RuleCheck("unowned", OK if most <= most_s else UNKNOWN, message)


def broken(checks: tuple[RuleCheck, ...]) -> Iterator[RuleCheck]:
    """Yield the rules that stop a wave: those broken and those unknown."""
    return (check for check in checks if check.status in (BAD, UNKNOWN))
