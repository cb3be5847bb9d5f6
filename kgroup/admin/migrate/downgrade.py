"""What a broker checks when a consumer group becomes classic again, predicted for one group.

A group converts when its last consumer-protocol member leaves and classic ones stay (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kgroup.admin.migrate.checks import policy, room, verdict_of
from kgroup.admin.migrate.consequences import MAX_SIZE, health
from kgroup.admin.migrate.models import (
    ALREADY,
    BLOCK,
    DOWNGRADE,
    INFO,
    OK,
    POLICY,
    UNKNOWN,
    WARN,
    Check,
    Evidence,
    MigrationPlan,
)
from kgroup.admin.migrate.patterns import check_patterns
from kgroup.admin.models import CLASSIC, EMPTY, LEFT_FOR_NOW
from kgroup.admin.shell import command
from kgroup.domain import count_of

MIN_SESSION, MAX_SESSION = "group.min.session.timeout.ms", "group.max.session.timeout.ms"


def plan_downgrade(gathered: Evidence, patterns: Sequence[str] = ()) -> MigrationPlan:
    """Return the verdict on rolling a group's clients back to the classic protocol."""
    group = gathered.group
    if group.type == CLASSIC:
        done = Check("type", OK, "it is a classic group", None, {"type": group.type})
        return MigrationPlan(group.group_id, DOWNGRADE, group.type, group.state, ALREADY, (done,))
    checks: list[Check] = []
    if group.state == EMPTY:
        checks.append(Check("state", OK, "the group is empty: it converts offline, whatever the policy"))
    else:
        checks += _online(gathered)
        checks += health(gathered)
    checks += check_patterns(patterns, gathered.topic_names, DOWNGRADE)
    regexes = sorted({m.subscribed_regex for m in group.known_members if m.subscribed_regex})
    if regexes:
        message = (
            f"{len(regexes)} RE2 patterns are in use; classic clients match patterns of their own dialect"
        )
        checks.append(Check("regex_in_use", WARN, message, "give each to --pattern", {"patterns": regexes}))
    low, high = gathered.number(MIN_SESSION), gathered.number(MAX_SESSION)
    message = f"classic members bring their own session.timeout.ms, which must lie from {low} to {high} ms"
    if low is None or high is None:
        message = "unknown: the bounds for the classic members' own session.timeout.ms are not reported"
    checks.append(Check("session_timeout", INFO, message, None, {MIN_SESSION: low, MAX_SESSION: high}))
    if group.state != EMPTY:
        message = f"{group.assignor} runs in the broker now; classic members need one assignor in common"
        checks.append(Check("assignor", INFO, message, None, {"assignor": group.assignor}))
        message = (
            "the group converts at its epoch, as its generation; a rebalance follows unless a static member "
            "is replaced while all targets are current"
        )
        checks.append(Check("after", INFO, message))
    return verdict_of(gathered, DOWNGRADE, checks)


def _online(gathered: Evidence) -> Iterator[Check]:
    check = policy(gathered, DOWNGRADE)
    yield check
    if str((gathered.settings or {}).get(POLICY)).lower() == "disabled":
        message = "the policy is disabled: classic members are refused with INCONSISTENT_GROUP_PROTOCOL"
        yield Check("classic_members", BLOCK, message, check.hint, check.evidence)
    yield _size(gathered)
    members = gathered.group.known_members
    away = [member.name for member in members if member.member_epoch == LEFT_FOR_NOW]
    if away:
        message = f"{', '.join(away)} left for now and still count as consumer-protocol members"
        hint = "they hold the conversion up until they rejoin as classic ones or expire: "
        hint += command("remove-members", gathered.group.group_id, options="--left-only")
        yield Check("left_for_now", WARN, message, hint, {"members": away})
    classic = [member.name for member in members if member.protocol == CLASSIC]
    evidence = {"members": len(members), "classic": classic}
    message = (
        f"{len(classic)} of {count_of(len(members), 'member')} speak the classic protocol; the "
        f"last of the others to go "
        "converts the group, so one classic member must be there before"
    )
    if len(members) == 1 and not classic and not members[0].instance_id:
        hint = "start the classic successor first, or stop it and convert the empty group"
        yield Check("classic_members", WARN, message, hint, evidence)
    else:
        yield Check("classic_members", OK, message, None, evidence)


def _size(gathered: Evidence) -> Check:
    """Return whether the group fits in as a classic one, and each successor before."""
    members = gathered.group.known_members
    count, most = len(members), gathered.number(MAX_SIZE)
    left = [member for member in members if member.protocol != CLASSIC]
    check = room(gathered, members, left)
    if len(left) == 1 and not left[0].instance_id and check.status != UNKNOWN:
        # The group is classic, or empty, before its successor joins.
        check = Check("size", OK, count_of(count, "member"), None, check.evidence)
    sizes = {**check.evidence, MAX_SIZE: most}
    if most is None:
        why = gathered.settings_error or "the broker does not report it"
        return Check("size", UNKNOWN, f"{MAX_SIZE}: {why}", None, sizes, gathered.settings_code)
    if count <= most:
        return replace(check, message=f"{check.message}; {MAX_SIZE}={most}", evidence=sizes)
    stays = "the group stays a consumer group"
    if count - 1 == most:
        stays += ", or the successor of the last dynamic member is refused with GROUP_MAX_SIZE_REACHED"
    message = f"{count_of(count, 'member')}, {MAX_SIZE}={most}: {stays}"
    return Check("size", BLOCK, message, f"raise {MAX_SIZE} or stop members", sizes)
