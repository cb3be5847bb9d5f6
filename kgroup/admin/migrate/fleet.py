"""The plans of many groups at once, each the plan of one group, ordered by the remaining effort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from kgroup.admin.discovery import ClusterView
from kgroup.admin.migrate.consequences import software_of
from kgroup.admin.migrate.evidence import AnotherType, gather_all
from kgroup.admin.migrate.models import ALREADY, BLOCKED, READY, UPGRADE, WARN, Check, MigrationPlan
from kgroup.admin.migrate.plan import plan_of
from kgroup.admin.models import EMPTY, SHARE, STREAMS, ItemError
from kgroup.admin.refusals import item_error
from kgroup.errors import KgroupError

STAYS = frozenset({"protocol_type", "kafka_streams"})
"""Checks that block for good: these groups have no other protocol to move to."""
NOTHING_TO_DO = {
    STREAMS: "nothing is left to do: its application speaks the streams protocol (KIP-1071)",
    SHARE: "nothing is left to do: share groups have one protocol (KIP-932)",
}
CLUSTER, CLIENT, ASSIGNOR, PATTERN, GROUP = "cluster", "client", "assignor", "pattern", "group"
WHERE = {
    "consumer_protocol": CLUSTER,
    "migration_policy": CLUSTER,
    "size": CLUSTER,
    "embedded_protocol": CLIENT,
    "client_settings": CLIENT,
    "assignment_user_data": ASSIGNOR,
    "user_data_to_come": ASSIGNOR,
    "assignor": ASSIGNOR,
    "patterns": PATTERN,
    "session_timeout": GROUP,
}
"""Where the change that a check requires is made; checks not listed here require none."""
NONE, CONVERT, ROLL, UNKNOWN_EFFORT = "none", "convert", "roll", "unknown"
EFFORTS = (NONE, CONVERT, ROLL, CLUSTER, CLIENT, UNKNOWN_EFFORT)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A check that blocks a group, or decides and is unknown; `reason` is the code of the failure."""

    code: str
    where: Annotated[str | None, "cluster, client, assignor, pattern or group"]
    message: str
    hint: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class FleetRow:
    """The plan of one group, in short. `software` counts members by their default client ids."""

    group_id: str
    verdict: Annotated[str, ("ready", "blocked", "already", "unknown")]
    type: str
    state: str
    members: Annotated[int | None, "null: not known"]
    effort: Annotated[str, EFFORTS]
    change: Annotated[tuple[str, ...], "where: cluster, client, assignor, pattern, group"]
    blockers: tuple[Obstacle, ...]
    unknown: tuple[Obstacle, ...]
    warnings: Annotated[tuple[str, ...], "codes of checks"]
    assignor: str | None
    client_ids: tuple[str, ...]
    software: Annotated[Mapping[str, int], "by default client ids; other members are not counted"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A group without a plan: it has no consumer protocol to move to. `hint` says what to do instead."""

    group_id: str
    type: str
    reason: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class Fleet:
    """Rows with the least effort first; `errors` are the groups about which nothing is known."""

    rows: tuple[FleetRow, ...]
    left_out: tuple[LeftOut, ...]
    errors: tuple[ItemError, ...]


def plan_fleet(
    cluster: ClusterView, group_ids: Iterable[str], *, patterns: Sequence[str] = (), read_log: bool = False
) -> Fleet:
    """Return the upgrade plan of each group; requests grow with the brokers, not with the groups.

    `patterns` are the subscription patterns of all these groups' clients.
    """
    rows, left_out, errors = [], [], []
    gathered = gather_all(cluster, group_ids, all_topics=bool(patterns), read_log=read_log)
    for group_id, evidence in gathered.items():
        if isinstance(evidence, AnotherType):
            left_out.append(
                LeftOut(
                    group_id,
                    evidence.type,
                    f"it is a {evidence.type} group",
                    NOTHING_TO_DO.get(evidence.type),
                )
            )
            continue
        if isinstance(evidence, KgroupError):
            errors.append(item_error(group_id, evidence))
            continue
        plan = plan_of(evidence, UPGRADE, patterns)
        never = next((check for check in plan.blockers if check.code in STAYS), None)
        if never is not None:
            left_out.append(LeftOut(group_id, plan.type, never.message, never.hint))
            continue
        warnings = [check.code for check in plan.checks if check.status == WARN]
        asking = [*(check.code for check in (*plan.blockers, *plan.unknowns)), *warnings]
        members = evidence.group.known_members
        ids = [member.client_id for member in members if member.client_id is not None]
        names = [name for client_id in ids if (name := software_of(plan.group_id, client_id)) is not None]
        rows.append(
            FleetRow(
                group_id=plan.group_id,
                verdict=plan.verdict,
                type=plan.type,
                state=plan.state,
                members=evidence.group.member_count,
                effort=_effort(plan),
                change=tuple(sorted({WHERE[code] for code in asking if code in WHERE})),
                blockers=tuple(map(_obstacle, plan.blockers)),
                unknown=tuple(map(_obstacle, plan.unknowns)),
                warnings=tuple(warnings),
                assignor=evidence.group.assignor,
                client_ids=tuple(sorted(set(ids))),
                software={name: names.count(name) for name in sorted(set(names))},
            )
        )
    rows.sort(key=lambda row: (EFFORTS.index(row.effort), row.members or 0, row.group_id))
    return Fleet(tuple(rows), tuple(left_out), tuple(errors))


def _effort(plan: MigrationPlan) -> str:
    """Return the remaining effort; a client's change costs more than the cluster's, made once for all."""
    if plan.verdict == ALREADY:
        return NONE
    if plan.verdict == READY:
        return CONVERT if plan.state == EMPTY else ROLL
    if plan.verdict != BLOCKED:
        return UNKNOWN_EFFORT
    return CLUSTER if all(WHERE.get(check.code) == CLUSTER for check in plan.blockers) else CLIENT


def _obstacle(check: Check) -> Obstacle:
    return Obstacle(check.code, WHERE.get(check.code), check.message, check.hint, check.reason)
