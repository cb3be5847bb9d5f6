"""What an operator does with a cluster, over any transport: reads give models, changes are planned first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kgroup.admin.discovery import Cluster
from kgroup.admin.models import (
    ClusterStatus,
    Deletion,
    Description,
    Execution,
    GroupLocation,
    GroupResult,
    ItemResult,
    Listing,
    Plan,
    TopicDescription,
)
from kgroup.admin.transport import Transport
from kgroup.client.retry import Retry
from kgroup.domain import TopicPartition
from kgroup.errors import ConfigError, KgroupError

if TYPE_CHECKING:
    from kgroup.admin.journal import Change, Journal
    from kgroup.admin.lag_report import LagReport
    from kgroup.admin.offset_changes import OffsetsExecution
    from kgroup.admin.offset_plans import OffsetsPlan
    from kgroup.admin.offsets import ListedOffset
    from kgroup.admin.remove_members import Selection
    from kgroup.admin.reset import Scope, Spec


class Admin:
    """Operations on one cluster. Safe to use again and again; not for two threads at once.

    All methods raise Unreachable when no broker answers in time and BrokerRefused when one says no.
    `timeout_s` bounds each operation, retries included. Changes go into `journal`, by default the user's.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        timeout_s: float = 30.0,
        journal: Journal | None = None,
        retry: Retry | None = None,
    ) -> None:
        self.cluster = Cluster(transport, retry or Retry(timeout_s=timeout_s))
        self._journal = journal

    def list_groups(
        self, states: Iterable[str] = (), types: Iterable[str] = (), *, count_members: bool = False
    ) -> Listing:
        """The groups of all brokers, by id; counting members costs a describe."""
        from kgroup.admin import listing

        found = listing.list_groups(self.cluster, tuple(states), tuple(types))
        return listing.described(self.cluster, found) if count_members else found

    def describe(self, group_ids: Iterable[str], *, offsets: bool = True) -> Description:
        """Groups in full, of whatever type; without offsets, lag and findings when `offsets` is False."""
        from kgroup.admin.describe import describe

        return describe(self.cluster, group_ids, offsets=offsets)

    def find_coordinator(self, group_ids: Iterable[str]) -> tuple[GroupLocation, ...]:
        """Where each group lives: its coordinator and its partition of `__consumer_offsets`.

        Raises the first failure. The group need not exist.
        """
        from kgroup.admin.discovery import locate

        return locate(self.cluster, group_ids)

    def lag(
        self, group_ids: Iterable[str], *, times: bool = False, interval_s: float | None = None
    ) -> LagReport:
        """How far each group is behind, with `times` in time, with `interval_s` at which rate.

        What cannot be read is in `errors` and in the rows.
        """
        from kgroup.admin.lag_report import measure

        return measure(self.cluster, group_ids, times=times, interval_s=interval_s)

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | KgroupError]:
        """The offset of each partition for a time in ms, or LATEST, EARLIEST, MAX_TIMESTAMP (offsets.py)."""
        from kgroup.admin.offsets import list_offsets

        return list_offsets(self.cluster, wanted)

    def plan_remove_members(self, group_id: str, selection: Selection, reason: str | None = None) -> Plan:
        """Who would be removed from a classic or consumer group, and the effect on each; changes nothing."""
        from kgroup.admin.remove_members import plan

        return plan(self.cluster, group_id, selection, reason)

    def execute(self, plan: Plan) -> Execution:
        """Do what a plan says, and record it; a result for each item.

        SafetyRefused when the group is no longer what the plan was made for.
        """
        from kgroup.admin import remove_members

        group = remove_members.check_fresh(self.cluster, plan)
        named = [{"instance_id": item.instance_id, "member_id": item.member_id} for item in plan.items]
        with self._change("remove-members", plan_document(plan), asdict(group), named) as entry:
            items = remove_members.execute(self.cluster, plan)
            entry.results += map(asdict, items)
        return Execution(plan, items, entry.id)

    def plan_reset_offsets(
        self, group_ids: Iterable[str], spec: Spec, scope: Scope, reason: str | None = None
    ) -> OffsetsPlan:
        """Where a reset would move each position, and which groups would be refused now (reset.py)."""
        from kgroup.admin.reset import plan_reset

        return plan_reset(self.cluster, group_ids, spec, scope, reason)

    def plan_undo(self, entry_id: str, group_ids: Iterable[str] = ()) -> OffsetsPlan:
        """How to take back a journalled change of positions (or LAST); SafetyRefused if they moved."""
        from kgroup.admin.undo import plan_undo

        return plan_undo(self.cluster, self.journal, entry_id, group_ids)

    def execute_offsets(self, plan: OffsetsPlan) -> OffsetsExecution:
        """Do what a plan of positions says and record it; active and changed groups are refused items."""
        from kgroup.admin.offset_changes import execute

        return execute(self.cluster, self.journal, plan)

    def plan_delete_groups(self, group_ids: Iterable[str]) -> tuple[GroupResult, ...]:
        """What deleting the groups would do: planned, not_found, or failed with the reason."""
        from kgroup.admin import delete
        from kgroup.admin.describe import groups_only

        return delete.plan(groups_only(self.cluster, group_ids))

    def delete_groups(self, group_ids: Iterable[str], reason: str | None = None) -> Deletion:
        """Delete empty groups with their offsets; the offsets they had are kept in the journal."""
        from kgroup.admin import delete
        from kgroup.admin.offset_plans import actor
        from kgroup.admin.offsets import committed

        wanted = list(dict.fromkeys(group_ids))
        before = {
            group_id: str(found)
            if isinstance(found, KgroupError)
            else [[p.topic, p.partition, o.offset, o.leader_epoch, o.metadata] for p, o in found.items()]
            for group_id, found in committed(self.cluster, wanted).items()
        }
        plan = {"groups": wanted, "actor": actor(), "reason": reason}
        named = [{"group_id": group_id} for group_id in wanted]
        with self._change("delete", plan, {"offsets": before}, named) as entry:
            items = delete.execute(self.cluster, wanted)
            entry.results += map(asdict, items)
        return Deletion(items, entry.id)

    def cluster_status(self) -> ClusterStatus:
        """Brokers, controller, and how many topics and partitions there are."""
        from kgroup.admin.topics import cluster_status

        return cluster_status(self.cluster)

    def topics(self, names: Iterable[str] | None = None) -> tuple[TopicDescription, ...]:
        """The topics named, or all, by name; raises for a named one that cannot be told."""
        from kgroup.admin.topics import topics

        return topics(self.cluster, names)

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> TopicDescription:
        """Create a topic; -1 leaves a number to the broker's default."""
        from kgroup.admin.topics import create_topic

        return create_topic(self.cluster, name, partitions, replication_factor, configs)

    @property
    def journal(self) -> Journal:
        """Where this Admin's changes are recorded."""
        if self._journal is None:
            from kgroup.admin.journal import Journal

            self._journal = Journal.default()
        return self._journal

    def _change(
        self,
        command: str,
        plan: Mapping[str, Any],
        before: Mapping[str, Any],
        items: Sequence[Mapping[str, Any]],
    ) -> AbstractContextManager[Change]:
        return self.journal.change(command, self.cluster.cluster_id(), plan, before, items)


def plan_document(plan: Plan) -> dict[str, object]:
    """A plan as a JSON object, without the group as it was; `plan_from` reads it back."""
    document = asdict(plan)
    del document["before"]
    return document


def plan_from(document: Mapping[str, Any]) -> Plan:
    """The plan behind `plan_document`'s object; ConfigError when it is not one."""
    try:
        items = tuple(ItemResult(**item) for item in document["items"])
        return Plan(**{**document, "items": items, "before": {}})
    except (TypeError, KeyError) as error:
        raise ConfigError(f"this is not a plan made by kgroup: {error}") from None
