"""What an operator does with a cluster, over any transport: reads give models, changes are planned first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import (
    Deletion,
    Description,
    Execution,
    GroupDescription,
    GroupLocation,
    GroupResult,
    ItemError,
    Listing,
    Plan,
    TopicDescription,
)
from kgroup.client.retry import Retry
from kgroup.domain import JsonObject, TopicPartition
from kgroup.errors import KgroupError
from kgroup.protocol.transport import Transport

if TYPE_CHECKING:
    from kgroup.admin.acls import Acls
    from kgroup.admin.change.journal import Change, Journal
    from kgroup.admin.change.offset_changes import OffsetsExecution
    from kgroup.admin.change.offset_plans import CommittedOffset, Draft, GroupNow, OffsetsPlan
    from kgroup.admin.change.registering import Registering, RegistrationPlan
    from kgroup.admin.change.remove_members import Selection
    from kgroup.admin.change.reset import Scope, Spec
    from kgroup.admin.diagnose.doctor import Examined
    from kgroup.admin.migrate.execute import Conversion
    from kgroup.admin.migrate.fleet import Fleet
    from kgroup.admin.migrate.models import Check, Evidence, Logged, MigrationPlan
    from kgroup.admin.migrate.run import Options, WavesRun
    from kgroup.admin.migrate.watch import Look
    from kgroup.admin.migrate.wave_state import WaveRun
    from kgroup.admin.migrate.waves import Wave
    from kgroup.admin.read.conditions import Condition, Find, Looks, Waited
    from kgroup.admin.read.lag_report import LagReport
    from kgroup.admin.read.offsets import ListedOffset
    from kgroup.admin.read.records import Records
    from kgroup.admin.read.staleness import Stale
    from kgroup.admin.rights.report import Ability, Asked
    from kgroup.admin.settings import Setting
    from kgroup.admin.topic_records import Record
    from kgroup.admin.topics import ClusterStatus
    from kgroup.admin.users import Users
    from kgroup.history.fold.removals import Today
    from kgroup.history.replay import Story
    from kgroup.protocol.log_records import LogRecord


class Admin:
    """Operations on one cluster, for one thread at a time; `timeout_s` bounds each, retries included.

    All raise Unreachable or BrokerRefused. Changes go into `journal`, by default the user's. `now_ms` is the
    cluster's time, where it is known: ages are measured against it, and records written have it.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        timeout_s: float = 30.0,
        journal: Journal | None = None,
        retry: Retry | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self.transport = transport
        self._cluster = ClusterView(transport, retry or Retry(timeout_s=timeout_s), now_ms)
        self._journal = journal

    def list_groups(
        self, states: Iterable[str] = (), types: Iterable[str] = (), *, count_members: bool = False
    ) -> Listing:
        """Return the groups of all brokers, by id; counting members costs a describe."""
        from kgroup.admin.read import listing

        found = listing.list_groups(self._cluster, tuple(states), tuple(types))
        return listing.described(self._cluster, found) if count_members else found

    def describe(self, group_ids: Iterable[str], *, offsets: bool = True) -> Description:
        """Return groups in full, of any type; members only when `offsets` is False."""
        from kgroup.admin.read.describe import describe

        return describe(
            self._cluster,
            group_ids,
            offsets=offsets,
            expected=offsets,
            topologies=offsets,
        )

    def describe_each(self, group_ids: Iterable[str]) -> Iterator[Description]:
        """Yield groups in full, in rounds and in the order given: for results too large for memory."""
        from kgroup.admin.read.describe import describe_each

        return describe_each(self._cluster, group_ids, expected=True, topologies=True)

    def groups(self, group_ids: Iterable[str]) -> Answers[GroupDescription]:
        """Return each group with its members and without offsets, or why it cannot be described."""
        from kgroup.admin.read.describe import groups_only

        return groups_only(self._cluster, group_ids)

    def count_members(self, listing: Listing, known: Answers[GroupDescription] | None = None) -> Listing:
        """Return the listing with members counted; groups in `known` are not requested again."""
        from kgroup.admin.read import listing as listings

        return listings.described(self._cluster, listing, known)

    def topics_stored(self, group_ids: Iterable[str], share: Collection[str] = ()) -> Answers[frozenset[str]]:
        """Return the topics with offsets of each group (`share`: the share groups), or why unknown."""
        from kgroup.admin.read.share_offsets import topics_stored

        return topics_stored(self._cluster, group_ids, share)

    def look(self, group_ids: Iterable[str], share: Collection[str] = ()) -> dict[str, GroupNow]:
        """Return each group and its committed offsets now, for a plan; absent groups included.

        Absent groups in `share` count as share groups.
        """
        from kgroup.admin.change.offset_plans import look

        return look(self._cluster, group_ids, share)

    def stale(self, group_ids: Iterable[str], limit_ms: int) -> Stale:
        """Return groups that wrote nothing for `limit_ms`, and those where this is unknown (staleness.py)."""
        from kgroup.admin.read.staleness import stale

        return stale(self._cluster, group_ids, limit_ms)

    def today(self, node: int | None) -> Today:
        """Return what the cluster reports about removed offsets (today.py)."""
        from kgroup.admin.read.today import today

        return today(self._cluster, node)

    def examine(
        self, group_ids: Iterable[str], *, window_ms: int, left_out: Iterable[str], patience_s: float
    ) -> Examined:
        """Return a check-up of all these groups, made together (doctor.py)."""
        from kgroup.admin.diagnose.doctor import examine_all

        return examine_all(
            self._cluster, group_ids, window_ms=window_ms, left_out=left_out, patience_s=patience_s
        )

    def rights(self, commands: Iterable[str], asked: Asked) -> tuple[Ability, ...]:
        """Return which kgroup commands this principal can use, and what it lacks (rights/report.py)."""
        from kgroup.admin.rights.report import abilities

        return abilities(self._cluster, commands, asked)

    def wait_for(
        self,
        groups: Iterable[str] | Find,
        condition: Condition,
        timeout_s: float,
        interval_s: float = 0.2,
        note: Callable[[str], None] = lambda text: None,
    ) -> tuple[tuple[Waited, ...], tuple[ItemError, ...]]:
        """Poll groups until a condition holds for all of them, or time is up (conditions.py)."""
        from kgroup.admin.read.conditions import wait_for

        return wait_for(self._cluster, groups, condition, timeout_s, interval_s, note)

    def look_until(self, find: Find, limit_s: float, interval_s: float) -> Iterator[Looks]:
        """Poll groups in full, a last time when time is up (conditions.py)."""
        from kgroup.admin.read.conditions import look_until

        return look_until(self._cluster, find, limit_s, interval_s, offsets=True)

    def find_coordinator(self, group_ids: Iterable[str]) -> tuple[GroupLocation, ...]:
        """Return each group's coordinator and offsets partition, existing or not; raise the first failure."""
        from kgroup.admin.discovery import locate

        return locate(self._cluster, group_ids)

    def lag(
        self, group_ids: Iterable[str], *, times: bool = False, interval_s: float | None = None
    ) -> LagReport:
        """Return each group's lag (`times`: in time too); `errors` and rows name what cannot be read."""
        from kgroup.admin.read.lag_report import measure

        return measure(self._cluster, group_ids, times=times, interval_s=interval_s)

    def lag_each(self, group_ids: Iterable[str], *, times: bool = False) -> Iterator[LagReport]:
        """Yield the lag of groups, in rounds and in the order given: for results too large for memory."""
        from kgroup.admin.read.lag_report import measure_each

        return measure_each(self._cluster, group_ids, times=times)

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | KgroupError]:
        """Return each partition's offset at a time in ms, or LATEST, EARLIEST, MAX_TIMESTAMP (offsets.py)."""
        from kgroup.admin.read.offsets import list_offsets

        return list_offsets(self._cluster, wanted)

    def records(self, within_s: float) -> Records:
        """Return the records of the cluster's topics; each poll ends within `within_s`."""
        from kgroup.admin.read.records import Records

        return Records(self._cluster, within_s)

    def plan_remove_members(self, group_id: str, selection: Selection, reason: str | None = None) -> Plan:
        """Return who would be removed from a classic or consumer group, and the effect; changes nothing."""
        from kgroup.admin.change.remove_members import plan

        return plan(self._cluster, group_id, selection, reason)

    def execute(self, plan: Plan) -> Execution:
        """Execute a plan item by item and record it; raise SafetyRefused when the group has changed."""
        from kgroup.admin.change import remove_members

        return remove_members.recorded(self._cluster, self.journal, plan)

    def plan_reset_offsets(
        self,
        group_ids: Iterable[str],
        spec: Spec,
        scope: Scope,
        reason: str | None = None,
        share: Collection[str] = (),
        create: bool = True,
    ) -> OffsetsPlan:
        """Return where a reset would move each partition, and which groups it would refuse (reset.py)."""
        from kgroup.admin.change.reset import plan_reset

        return plan_reset(self._cluster, group_ids, spec, scope, reason, share, create)

    def import_drafts(
        self, wanted: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> dict[str, dict[TopicPartition, Draft]]:
        """Return the draft for each partition, or why there is none: the partition is absent or hidden."""
        from kgroup.admin.change.offset_plans import imported

        return imported(self._cluster, wanted)

    def hints_for_absent(self, now: Mapping[str, GroupNow], typed: Iterable[str]) -> dict[str, str]:
        """Return how to go on for each group that was typed and does not exist."""
        from kgroup.admin.change.offset_plans import hints_for_absent

        return hints_for_absent(self._cluster, now, typed)

    def with_unread(self, plan: OffsetsPlan, now: Mapping[str, GroupNow]) -> OffsetsPlan:
        """Return a plan of deletions that says how many records each of them leaves unread."""
        from kgroup.admin.change.unread import unread_offsets, with_unread

        return with_unread(plan, unread_offsets(self._cluster, now))

    def plan_undo(self, entry_id: str, group_ids: Iterable[str] = ()) -> OffsetsPlan:
        """Return how to undo a journalled change of offsets (or LAST); raise SafetyRefused if they moved."""
        from kgroup.admin.change.undo import plan_undo

        return plan_undo(self._cluster, self.journal, entry_id, group_ids)

    def execute_offsets(
        self, plan: OffsetsPlan, progress: Callable[[int], None] = lambda count: None
    ) -> OffsetsExecution:
        """Execute a plan of offsets and record it; items of active and changed groups are refused."""
        from kgroup.admin.change.offset_changes import execute

        return execute(self._cluster, self.journal, plan, progress)

    def plan_delete_groups(self, group_ids: Iterable[str]) -> tuple[GroupResult, ...]:
        """Return the effect of deleting the groups: planned, not_found, or failed with the reason."""
        from kgroup.admin.change import delete

        return delete.plan(self._cluster, group_ids)

    def delete_groups(self, group_ids: Iterable[str], reason: str | None = None) -> Deletion:
        """Delete empty groups with their offsets; the journal keeps the offsets."""
        from kgroup.admin.change import delete

        return delete.recorded(self._cluster, self.journal, list(dict.fromkeys(group_ids)), reason)

    def evidence(self, group_id: str, *, read_log: bool = False) -> Evidence:
        """Return what decides a group's migration (migrate/evidence.py)."""
        from kgroup.admin.migrate.evidence import gather

        return gather(self._cluster, group_id, read_log=read_log)

    def evidence_each(self, group_ids: Iterable[str]) -> Answers[Evidence]:
        """Return the same for many groups, in one pass, or why it is unknown for one of them."""
        from kgroup.admin.migrate.evidence import gather_all

        return gather_all(self._cluster, group_ids)

    def logged(self, group_id: str) -> Logged | None:
        """Return what only the group's records show; None for a group without records."""
        from kgroup.admin.migrate.evidence import read_logged

        found = read_logged(self._cluster, [group_id])[group_id]
        if isinstance(found, KgroupError):
            raise found
        return found

    def history(self, group_id: str | None = None) -> Story:
        """Return the history of a group, or of all; raise BrokerRefused without the right (history.py)."""
        from kgroup.admin.read.history import story_of

        return story_of(self._cluster, group_id)

    def plan_migration(
        self, group_id: str, direction: str, *, patterns: Sequence[str] = (), read_log: bool = False
    ) -> MigrationPlan:
        """Return how the broker would answer a roll of the group's clients now; changes nothing."""
        from kgroup.admin.migrate.plan import plan

        return plan(self._cluster, group_id, direction, patterns=patterns, read_log=read_log)

    def plan_static(self, group_id: str, *, read_log: bool = False) -> MigrationPlan:
        """Return the steps that give every member of a group an instance id (migrate/static.py)."""
        from kgroup.admin.migrate.static import plan_static

        return plan_static(self._cluster, group_id, read_log=read_log)

    def plan_fleet(
        self, group_ids: Iterable[str], *, patterns: Sequence[str] = (), read_log: bool = False
    ) -> Fleet:
        """Return the upgrade plans of many groups, in one pass (migrate/fleet.py)."""
        from kgroup.admin.migrate.fleet import plan_fleet

        return plan_fleet(self._cluster, group_ids, patterns=patterns, read_log=read_log)

    def against_kafka_5(self, fleet: Fleet) -> tuple[Check, ...]:
        """Return what blocks these brokers and groups from Kafka 5.0 (migrate/release.py)."""
        from kgroup.admin.migrate.release import against_kafka_5

        return against_kafka_5(self._cluster, fleet)

    def convert_empty(self, plan: MigrationPlan) -> Conversion:
        """Convert an empty group to the other protocol, and record it (migrate/execute.py)."""
        from kgroup.admin.migrate.execute import convert_empty

        return convert_empty(self._cluster, plan, self.journal)

    def watch_migration(
        self,
        group_id: str,
        direction: str,
        *,
        interval_s: float,
        stuck_after_s: float,
        stop_after_s: float = float("inf"),
    ) -> Iterator[Look]:
        """Poll a migration until it is done or stuck, or time is up (migrate/watch.py)."""
        from kgroup.admin.migrate.watch import Tracker, watch

        tracker = Tracker(group_id, direction, int(stuck_after_s * 1000))
        return watch(self._cluster, tracker, interval_s, stop_after_s)

    def run_waves(
        self,
        waves: Sequence[Wave],
        runs: Sequence[WaveRun],
        store: Callable[[Sequence[WaveRun]], None],
        options: Options,
    ) -> WavesRun:
        """Return a run over waves that resumes at `runs`; its `go` completes it (migrate/run.py)."""
        from kgroup.admin.migrate.run import WavesRun

        return WavesRun(self._cluster, self.journal, waves, list(runs), store, options)

    def group_settings(self, group_id: str) -> tuple[Setting, ...]:
        """Return a group's settings by name; the group need not exist."""
        from kgroup.admin.settings import group_settings

        return group_settings(self._cluster, group_id)

    def check_settings(self, group_id: str, changes: Mapping[str, str | None]) -> None:
        """Raise the broker's refusal unless it would accept these settings of a group (None: its default)."""
        from kgroup.admin.settings import alter_group

        alter_group(self._cluster, group_id, changes, validate_only=True)

    def change_settings(
        self,
        group_id: str,
        changes: Mapping[str, str | None],
        before: Iterable[Setting],
        reason: str | None = None,
    ) -> str:
        """Change settings of a group, all or none, and record it; return the journal entry's id."""
        from kgroup.admin.change import settings

        change = settings.SettingsChange("config set", group_id, changes, tuple(before), reason)
        return settings.execute(self._cluster, self.journal, change)

    def plan_registration(self, group_id: str, wanted: Registering) -> RegistrationPlan:
        """Return the effect of registering or removing instance ids; changes nothing (registering.py)."""
        from kgroup.admin.change.registering import plan

        return plan(self._cluster, group_id, wanted)

    def execute_registration(self, plan: RegistrationPlan, reason: str | None = None) -> str:
        """Execute a plan of registrations, and record it; return the journal entry's id."""
        from kgroup.admin.change.registering import execute

        return execute(self._cluster, self.journal, plan, reason)

    def cluster_id(self, *, ask: bool = True) -> str | None:
        """Return the cluster's id; without `ask` None until an answer has reported it."""
        return self._cluster.cluster_id(ask=ask)

    def cluster_status(self) -> ClusterStatus:
        """Return brokers, controller, and the numbers of topics and partitions."""
        from kgroup.admin.topics import cluster_status

        return cluster_status(self._cluster)

    def topics(self, names: Iterable[str] | None = None) -> tuple[TopicDescription, ...]:
        """Return the topics named, or all, by name; raise for a named one that cannot be described."""
        from kgroup.admin.topics import topics

        return topics(self._cluster, names)

    def list_topics(self) -> tuple[tuple[TopicDescription, ...], tuple[ItemError, ...]]:
        """Return the visible topics by name, and errors for the others."""
        from kgroup.admin.topics import list_topics

        return list_topics(self._cluster)

    def find_topics(self, names: Iterable[str]) -> Answers[TopicDescription]:
        """Return each of the topics, or why it cannot be described."""
        return self._cluster.topics(names)

    def sees_every_topic(self) -> bool:
        """Return whether this principal may see every topic and committed offset."""
        from kgroup.admin.read.visibility import sees_every_topic

        return sees_every_topic(self._cluster)

    def may_not_see(self, topic: str) -> tuple[ItemError, ...]:
        """Report that brokers omit this topic's offsets where the principal may not describe it."""
        from kgroup.admin.read.visibility import may_not_see

        return may_not_see(self._cluster, topic)

    @property
    def acls(self) -> Acls:
        """The access rules of the cluster."""
        from kgroup.admin.acls import Acls

        return Acls(self._cluster)

    @property
    def users(self) -> Users:
        """The SCRAM users of the cluster."""
        from kgroup.admin.users import Users

        return Users(self._cluster)

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> TopicDescription:
        """Create a topic; -1 leaves a number to the broker's default."""
        from kgroup.admin.topics import create_topic

        return create_topic(self._cluster, name, partitions, replication_factor, configs)

    @property
    def journal(self) -> Journal:
        """Where this Admin's changes are recorded."""
        if self._journal is None:
            from kgroup.admin.change.journal import Journal

            self._journal = Journal.default()
        return self._journal

    def produce(
        self, topic: str, records: Sequence[LogRecord], partition: int | None = None
    ) -> tuple[TopicPartition, ...]:
        """Append records to a topic, and return where each went (topic_records.py)."""
        from kgroup.admin.topic_records import produce

        return produce(self._cluster, topic, records, partition)

    def read(self, topic: str, partition: int | None = None) -> tuple[Record, ...]:
        """Return the records that a topic has now, only committed ones (topic_records.py)."""
        from kgroup.admin.topic_records import read

        return read(self._cluster, topic, partition)

    def change(
        self, command: str, plan: JsonObject, before: JsonObject, items: Sequence[JsonObject]
    ) -> AbstractContextManager[Change]:
        """Bracket the requests of a change, so that it is recorded (Journal.change)."""
        from kgroup.admin.change.offset_plans import actor

        made = {"actor": actor(), **plan}
        return self.journal.change(command, self._cluster.cluster_id(), made, before, items)
