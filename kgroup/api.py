"""A cluster for programs: the commands' work as typed functions that print nothing.

`Kafka` is what `kgroup.connect` returns; `kgroup.testing.Cluster` is one with its own brokers. Besides the
command line, only these and the values they return are stable. What a function could not see is None in the
value, or raises: `Incomplete` has the rest. Every error is a `KgroupError`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import (
    ChangeStatus,
    Execution,
    GroupDescription,
    GroupListing,
    ItemError,
    Member,
    TopicDescription,
)
from kgroup.admin.read.conditions import Condition, Waited
from kgroup.admin.read.lag_report import GroupLag
from kgroup.admin.topic_records import Record
from kgroup.arguments import checked, fits
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.domain import TopicPartition, count_of
from kgroup.durations import iso
from kgroup.errors import (
    BrokerRefused,
    ConfigError,
    ErrorCode,
    FaultUnused,
    GroupNotFound,
    Incomplete,
    KgroupError,
    SafetyRefused,
    TimedOut,
    Unreachable,
)
from kgroup.history.fold.events import Event, Kind
from kgroup.protocol.log_records import LogRecord

if TYPE_CHECKING:  # a test that imports kgroup.testing does not wait for them
    from kgroup.admin.change.offset_changes import OffsetsExecution
    from kgroup.admin.diagnose.doctor import Checkup
    from kgroup.admin.migrate.models import MigrationPlan
    from kgroup.admin.migrate.rehearse import Rehearsal
    from kgroup.admin.read.verifying import Verdict
    from kgroup.history.fold.explain import Blame
    from kgroup.history.log_items import BadRange

__all__ = [
    "BrokerRefused",
    "ConfigError",
    "Event",
    "Execution",
    "FaultUnused",
    "GroupDescription",
    "GroupLag",
    "GroupListing",
    "GroupNotFound",
    "Incomplete",
    "Kafka",
    "Kind",
    "KgroupError",
    "Member",
    "Record",
    "SafetyRefused",
    "TimedOut",
    "TopicDescription",
    "TopicPartition",
    "Unreachable",
    "Waited",
]

T = TypeVar("T")
Data: TypeAlias = bytes | str | None
"""A key or a value; text is written as UTF-8."""
LAST_EVENTS = 30
INT32_MAX = (1 << 31) - 1
DONE = (ChangeStatus.DONE, ChangeStatus.REMOVED, ChangeStatus.DELETED, ChangeStatus.UNCHANGED)


class Kafka:
    """One cluster, by its addresses; threads may share it, and are served one at a time.

    `properties` are a client's, by Java's or librdkafka's names. `timeout_s` limits each function, retries
    included. Changes are recorded in `journal`, by default the user's; brokers see `client_id`. Connections
    open on first use; as a context manager it closes them. Raises ConfigError for an unusable address or
    property.
    """

    _now_ms: Callable[[], int] | None = None
    """The cluster's time, where it is known."""

    @checked
    def __init__(
        self,
        bootstrap: str,
        properties: Mapping[str, str] | None = None,
        *,
        timeout_s: float = 30.0,
        journal: Path | None = None,
        client_id: str = "kgroup",
    ) -> None:
        from kgroup.admin.journal import Journal
        from kgroup.client.properties.given import Given
        from kgroup.client.properties.security import security_of
        from kgroup.client.retry import Retry
        from kgroup.client.transport import SocketTransport

        given = Given(properties or {})
        settings = ConnectionSettings(
            parse_bootstrap(bootstrap), security_of(given), client_id, request_timeout_s=timeout_s
        )
        self._bootstrap = bootstrap
        self._one_at_a_time = threading.RLock()
        self._admin: ClusterView | None = ClusterView(
            SocketTransport(settings),
            Retry(timeout_s=timeout_s),
            journal=Journal(journal) if journal else None,
            now_ms=self._now_ms,
        )

    @property
    def bootstrap(self) -> str:
        """The addresses that clients connect to, "HOST:PORT,…"."""
        return self._bootstrap

    def close(self) -> None:
        """Close the connections; safe to call twice."""
        with self._one_at_a_time:
            if self._admin is not None:
                self._admin.transport.close()
            self._admin = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def admin(self) -> Iterator[ClusterView]:
        """Lend the session that functions of `kgroup.admin` take, which may change, to one thread."""
        with self._one_at_a_time:
            if self._admin is None:
                raise ConfigError("the cluster does not run, or was closed", "use it inside its with block")
            yield self._admin

    def groups(self) -> tuple[GroupListing, ...]:
        """Return the groups of all brokers, by id; raise Incomplete where some may be hidden."""
        from kgroup.admin.read.listing import list_groups

        with self.admin() as admin:
            listing = list_groups(admin)
        _refuse_gaps(listing.errors, listing.groups)
        return listing.groups

    @checked
    def describe(self, group: str) -> GroupDescription:
        """Return a group with members, committed offsets and lag; raise GroupNotFound.

        A value that no broker reported is None, and `errors` says why.
        """
        from kgroup.admin.read.describe import describe

        with self.admin() as admin:
            description = describe(admin, [group])
        return _the_one(description.groups, description.errors)

    @checked
    def lag(self, group: str, *, times: bool = False) -> GroupLag:
        """Return a group's lag in records, with `times` in ms, too; raise GroupNotFound.

        A total is None where any part is unknown, and `errors` says why.
        """
        from kgroup.admin.read.lag_report import measure

        with self.admin() as admin:
            report = measure(admin, [group], times=times)
        return _the_one(report.groups, report.errors)

    @checked
    def doctor(self, group: str, *, patience_s: float = 2.0) -> Checkup:
        """Return a group's faults, worst first, and what could not be checked; raise GroupNotFound."""
        from kgroup.admin.diagnose.doctor import examine_all

        with self.admin() as admin:
            examined = examine_all(admin, [group], window_ms=3_600_000, left_out=(), patience_s=patience_s)
        return _the_one(examined.checkups, examined.errors)

    @checked
    def history(self, group: str) -> tuple[Event, ...]:
        """Return a group's events, in the order of the log, as `kgroup replay-log` shows them.

        An event `log-compacted` marks missing history. Raise BrokerRefused where `__consumer_offsets` may not
        be read, Incomplete where a part of it is damaged; both also before a cluster's first group.
        """
        from kgroup.admin.read.history import story_of

        with self.admin() as admin:
            story = story_of(admin, group)
        _refuse_gaps(_errors_of(story.bad), tuple(story.events))
        return tuple(story.events)

    @checked
    def blame(self, group: str) -> tuple[Blame, ...]:
        """Return the cause and the evidence of a group's last rebalance, rewind, deletion and conversion."""
        from kgroup.history.fold.explain import blame

        return tuple(blame(self.history(group), group))

    @checked
    def verify_history(self, group: str) -> Verdict:
        """Compare a group with what its records make of it; raise GroupNotFound.

        No `differences` means that they agree, in all but what is `uncompared`.
        """
        from kgroup.admin.read.source import Groups, source_of
        from kgroup.admin.read.verifying import compare

        with self.admin() as admin:
            comparison = compare(source_of(admin, [group]), Groups([group]))
        if group not in comparison.verdicts:
            text = f"neither the log nor the cluster has group {group}"
            raise GroupNotFound(ErrorCode.GROUP_ID_NOT_FOUND, text)
        return comparison.verdicts[group]

    @checked
    def plan_upgrade(self, group: str) -> MigrationPlan:
        """Return whether the broker would let a group's clients move to the consumer protocol now.

        The verdict is ready, blocked, already or unknown, and holds until the next rebalance. Raise
        GroupNotFound, or BrokerRefused for a group of another kind.
        """
        from kgroup.admin.migrate.models import UPGRADE
        from kgroup.admin.migrate.plan import plan_migration

        with self.admin() as admin:
            return plan_migration(admin, group, UPGRADE)

    @checked
    def rehearse_upgrade(self, group: str, settings: Mapping[str, str] | None = None) -> Rehearsal:
        """Upgrade a copy of a group and downgrade it again, with other `settings` of its coordinator.

        Nothing is changed in the cluster. Raise GroupNotFound, Incomplete where records are damaged.
        """
        from kgroup.admin.migrate.rehearse_groups import check_setting, rehearse_groups
        from kgroup.admin.read.source import source_of

        for name in settings or ():
            check_setting(name)
        with self.admin() as admin:
            source = source_of(admin, [group])
            rehearsal = rehearse_groups(source, [group], settings or {})[group]
        if isinstance(rehearsal, KgroupError):
            raise rehearsal
        _refuse_gaps(_errors_of(source.damage), rehearsal)
        return rehearsal

    @checked
    def wait_for(self, group: str, condition: str, timeout_s: float = 30.0) -> Waited:
        """Return once a group is "stable", "empty", "gone", or has "members=N", "lag=N" or "member=ID".

        Raise TimedOut with the last state seen and the group's last events; ConfigError for another
        condition.
        """
        from kgroup.admin.read.conditions import wait_for

        with self.admin() as admin:
            ended, errors = wait_for(admin, [group], Condition.parse(condition), timeout_s)
        for waited in ended:
            if waited.held:
                return waited
            members = "unknown" if waited.members is None else waited.members
            text = f"{waited.group_id} was not {condition} in {waited.waited_s:.1f} s"
            text += f": last seen {waited.state or 'never'}, members {members}"
            text += f": {waited.unseen.message}" if waited.unseen else ""
            raise TimedOut(text, self.last_events(group))
        raise _error_of(errors[0]) if errors else TimedOut(f"{group}: it was not seen in time")

    def topics(self) -> tuple[TopicDescription, ...]:
        """Return the topics by name, internal ones too; raise Incomplete where some may be hidden."""
        from kgroup.admin.topics import list_topics

        with self.admin() as admin:
            topics, errors = list_topics(admin)
        _refuse_gaps(errors, topics)
        return topics

    @checked
    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        settings: Mapping[str, str] | None = None,
        *,
        replicas: int = -1,
    ) -> TopicDescription:
        """Create a topic, with the broker's numbers unless given; raise BrokerRefused if it exists.

        Brokers before Kafka 2.4 need both numbers.
        """
        from kgroup.admin.topics import create_topic

        for what, number in (("partitions", partitions), ("replicas", replicas)):
            if abs(number) > INT32_MAX:
                raise ConfigError(f"{what} is {number}", f"{INT32_MAX} is the most that a request can carry")
        with self.admin() as admin:
            return create_topic(admin, name, partitions, replicas, settings)

    @checked
    def produce(
        self, topic: str, records: Iterable[Data | tuple[Data, Data]], *, partition: int | None = None
    ) -> tuple[TopicPartition, ...]:
        """Append values, or (key, value) pairs, and return where each went, in their order.

        Without `partition` they go to the topic's partitions in turn, ignoring keys.
        """
        from kgroup.admin.topic_records import produce

        made = [_record(record) for record in records]
        with self.admin() as admin:
            return produce(admin, topic, made, partition)

    @checked
    def read(self, topic: str, *, partition: int | None = None) -> tuple[Record, ...]:
        """Return the records that a topic has now, by partition and offset; only committed ones."""
        from kgroup.admin.topic_records import read

        with self.admin() as admin:
            return read(admin, topic, partition)

    @checked
    def remove_members(
        self,
        group: str,
        *,
        instance_ids: Sequence[str] = (),
        member_ids: Sequence[str] = (),
        everybody: bool = False,
        reason: str | None = None,
    ) -> Execution:
        """Remove members of a group, and record it; raise Incomplete where one was not removed.

        Raise SafetyRefused where no member is named, or the group changed meanwhile.
        """
        from kgroup.admin.change.remove_members import Selection, execute_removal, plan_removal

        selection = Selection(tuple(instance_ids), tuple(member_ids), all=everybody)
        with self.admin() as admin:
            done = execute_removal(admin, plan_removal(admin, group, selection, reason))
        failed = (
            ItemError(item.instance_id or item.member_id or "", item.error_code or "FAILED", item.effect)
            for item in done.items
            if item.result not in DONE
        )
        _refuse_gaps(tuple(failed), done)
        return done

    @checked
    def reset_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], *, reason: str | None = None
    ) -> OffsetsExecution:
        """Move committed offsets of a group without members, and record it: `kgroup` can undo it.

        An offset outside of the log is moved to its nearer end. Raise Incomplete where one was not moved.
        """
        from kgroup.admin.change.offset_changes import execute_offsets
        from kgroup.admin.change.reset import FROM_FILE, Scope, Spec, plan_reset

        with self.admin() as admin:
            spec = Spec(FROM_FILE, rows={group: offsets})
            done = execute_offsets(admin, plan_reset(admin, [group], spec, Scope(), reason))
        failed = (
            ItemError(
                str(item.tp), item.error_code or "FAILED", item.effect or f"{item.result} {item.error_code}"
            )
            for item in done.items
            if item.result not in DONE
        )
        _refuse_gaps(tuple(failed), done)
        return done

    @checked
    def delete_group(self, group: str, *, reason: str | None = None) -> None:
        """Delete a group without members, and record it; raise GroupNotFound or BrokerRefused."""
        from kgroup.admin.change.delete import delete_groups

        with self.admin() as admin:
            (item,) = delete_groups(admin, [group], reason).items
        if item.result not in DONE:
            raise _error_of(ItemError(group, item.error_code or "FAILED", f"{group}: {item.effect}"))

    @checked
    def last_events(self, group: str) -> str:
        """Return the end of a group's history as text, for a report, or why it cannot be read."""
        try:
            events = self.history(group)
        except KgroupError as error:
            return f"{group}: the history cannot be read: {error.message}"
        if not events:
            return f"{group}: there is no record of it"
        lines = [f"{group}: {count_of(len(events), 'event')}, the last of them:"]
        for event in events[-LAST_EVENTS:]:
            at = iso(event.timestamp_ms) or "time unknown,"
            lines.append(f"  {at} offset {event.offset} {event.kind}: {event.detail}")
            if event.cause:
                lines.append(f"    because: {event.cause}")
        return "\n".join(lines)


def _record(given: Data | tuple[Data, Data]) -> LogRecord:
    if not fits(given, Data | tuple[Data, Data]):
        hint = "it is text, bytes or None, or a pair of a key and a value of these"
        raise ConfigError(f"a record is {given!r}", hint)
    key, value = given if isinstance(given, tuple) else (None, given)
    return LogRecord(_bytes(key), _bytes(value))


def _bytes(data: Data) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def _the_one(results: Sequence[T], errors: Sequence[ItemError]) -> T:
    if results:
        return results[0]
    raise _error_of(errors[0])


def _errors_of(damage: Iterable[BadRange]) -> tuple[ItemError, ...]:
    return tuple(ItemError(bad.source, bad.code, str(bad)) for bad in damage)


def _refuse_gaps(errors: Sequence[ItemError], result: object) -> None:
    if errors:
        gaps = "; ".join(f"{error.item}: {error.message or error.code}" for error in errors)
        raise Incomplete(f"not everything was seen or done: {gaps}", errors[0].hint, result)


def _error_of(error: ItemError) -> KgroupError:
    if error.code == ErrorCode.GROUP_ID_NOT_FOUND.name:
        return GroupNotFound(ErrorCode.GROUP_ID_NOT_FOUND, error.message, hint=error.hint)
    if error.code in ErrorCode.__members__:
        return BrokerRefused(ErrorCode[error.code], error.message, hint=error.hint)
    return (Unreachable if error.code == "UNREACHABLE" else KgroupError)(error.message, error.hint)
