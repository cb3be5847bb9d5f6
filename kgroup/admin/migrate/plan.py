"""Migrations between the classic and the consumer protocol: the verdict beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from kgroup.admin.discovery import ClusterView
from kgroup.admin.migrate.checks import plan_upgrade
from kgroup.admin.migrate.downgrade import plan_downgrade
from kgroup.admin.migrate.evidence import gather
from kgroup.admin.migrate.models import UPGRADE, Evidence, MigrationPlan


def plan_migration(
    cluster: ClusterView,
    group_id: str,
    direction: str,
    *,
    patterns: Sequence[str] = (),
    read_log: bool = False,
) -> MigrationPlan:
    """Return how the broker would answer a roll of the group's clients now; changes nothing.

    `direction` is upgrade or downgrade. `patterns` are the clients' own subscription patterns; `read_log`
    adds what only the group's records show. Raise BrokerRefused when the group cannot be described.
    """
    evidence = gather(cluster, group_id, all_topics=bool(patterns), read_log=read_log)
    return plan_of(evidence, direction, patterns)


def plan_of(gathered: Evidence, direction: str, patterns: Sequence[str] = ()) -> MigrationPlan:
    """Return the verdict on evidence gathered before."""
    make = plan_upgrade if direction == UPGRADE else plan_downgrade
    return make(gathered, patterns)
